"""Tables with few rows for their columns: their classes, or the domains again.

    OMP_NUM_THREADS=1 python benchmarks/tabular/wide.py

Three classes in three domains; twenty columns tell the classes apart, the others are
noise. The softmax sees what the fit chooses (principal components, as a rule), or the
columns as they are. Accuracy of the classes of the fitted rows, and how far these are
the domains (1: entirely). Writes results/tabular/wide.json.
"""

import json
import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from _record import Record, Run, deviation, mean, options

from shoal import DomainMixture
from shoal.exceptions import ShoalWarning
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/wide.py"
MIXES = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
SHAPES = [(240, 50), (240, 200), (240, 2000), (1200, 100), (1200, 500), (1200, 2000)]
INFORMATIVE = 20
DISTANCE = 6.0  # of the classes' centres from the origin, in units of the noise


def main() -> None:
    """Run what is missing; the file is rewritten after every fit."""
    args = options(__doc__, "wide", seeds=5).parse_args()
    settings = {"estimator": "DomainMixture(3, expansion=...)"}
    key = ("n_rows", "n_columns", "expansion", "seed")
    record = Record(args.record, COMMAND, settings, key, summarize)
    keys = [
        (*shape, expansion, seed)
        for shape in SHAPES
        for expansion in ("auto", "linear")
        for seed in range(args.seeds)
    ]
    record.fill(keys, run)
    print(json.dumps(summarize(record.runs), indent=1))


def run(n_rows: int, n_columns: int, expansion: str, seed: int) -> Run:
    """One fit."""
    X, domains, labels = make_table(n_rows, n_columns, seed)
    model = DomainMixture(3, expansion=expansion, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model.fit(X, domains)
    return {
        "n_rows": n_rows,
        "n_columns": n_columns,
        "expansion": expansion,
        "seed": seed,
        "chosen": model.features_.expansion,
        "accuracy": matched_accuracy(labels, model.labels_),
        "as_domains": matched_accuracy(domains, model.labels_),
    }


def make_table(n_rows: int, n_columns: int, seed: int) -> tuple[Any, Any, Any]:
    """Rows, their domains and their classes."""
    rng = np.random.default_rng(seed)
    domains = np.repeat(np.arange(len(MIXES)), n_rows // len(MIXES))
    labels = np.array([rng.choice(3, p=MIXES[domain]) for domain in domains])
    centres = rng.normal(size=(3, INFORMATIVE)) * DISTANCE / np.sqrt(INFORMATIVE)
    X = rng.normal(size=(len(labels), n_columns))
    X[:, :INFORMATIVE] += centres[labels]
    return X, domains, labels


def summarize(runs: list[Run]) -> list[dict[str, Any]]:
    """Means over seeds, by shape and expansion."""
    groups: dict[Any, list[Run]] = defaultdict(list)
    for one in runs:
        groups[one["n_rows"], one["n_columns"], one["expansion"]].append(one)
    return [
        {
            "n_rows": n_rows,
            "n_columns": n_columns,
            "expansion": expansion,
            "accuracy": mean(r["accuracy"] for r in group),
            "accuracy_std": deviation(r["accuracy"] for r in group),
            "as_domains": mean(r["as_domains"] for r in group),
            "components": sum(r["chosen"] == "components" for r in group),
            "seeds": len(group),
        }
        for (n_rows, n_columns, expansion), group in groups.items()
    ]


if __name__ == "__main__":
    main()
