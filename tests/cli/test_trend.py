"""`shoal trend`: a run and its rows in; smoothed shares, changes and a figure out."""

import json
import re
from contextlib import chdir

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import shoal
from shoal.cli import main
from shoal.datasets import make_latent_shift

FIT = "fit rows.csv --domain year --k 2 --bootstrap 5 --out run --quiet --no-report"


@pytest.fixture(scope="module")
def fitted_years(tmp_path_factory):
    """A folder with rows of ten years, the fit of them, and a planted change."""
    folder = tmp_path_factory.mktemp("years")
    rng = np.random.default_rng(0)
    year = np.repeat(np.arange(2001, 2011), 80)
    kind = rng.random(len(year)) < np.where(year < 2006, 0.25, 0.75)
    X = 4.0 * kind[:, None] + rng.normal(size=(len(year), 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(year=year)
    frame.to_csv(folder / "rows.csv", index=False)
    when = pd.to_datetime([f"{one}-06-30" for one in year])
    frame.assign(when=when.strftime("%Y-%m-%d"), word="spring").to_csv(
        folder / "more.csv", index=False
    )
    with chdir(folder), pytest.raises(SystemExit) as end:
        main(FIT.split())
    assert end.value.code == 0
    return folder


@pytest.fixture
def here(cli, fitted_years, monkeypatch):
    """The command line in that folder."""
    monkeypatch.chdir(fitted_years)
    return cli


def test_it_is_the_trend_of_the_library(here, fitted_years, tmp_path):
    out = tmp_path / "out"
    ended = here("trend", "run", "rows.csv", "--seed", 3, "--out", out, "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    table, model = pd.read_csv("rows.csv"), shoal.load("run")
    X, years = table[["a", "b"]].to_numpy(), table["year"].to_numpy()
    known = model.domains_.tolist()
    domains = years if years[0] in known else years.astype(str)
    found = shoal.trend(model, X, domains, random_state=3)
    assert document["data"] == json.loads(json.dumps(found.to_dict()))
    assert [one["first"] for one in document["data"]["changes"]] == [2006]
    assert_allclose(
        pd.read_csv(out / "trend.csv")["estimate"], found.prevalence.ravel()
    )
    assert json.loads((out / "trend.json").read_text()) == document["data"]
    assert (out / "trend.png").read_bytes()[:4] == b"\x89PNG"
    again = here("trend", "run", "rows.csv", "--out", out)
    assert (again.code, "error[E136]" in again.stderr) == (2, True)


def test_a_column_of_dates_says_the_same(here):
    told = here("trend", "run", "more.csv", "--order", "when", "--strength", "9")
    assert told.code == 0, told.stderr
    assert "between 2005-06-30 and 2006-06-30" in told.stdout
    years = here("trend", "run", "more.csv", "--order", "year", "--strength", "9")
    assert "between 2005 and 2006" in years.stdout
    shares = [re.findall(r"\d+\.\d%", one.stdout) for one in (told, years)]
    assert len(shares[0]) == 22
    assert shares[0] == shares[1]


def test_too_few_times_are_a_warning(here, fitted_years):
    frame = pd.read_csv("more.csv")
    frame.assign(half=(frame["year"] > 2005).astype(int)).to_csv(
        "halves.csv", index=False
    )
    ended = here("trend", "run", "halves.csv", "--order", "half")
    assert ended.code == 0, ended.stderr
    assert "warning[W171] 2 times can be shuffled in so few ways" in ended.stderr
    assert "No change point" not in ended.stdout
    calm = here("trend", "run", "rows.csv", "--alarm", "0.015", "--quiet", "--json")
    assert json.loads(calm.stdout)["data"]["changes"][0]["p_value"] <= 0.015


def test_mixes_that_stay_have_no_change_point(cli):
    X, domains, _ = make_latent_shift(
        900, n_classes=2, n_domains=6, separation=3.0, random_state=0
    )
    frame = pd.DataFrame(X).assign(site=domains)
    frame.insert(0, "day", np.random.default_rng(0).integers(0, 9, len(X)))
    frame.columns = frame.columns.astype(str)
    frame.to_csv("rows.csv", index=False)
    fit = "fit rows.csv --domain site --k 2 --drop day --bootstrap 5 --out run"
    assert cli(*fit.split(), "--no-report", "--quiet").code == 0
    ended = cli("trend", "run", "rows.csv", "--order", "day")
    assert ended.code == 0, ended.stderr
    assert re.search(r"No change point \(p = 0\.\d+\)\.", ended.stdout)


@pytest.mark.parametrize(
    ("options", "exit_code", "told"),
    [
        ("more.csv --order word", 3, r"E175\] order must be numbers .* got 'spring'"),
        ("more.csv --order autumn", 3, r'E107\] "more.csv" has no column "autumn"'),
        ("more.csv rows.csv --order when", 2, r"E002\] --order when needs a single"),
        ("rows.csv --strength -1", 2, r"E002\] --strength must be"),
        ("rows.csv --alarm 5", 2, r"E002\] --alarm must be"),
        ("nowhere.csv", 3, r'E101\] no file .*"nowhere.csv"'),
    ],
)
def test_it_refuses_in_one_line(here, options, exit_code, told):
    ended = here("trend", "run", *options.split())
    assert ended.code == exit_code, ended.stderr
    assert re.search(told, ended.stderr)


# ---- `shoal fit --order` -------------------------------------------------------------


def test_a_fit_with_an_order_has_its_trend_in_the_report(here, fitted_years, tmp_path):
    out = tmp_path / "run"
    fit = f"fit more.csv --domain year --drop word --order when --k 2 --out {out}"
    ended = here(*fit.split(), "--bootstrap", "5")
    assert ended.code == 0, ended.stderr
    assert "between 2005-06-30 and 2006-06-30" in ended.stdout
    summary = json.loads((out / "summary.json").read_text())
    roles = {one["name"]: one["role"] for one in summary["columns"]}
    assert (roles["when"], roles["year"]) == ("order", "domain")
    frame, model = pd.read_csv("more.csv"), shoal.load(out)
    found = shoal.trend(
        model, frame[["a", "b"]].to_numpy(), order=frame["when"], random_state=0
    )
    assert_allclose(
        [one["estimate"] for one in summary["trend"]["shares"]],
        found.prevalence.ravel(),
    )
    page = (out / "report.html").read_text()
    section = page[page.index('id="trend"') : page.index('id="classes"')]
    assert section.count('class="null"') == 2 * len(found.changes) == 2
    assert section.count('class="dot faint"') == 20
    assert "2005-06-30 and 2006-06-30" in section
    assert here("report", out, "--sections", "trend").code == 0


def test_redacted_runs_have_no_trend(here, tmp_path):
    out = tmp_path / "run"
    fit = f"fit more.csv --domain year --order year --drop word,when --k 2 --out {out}"
    ended = here(*fit.split(), "--bootstrap", "5", "--redact")
    assert ended.code == 0, ended.stderr
    assert 'id="trend"' not in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "exit_code", "told"),
    [
        ("more.csv --domain year --order word", 3, r"E175\] order must be numbers"),
        ("more.csv --domain year --order day", 3, r'E107\] .*"day"'),
        ("more.csv --domain year --order a --features a,b", 2, r"E002\].*--order and"),
    ],
)
def test_a_fit_refuses_an_order_before_it_works(here, options, exit_code, told):
    ended = here("fit", *options.split(), "--drop", "word,when")
    assert ended.code == exit_code, ended.stderr
    assert re.search(told, ended.stderr)
    assert "finding the classes" not in ended.stderr


def test_bags_of_words_have_no_order(cli):
    rng = np.random.default_rng(0)
    words = pd.DataFrame(rng.poisson(3, (9, 5)), columns=list("abcde"))
    words.assign(day=range(9), talk=range(9)).to_csv("talks.csv", index=False)
    asked = "fit talks.csv --counts --domain talk --order day --k 2"
    ended = cli(*asked.split())
    assert ended.code == 2, ended.stderr
    assert "E002] --order is for rows of one class each" in ended.stderr
