"""Load forged models by the ten thousand, and write down what came of them.

python -m scripts.attack_models [--models 50000] [--seed 0] [--jobs 1]

Writes results/attack/models.json: of every kind of model and way of forging, how many
were refused in one line and how many loaded; and all that may not be: another
exception, an end of the process, more than 60 s, more than 2 GiB, a process or thread
started. The file grows with every piece that is done.
"""

import argparse
import json
import platform
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.attack.campaign import MOST_BYTES, MOST_SECONDS, attack, shares

OUT = Path(__file__).parents[1] / "results" / "attack" / "models.json"
PACKAGES = ("numpy", "scipy", "scikit-learn", "safetensors", "skops")
# Models that one process loads, unless one of them ends it.
PIECE = 1_500


def nothing() -> dict[str, Any]:
    """Nothing found so far."""
    return {"counts": Counter(), "bad": [], "peak": 0}


def main() -> None:
    """Attack every kind in its share, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    begun = time.perf_counter()
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(asked.jobs) as pool:
        pending = {
            pool.submit(attack, kind, first, min(first + PIECE, last), asked.seed): kind
            for kind, last in shares(asked.models).items()
            for first in range(0, last, PIECE)
        }
        for done in as_completed(pending):
            one, so_far = done.result(), found.setdefault(pending[done], nothing())
            so_far["counts"].update(one["counts"])
            so_far["bad"] += one["bad"]
            so_far["peak"] = max(so_far["peak"], one["peak"])
            write(asked, found, round(time.perf_counter() - begun))


def write(asked: argparse.Namespace, found: dict[str, Any], seconds: int) -> None:
    """The record of the kinds that are done."""
    results = total(one["counts"] for one in found.values())
    record = {
        "command": f"python -m scripts.attack_models --models {asked.models} "
        f"--seed {asked.seed}",
        "limits": {"bytes": MOST_BYTES, "seconds": MOST_SECONDS},
        "models": sum(results.values()),
        "results": results,
        "bad": [text for one in found.values() for text in one["bad"]],
        "kinds": {kind: told(found[kind]) for kind in sorted(found)},
        "seconds": seconds,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in PACKAGES},
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(record["models"], json.dumps(results), f"{len(record['bad'])} bad")


def told(found: dict[str, Any]) -> dict[str, Any]:
    """What came of one kind, by the way of forging."""
    forgers: dict[str, dict[str, int]] = {}
    for (forger, result), count in sorted(found["counts"].items()):
        forgers.setdefault(forger, {})[result] = count
    return {
        "results": total([found["counts"]]),
        "forgers": forgers,
        "peak_mib": found["peak"] >> 20,
    }


def total(counts: Any) -> dict[str, int]:
    """Numbers of results, whatever the way of forging."""
    summed: dict[str, int] = {}
    for one in counts:
        for (_, result), count in one.items():
            summed[result] = summed.get(result, 0) + count
    return dict(sorted(summed.items()))


if __name__ == "__main__":
    main()
