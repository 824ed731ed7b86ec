"""`--redact`: planted secrets are in no file and in no word of any command."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shoal.report
from shoal.cli import main
from shoal.cli._messages import allowed, catalogue
from shoal.cli._output import Output
from shoal.datasets import load_penguins

#: In ids, in a rare category, in a rare domain, in a column not used, in labels.
SECRETS = ("patient-", "Smallville", "Quixworth", "Zebulon", "Mudskipper")
READ = ["--domain", "island", "--label", "species", "--id", "who"]


def birds() -> pd.DataFrame:
    penguins = load_penguins(as_frame=True)
    frame = penguins.X.assign(island=penguins.domains, species=penguins.labels)
    frame["who"] = [f"patient-{number:03d}" for number in range(len(frame))]
    frame["city"] = np.where(np.arange(len(frame)) % 2, "Northtown", "Southtown")
    frame.loc[3, "city"] = "Smallville"
    frame["keeper"] = "Zebulon"
    frame.loc[5:9, "species"] = "Mudskipper"
    frame.loc[20:26, "island"] = "Quixworth Rock"
    return frame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with secrets in all places, and redacted fits of all and of most."""
    folder = tmp_path_factory.mktemp("secret")
    frame = birds()
    frame.to_csv(folder / "birds.csv", index=False)
    known = frame[frame["island"] != "Quixworth Rock"].copy()
    known.to_csv(folder / "known.csv", index=False)
    known.loc[known.index[0], "city"] = "Smallville Heights"
    known.to_csv(folder / "new.csv", index=False)
    for data, out in (("birds.csv", "closed"), ("known.csv", "most")):
        fit = ["fit", data, *READ, "--k", "3", "--bootstrap", "5", "--redact"]
        with chdir(folder), pytest.raises(SystemExit) as end:
            main([*fit, "--out", out, "--quiet"])
        assert end.value.code == 0
    return folder


@pytest.fixture
def secret(cli, made: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def found_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret.lower() in text.lower()]


def contents(path: Path) -> str:
    """All that a file says, unpacked."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_csv()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as packed:
            return " ".join(str(packed[name].tolist()) for name in packed)
    return path.read_bytes().decode(errors="replace")


def leaks(folder: Path) -> dict[str, list[str]]:
    """Files below a folder that hold a secret, and which."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files
    found = {path.name: found_in(contents(path)) for path in files}
    return {name: secrets for name, secrets in found.items() if secrets}


def test_an_open_fit_holds_the_secrets(cli, tmp_path: Path):
    birds().to_csv(tmp_path / "birds.csv", index=False)
    fit = ["fit", "birds.csv", *READ, "--k", "3", "--bootstrap", "5"]
    assert cli(*fit, "--out", "open", "--quiet").code == 0
    held = {secret for found in leaks(tmp_path / "open").values() for secret in found}
    assert held == set(SECRETS) - {"Zebulon"}


def test_a_fit_holds_none(secret: Path):
    assert leaks(secret / "closed") == {}
    files = [path for path in (secret / "closed").rglob("*") if path.is_file()]
    assert not any("birds.csv" in contents(path) for path in files)
    counts = pd.read_csv(secret / "closed" / "class_counts.csv", index_col="domain")
    rows = pd.read_parquet(secret / "closed" / "assignments.parquet")
    assert rows["row_id"].tolist() == list(range(1, 343))
    expected = pd.crosstab(rows["domain"], rows["class"])
    assert (counts == expected.loc[counts.index, counts.columns]).all(axis=None)
    assert counts.loc["rare domain 2"].sum() == 7
    summary = json.loads((secret / "closed" / "summary.json").read_text())
    assert [one["name"] for one in summary["domains"]] == counts.index.tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "birds.csv", *READ, "--out", "out"],
        ["fit", "birds.csv", *READ, "--k", "3", "--bootstrap", "5", "--out", "out"],
        ["choose", "birds.csv", *READ, "--k", "2:3", "--repeats", "0", "--out", "out"],
        ["diagnose", "birds.csv", *READ, "--k", "3", "--permutations", "2", "--out",
         "out"],
        ["diagnose", "new.csv", "--model", "most", "--permutations", "2", "--out",
         "out"],
        ["predict", "closed", "new.csv", "--out", "out/rows.csv"],
        ["predict", "closed", "birds.csv", "--pooled", "--out", "out/rows.parquet"],
        ["adapt", "closed", "birds.csv", "--domain-name", "new", "--out", "out"],
        ["report", "most", "new.csv", "--out", "out/report.html"],
    ],
    ids=["check", "fit", "choose", "diagnose", "diagnose-model", "predict",
         "predict-pooled", "adapt", "report"],
)  # fmt: skip
def test_no_command_tells(secret: Path, cli, arguments: list[str]):
    quick = arguments[0] in ("check", "predict", "adapt")
    for more in (["--json"], ["--force"])[: 1 + quick]:  # as JSON, and as tables
        ended = cli(*arguments, "--redact", *more)
        assert ended.code == 0, ended.stderr
        assert found_in(ended.stdout) == []
        assert found_in(ended.stderr) == []
    assert leaks(secret / "out") == {}


