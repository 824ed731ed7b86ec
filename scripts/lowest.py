"""Constraints that hold every dependency at the lowest version pyproject.toml allows.

python scripts/lowest.py > lowest.txt && pip install -c lowest.txt ".[parquet]" pytest

``make lowest`` tests with them: a bound nobody has tried is a guess.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
# What a user installs; the tools of the developers may be of today.
FOR_USERS = ("parquet", "excel", "faiss", "boost", "anndata", "app")


def main() -> int:
    """Print one line for each dependency that has a lower bound."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    project = tomllib.loads(PROJECT.read_text())["project"]
    print("\n".join(lowest(project)))
    return 0


def lowest(project: dict) -> list[str]:
    """``name==version`` for each ``name>=version`` among what users install."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for e in FOR_USERS for one in extras[e])]
    pins = []
    for requirement in wanted:
        found = re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", requirement)
        if found is None:
            raise ValueError(f"{requirement!r} in pyproject.toml has no lower bound")
        pins.append(f"{found[1]}=={found[2]}")
    return sorted(pins)


if __name__ == "__main__":
    sys.exit(main())
