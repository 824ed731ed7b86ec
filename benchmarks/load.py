"""Tables far beyond the usual: thousands of domains, hundreds of columns and classes.

    OMP_NUM_THREADS=1 python benchmarks/load.py                  # all points not there
    OMP_NUM_THREADS=1 python benchmarks/load.py --only domains-5000

Each point is one bare ``DomainMixture.fit`` with the number of classes given, in a
process of its own: processor seconds, peak memory, and the share of rows in the right
class. The machine may be busy: seconds of the processor are told, not of the clock.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _measure import ROOT, environment, write_json

RECORD = ROOT / "results/performance/load.json"
# rows, domains, classes, columns
POINTS = {
    "domains-1000": (4_000, 1_000, 3, 6),
    "domains-2500": (10_000, 2_500, 3, 6),
    "domains-5000": (20_000, 5_000, 3, 6),
    "domains-10000": (40_000, 10_000, 3, 6),
    "columns-500": (20_000, 30, 5, 500),
    "classes-200": (40_000, 300, 200, 30),
    "rows-5000000": (5_000_000, 30, 5, 20),
}


def main() -> int:
    """Measure what the record lacks, one point after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=POINTS, default=list(POINTS))
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--point", choices=POINTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        print(json.dumps(run_point(*POINTS[args.point])))
        return 0
    known = (
        json.loads(args.record.read_text())["points"] if args.record.exists() else {}
    )
    for name in args.only:
        if name not in known:
            command = [sys.executable, __file__, "--point", name]
            said = subprocess.run(command, check=True, capture_output=True, text=True)
            known[name] = json.loads(said.stdout.splitlines()[-1])
            write_json(args.record, {"environment": environment(), "points": known})
            print(name, known[name])
    return 0


def run_point(n_rows: int, n_domains: int, n_classes: int, n_columns: int) -> dict:
    """One fit of classes that lie apart, with a mix of their own in each domain."""
    from shoal import DomainMixture
    from shoal.metrics import matched_accuracy

    rng = np.random.default_rng(0)
    mix = rng.dirichlet(np.full(n_classes, 0.5), n_domains).cumsum(axis=1)
    domains = np.repeat(np.arange(n_domains), -(-n_rows // n_domains))[:n_rows]
    label = np.empty(n_rows, dtype=int)
    for start in range(0, n_rows, 100_000):
        part = slice(start, start + 100_000)
        drawn = rng.random(len(domains[part]))[:, None]
        label[part] = (drawn > mix[domains[part]]).sum(axis=1).clip(0, n_classes - 1)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    X += 4 * rng.normal(size=(n_classes, n_columns)).astype(np.float32)[label]
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DomainMixture(n_classes, random_state=0).fit(X, domains)
    return {
        "rows": n_rows,
        "domains": n_domains,
        "classes": n_classes,
        "columns": n_columns,
        "seconds": round(time.process_time() - begun, 2),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "accuracy": round(float(matched_accuracy(label, model.labels_)), 4),
    }


if __name__ == "__main__":
    sys.exit(main())
