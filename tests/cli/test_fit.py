"""`shoal fit`: what it writes, that labels are only for scoring, and its end."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

import shoal as package
from shoal.datasets import load_penguins, make_latent_shift
from shoal.io.model._models import read_manifest

FILES = {
    "assignments.parquet",
    "class_counts.csv",
    "diagnostics.json",
    "draws.npz",
    "model",
    "prevalence.csv",
    "report.html",
    "run.json",
    "summary.json",
}
FIT = ["fit", "penguins.csv", "--domain", "island", "--k", "3", "--bootstrap", "20"]


def test_files_say_the_same(fitted: Path):
    assert {path.name for path in fitted.iterdir()} == FILES
    model = package.load(fitted)
    prevalence = pd.read_csv(fitted / "prevalence.csv")
    assert list(prevalence.columns) == [
        "domain",
        "class_id",
        "class_name",
        "estimate",
        "lo",
        "hi",
        "level",
        "n_rows",
        "flag",
    ]
    table = prevalence.pivot(index="domain", columns="class_id", values="estimate")
    assert_allclose(table, model.prevalence_)
    with np.load(fitted / "draws.npz", allow_pickle=False) as content:
        assert content["draws"].shape == (20, 3, 3)
        assert content["domains"].tolist() == model.domains_.tolist()
    rows = pd.read_parquet(fitted / "assignments.parquet")
    penguins = load_penguins()
    proba = model.predict_proba(penguins.X, penguins.domains)
    assert_allclose(rows.filter(like="p_c"), proba, atol=1e-12)
    assert rows["row_id"].tolist() == [str(number) for number in range(342)]
    assert ((proba.max(axis=1) < 0.8) == rows["unsure"]).all()
    diagnosis = json.loads((fitted / "diagnostics.json").read_text())
    assert diagnosis["verdict"] == "caution"
    run = json.loads((fitted / "run.json").read_text())
    assert (run["command"], run["seed"]) == ("fit", 0)
    assert "--domain" in run["arguments"]
    assert set(run["files"]) >= {"report.html", "model/manifest.json"}


def test_labels_change_nothing_but_the_score(cli, fitted: Path, tmp_path: Path):
    """Shuffled labels give the same model; only the agreement with them falls."""
    frame = pd.read_csv(tmp_path / "penguins.csv")
    frame["species"] = frame["species"].sample(frac=1, random_state=0).to_numpy()
    frame.to_csv(tmp_path / "penguins.csv", index=False)
    more = ["--label", "species", "--id", "bird", "--out", "shuffled"]
    assert cli(*FIT, *more).code == 0
    other = tmp_path / "shuffled"
    for name in ("prevalence.csv", "assignments.parquet", "diagnostics.json"):
        assert (other / name).read_bytes() == (fitted / name).read_bytes()
    scores = [
        json.loads((run / "summary.json").read_text())["score"]["accuracy"]
        for run in (fitted, other)
    ]
    assert scores[0] > 0.98 > 0.6 > scores[1]


def test_names_no_report_and_strict(cli, fitted: Path, tmp_path: Path):
    """Warnings are exit code 7 under --strict; all is written all the same."""
    (tmp_path / "names.json").write_text('{"c0": "Adelie", "c1": "Gentoo"}')
    aside = ["--drop", "species,bird", "--names", "names.json", "--no-report"]
    ended = cli(*FIT, *aside, "--out", "named", "--json", "--quiet", "--strict")
    assert (ended.code, ended.stderr) == (7, "")
    document = json.loads(ended.stdout)
    assert [one["name"] for one in document["data"]["classes"]] == [
        "Adelie",
        "Gentoo",
        "c2",
    ]
    assert "Gentoo only in Biscoe" in document["messages"][0]["text"]
    written = {path.name for path in (tmp_path / "named").iterdir()}
    assert written == FILES - {"report.html"}
    rows = pd.read_parquet(tmp_path / "named" / "assignments.parquet")
    assert {"p_Adelie", "p_Gentoo", "p_c2"} <= set(rows.columns)
    assert rows["row_id"].tolist() == list(range(1, 343))


def test_an_earlier_run_is_only_replaced_by_force(cli, fitted: Path):
    before = {path: path.stat().st_mtime_ns for path in fitted.rglob("*")}
    more = ["--label", "species", "--id", "bird", "--out", "run", "--quiet"]
    refused = cli(*FIT, *more)
    assert refused.code == 2
    assert re.search(r'error\[E136\] "run" already holds a run of', refused.stderr)
    assert {path: path.stat().st_mtime_ns for path in fitted.rglob("*")} == before
    (fitted / "notes.txt").write_text("mine")
    assert cli(*FIT, *more, "--force").code == 0
    assert (fitted / "notes.txt").read_text() == "mine"
    assert (fitted / "report.html").stat().st_mtime_ns != before[fitted / "report.html"]


def test_a_saved_model_gives_way_only_by_force(cli, fitted: Path, tmp_path: Path):
    """Both in one folder: the old one would be taken for that of the run."""
    shutil.copytree(fitted / "model", tmp_path / "alone")
    more = ["--label", "species", "--id", "bird", "--out", "alone", "--quiet"]
    refused = cli(*FIT, *more, "--seed", "1")
    assert refused.code == 2
    assert 'error[E136] "alone" already holds a saved model' in refused.stderr
    assert cli(*FIT, *more, "--seed", "1", "--force").code == 0
    assert read_manifest(tmp_path / "alone")["seed"] == 1
    # a file of the same name that is nobody's model is in nobody's way
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text('{"name": "my web app"}')
    assert cli(*FIT, *more[:-3], "--out", "web", "--quiet").code == 0
    assert "web app" in (tmp_path / "web" / "manifest.json").read_text()


NOTES = {"sea": ["fish salt", "wave boat"], "land": ["hay grass", "tree cow"]}


def write_notes() -> pd.DataFrame:
    """Notes about the sea or the land, in three towns with mixes of their own."""
    rng = np.random.default_rng(0)
    rows = [
        {"town": town, "note": rng.choice(NOTES["sea" if rng.random() < p else "land"])}
        for town, p in (("Port", 0.9), ("Farm", 0.1), ("Mid", 0.5))
        for _ in range(200)
    ]
    return pd.DataFrame(rows)


def test_names_and_reruns_of_a_second_fit(cli, fitted: Path, tmp_path: Path):
    assert cli("name", "run", "--set", "c0=Adelie", "--set", "c1=Gentoo").code == 0
    fit = ["fit", "penguins.csv", "--domain", "island", "--label", "species"]
    fit += ["--bootstrap", "2", "--names", "run", "--json"]
    ended = cli(*fit, "--k", "3", "--reruns", "1", "--out", "again")
    assert ended.code == 0, ended.stderr
    names = [one["name"] for one in json.loads(ended.stdout)["data"]["classes"]]
    assert names == ["Adelie", "Gentoo", "c2"]
    summary = json.loads((tmp_path / "again" / "summary.json").read_text())
    assert summary["reruns"]["n_fits"] == 2
    assert [one["n_classes"] for one in summary["neighbours"]] == [2]

    ended = cli(*fit, "--k", "2", "--out", "fewer")
    document = json.loads(ended.stdout)
    unmatched = [one for one in document["messages"] if one["code"] == "W161"]
    kept = [one["name"] for one in document["data"]["classes"]]
    assert len(unmatched) == 1, "two of three species became one class"
    assert unmatched[0]["text"][:2] in kept
    ended = cli(*fit, "--k", "3", "--drop", "bill_length_mm", "--out", "other")
    assert ended.code == 2
    assert "E002" in ended.stdout


def test_texts_are_of_one_class_each(cli, tmp_path: Path):
    rows = write_notes()
    rows.to_csv(tmp_path / "notes.csv", index=False)
    ended = cli(
        "fit", "notes.csv", "--domain", "town", "--text", "note", "--k", "2",
        "--bootstrap", "10", "--json", "--out", "texts",
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    assert json.loads(ended.stdout)["data"]["unit"] == "rows"
    model = package.load(tmp_path / "texts")
    assert type(model).__name__ == "CountMixture"
    assert_allclose(np.sort(model.prevalence_[:, 0]), [0.1, 0.5, 0.9], atol=0.1)
    assert cli("predict", "texts", "notes.csv", "--out", "rows.csv").code == 0
    classes = pd.read_csv(tmp_path / "rows.csv")["class"]
    is_sea = rows["note"].isin(NOTES["sea"])
    assert classes.groupby(is_sea).nunique().tolist() == [1, 1]


def test_a_single_row_of_counts_for_each_domain_is_a_mix_of_words(cli, tmp_path: Path):
    shops = {"north": [81, 6, 13], "south": [18, 48, 34], "west": [45, 30, 25]}
    fruit = ["apple", "lime", "fig"]
    table = pd.DataFrame.from_dict(shops, orient="index", columns=fruit)
    table.rename_axis("shop").to_csv(tmp_path / "sales.csv")
    ended = cli(
        "fit", "sales.csv", "--domain", "shop", "--counts", "--k", "2",
        "--bootstrap", "5", "--no-report", "--out", "sales",
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    model = package.load(tmp_path / "sales")
    assert type(model).__name__ == "DiscreteMixture"
    assert_allclose(model.prevalence_.max(axis=1), [0.9, 0.8, 0.5], atol=0.02)


def test_same_data_in_other_files(cli, fitted: Path, tmp_path: Path):
    """One file per island, or CSV on stdin, or Parquet: the same prevalences."""
    frame = pd.read_csv(tmp_path / "penguins.csv").drop(columns=["species", "bird"])
    for island, part in frame.groupby("island"):
        part.drop(columns="island").to_csv(tmp_path / f"{island}.csv", index=False)
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    expected = pd.read_csv(fitted / "prevalence.csv")["estimate"]
    same = ["--k", "3", "--bootstrap", "2", "--no-report", "--quiet"]
    islands = ["Biscoe.csv", "Dream.csv", "Torgersen.csv"]
    assert cli("fit", *islands, *same, "--out", "files").code == 0
    arrow = ["fit", "all.parquet", "--domain", "island", *same, "--out", "arrow"]
    assert cli(*arrow).code == 0
    for name in ("files", "arrow"):
        found = pd.read_csv(tmp_path / name / "prevalence.csv")["estimate"]
        assert_allclose(found, expected, atol=1e-6)


def test_stdin(fitted: Path, tmp_path: Path):
    command = [sys.executable, "-m", "shoal", "check", "-", "--domain", "island"]
    ended = subprocess.run(
        [*command, "--json", "--label", "species", "--id", "bird"],
        input=(tmp_path / "penguins.csv").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["data"]["n_rows"] == 342


def test_ctrl_c_during_a_forced_fit_keeps_the_old_run(fitted: Path, tmp_path: Path):
    before = {p: p.read_bytes() for p in fitted.rglob("*") if p.is_file()}
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", *FIT, "--label", "species", "--id", "bird",
         "--out", "run", "--force"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a job in the background of a script ignores Ctrl-C, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "writing the results" in line:
            process.send_signal(signal.SIGINT)
            break
    out, rest = process.communicate()
    assert process.returncode == 130
    assert "error[E003]" in rest
    assert out == ""
    assert {p: p.read_bytes() for p in fitted.rglob("*") if p.is_file()} == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["penguins.csv", "run"]


# ---- privacy ---------------------------------------------------------------------


def test_redact_drops_rare_words(cli, tmp_path: Path):
    rows = write_notes()
    rows.loc[:4, "note"] = "Zebulon"
    rows.to_csv(tmp_path / "notes.csv", index=False)
    base = ["fit", "notes.csv", "--domain", "town", "--text", "note", "--k", "2"]
    base += ["--bootstrap", "5"]
    assert cli(*base, "--out", "open").code == 0
    assert "zebulon" in " ".join(texts_of(tmp_path / "open"))
    ended = cli(*base, "--redact", "--out", "closed")
    assert ended.code == 0
    assert "warning[W144] 5 rows hold no word that counts; left out" in ended.stderr
    assert "zebulon" not in " ".join(texts_of(tmp_path / "closed")).lower()


def texts_of(run: Path) -> list[str]:
    return [
        path.read_text(encoding="utf-8")
        for path in sorted(run.rglob("*"))
        if path.suffix in (".html", ".json", ".md", ".csv")
    ]


def test_threads_do_not_change_the_result(cli, fitted: Path, tmp_path: Path):
    more = ["--label", "species", "--id", "bird", "--threads", "1", "--no-report"]
    assert cli(*FIT, *more, "--out", "again").code == 0
    again = tmp_path / "again" / "prevalence.csv"
    assert again.read_bytes() == (fitted / "prevalence.csv").read_bytes()


def test_groups_of_domains_are_compared_in_the_report(cli, tmp_path: Path):
    penguins = load_penguins(as_frame=True)
    west = np.where(penguins.domains == "Torgersen", "west", "east")
    frame = penguins.X.assign(island=penguins.domains, side=west)
    frame.to_csv(tmp_path / "penguins.csv", index=False)
    ended = cli(*FIT, "--group", "side", "--out", "run", "--quiet")
    assert ended.code == 0, ended.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    model = package.load(tmp_path / "run")
    assert "side" not in summary["shown_columns"]
    east, west = summary["groups"]
    assert (east["group"], east["domains"], west["domains"]) == ("east", [0, 1], [2])
    assert_allclose(east["mean"], model.prevalence_[:2].mean(axis=0))
    assert "Each dot is a domain" in (tmp_path / "run" / "report.html").read_text()


def test_a_column_that_gives_the_domain_away_is_called_by_its_name(cli, tmp_path):
    """Every domain has a cluster of its own; nothing breaks, and no number is said."""
    X, domains, _ = make_latent_shift(400, n_classes=3, n_domains=4, random_state=0)
    table = pd.DataFrame(X).add_prefix("x")
    table["elevation"] = np.array([100, 350, 720, 1300])[domains]
    table["plot"] = np.array(list("ABCD"))[domains]
    table.to_csv(tmp_path / "plots.csv", index=False)
    ended = cli(
        "fit", "plots.csv", "--domain", "plot", "--bootstrap", 5, "--out", "run"
    )
    assert ended.code == 0
    assert '"elevation" alone names the domain in 100% of rows' in ended.stderr
    found = json.loads((tmp_path / "run" / "diagnostics.json").read_text())
    assert set(found["numbers"]["naming_columns"]) == set(table.columns) - {"plot"}
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "elevation" in page
    assert "column 0" not in page


def test_an_old_encoding_of_the_terminal_is_no_error(shoal, tmp_path):
    X, domains, _ = make_latent_shift(120, n_classes=2, n_domains=3, random_state=0)
    table = pd.DataFrame(X[:, :2], columns=["Âge ✓", "x"]).assign(place=domains)
    table.to_csv(tmp_path / "data.csv", index=False)
    ended = shoal("check", "data.csv", "--domain", "place", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert "?ge ?" in ended.stdout
