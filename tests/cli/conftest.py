import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from shoal.cli import main
from shoal.datasets import load_penguins

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shoal(tmp_path: Path) -> Run:
    """Run the command line as a process of its own, in an empty folder."""

    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "shoal", *arguments],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def fitted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with penguins.csv and the run that `shoal fit` made of it."""
    folder = tmp_path_factory.mktemp("fitted")
    penguins = load_penguins(as_frame=True)
    frame = penguins.X.assign(island=penguins.domains, species=penguins.labels)
    frame.to_csv(folder / "penguins.csv", index_label="bird")
    arguments = "fit penguins.csv --domain island --label species --id bird --k 3"
    with chdir(folder), pytest.raises(SystemExit) as end:
        main([*arguments.split(), "--bootstrap", "20", "--out", "run", "--quiet"])
    assert end.value.code == 0
    return folder


@pytest.fixture
def fitted(fitted_once: Path, tmp_path: Path) -> Path:
    """A copy of that folder's content for one test; returns the run."""
    shutil.copytree(fitted_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"
