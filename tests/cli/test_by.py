"""`--by looks`: classes by how rows look, through every command that takes a run."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shoal as package
from shoal.cli._messages import CommandError
from shoal.cli._models import refuse_unfit
from shoal.cli._options import Encoder, Learning
from shoal.datasets import load_penguins
from shoal.metrics import matched_accuracy

BASE = ["--domain", "island", "--label", "species", "--by", "looks"]
FIT = ["fit", "birds.csv", *BASE, "--bootstrap", "10"]


@pytest.fixture
def birds(tmp_path: Path) -> pd.DataFrame:
    """The penguins as birds.csv in the folder of the test."""
    penguins = load_penguins(as_frame=True)
    frame = penguins.X.assign(island=penguins.domains, species=penguins.labels)
    frame.to_csv(tmp_path / "birds.csv", index=False)
    return frame


def gaps_in(frame: pd.DataFrame, path: Path) -> None:
    """Write the birds with one in ten measurements left out."""
    measured = frame.columns[:4]
    absent = np.random.default_rng(0).random((len(frame), 4)) < 0.1
    frame = frame.assign(**frame[measured].mask(absent))
    frame.to_csv(path, index=False)


def test_a_run_by_looks_serves_every_command(cli, birds: pd.DataFrame, tmp_path: Path):
    ended = cli(*FIT, "--out", "run", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert found["n_classes"] == 3
    assert found["evidence"].startswith("Classes by looks:")
    model = package.load(tmp_path / "run")
    assert isinstance(model, package.DensityMixture)
    assert found["evidence"] in (tmp_path / "run" / "report.html").read_text()
    assert cli("predict", "run", "birds.csv", "--out", "rows.csv").code == 0
    classes = pd.read_csv(tmp_path / "rows.csv")["class"].to_numpy()
    assert matched_accuracy(birds["species"], classes) > 0.98
    new = ["--domain-name", "Deception", "--out", "adapted"]
    assert cli("adapt", "run", "birds.csv", *new).code == 0
    assert "Deception" in package.load(tmp_path / "adapted").domains_
    assert cli("name", "run", "--set", "c0=Adelie").code == 0
    assert cli("report", "run", "birds.csv").code == 0
    assert found["evidence"] in (tmp_path / "run" / "report.html").read_text()
    assert cli("diagnose", "birds.csv", "--model", "run").code == 0


def test_shift_says_so_too(fitted: Path):
    summary = json.loads((fitted / "summary.json").read_text())
    assert summary["verdict"]["sentences"][1].startswith("Classes by shift:")


def test_cells_may_be_missing(cli, birds: pd.DataFrame, tmp_path: Path):
    """The model keeps to it: rows with gaps are classed, and described, later too."""
    gaps_in(birds, tmp_path / "birds.csv")
    ended = cli(*FIT, "--k", "3", "--reruns", "1", "--out", "run")
    assert ended.code == 0, ended.stderr
    model = package.load(tmp_path / "run")
    assert model.schema_["keep_missing"]
    assert cli("predict", "run", "birds.csv", "--out", "rows.csv").code == 0
    classes = pd.read_csv(tmp_path / "rows.csv")["class"].to_numpy()
    assert matched_accuracy(birds["species"], classes) > 0.97
    assert cli("diagnose", "birds.csv", *BASE, "--k", "3").code == 0
    assert cli("choose", "birds.csv", *BASE, "--k", "2:3", "--repeats", "0").code == 0
    assert "error[E115]" in cli(*FIT, "--k", "3", "--impute", "stop").stderr


@pytest.mark.parametrize("by", ["auto", "shift"])
def test_gaps_are_left_to_the_model_and_counted(cli, birds, tmp_path: Path, by: str):
    gaps_in(birds, tmp_path / "birds.csv")
    ended = cli(*FIT, "--by", by, "--k", "3", "--out", "run", "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    (said,) = [one for one in document["messages"] if one["code"] == "W149"]
    counts = pd.read_csv(tmp_path / "birds.csv").isna().sum()
    assert said["text"].startswith(f"{counts.sum()} missing values left open")
    kept = json.loads((tmp_path / "run" / "summary.json").read_text())["gaps"]["kept"]
    assert kept == {name: n for name, n in counts.items() if n}
    model = package.load(tmp_path / "run")
    assert model.filling_.n_missing.sum() == counts.sum()
    assert cli("predict", "run", "birds.csv", "--out", "rows.csv").code == 0
    classes = pd.read_csv(tmp_path / "rows.csv")["class"].to_numpy()
    assert matched_accuracy(birds["species"], classes) > 0.95


def test_a_fit_without_gaps_takes_them_later(cli, fitted: Path):
    frame = pd.read_csv("penguins.csv")
    frame.loc[3, "body_mass_g"] = None
    frame.to_csv("new.csv", index=False)
    assert cli("predict", "run", "new.csv", "--out", "rows.csv").code == 0
    assert pd.read_csv("rows.csv")["margin"].notna().all()


def test_other_ways_to_treat_gaps_are_options(cli, birds, tmp_path: Path):
    gaps_in(birds, tmp_path / "birds.csv")
    quick = [*FIT[:-2], "--by", "shift", "--k", "3", "--bootstrap", "2", "--force"]
    for how in ("median", "drop"):
        ended = cli(*quick, "--impute", how, "--out", "run")
        assert ended.code == 0, ended.stderr
        assert not package.load(tmp_path / "run").filling_.n_missing.any()


def test_infinite_cells_are_refused_all_the_same(cli, birds, tmp_path: Path):
    birds.iloc[3, 0], birds.iloc[5, 0] = np.inf, np.nan
    birds.to_csv(tmp_path / "birds.csv", index=False)
    assert "error[E115] 1 infinite value in 1 column" in cli(*FIT).stderr


def test_gaps_do_not_make_a_rare_value_common(cli, birds, tmp_path: Path):
    sex = np.where(np.arange(len(birds)) % 2, "male", "female").astype(object)
    sex[:5], sex[100:140] = "unheard-of", None
    birds.assign(sex=sex).to_csv(tmp_path / "birds.csv", index=False)
    ended = cli(*FIT, "--k", "3", "--redact", "--out", "run")
    assert ended.code == 0, ended.stderr
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"unheard-of" not in path.read_bytes()


def test_more_classes_than_domains_are_said(cli, birds):
    ended = cli(*FIT, "--k", "4", "--out", "run", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert found["n_classes"] == 4
    assert found["evidence"].startswith("Classes by looks alone: 4 classes")
    status = {one["code"]: one["status"] for one in found["findings"]}
    assert status["E112"] == "caution"
    refused = cli(*FIT, "--k", "4", "--by", "shift")
    assert "error[E112]" in refused.stderr
    assert "or --by looks" in refused.stderr


def test_images_are_refused_before_any_work():
    with pytest.raises(CommandError, match="not for images"):
        refuse_unfit(Encoder(encoder="weights.pt"), Learning(by="looks"))
    refuse_unfit(Encoder(encoder="weights.pt"), Learning())


def test_a_fitted_model_has_its_evidence(cli, fitted: Path):
    ended = cli("diagnose", "penguins.csv", "--model", "run", "--by", "looks")
    assert "error[E002] --by is for a new fit" in ended.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fit birds.csv --by hearsay", "by must be auto, shift or looks"),
        ("fit birds.csv --by looks --engine local", "not for data read in parts"),
        ("fit birds.csv --by looks --impute guess", "is not a way to fill"),
    ],
)
def test_what_has_no_looks_is_refused(cli, birds, command, said):
    aside = ["--drop", "species"] if "birds" in command else []
    ended = cli(*command.split(), "--domain", "island", *aside)
    assert ended.code == 2
    assert "error[E002]" in ended.stderr
    assert said in ended.stderr
