"""DensityMixture on the development tables, beside k-means and Gaussian mixtures.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/density.py

The number of classes is given, labels are seen by the scores alone; but the package's
decisions were set while looking at these scores, so that these are development numbers.
A seed draws the rows where a table is drawn or sampled, and everything random in the
fits. Gaps are the column's mean for k-means and Gaussian mixtures. Records already in
results/tabular/density.json are not run again.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from _real import TABLES, Array, Table
from _record import Record, options, spread
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from shoal import DensityMixture
from shoal.density import shift_and_drift
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/density.py"


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = options(__doc__, "density", seeds=3)
    parser.add_argument("--data", nargs="*", default=list(TABLES), choices=list(TABLES))
    args = parser.parse_args()
    record = Record(args.record, COMMAND, {"n_init": 10}, ("data", "seed"), summarize)
    keys = [(name, seed) for name in args.data for seed in range(args.seeds)]
    record.fill(keys, run_once)


def run_once(name: str, seed: int) -> dict:
    """Every method on one draw of a table, and the evidence of shift and drift."""
    table = TABLES[name](seed)
    n_labels = len(np.unique(table.labels))
    model = DensityMixture(n_labels, random_state=seed)
    methods = {"density": lambda: model.fit_predict(table.X, table.domains)}
    methods |= others(table, n_labels, seed)
    accuracy, seconds = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, find_classes in methods.items():
            begun = time.process_time()
            classes = find_classes()
            seconds[method] = time.process_time() - begun
            accuracy[method] = matched_accuracy(table.labels, classes)
        evidence = shift_and_drift(
            table.X, table.domains, estimator=model, random_state=seed
        )
    return {
        "data": name,
        "seed": seed,
        "n_rows": len(table.X),
        "n_domains": len(model.domains_),
        "n_labels": n_labels,
        "accuracy": accuracy,
        "covariance": model.covariance_,
        "tail": str(model.tail_),
        "drift": model.drift_ is not None,
        "S": [evidence.shift, evidence.shift_error],
        "V": [evidence.drift, evidence.drift_error],
        "seconds": seconds,
    }


def others(table: Table, n_labels: int, seed: int) -> dict[str, Callable[[], Array]]:
    """Classes by what ignores domains, and by plain Gaussians with a mix per domain."""
    X = np.where(np.isnan(table.X), np.nanmean(table.X, axis=0), table.X)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    mixed = DensityMixture(
        n_labels,
        covariance="full",
        tail=np.inf,
        drift=False,
        n_init=10,
        random_state=seed,
    )
    kmeans = KMeans(n_labels, n_init=10, random_state=seed)
    gmm = GaussianMixture(n_labels, n_init=10, reg_covar=1e-4, random_state=seed)
    return {
        "k-means": lambda: kmeans.fit_predict(X),
        "gmm": lambda: gmm.fit_predict(X),
        "gmm, a mix per domain": lambda: mixed.fit_predict(table.X, table.domains),
    }


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per table."""
    lines = []
    for name in TABLES:
        mine = [run for run in runs if run["data"] == name]
        if mine:
            lines.append(
                {
                    "data": name,
                    "n_seeds": len(mine),
                    "n_domains": mine[0]["n_domains"],
                    "n_labels": mine[0]["n_labels"],
                    "accuracy": {
                        method: spread([run["accuracy"][method] for run in mine])
                        for method in mine[0]["accuracy"]
                    },
                    "S": spread([run["S"][0] for run in mine]),
                    "V": spread([run["V"][0] for run in mine]),
                    "times_gmm": {
                        method: spread([times_gmm(run, method) for run in mine])
                        for method in ("density", "gmm, a mix per domain")
                    },
                }
            )
    return lines


def times_gmm(run: dict, method: str) -> float:
    """Time of a method, in times of scikit-learn's mixture, of ten starts like ours."""
    return run["seconds"][method] / run["seconds"]["gmm"]


if __name__ == "__main__":
    main()
