"""Attack the command line with every bad file and write results/attack/files.json.

    python -m tests.attack.record_files [FAMILY ...]

Some minutes on one core. With names of families only these are run, and the others stay
as they were recorded.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.attack.bad_files import good_csv
from tests.attack.bad_places import FAMILIES, BadFile, all_files
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


def attack_family(family: str, run: Path) -> dict[str, Any]:
    """Counts of the ends of one family's cases; what must not be is printed."""
    ends: Counter[str] = Counter()
    slowest, largest, failures = 0.0, 0.0, 0
    for case in all_files():
        if case.family != family:
            continue
        found = attack(case, run)
        faults = found.faults()
        failures += bool(faults)
        ends[found.error or "ended well"] += 1
        slowest, largest = max(slowest, found.seconds), max(largest, found.peak)
        if faults:
            took = f"{found.seconds:.1f} s, {found.peak / 2**20:.0f} MiB"
            tail = found.said.decode("utf-8", "replace").strip()[-300:]
            print(f"{case}: {', '.join(faults)} ({took})\n    {tail!r}", flush=True)
    return {
        "files": sum(ends.values()),
        "faults": failures,
        "slowest_processor_seconds": round(slowest, 1),
        "largest_mib": round(largest / 2**20),
        "ends": dict(sorted(ends.items())),
    }


def main(families: list[str]) -> int:
    """Attack, and keep the counts of each family in the record."""
    warm()
    known = json.loads(RECORD.read_text())["families"] if RECORD.exists() else {}
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        run = fitted(Path(name))
        for family in families or FAMILIES:
            known[family] = attack_family(family, run)
            content = {
                "command": "python -m tests.attack.record_files",
                "files": sum(one["files"] for one in known.values()),
                "faults": sum(one["faults"] for one in known.values()),
                "families": {one: known[one] for one in FAMILIES if one in known},
            }
            RECORD.write_text(json.dumps(content, indent=2) + "\n")
            print(family, known[family], flush=True)
    return int(any(one["faults"] for one in known.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
