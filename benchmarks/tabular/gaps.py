"""Classes where values miss: integrated out, expected, masked, or filled in beforehand.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/gaps.py

Cells of two tables are taken out, at random (the same share everywhere) or by class
(shares from none to twice that, so that gaps themselves tell classes apart, which no
method here uses). Heart has gaps of its own. All are development tables. The number of
classes is given; labels are seen by the scores alone. Runs already in the record are
not repeated.
"""

import time
import warnings

import numpy as np
from _real import TABLES
from _record import Record, Run, options, spread

from shoal import DensityMixture, DomainMixture
from shoal.metrics import matched_accuracy
from shoal.mixture._gaps import mask

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/gaps.py"
# Shares of cells to take out, and draws.
PLANTED = {"penguins": ((0.1, 0.3, 0.5), 3), "olive": ((0.3,), 2)}
MOST = 0.95
METHODS = ("median", "default", "shift", "looks", "masked", "expected")


def main() -> None:
    """Run what is missing; the file is rewritten after every run."""
    args = options(__doc__, "gaps").parse_args()
    key = ("data", "gaps", "share", "seed")
    record = Record(args.record, COMMAND, {"most": MOST}, key, summarize)
    planted = [
        (name, how, share, seed)
        for name, (shares, seeds) in PLANTED.items()
        for share in shares
        for how in ("at random", "by class")
        for seed in range(seeds)
    ]
    record.fill([("heart", "its own", 0.0, 0), *planted], run_once)
    record.write()


def plant(X: np.ndarray, labels: np.ndarray, how: str, share: float, seed: int) -> None:
    """Take cells out, in place."""
    rng = np.random.default_rng(100 + seed)
    names, codes = np.unique(labels, return_inverse=True)
    each = np.full(len(names), share)
    if how == "by class":
        each *= rng.permutation(np.linspace(0, 2, len(names)))
    X[rng.random(X.shape) < np.minimum(each, MOST)[codes, None]] = np.nan


def run_once(name: str, how: str, share: float, seed: int) -> Run:
    """All methods on one table."""
    table = TABLES[name](seed)
    X, k = table.X.astype(float), len(np.unique(table.labels))
    if share:
        plant(X, table.labels, how, share, seed)
    run: Run = {"data": name, "gaps": how, "share": share, "seed": seed}
    run["missing"] = round(float(np.isnan(X).mean()), 3)
    whole = time.process_time()
    plain = DomainMixture(k, random_state=seed)
    median = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    fits = {"median": score(run, "median", plain, median, table)}
    fits["default"] = score(run, "default", plain, X, table)
    fits["looks"] = score(run, "looks", DensityMixture(k, random_state=seed), X, table)
    shift = DomainMixture(k, by="shift", random_state=seed)
    score(run, "masked", shift, mask(X).fill(X), table)
    score(run, "expected", shift, fits["looks"]._filled(X), table)
    filling = fits["default"].filling_
    run["chosen"] = filling.how
    run["shift"] = run["masked" if filling.how == "mask" else "expected"]
    run["by"], run["by_median"] = fits["default"].route_.by, fits["median"].route_.by
    run["held_out"] = {
        name: [round(number, 4) for number in one]
        for name, one in filling.held_out.items()
    }
    run["seconds_of_all"] = round(time.process_time() - whole, 1)
    return run


def score(run: Run, method: str, model: object, X: np.ndarray, table: object) -> object:
    """Fit, and keep accuracy and cost."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, table.domains)
    run[f"{method}_seconds"] = round(time.process_time() - begun, 2)
    run[method] = round(float(matched_accuracy(table.labels, model.labels_)), 4)
    return model


def summarize(runs: list[Run]) -> list[dict]:
    """One line for each table, kind and share of gaps."""
    lines = []
    for key in sorted({(run["data"], run["gaps"], run["share"]) for run in runs}):
        mine = [run for run in runs if (run["data"], run["gaps"], run["share"]) == key]
        line: dict = dict(zip(("data", "gaps", "share"), key, strict=True))
        line["n_seeds"] = len(mine)
        line |= {method: spread(run[method] for run in mine) for method in METHODS}
        line["expected_chosen"] = sum(run["chosen"] == "expected" for run in mine)
        times = [run["default_seconds"] / run["median_seconds"] for run in mine]
        line["times_the_plain_fit"] = round(float(np.mean(times)), 2)
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()
