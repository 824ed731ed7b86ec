"""What the search of DomainMixture finds on tables drawn from real ones.

    SHOAL_DATA_DIR=... python benchmarks/tabular/search.py --version after

SHOAL_DATA_DIR/real holds the tables. Domains are drawn: the mix of each from a
Dirichlet, sizes unequal, rows without replacement; rows that no fit sees judge it.
These are development problems: numbers of the search were set while looking at scores
with labels of seeds 0 to 6. Within a fit labels do nothing. To compare two versions of
the code, run this file with each of them on PYTHONPATH; a run in the record is kept.
"""

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _record import FOLDER, Record, Run, mean

from shoal import DomainMixture
from shoal.exceptions import ShoalWarning
from shoal.metrics import matched_accuracy

# domains, alpha of their mixes, rows
TABLES = {
    "pendigits": (14, 2.0, 3000),
    "beans": (10, 1.5, 3000),
    "phoneme": (8, 1.5, 2500),
    "wine": (6, 2.0, 2000),
    "olive": (6, 1.5, 300),
}
TEST_ROWS = 200  # of every domain, at least


def main() -> None:
    """Fit what has no record yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True, help="name of the code that runs")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(7)))
    parser.add_argument("--record", type=Path, default=FOLDER / "search.json")
    args = parser.parse_args()
    record = Record(
        args.record,
        "python benchmarks/tabular/search.py --version ...",
        {"tables": TABLES, "test_rows": TEST_ROWS},
        ("version", "table", "seed", "search"),
        summarize,
    )
    keys = [
        (args.version, table, seed, search)
        for table in TABLES
        for seed in args.seeds
        for search in (True, False)
    ]
    for key in record.missing(keys):
        record.add(run(*key))


def run(version: str, table: str, seed: int, search: bool) -> Run:
    train, test = draw(table, seed)
    X, domains, labels = train
    n_classes = len(np.unique(labels))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model = DomainMixture(n_classes, search=search, random_state=seed)
        model.fit(X, domains)
    seconds = time.process_time() - begun
    sizes = np.bincount(model.labels_, minlength=n_classes)
    return {
        "version": version,
        "table": table,
        "seed": seed,
        "search": search,
        "accuracy": round(matched_accuracy(labels, model.labels_), 4),
        "held_out": round(model.score(*test), 4),
        "empty": int((sizes < 0.1 * len(labels) / n_classes).sum()),
        "start": model.start_,
        "cpu_seconds": round(seconds, 2),
    }


def draw(table: str, seed: int) -> tuple[tuple[Any, Any, Any], tuple[Any, Any]]:
    """Rows, domains and labels to fit, and rows with domains to judge by."""
    path = Path(os.environ["SHOAL_DATA_DIR"]) / "real" / f"{table}.csv.xz"
    frame = pd.read_csv(path)
    X = frame.drop(columns=["label", "area"], errors="ignore").to_numpy(float)
    y = np.unique(frame["label"], return_inverse=True)[1]
    n_domains, alpha, n_rows = TABLES[table]
    rng = np.random.default_rng(seed)
    mixes = rng.dirichlet(np.full(y.max() + 1, alpha), n_domains)
    sizes = np.maximum((rng.dirichlet(np.full(n_domains, 4.0)) * n_rows).astype(int), 5)
    pools = [list(rng.permutation(np.flatnonzero(y == c))) for c in range(y.max() + 1)]
    rows, domains = [], []
    for domain, (mix, size) in enumerate(zip(mixes, sizes, strict=True)):
        for label, wanted in enumerate(rng.multinomial(size, mix)):
            for _ in range(min(wanted, len(pools[label]))):
                rows.append(pools[label].pop())
                domains.append(domain)
    rows, domains = np.array(rows), np.array(domains)
    test, test_domains = draw_unseen(rows, domains, y, pools, rng)
    return (X[rows], domains, y[rows]), (X[test], test_domains)


def draw_unseen(
    rows: Any, domains: Any, y: Any, pools: list[list[int]], rng: np.random.Generator
) -> tuple[Any, Any]:
    """Rows left in the pools, in the mix that each domain came to have.

    Where a class is used up, its training rows stand in.
    """
    test, test_domains = [], []
    for domain in np.unique(domains):
        labels, counts = np.unique(y[rows[domains == domain]], return_counts=True)
        size = max(TEST_ROWS, int(counts.sum()))
        drawn = rng.multinomial(size, counts / counts.sum())
        for label, wanted in zip(labels, drawn, strict=True):
            pool = pools[label] or rows[y[rows] == label]
            test.extend(rng.choice(pool, wanted))
            test_domains.extend([domain] * wanted)
    return np.array(test), np.array(test_domains)


def summarize(runs: list[Run]) -> dict[str, Any]:
    """Means over seeds, by version, kind of fit and table."""
    groups: dict[str, list[Run]] = {}
    for one in runs:
        kind = "search" if one["search"] else "no search"
        groups.setdefault(f"{one['version']}, {kind}, {one['table']}", []).append(one)
    return {name: summarize_group(group) for name, group in sorted(groups.items())}


def summarize_group(group: list[Run]) -> dict[str, Any]:
    accuracy = [run["accuracy"] for run in group]
    return {
        "seeds": len(group),
        "accuracy": mean(accuracy),
        "spread": round(float(np.std(accuracy)), 4),
        "held_out": mean(run["held_out"] for run in group),
        "empty": sum(run["empty"] for run in group),
        "cpu_seconds": mean((run["cpu_seconds"] for run in group), 1),
    }


if __name__ == "__main__":
    main()
