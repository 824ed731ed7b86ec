"""h5ad files through the command line: docs/anndata.md, done as it says."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal.io import read
from support.cells import write_cells

h5py = pytest.importorskip("h5py")

PAGE = Path(__file__).parents[2] / "docs" / "anndata.md"
FIT = ["--domain", "donor", "--use-rep", "X_pca", "--k", "2", "--bootstrap", "5"]
FIT += ["--no-report", "--quiet"]


def classes_of(path: Path) -> tuple[Any, Any]:
    """Codes and probabilities in a file."""
    with h5py.File(path) as file:
        return file["obs/shoal_class/codes"][:], file["obsm/X_shoal"][:]


def blocks(language: str) -> list[str]:
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return pattern.findall(PAGE.read_text())


def test_the_page_works_as_it_says(cli, tmp_path: Path, capsys):
    write_cells(tmp_path / "cells.h5ad", 0)
    write_cells(tmp_path / "new.h5ad", 1)
    (commands,) = blocks("bash")
    for line in commands.splitlines():
        ended = cli(*shlex.split(line)[1:])
        assert ended.code == 0, ended.stderr
    ran = 0
    for code in blocks("py"):
        if "anndata" not in code or find_spec("anndata"):
            exec(code, {})
            ran += 1
    assert ran
    assert "count" in capsys.readouterr().out


def test_files_of_a_fit_agree(cli, tmp_path: Path):
    donors = write_cells(tmp_path / "cells.h5ad", 0)
    assert cli("fit", "cells.h5ad", *FIT, "--out", "run").code == 0
    codes, proba = classes_of(tmp_path / "run" / "classes.h5ad")
    rows = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    assert_allclose(proba, rows[["p_c0", "p_c1"]], atol=1e-6)
    assert_array_equal(codes, rows["class"].str[1:].astype(int))
    counts = pd.read_csv(tmp_path / "run" / "class_counts.csv", index_col="domain")
    assert (counts == pd.crosstab(donors, codes).to_numpy()).all(axis=None)
    predict = ["predict", "run", "cells.h5ad", "--out", "again.h5ad", "--quiet"]
    assert cli(*predict).code == 0
    again, same = classes_of(tmp_path / "again.h5ad")
    assert_array_equal(again, codes)
    assert_allclose(same, proba, atol=1e-6)
    assert cli(*predict).code == 2  # it is in the way now
    table = read(tmp_path / "again.h5ad", domain="donor", label="shoal_class")
    assert table.labels.tolist() == [f"c{code}" for code in codes]


def test_cells_left_out_have_no_class(cli, tmp_path: Path):
    write_cells(tmp_path / "cells.h5ad", 0, gap=True)
    fit = ["fit", "cells.h5ad", *FIT, "--drop-missing-domain", "--sample", "200"]
    assert cli(*fit, "--out", "run").code == 0
    codes, proba = classes_of(tmp_path / "run" / "classes.h5ad")
    rows = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    used = np.isin([f"cell{n}" for n in range(240)], rows["row_id"])
    assert 150 < used.sum() <= 200
    assert_array_equal(codes >= 0, used)
    assert_array_equal(np.isnan(proba).all(axis=1), ~used)
    assert_allclose(proba[used], rows[["p_c0", "p_c1"]], atol=1e-6)


def test_no_copy_where_none_is_wanted(cli, tmp_path: Path):
    write_cells(tmp_path / "cells.h5ad", 0)
    for number, flag in enumerate(("--no-cells", "--redact")):
        assert cli("fit", "cells.h5ad", *FIT, flag, "--out", f"run{number}").code == 0
        assert not (tmp_path / f"run{number}" / "classes.h5ad").exists()
    predict = ["predict", "run0", "cells.h5ad", "--out"]
    ended = cli(*predict, "new.h5ad", "--redact")
    assert ended.code == 2
    assert "an h5ad file holds the cells themselves" in ended.stderr
    assert cli(*predict, "new.csv", "--redact", "--quiet").code == 0
    assert "cell" not in (tmp_path / "new.csv").read_text()


def test_only_an_h5ad_file_becomes_one(cli, fitted: Path, tmp_path: Path):
    ended = cli("predict", "run", "penguins.csv", "--out", "birds.h5ad")
    assert ended.code == 2
    assert 'only an h5ad file can be written as one, not "penguins.csv"' in ended.stderr
    assert not (tmp_path / "birds.h5ad").exists()
