"""What the search of DomainMixture finds, before and after starts were raced.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/search.py

Tables dealt to domains (``_real.DEALS``), and generated problems of 50 and 100 classes
with 200 rows a domain. Rows that no fit has seen judge it: mean log q(d|x), domains
counted alike. The number of classes is given; labels are seen by the scores alone, but
numbers of the search were set while looking at them: these are development numbers.
``--version`` names the code that runs; to compare two, run this file with each of them
on PYTHONPATH.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from _real import DEALS, LEAST_ROWS, SIZE_ALPHA, Array, read
from _record import Record, Run, options

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.metrics import matched_accuracy

COMMAND = (
    "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/search.py "
    "--version after"
)
TEST_ROWS = 200  # of every domain, at least
MANY = {"50 classes": 50, "100 classes": 100}


class Problem(NamedTuple):
    """Rows to fit with their labels, and rows that judge."""

    X: Array
    domains: Array
    labels: Array
    X_unseen: Array
    domains_unseen: Array


def main() -> None:
    """Fit what has no record yet."""
    parser = options(__doc__, "search", seeds=3)
    parser.add_argument("--version", default="after")
    parser.add_argument("--data", nargs="*", default=list(DEALS))
    args = parser.parse_args()
    key = ("version", "data", "seed", "search")
    record = Record(args.record, COMMAND, {"test_rows": TEST_ROWS}, key, summarize)
    keys = [
        (args.version, name, seed, search)
        for name in args.data
        for seed in range(args.seeds)
        for search in (False, True)
    ]
    record.fill(keys, run_once)


def run_once(version: str, name: str, seed: int, search: bool) -> Run:
    """One fit of one draw."""
    problem = many_classes(MANY[name], seed) if name in MANY else draw(name, seed)
    n_classes = len(np.unique(problem.labels))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DomainMixture(n_classes, by="shift", search=search, random_state=seed)
        model.fit(problem.X, problem.domains)
    sizes = np.bincount(model.labels_, minlength=n_classes)
    return {
        "version": version,
        "data": name,
        "seed": seed,
        "search": search,
        "accuracy": round(matched_accuracy(problem.labels, model.labels_), 4),
        "unseen": round(model.score(problem.X_unseen, problem.domains_unseen), 4),
        "empty": int((sizes < 0.1 * len(problem.labels) / n_classes).sum()),
        "cpu_seconds": round(time.process_time() - begun, 2),
    }


def draw(name: str, seed: int) -> Problem:
    """Rows of a labelled table dealt to domains, and unseen ones of the same mixes.

    Where a class is used up, its training rows stand in.
    """
    plan, frame = DEALS[name], read(name)
    y = np.unique(frame[plan.label], return_inverse=True)[1]
    X = frame.drop(columns=[plan.label, *plan.leave_out]).to_numpy(float)
    rng = np.random.default_rng(seed)
    mixes = rng.dirichlet(np.full(y.max() + 1, plan.alpha), plan.n_domains)
    sizes = rng.dirichlet(np.full(plan.n_domains, SIZE_ALPHA)) * plan.n_rows
    left = [list(rng.permutation(np.flatnonzero(y == c))) for c in range(y.max() + 1)]
    rows, domains = [], []
    for domain, size in enumerate(np.maximum(sizes.astype(int), LEAST_ROWS)):
        for label, wanted in enumerate(rng.multinomial(size, mixes[domain])):
            taken = [left[label].pop() for _ in range(min(wanted, len(left[label])))]
            rows += taken
            domains += [domain] * len(taken)
    rows, domains = np.array(rows), np.array(domains)
    unseen, unseen_domains = [], []
    for domain in np.unique(domains):
        labels, counts = np.unique(y[rows[domains == domain]], return_counts=True)
        size = max(TEST_ROWS, int(counts.sum()))
        wanted = rng.multinomial(size, counts / counts.sum())
        for label, count in zip(labels, wanted, strict=True):
            pool = left[label] or rows[y[rows] == label]
            unseen.extend(rng.choice(pool, count))
            unseen_domains.extend([domain] * count)
    return Problem(X[rows], domains, y[rows], X[unseen], np.array(unseen_domains))


def many_classes(n_classes: int, seed: int) -> Problem:
    """As many domains as classes, 200 rows each, and 4,000 unseen rows."""
    n_rows, n_unseen = 200 * n_classes, 4000
    X, domains, labels = make_latent_shift(
        n_rows + n_unseen,
        n_classes=n_classes,
        n_domains=n_classes,
        n_features=30,
        separation=0.7,
        alpha=3.0,
        max_condition=1e6,
        random_state=seed,
    )
    order = np.random.default_rng(seed).permutation(len(X))
    seen, unseen = order[:n_rows], order[n_rows:]
    return Problem(X[seen], domains[seen], labels[seen], X[unseen], domains[unseen])


def summarize(runs: list[Run]) -> list[dict]:
    """Mean and spread over seeds; times in those of the same code without a search."""
    lines = []
    for version, name in sorted({(run["version"], run["data"]) for run in runs}):
        mine = [r for r in runs if (r["version"], r["data"]) == (version, name)]
        found = [run for run in mine if run["search"]]
        quick = {run["seed"]: run for run in mine if not run["search"]}
        pairs = [(run, quick[run["seed"]]) for run in found if run["seed"] in quick]
        for search, group in (("searched", found), ("single", list(quick.values()))):
            if group:
                lines.append({"version": version, "data": name, "fit": search} | {
                    "n_seeds": len(group),
                    "accuracy": spread([run["accuracy"] for run in group]),
                    "unseen": spread([run["unseen"] for run in group]),
                    "empty": sum(run["empty"] for run in group),
                })  # fmt: skip
        if pairs:
            lines[-1]["searched_below_single"] = sum(
                run["unseen"] < other["unseen"] for run, other in pairs
            )
            lines[-1]["searched_times_single"] = spread(
                [run["cpu_seconds"] / other["cpu_seconds"] for run, other in pairs]
            )
    return lines


def spread(values: list[float]) -> list[float]:
    return [round(float(np.mean(values)), 4), round(float(np.std(values)), 4)]


if __name__ == "__main__":
    main()
