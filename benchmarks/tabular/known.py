"""Accuracy against the number of rows whose class is known, beside semi-supervision.

    SHOAL_DATA_DIR=... OMP_NUM_THREADS=1 python benchmarks/tabular/known.py

None, 1, 5 or 20 rows of each class are known, drawn at random; all others are scored by
the name that they get (with none known, under the best matching). Peers see the columns
in units of their spread, and again with an indicator of each domain beside them. All
tables are development tables. Writes results/tabular/known.json.
"""

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _real import TABLES, Table
from _record import Record, Run, mean, options, spread
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from shoal import DensityMixture, DomainMixture
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/known.py"
NAMES = ("olive", "storms", "phoneme")
KNOWN = (0, 1, 5, 20)
Array = np.ndarray

OURS: dict[str, Callable[[int, int], Any]] = {
    "DomainMixture": lambda k, seed: DomainMixture(k, random_state=seed),
    "by shift": lambda k, seed: DomainMixture(k, by="shift", random_state=seed),
    "DensityMixture": lambda k, seed: DensityMixture(k, random_state=seed),
}
PEERS: dict[str, Callable[[], Any]] = {
    "known rows alone": lambda: LogisticRegression(max_iter=1000),
    "self-training": lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "label spreading": lambda: LabelSpreading(kernel="knn", n_neighbors=7),
}


def main() -> None:
    """Run what is missing; the file is rewritten after every run."""
    args = options(__doc__, "known", seeds=3).parse_args()
    settings = {"tables": list(NAMES), "known": list(KNOWN)}
    record = Record(
        args.record, COMMAND, settings, ("table", "seed", "known"), summarize
    )
    keys = [
        (name, seed, count)
        for seed in range(args.seeds)
        for name in NAMES
        for count in KNOWN
    ]
    record.fill(keys, run)
    print(json.dumps(summarize(record.runs), indent=1))


def run(name: str, seed: int, count: int) -> Run:
    """One table with so many known rows of each class."""
    table = TABLES[name](seed)
    truth = np.unique(table.labels, return_inverse=True)[1]
    given = draw_known(truth, count, np.random.default_rng([seed, count]))
    k = int(truth.max()) + 1
    scores: dict[str, float] = {}
    seconds: dict[str, float] = {}
    agreement: dict[str, float] = {}
    for method, make in OURS.items():
        began = time.process_time()
        model = fit_quietly(make(k, seed), table, given if count else None)
        seconds[method] = round(time.process_time() - began, 2)
        scores[method] = score(model, truth, given)
        if count > 1:  # of one row, none can be left out
            agreement[method] = round(model.known_.agreement, 4)
    if count:
        scores |= score_peers(table, truth, given)
    return {
        "table": name, "seed": seed, "known": count, "rows": len(truth),
        "classes": k, "accuracy": scores, "agreement": agreement, "seconds": seconds,
    }  # fmt: skip


def draw_known(truth: Array, count: int, rng: np.random.Generator) -> Array:
    """Classes of a few rows, -1 elsewhere."""
    given = np.full(len(truth), -1)
    for label in np.unique(truth):
        own = np.flatnonzero(truth == label)
        given[rng.choice(own, min(count, len(own) // 2), replace=False)] = label
    return given


def fit_quietly(model: Any, table: Table, given: Array | None) -> Any:
    """The fit; what it warns of is not the question here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table.X, table.domains, labels=given)


def score(model: Any, truth: Array, given: Array) -> float:
    """Accuracy of the rows that are not known, by name where there are names."""
    if (given < 0).all():
        return round(matched_accuracy(truth, model.labels_), 4)
    named = np.asarray(model.class_names_)[model.labels_]
    return round(float((named == truth.astype(str))[given < 0].mean()), 4)


def score_peers(table: Table, truth: Array, given: Array) -> dict[str, float]:
    """The same of every peer, without and with the domains."""
    plain = StandardScaler().fit_transform(table.X)
    which = np.unique(table.domains, return_inverse=True)[1]
    both = np.hstack([plain, np.eye(int(which.max()) + 1)[which]])
    scores = {}
    for suffix, X in (("", plain), (" + domain", both)):
        for method, make in PEERS.items():
            told = given >= 0
            rows = told if method == "known rows alone" else np.full(len(X), True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = make().fit(X[rows], given[rows])
            right = fitted.predict(X[~told]) == truth[~told]
            scores[method + suffix] = round(float(right.mean()), 4)
    return scores


def summarize(runs: list[Run]) -> dict[str, Any]:
    """By table and number of known rows: accuracy, agreement and cost."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(run["table"] for run in runs):
        for count in KNOWN:
            some = [
                run for run in runs if (run["table"], run["known"]) == (name, count)
            ]
            if not some:
                continue
            found[f"{name}, {count} known"] = {
                "seeds": len(some),
                "accuracy": {
                    method: spread(run["accuracy"][method] for run in some)
                    for method in some[0]["accuracy"]
                },
                "agreement": {
                    method: mean(run["agreement"][method] for run in some)
                    for method in some[0]["agreement"]
                },
                "seconds": {
                    method: mean(run["seconds"][method] for run in some)
                    for method in some[0]["seconds"]
                },
            }
    return found


if __name__ == "__main__":
    main()
