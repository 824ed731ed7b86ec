"""Import time of shoal, and the time to its help, against scikit-learn's import.

Each in fresh processes, as processor time, so that a busy machine hardly matters.

python benchmarks/imports.py
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from _measure import environment, write_json

RECORD = Path(__file__).parents[1] / "results" / "performance" / "imports.json"
TIMED = """
import sys, time
begun = time.process_time()
{}
print(time.process_time() - begun, file=sys.stderr)
"""
HELP = """
from shoal.cli import main
try:
    main({})
except SystemExit:
    pass
"""
STATEMENTS = {
    "sklearn": "import sklearn, sklearn.base",
    "shoal": "import shoal",
    "shoal, all estimators": "from shoal import DDFA, DiscreteMixture, DomainMixture",
    "shoal --help": HELP.format(["--help"]),
    "shoal fit --help": HELP.format(["fit", "--help"]),
    "shoal version": HELP.format(["version"]),
}
REPEATS = 7


def main() -> None:
    """Measure, print and write the record."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(REPEATS):
        for name, statement in STATEMENTS.items():
            command = [sys.executable, "-c", TIMED.format(statement)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            times[name].append(float(done.stderr.splitlines()[-1]))
    median = {name: float(np.median(values)) for name, values in times.items()}
    ratios = {name: value / median["sklearn"] for name, value in median.items()}
    torch = subprocess.run(
        [sys.executable, "-c", "import shoal, sys; print('torch' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    record = {
        "seconds": median,
        "ratio_to_sklearn": ratios,
        "repeats": REPEATS,
        "torch_imported": torch.stdout.strip() == "True",
        "environment": environment(),
    }
    print(record)
    write_json(RECORD, record)


if __name__ == "__main__":
    main()
