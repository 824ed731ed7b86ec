"""Records of long studies: written whole after every run, and taken up where they end.

A record is one JSON file with the command, the settings, the versions, a summary and
all runs. A run is known by its key; what the file already holds is not done again.
"""

import argparse
import json
import platform
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import shoal
from shoal.io.extend import write_whole

FOLDER = Path(__file__).parents[2] / "results" / "tabular"

Run = dict[str, Any]
Key = tuple[Hashable, ...]


def options(doc: str, name: str, **counts: int) -> argparse.ArgumentParser:
    """The command line of a study: whole numbers with their defaults, and the file."""
    parser = argparse.ArgumentParser(description=doc)
    for option, default in counts.items():
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--record", type=Path, default=FOLDER / f"{name}.json")
    return parser


class Record:
    """The file of one study.

    Parameters
    ----------
    path : Path
    command : str
        How to make the record.
    settings : dict
        What all runs share; a file made with others is refused.
    key : tuple of str
        Entries of a run that name it.
    summarize : callable
        From all runs to a JSON-able summary.
    """

    def __init__(
        self,
        path: Path,
        command: str,
        settings: dict[str, Any],
        key: tuple[str, ...],
        summarize: Callable[[list[Run]], Any],
    ) -> None:
        self.path = path
        self.command = command
        self.settings = settings
        self.key = key
        self.summarize = summarize
        self.runs: list[Run] = []
        if path.exists():
            before = json.loads(path.read_text())
            if before["settings"] != json.loads(json.dumps(settings)):
                raise SystemExit(
                    f"{path} was made with {before['settings']}, asked for {settings}; "
                    "move it away or pass another --record"
                )
            self.runs = before["runs"]

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those of ``keys`` that have not been run."""
        done = {tuple(run[name] for name in self.key) for run in self.runs}
        return [key for key in keys if key not in done]

    def fill(self, keys: Iterable[Key], run: Callable[..., Run]) -> None:
        """Run what is missing, one after the other."""
        for key in self.missing(keys):
            self.add(run(*key))

    def add(self, run: Run) -> None:
        """Keep a run, write the file, and say so."""
        self.runs.append(run)
        self.write()
        print(json.dumps(run), flush=True)

    def write(self) -> None:
        """Write the file under another name, then rename it."""
        head = {
            "command": self.command,
            "settings": self.settings,
            "versions": versions(),
            "summary": self.summarize(self.runs),
            "runs": [],
        }
        lines = ",\n".join(json.dumps(run) for run in self.runs)
        text = json.dumps(head, indent=1)
        text = text.replace('"runs": []', f'"runs": [\n{lines}\n]')
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, text + "\n")


def read_lines(path: Path) -> list[Run]:
    """All runs of a file with one line of JSON for each; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def append_line(path: Path, run: Run) -> None:
    """Keep one run more in such a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(run) + "\n")


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    return {
        "shoal": shoal.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def mean(values: Iterable[float], digits: int = 4) -> float:
    """Rounded mean."""
    return round(float(np.mean(list(values))), digits)


def deviation(values: Iterable[float], digits: int = 4) -> float:
    """Rounded standard deviation over n - 1; 0 of a single value."""
    known = list(values)
    return round(float(np.std(known, ddof=min(1, len(known) - 1))), digits)


def spread(values: Iterable[float]) -> list[float]:
    """Mean and standard deviation."""
    known = list(values)
    return [mean(known), deviation(known)]
