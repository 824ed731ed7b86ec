"""Commands between other commands: results on standard output, nothing beside them."""

import io
import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from shoal import __version__
from shoal.cli import main
from shoal.io import write_assignments
from shoal.io._notation import write_rows


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.mark.parametrize("out", ["-", "/dev/stdout"])
def test_predictions_go_to_standard_output(
    out: str, fitted: Path, tmp_path: Path, capsys: Any
) -> None:
    rows = str(tmp_path / "penguins.csv")
    with chdir(tmp_path):
        before = sorted(tmp_path.rglob("*"))
        assert run("predict", str(fitted), rows, "--out", out) == 0
        printed = capsys.readouterr()
        assert sorted(tmp_path.rglob("*")) == before
        assert run("predict", str(fitted), rows, "--out", "x.csv", "--quiet") == 0
    got = pd.read_csv(io.StringIO(printed.out))
    assert_frame_equal(got, pd.read_csv(tmp_path / "x.csv"))
    assert "classing rows" in printed.err


def test_a_new_mix_goes_to_standard_output(
    fitted: Path, tmp_path: Path, capsys: Any
) -> None:
    rows = str(tmp_path / "penguins.csv")
    told = ["adapt", str(fitted), rows, "--domain-name", "Anvers"]
    with chdir(tmp_path):
        before = sorted(tmp_path.rglob("*"))
        assert run(*told, "--out", "-") == 0
        printed = capsys.readouterr()
        assert sorted(tmp_path.rglob("*")) == before
        assert run(*told, "--out", "new", "--quiet") == 0
    assert printed.out == (tmp_path / "new" / "prevalence.csv").read_text()
    assert set(pd.read_csv(io.StringIO(printed.out))["domain"]) >= {"Anvers", "Dream"}


def test_standard_output_holds_one_thing(
    fitted: Path, tmp_path: Path, capsys: Any
) -> None:
    rows = str(tmp_path / "penguins.csv")
    assert run("predict", str(fitted), rows, "--out", "-", "--json") == 2
    printed = capsys.readouterr()
    told = json.loads(printed.out)["messages"][0]
    assert told["code"] == "E002"
    assert told["text"] == "--json and --out - both want standard output"
    # after an error, nothing is printed
    assert run("predict", str(fitted), "absent.csv", "--out", "-") == 3
    assert capsys.readouterr().out == ""


def test_the_version(capsys: Any) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"shoal {__version__}\n"


def test_shares_have_the_digits_that_they_have(tmp_path: Path) -> None:
    """0.465 and not 0.46499999999999997; what is small keeps its digits."""
    values = np.array([1 - 0.535, 1 / 3, 1e-20, 2e-4 / 3, 0.1 + 0.2, 1.0, 12.1])
    expected = ["0.465", "0.333333333333333", "1e-20", repr(2e-4 / 3), "0.3", "1.0"]
    frame = pd.DataFrame({"p": values, "q": values.astype(np.float32)})
    for plain in (False, True):
        write_assignments(tmp_path / "x.csv", [frame], plain_csv=plain)
        lines = (tmp_path / "x.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in lines] == [*expected, "12.1"]
        assert lines[0].endswith(",0.465")
        file = io.StringIO()
        write_rows(file, [[value] for value in values.tolist()], plain=plain)
        assert file.getvalue().split() == [*expected, "12.1"]
