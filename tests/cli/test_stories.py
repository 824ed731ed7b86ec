"""Six people with their own files, from the raw file to the answer.

Each of them asks the command line and Python; a message may correct them once.
"""

import io
import json
import re
import shlex
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DomainMixture
from shoal.cli import main
from shoal.io import read
from support.cells import SHARES, write_cells

PLACES = np.array(["Moor", "Heath", "Wood", "Shore"])
#: The class mix of each place; two kinds of rows, far apart.
MIX = np.array([0.15, 0.4, 0.65, 0.9])
QUICK = ["--k", "2", "--bootstrap", "5", "--no-report"]
N_ROWS = 400


@pytest.fixture
def rows() -> pd.DataFrame:
    """Rows of two kinds in four places, and the kind of each, which nobody sees."""
    rng = np.random.default_rng(0)
    place = np.arange(N_ROWS) % 4
    kind = rng.random(N_ROWS) < MIX[place]
    size = rng.normal(10 + 6 * kind, 1.0).round(2)
    mass = rng.normal(30 - 12 * kind, 2.0).round(1)
    return pd.DataFrame({"site": PLACES[place], "size": size, "mass": mass})


@pytest.fixture(autouse=True)
def _in_a_folder_of_ones_own(tmp_path: Path) -> Any:
    with chdir(tmp_path):
        yield


class Person:
    """Someone at a command line, who does what a hint says, once."""

    def __init__(self, capsys: Any) -> None:
        self.capsys, self.corrections = capsys, 0

    def run(self, *arguments: str) -> str:
        """What was printed; after a failure, of the command with what its hint says."""
        code, printed = self._once(arguments)
        if code:
            hint = re.search(r"hint: (.*)", printed.err)[1]  # type: ignore[index]
            words = re.split(r",? or | to ", hint)[0]
            self.corrections += 1
            code, printed = self._once([*arguments, *shlex.split(words)])
        assert code == 0, printed.err
        return str(printed.out)

    def _once(self, arguments: Any) -> tuple[int, Any]:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        return int(end.value.code or 0), self.capsys.readouterr()


@pytest.fixture
def person(capsys: Any) -> Person:
    return Person(capsys)


def check_mix(found: Any, expected: Any = MIX) -> None:
    """One of the two classes has the expected share in every place."""
    shares = np.asarray(found)
    closest = min(np.abs(shares[:, one] - expected).max() for one in (0, 1))
    assert closest < 0.12


def mix_of(folder: str) -> pd.DataFrame:
    """Shares as a run tells them, places in the order of PLACES where these are."""
    table = pd.read_csv(Path(folder, "prevalence.csv"))
    wide = table.pivot_table(index="domain", columns="class_id", values="estimate")
    return wide.reindex(PLACES) if set(PLACES) == set(wide.index) else wide


def quick(table: Any) -> Any:
    model = DomainMixture(2, search=False, random_state=0)
    return model.fit(table.X, table.domains)


def in_order(model: Any) -> Any:
    return model.prevalence_[[list(model.domains_).index(place) for place in PLACES]]


# ---- the ecologist: semicolons, decimal commas, umlauts, gaps: needs no correction ---


def plots_csv(rows: pd.DataFrame) -> None:
    text = rows.astype(str)
    for name in ("size", "mass"):
        text[name] = text[name].str.replace(".", ",")
    text.loc[3::40, "size"] = "-"
    text.loc[7::50, "mass"] = "n/a"
    text.loc[::9, "site"] += " "
    text = text.rename(columns={"size": "Größe"})
    for name, part in {"plots.csv": text, "new.csv": text.iloc[:40]}.items():
        part.to_csv(name, sep=";", index=False, encoding="cp1252")


