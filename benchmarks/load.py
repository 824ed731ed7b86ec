"""Tables far beyond the usual: thousands of domains, hundreds of columns and classes.

    OMP_NUM_THREADS=1 python benchmarks/load.py                  # all points not there
    OMP_NUM_THREADS=1 python benchmarks/load.py --only domains-5000

Each point is one bare ``DomainMixture.fit`` with the number of classes given, in a
process of its own: processor seconds, peak memory, and the share of rows in the right
class. The machine may be busy: seconds of the processor are told, not of the clock.

The point ``parquet-2000000`` is another: ``shoal fit`` on a folder of Parquet files,
with all that it does beside the fit, by its stages, and the bare fit on its sample.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
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
PARQUET = "parquet-2000000"


def main() -> int:
    """Measure what the record lacks, one point after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [*POINTS, PARQUET]
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--point", choices=names, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        is_table = args.point in POINTS
        found = run_point(*POINTS[args.point]) if is_table else run_parquet()
        print(json.dumps(found))
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


def draw(
    n_rows: int, n_domains: int, n_classes: int, n_columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, domains and labels of classes that lie apart, each domain with its mix."""
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
    return X, domains, label


def run_point(n_rows: int, n_domains: int, n_classes: int, n_columns: int) -> dict:
    """One bare fit."""
    from shoal import DomainMixture
    from shoal.metrics import matched_accuracy

    X, domains, label = draw(n_rows, n_domains, n_classes, n_columns)
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


def run_parquet() -> dict:
    """``shoal fit`` on 2,000,000 rows in 8 files, and the bare fit on its sample."""
    import pandas as pd

    from shoal import DomainMixture, scale
    from shoal.cli import main as command
    from shoal.cli._stages import Stages

    X, domains, _ = draw(2_000_000, 30, 3, 6)
    begun_at: dict[str, float] = {}
    begin = Stages.begin

    def noted(stages: Stages, key: str) -> None:
        begun_at[key] = time.process_time()
        begin(stages, key)

    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.DataFrame(X).add_prefix("x").assign(site=domains.astype(str))
        folder = Path(name, "rows")
        folder.mkdir()
        for number in range(8):
            part = frame.iloc[number::8]
            part.to_parquet(folder / f"{number}.parquet", row_group_size=50_000)
        sample = scale.draw(folder, domain="site", workers=1)
        begun = time.process_time()
        DomainMixture(3, random_state=0).fit(sample.X, sample.domains)
        bare = time.process_time() - begun
        Stages.begin = noted
        words = f"fit {folder} --domain site --k 3 --workers 1 --threads 1 --quiet"
        begun = time.process_time()
        try:
            command([*words.split(), "--out", str(Path(name, "run"))])
        except SystemExit as end:
            if end.code:
                raise
        whole = time.process_time() - begun
    ends = [*begun_at.values(), begun + whole][1:]
    stages = zip(begun_at, begun_at.values(), ends, strict=True)
    return {
        "rows": len(X),
        "sample": len(sample.X),
        "seconds": round(whole, 2),
        "bare_fit_seconds": round(bare, 2),
        "ratio": round(whole / bare, 2),
        "stages": {key: round(end - start, 2) for key, start, end in stages},
    }


if __name__ == "__main__":
    sys.exit(main())
