"""Shift, looks and the choice between them, beside what others find; k is given.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/route.py

Labels are seen by the scores alone. The rule was set while looking at the scores of
seeds 0 to 2 (development); seeds from 10 on are draws of the same labelled tables that
it was not set on (confirmation), run once; so are six tables that were not opened
before (``--fresh``; ``scripts/data/make_confirmation.py``). Gaps are the column's mean
for all but DensityMixture. Records already in results/tabular/route.json are not run
again.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from _real import DEALS, FRESH_TABLES, TABLES
from _record import FOLDER, Record, spread

from density import others
from shoal import DDFA, DomainMixture
from shoal.metrics import majority_accuracy, matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/route.py"
CONFIRMATION = 10
EVERY = TABLES | FRESH_TABLES
#: Whose rows and labels are the same for every seed.
FIXED = ("penguins", "cell lines", "finches", "heart")


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, default=FOLDER / "route.json")
    parser.add_argument("--confirm", action="store_true", help="seeds 10 to 14, once")
    parser.add_argument("--fresh", action="store_true", help="unopened tables, once")
    args = parser.parse_args()
    settings = {"n_init": 10, "n_classes": "given"}
    record = Record(args.record, COMMAND, settings, ("data", "seed"), summarize)
    keys = [
        (name, seed)
        for seed in range(3)
        for name in [*TABLES, *(FRESH_TABLES if args.fresh else ())]
        if not (seed and name in FIXED)
    ]
    if args.confirm:
        seeds = range(CONFIRMATION, CONFIRMATION + 5)
        keys += [(name, seed) for seed in seeds for name in DEALS]
    for name, seed in record.missing(keys):
        record.add(run_once(name, seed))
        print(json.dumps(record.runs[-1]), flush=True)


def run_once(name: str, seed: int) -> dict:
    """Every method on one draw of a table."""
    table = EVERY[name](seed)
    n_labels = len(np.unique(table.labels))
    X = np.where(np.isnan(table.X), np.nanmean(table.X, axis=0), table.X)

    def score(classes: np.ndarray) -> float:
        return round(float(matched_accuracy(table.labels, classes)), 4)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        model = DomainMixture(n_labels, check_identifiable=False, random_state=seed)
        model.fit(X, table.domains)
        seconds = {"shoal": time.process_time() - begun}
        route = model.route_
        spoke = {route.by: model.labels_}
        spoke["looks" if route.by == "shift" else "shift"] = route.other_labels
        accuracy = {"shoal": score(model.labels_)}
        accuracy |= {by: score(spoke[by]) for by in ("shift", "looks")}
        methods = others(table, n_labels, seed)
        ddfa = DDFA(n_labels, check_identifiable=False, random_state=seed)
        methods["DDFA"] = lambda: ddfa.fit_predict(X, table.domains)
        for method, find_classes in methods.items():
            begun = time.process_time()
            accuracy[method] = score(find_classes())
            seconds[method] = time.process_time() - begun
    accuracy["majority"] = round(majority_accuracy(table.labels, table.domains), 4)
    return {
        "data": name,
        "seed": seed,
        "n_rows": len(X),
        "n_domains": len(model.domains_),
        "n_labels": n_labels,
        "by": route.by,
        "reason": route.reason,
        "gain": route.gain,
        "agreement": route.agreement,
        "accuracy": accuracy,
        "times_gmm": round(seconds["shoal"] / seconds["gmm"], 2),
    }


def summarize(runs: list[dict]) -> dict:
    """Mean and standard deviation by table, and the mean over tables."""
    known = [run for run in runs if run["data"] not in FRESH_TABLES]
    chosen = {
        "development": [run for run in known if run["seed"] < CONFIRMATION],
        "confirmation": [run for run in known if run["seed"] >= CONFIRMATION],
        "fresh": [run for run in runs if run["data"] in FRESH_TABLES],
    }
    return {part: summarize_part(some) for part, some in chosen.items() if some}


def summarize_part(runs: list[dict]) -> dict:
    """One entry a table, then all of them."""
    lines = {}
    for name in EVERY:
        mine = [run for run in runs if run["data"] == name]
        if mine:
            accuracies = [run["accuracy"] for run in mine]
            lines[name] = {
                "n_seeds": len(mine),
                "looks_spoke": sum(run["by"] == "looks" for run in mine),
                "accuracy": {
                    method: spread([one[method] for one in accuracies])
                    for method in accuracies[0]
                },
                "times_gmm": spread([run["times_gmm"] for run in mine]),
            }
    methods = next(iter(lines.values()))["accuracy"]
    every = {
        method: round(
            float(np.mean([line["accuracy"][method][0] for line in lines.values()])), 4
        )
        for method in methods
    }
    return {"tables": lines, "mean": every}


if __name__ == "__main__":
    main()
