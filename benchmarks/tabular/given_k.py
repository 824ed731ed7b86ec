"""What it costs not to know the number of classes: k chosen beside k given.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/given_k.py

Labelled tables dealt to domains (``_real.DEALS``), where classes look the same in every
domain. Labels are seen by the scores alone; the rule that reads the curve was set while
looking at these numbers (development); ``--fresh`` adds tables that were not opened
before. Runs already in the record are not repeated.
"""

import time
import warnings

import numpy as np
from _real import DEALS, FRESH, FRESH_TABLES, TABLES
from _record import Record, Run, mean, options, spread

from shoal import DomainMixture
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/given_k.py"


def main() -> None:
    """Run what is missing; the file is rewritten after every run."""
    parser = options(__doc__, "given_k", seeds=3)
    parser.add_argument("--fresh", action="store_true", help="unopened tables, once")
    args = parser.parse_args()
    names = [*DEALS, *(FRESH if args.fresh else ())]
    record = Record(args.record, COMMAND, {}, ("data", "seed"), summarize)
    record.fill(
        [(name, seed) for seed in range(args.seeds) for name in names], run_once
    )
    record.write()


def run_once(name: str, seed: int) -> Run:
    """The default fit of one draw, told the number of classes and not."""
    table = (TABLES | FRESH_TABLES)[name](seed)
    truth = len(np.unique(table.labels))
    run: Run = {"data": name, "seed": seed, "k_given": truth}
    for told, n_classes in (("given", truth), ("chosen", None)):
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DomainMixture(n_classes, random_state=seed)
            model.fit(table.X, table.domains)
        run[f"k_{told}"] = model.n_classes_
        run[f"by_{told}"] = model.route_.by
        run[f"accuracy_{told}"] = round(
            float(matched_accuracy(table.labels, model.labels_)), 4
        )
        run[f"cpu_seconds_{told}"] = round(time.process_time() - begun, 2)
    return run


def summarize(runs: list[Run]) -> dict:
    """By table, and the mean over tables of the loss."""
    tables = {}
    for name in sorted({run["data"] for run in runs}):
        mine = [run for run in runs if run["data"] == name]
        loss = [run["accuracy_given"] - run["accuracy_chosen"] for run in mine]
        tables[name] = {
            "n_seeds": len(mine),
            "k_given": mine[0]["k_given"],
            "k_chosen": [run["k_chosen"] for run in mine],
            "accuracy_given": spread(run["accuracy_given"] for run in mine),
            "accuracy_chosen": spread(run["accuracy_chosen"] for run in mine),
            "loss": spread(loss),
        }
    parts = {"development": DEALS, "fresh": FRESH}
    every = {
        part: [line["loss"][0] for name, line in tables.items() if name in names]
        for part, names in parts.items()
    }
    means = {part: mean(losses) for part, losses in every.items() if losses}
    return {"tables": tables, "mean_loss": means}


if __name__ == "__main__":
    main()