def test_predictions_are_the_same_rows(secret: Path, cli):
    known = ["predict", "closed", "known.csv"]
    assert cli(*known, "--out", "open.csv", "--quiet").code == 0
    assert cli(*known, "--out", "shut.csv", "--quiet", "--redact").code == 0
    opened, shut = (pd.read_csv(secret / f"{name}.csv") for name in ("open", "shut"))
    assert opened["row_id"].str.startswith("patient-").all()
    assert shut["row_id"].tolist() == list(range(1, len(shut) + 1))
    pd.testing.assert_frame_equal(
        shut.drop(columns="row_id"), opened.drop(columns="row_id")
    )


@pytest.mark.parametrize(
    ("change", "command", "code"),
    [
        ({"city": "Smallville is where I was born and raised"},
         ["check", "odd.csv", *READ], "E116"),
        ({"bill_length_mm": ["Zebulon", *["1"] * 341]},
         ["check", "odd.csv", *READ], "E119"),
        ({}, ["predict", "closed", "odd.csv"], "E134"),
    ],
    ids=["E116", "E119", "E134"],
)  # fmt: skip
def test_errors_do_not_quote(secret: Path, cli, change, command, code):
    frame = birds().assign(**change)
    if code == "E116":
        frame["city"] += frame["who"]
    frame.to_csv(secret / "odd.csv", index=False)
    assert found_in(cli(*command, "--json").stdout)
    ended = cli(*command, "--redact", "--json")
    message = json.loads(ended.stdout)["messages"][-1]
    assert (message["code"], message["text"]) == (code, catalogue()[code].title)
    assert found_in(ended.stdout + ended.stderr) == []


def test_a_column_that_looks_like_a_label_is_named(cli, tmp_path: Path):
    frame = pd.DataFrame({"site": list("abc") * 30, "species": list("xy") * 45})
    frame.to_csv(tmp_path / "odd.csv", index=False)
    ended = cli("check", "odd.csv", "--domain", "site", "--redact")
    assert ended.code == 3
    assert 'error[E120] column "species" looks like a label' in ended.stderr


@pytest.mark.parametrize(
    ("code", "cell", "more"),
    [("E130", -4711, ["--counts"]), ("W148", -9999, [])],
)
def test_messages_do_not_quote_numbers(cli, tmp_path: Path, code, cell, more):
    frame = pd.DataFrame({"site": list("abc") * 30, "size": np.arange(90) * 7 % 11})
    frame.loc[[4, 50], "size"] = cell
    frame.to_csv(tmp_path / "odd.csv", index=False)
    check = ["check", "odd.csv", "--domain", "site", "--json", *more]
    assert str(cell) in cli(*check).stdout
    ended = cli(*check, "--redact")
    texts = {one["code"]: one["text"] for one in json.loads(ended.stdout)["messages"]}
    assert texts[code] == catalogue()[code].title
    assert str(cell) not in ended.stdout + ended.stderr


def test_groups_that_few_rows_share_have_no_names(cli, tmp_path: Path):
    """A rare domain alone in its group would be known by it."""
    frame = birds()
    sea = {"Biscoe": "Weddell", "Dream": "Weddell", "Quixworth Rock": "Mudskipper"}
    frame["sea"] = frame["island"].map(sea).fillna("Ross")
    frame.loc[40:45, "island"] = "Smallville Rock"
    frame.loc[40:45, "sea"] = "Ross"
    frame.to_csv(tmp_path / "birds.csv", index=False)
    fit = ["fit", "birds.csv", *READ, "--group", "sea", "--k", "3", "--bootstrap", "5"]
    assert cli(*fit, "--out", "run", "--quiet", "--redact").code == 0
    assert leaks(tmp_path / "run") == {}
    counts = pd.read_csv(tmp_path / "run" / "class_counts.csv", index_col="domain")
    assert counts["group"].to_dict() == {
        "Biscoe": "Weddell", "Dream": "Weddell", "Torgersen": "Ross",
        "rare domain 2": "rare group 3", "rare domain 3": "Ross",
    }  # fmt: skip
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "rare group 3" in json.dumps(summary["groups"])


