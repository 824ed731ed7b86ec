"""Verdicts on real tables, beside the accuracy that they should tell apart.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/verdicts_real.py

Every table is fitted with the default route and the number of labels as the number of
classes, then diagnosed with the thresholds of ``verdicts.py``, which were not set here.
Labels enter only the scores: accuracy, and its share of that of the better of two that
were taught with labels. Gaps are the mean of their column. Tables already in
results/tabular/verdicts_real.json are not run again.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _problems import Problem
from _real import TABLES, Table
from _record import FOLDER, Record
from organic import DATA
from scipy.stats import spearmanr
from verdicts import labelled_reference

from shoal import DomainMixture
from shoal.metrics import matched_accuracy

COMMAND = (
    "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/verdicts_real.py"
)
ORGANIC = ("asteroids by decade", "thyroid patients by clinic", "activities by user")
NAMES = (*TABLES, *ORGANIC)
#: From bad to good, as the rank correlation needs them.
VERDICTS = ("do not use", "caution", "clear")


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, default=FOLDER / "verdicts_real.json")
    parser.add_argument("--tables", nargs="*", default=list(NAMES), choices=NAMES)
    args = parser.parse_args()
    settings = {"n_classes": "given", "seed": 0}
    record = Record(args.record, COMMAND, settings, ("data",), summarize)
    for (name,) in record.missing([(name,) for name in args.tables]):
        record.add(run_once(name)[0])
    record.write()


def run_once(name: str) -> tuple[dict[str, Any], Any]:
    """What one table's verdict was and what it should have been; and the diagnosis."""
    table = read_table(name)
    labels, domains = (
        np.unique(column.astype(str), return_inverse=True)[1]
        for column in (np.asarray(table.labels), np.asarray(table.domains))
    )
    X, k = table.X, int(labels.max()) + 1
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DomainMixture(k, check_identifiable=False, random_state=0)
        model.fit(X, domains)
        found = model.diagnose(X, domains, random_state=0)
    accuracy = float(matched_accuracy(labels, model.labels_))
    truth = Problem(X, domains, labels, np.empty(0), k, None)
    reference = labelled_reference(truth)
    return {
        "data": name,
        "n_rows": len(X),
        "n_domains": len(model.domains_),
        "n_labels": k,
        "by": model.route_.by,
        "accuracy": round(accuracy, 4),
        "reference": round(reference, 4),
        "share": round(accuracy / reference, 4),
        "verdict": found.verdict,
        "raised": {f.code: f.status for f in found.findings if f.status != "ok"},
    }, found


def read_table(name: str) -> Table:
    """Rows of a table that shows its own domains, or of one that was dealt to them."""
    if name in TABLES:
        return TABLES[name](0)
    data = DATA[name](0)
    return Table(np.asarray(data.X, dtype=float), data.domains, data.labels)


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How verdict and share of the reference rank the tables; and by verdict."""
    shares = [run["share"] for run in runs]
    ranks = [VERDICTS.index(run["verdict"]) for run in runs]
    alike = len(set(ranks)) < 2
    return {
        "tables": len(runs),
        "rank correlation": None if alike else round(spearmanr(ranks, shares)[0], 3),
        "by verdict": {
            verdict: sorted(r["share"] for r in runs if r["verdict"] == verdict)
            for verdict in VERDICTS
        },
    }


if __name__ == "__main__":
    main()
