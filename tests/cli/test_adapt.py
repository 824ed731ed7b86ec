"""What `shoal adapt` tells of a class that nobody has seen, and how it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.mark.parametrize("name", ["", "  "])
def test_a_domain_needs_a_name(cli, fitted: Path, tmp_path: Path, name):
    ended = cli("adapt", "run", "penguins.csv", "--domain-name", name, "--out", "new")
    assert ended.code == 2
    assert "error[E002] --domain-name is empty" in ended.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("planted", [0, 60])
def test_rows_of_no_known_class_are_told(cli, fitted: Path, planted: int):
    """Sixty of 110 birds are unlike all; of the others, zero is not claimed."""
    birds = pd.read_csv("penguins.csv").head(50).drop(columns=["bird", "island"])
    rng, numbers = np.random.default_rng(0), birds.select_dtypes("number")
    odd = numbers.mean() * [1.6, 0.7, 0.8, 0.6]
    rows = odd.to_numpy() + rng.normal(size=(planted, 4)) * numbers.std().to_numpy()
    strange = pd.DataFrame(rows, columns=numbers.columns)
    pd.concat([birds, strange]).to_csv("new.csv", index=False)
    ended = cli("adapt", "run", "new.csv", "--domain-name", "X", "--out", "n", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]["unknown"]
    assert found == json.loads(Path("n/run.json").read_text())["unknown"]
    if planted:
        assert found["verdict"] == "present"
        assert 0.2 < found["lo"] <= planted / (50 + planted) <= found["hi"]
        assert "W163" in ended.stdout
    else:
        assert found["verdict"] == "cannot tell"
        assert found["lo"] == 0.0
        assert "up to 100% could be there unseen" in found["sentence"]