def test_an_ecologist(rows: pd.DataFrame, person: Person) -> None:
    plots_csv(rows)
    told = ["plots.csv", "--domain", "site"]
    seen = json.loads(person.run("check", *told, "--json"))["data"]
    assert seen["domains"] == dict.fromkeys(sorted(PLACES), N_ROWS // 4)
    roles = {one["name"]: one["role"] for one in seen["columns"]}
    assert roles == {"site": "domain", "Größe": "feature", "mass": "feature"}
    document = json.loads(person.run("fit", *told, *QUICK, "--out", "run", "--json"))
    said = {one["code"]: one["text"] for one in document["messages"]}
    assert "is not UTF-8" in said["W147"]
    assert "(Größe 10, mass 8)" in said["W149"]  # what was filled in, and counted
    check_mix(mix_of("run"))
    person.run("predict", "run", "new.csv", "--out", "new-classes.csv")
    assert len(pd.read_csv("new-classes.csv")) == 40
    person.run("adapt", "run", "new.csv", "--domain-name", "Bog")
    assert person.corrections == 0
    table = read("plots.csv", domain="site")
    assert "W149" in [one.code for one in table.messages]
    check_mix(in_order(quick(table)))


# ---- the clinician: a workbook with several sheets, dates, untidy wards --------------


def patients_xlsx(rows: pd.DataFrame) -> None:
    book = openpyxl.Workbook()
    book.active.title = "patients"
    book.active.append(["ward", "seen on", "size", "mass"])
    for place, row in enumerate(rows.itertuples()):
        day = pd.Timestamp("2024-01-01") + pd.Timedelta(days=place % 90)
        ward = row.site + " " * (place % 5 == 0)
        book.active.append([ward, day.to_pydatetime(), row.size, row.mass])
    notes = book.create_sheet("notes")
    notes.append(["asked by", "the board"])
    book.save("patients.xlsx")


def test_a_clinician(rows: pd.DataFrame, person: Person) -> None:
    patients_xlsx(rows)
    person.run("fit", "patients.xlsx", "--domain", "ward", *QUICK, "--out", "run")
    assert person.corrections == 1  # which sheet
    check_mix(mix_of("run"))
    table = read("patients.xlsx", domain="ward", sheet="patients")
    assert table.feature_names == ["size", "mass"]
    check_mix(in_order(quick(table)))


# ---- the cell biologist: an h5ad file ------------------------------------------------


def test_a_cell_biologist(person: Person) -> None:
    write_cells(Path("cells.h5ad"), seed=0)
    told = ["cells.h5ad", "--domain", "donor", "--use-rep", "X_pca"]
    person.run("fit", *told, *QUICK, "--out", "run")
    check_mix(mix_of("run"), list(SHARES.values()))
    person.run("predict", "run", "cells.h5ad", "--out", "classed.h5ad")
    assert person.corrections == 0
    table = read("cells.h5ad", domain="donor", use_rep="X_pca")
    check_mix(quick(table).prevalence_, list(SHARES.values()))


# ---- the social scientist: answers in Stata, with refusals ---------------------------


def survey_dta(rows: pd.DataFrame) -> pd.DataFrame:
    """Labels of Stata, one answer that was refused, one that was not known."""
    answers = rows.assign(
        sex=pd.Categorical(np.resize(["female", "male", "female"], N_ROWS)),
        size=rows["size"].astype(str),
        mass=rows["mass"].astype(str),
    )
    answers.loc[5::60, "size"] = "refused"
    answers.loc[9::70, "mass"] = "unknown"
    answers.to_stata("survey.dta", write_index=False)
    return answers


def test_a_social_scientist(rows: pd.DataFrame, person: Person) -> None:
    answers = survey_dta(rows)
    told = ["survey.dta", "--domain", "site"]
    person.run("fit", *told, *QUICK, "--out", "run")
    assert person.corrections == 1  # both words for "no answer" at once
    check_mix(mix_of("run"))
    # in Python with the table at hand, which an estimator alone cannot take
    with pytest.raises(ValueError, match=r"text in column 'sex'.* shoal\.io\.read\("):
        DomainMixture(2).fit(answers.drop(columns="site"), answers["site"])
    gaps = ["refused", "unknown"]
    table = read(answers.drop(columns="site"), domain=answers["site"], na=gaps)
    assert table.feature_names == ["size", "mass", "sex=female", "sex=male"]
    check_mix(in_order(quick(table)))


# ---- the researcher: arrays, pipelines, a search -------------------------------------


def test_a_researcher(rows: pd.DataFrame, person: Person) -> None:
    X, sites = rows[["size", "mass"]].to_numpy(), rows["site"].to_numpy()
    np.save("x.npy", X)
    Path("sites.txt").write_text("\n".join(sites) + "\n")
    person.run("fit", "x.npy", "--domain-file", "sites.txt", *QUICK, "--out", "run")
    assert person.corrections == 0
    check_mix(mix_of("run"))
    mixture = DomainMixture(2, search=False, random_state=0)
    pipeline = make_pipeline(StandardScaler(), mixture).set_output(transform="pandas")
    table = pipeline.fit(X, sites).transform(X)
    assert list(table.columns) == ["c0", "c1"] == sorted(mix_of("run").columns)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(mixture, {"n_classes": [2, 3]}, cv=folds).fit(X, sites)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    check_mix(in_order(pipeline[-1]))


# ---- the data engineer: Parquet, pipes, JSON, other libraries' tables ----------------


def test_a_data_engineer(
    rows: pd.DataFrame, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.to_parquet("rows.parquet")
    told = ["rows.parquet", "--domain", "site", *QUICK, "--out", "run", "--json"]
    document = json.loads(person.run("fit", *told))
    assert document["status"] in ("ok", "warning")
    check_mix(mix_of("run"))
    stream = io.BytesIO(rows.iloc[:50].to_csv(index=False).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    printed = person.run("predict", "run", "-", "--out", "-")
    assert len(pd.read_csv(io.StringIO(printed))) == 50
    assert person.corrections == 0
    expected = quick(read(rows, domain="site"))
    check_mix(in_order(expected))
    for table in (pl.from_pandas(rows), pl.from_pandas(rows).lazy(), pa.table(rows)):
        model = quick(read(table, domain="site"))
        assert_allclose(model.prevalence_, expected.prevalence_)
