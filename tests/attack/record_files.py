"""Attack the command line with every bad file and write results/attack/files.json.

    python -m tests.attack.record_files [FAMILY ...]

A few minutes on one core. With names of families only these are run, and nothing is
written.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.attack.bad_files import good_csv
from tests.attack.bad_places import BadFile, all_files
from tests.attack.forked import Outcome, shoal, warm

RECORD = Path(__file__).parents[2] / "results" / "attack" / "files.json"
FIT = ("fit", "rows.csv", "--domain", "site", "--k", "2", "--bootstrap", "20",
       "--out", "run", "--quiet", "--no-report")  # fmt: skip


def fitted(folder: Path) -> Path:
    """A run made of good rows, for the cases that need one."""
    (folder / "rows.csv").write_bytes(good_csv())
    ended = shoal(FIT, folder)
    assert ended.code == 0, ended.said.decode()
    return folder / "run"


def attack(case: BadFile, run: Path) -> Outcome:
    """Run one case in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if case.family == "model":
            shutil.copytree(run, folder / "run")
        return shoal(case.make(folder), folder)


def main(families: list[str]) -> int:
    """Attack, tell what must not be, and keep the counts."""
    warm()
    ends: dict[str, Counter[str]] = {}
    slowest, largest, failures = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory() as name:
        run = fitted(Path(name))
        for case in all_files():
            if families and case.family not in families:
                continue
            found = attack(case, run)
            faults = found.faults()
            failures += bool(faults)
            ends.setdefault(case.family, Counter())[found.error or "ended well"] += 1
            slowest, largest = max(slowest, found.seconds), max(largest, found.peak)
            if faults or found.seconds > 10:
                tail = found.said.decode("utf-8", "replace").strip()[-300:]
                took = f"{found.seconds:.1f} s, {found.peak / 2**20:.0f} MiB"
                print(f"{case}: {', '.join(faults)} ({took})\n    {tail!r}", flush=True)
    record: dict[str, Any] = {
        "command": "python -m tests.attack.record_files",
        "files": sum(sum(count.values()) for count in ends.values()),
        "faults": failures,
        "slowest_seconds": round(slowest, 1),
        "largest_mib": round(largest / 2**20),
        "ends": {family: dict(sorted(one.items())) for family, one in ends.items()},
    }
    print(json.dumps(record, indent=2))
    if not families:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