def test_a_page_of_open_rows_is_not_drawn(fitted: Path, cli, tmp_path: Path):
    ended = cli("report", "run", "--redact", "--out", "page.html")
    assert ended.code == 6
    assert "error[E135] the summary of the run shows rows" in ended.stderr
    assert not (tmp_path / "page.html").exists()


# ---- what may be told is on a list ---------------------------------------------------


def test_what_is_not_on_the_list_is_emptied():
    told = {
        "n_rows": 3,
        "source": {"path": "Zebulon.csv", "rows": 3, "keeper": {"name": "Zebulon"}},
        "columns": [{"name": "city", "role": "feature", "reason": "such as Zebulon"}],
        "domains": {"Biscoe": 3},
        "note": "Zebulon",
        "keepers": ["Zebulon"],
        "by_keeper": {"Zebulon": 3},
        "age_of_keeper": 41,
    }
    assert allowed(told) == {
        "n_rows": 3,
        "source": {"path": "", "rows": 3, "keeper": {}},
        "columns": [{"name": "city", "role": "feature", "reason": ""}],
        "domains": {"Biscoe": 3},
        "note": "",
        "keepers": [],
        "by_keeper": {},
        "age_of_keeper": None,
    }


def test_a_new_field_of_a_summary_is_redacted_by_default(secret, cli, monkeypatch):
    """Nobody has to think of --redact who adds a field."""
    summarize = shoal.report.summarize

    def with_more(*arguments, **options):
        summary = summarize(*arguments, **options)
        for record in (summary, summary["made"], summary["source"], *summary["cards"]):
            record["keeper"] = {"Zebulon": ["Smallville", "patient-001"]}
        return summary

    monkeypatch.setattr(shoal.report, "summarize", with_more)
    fit = ["fit", "birds.csv", *READ, "--k", "3", "--bootstrap", "5", "--out", "run"]
    ended = cli(*fit, "--redact", "--json")
    assert ended.code == 0, ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []
    assert leaks(secret / "run") == {}
    assert cli("report", "run", "--redact").code == 0  # all that it needs is there


def test_a_message_without_a_word_on_safety_is_not_told(capsys):
    unsafe = [code for code, told in catalogue().items() if not told.safe]
    for code in unsafe:
        output = Output("toy", redact=True)
        output.warn(code, "Zebulon", "ask Zebulon")
        assert [one.text for one in output.messages] == [catalogue()[code].title]
    assert {"E001", "E116", "E119", "E130", "E134", "E143", "W121"} <= set(unsafe)
    assert found_in(capsys.readouterr().err) == []


# ---- in parts ----------------------------------------------------------------------


@pytest.fixture
def flock(tmp_path: Path) -> Path:
    """The rows as a folder of Parquet files, all of them and without the small one."""
    frame = birds()
    for name, rows in (
        ("all", frame),
        ("most", frame[frame["island"] != "Quixworth Rock"]),
    ):
        (tmp_path / name).mkdir()
        for number in range(2):
            part = rows.iloc[number::2]
            part.to_parquet(tmp_path / name / f"{number}.parquet", index=False)
    return tmp_path


IN_PARTS = ["--domain", "island", "--id", "who", "--drop", "species", "--k", "3"]


def test_a_fit_in_parts_keeps_them_too(cli, flock: Path):
    """A rare category is not used, ids are row numbers, words say nothing."""
    fit = ["fit", "most", *IN_PARTS, "--bootstrap", "5", "--redact", "--out", "run"]
    ended = cli(*fit, "--json")
    assert ended.code in (0, 7), ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []
    assert leaks(flock / "run") == {}
    assert "Northtown" in (flock / "run" / "model" / "manifest.json").read_text()
    judged = cli("diagnose", "most", *IN_PARTS, "--redact", "--json")
    assert found_in(judged.stdout + judged.stderr) == []
    assert judged.code in (0, 4, 7), judged.stderr


@pytest.mark.parametrize(
    ("data", "more", "code", "text"),
    [
        ("all", [], 3, "error[E114] 1 of 4 domains have fewer than 10 rows"),
        ("most", ["--checkpoint", "kept"], 2, "error[E002] --checkpoint keeps rows"),
    ],
)
def test_in_parts_what_cannot_be_hidden_is_refused(cli, flock, data, more, code, text):
    ended = cli("fit", data, *IN_PARTS, "--redact", "--out", "run", *more)
    assert ended.code == code
    assert ended.stderr.startswith(text) or text in ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []
    assert not (flock / "run").exists()
    assert not (flock / "kept").exists()
