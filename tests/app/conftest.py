"""A page that is served, and a browser to open it in."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.datasets import load_penguins


class Served:
    """A ``shoal app`` in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "shoal", "app", f"--out={folder}", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", line)
        assert found, self.process.stderr.read()
        self.address = found[0]

    def end(self, how: int = signal.SIGINT) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.communicate(timeout=30)


@pytest.fixture(scope="session")
def serve():
    """Function that serves a folder; all servers end with the tests."""
    served = []

    def serve(folder: Path, *options: str) -> Served:
        served.append(Served(folder, *options))
        return served[-1]

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    yield serve
    for one in served:
        one.end()


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Penguins with their island; the species stay at home."""
    data = load_penguins(as_frame=True)
    path = tmp_path_factory.mktemp("tables") / "my penguins.csv"
    data.X.assign(island=data.domains).to_csv(path, index=False)
    return path
