"""Real tables with domains of their own: shoal beside the baselines, honestly.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/organic.py

Every seed fits a random 80% of each domain's rows (rodents: a random 6,000 rows) and
scores those same rows, as a user would who wants classes for a table; labels are seen
by the scores alone, except in the line called reference. Ours is the default fit with
the number of labels given, beside what each of its two witnesses alone would have said,
and once more with the number of classes left open. Runs already in
results/tabular/organic.json are not made again; a baseline that they lack is added.
"""

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from _record import Record, deviation, options
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch

from shoal import DomainMixture
from shoal.datasets import (
    load_activities,
    load_asteroids,
    load_hawks,
    load_penguins,
    load_portal_rodents,
    load_thyroid,
)
from shoal.exceptions import ShoalWarning
from shoal.metrics import match_classes, matched_accuracy, prevalence_error
from shoal_bench.panel import PanelProblem, run_method

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/organic.py"
OURS, FREE = "route", "route, k chosen"
RODENT_ROWS = 6_000
SHARE = 0.8
BASELINES = (
    "ddfa",
    "ddfa published, mlp",
    "k-means",
    "k-means, standardized",
    "gmm",
    "majority",
    "reference",
)


def rodents(domains: str) -> Callable[[int], Bunch]:
    return lambda seed: load_portal_rodents(
        domains=domains, max_rows=RODENT_ROWS, random_state=seed
    )


def part_of(load: Callable[[], Bunch]) -> Callable[[int], Bunch]:
    """Loader of a random share of each domain's rows."""

    def load_part(seed: int) -> Bunch:
        data = load()
        rows, _ = train_test_split(
            np.arange(len(data.X)),
            train_size=SHARE,
            stratify=data.domains,
            random_state=seed,
        )
        rows.sort()
        return Bunch(
            X=data.X[rows], domains=data.domains[rows], labels=data.labels[rows]
        )

    return load_part


DATA: dict[str, Callable[[int], Bunch]] = {
    "penguins by island": part_of(load_penguins),
    "rodents by plot": rodents("plot"),
    "rodents by year": rodents("year"),
    "asteroids by decade": part_of(load_asteroids),
    "thyroid patients by clinic": part_of(load_thyroid),
    "hawks by year": part_of(load_hawks),
    "activities by user": part_of(load_activities),
}


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = options(__doc__, "organic", seeds=3)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=list(DATA))
    args = parser.parse_args()
    settings = {"share": SHARE, "rodent_rows": RODENT_ROWS}
    record = Record(args.record, COMMAND, settings, ("data", "seed"), summarize)
    keys = [(name, seed) for seed in range(args.seeds) for name in args.data]
    for run in record.runs:
        absent = [method for method in BASELINES if method not in run["methods"]]
        if absent and run["data"] in args.data:
            problem = make_problem(run["data"], run["seed"])
            run["methods"] |= run_baselines(problem, run["seed"], absent)
    record.write()
    record.fill(keys, run_once)


def make_problem(name: str, seed: int) -> PanelProblem:
    data = DATA[name](seed)
    rows = (data.X, data.domains, data.labels)
    return PanelProblem(name, len(np.unique(data.labels)), *rows, *rows)


def run_baselines(
    problem: PanelProblem, seed: int, methods: Sequence[str] = BASELINES
) -> dict[str, dict]:
    return {method: run_method(method, problem, seed) for method in methods}


def run_once(name: str, seed: int) -> dict:
    """Every method on one draw of a data set, and what shoal itself says about it."""
    data = make_problem(name, seed)
    n_labels = data.n_classes
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DomainMixture(n_labels, random_state=seed).fit(data.X, data.domains)
        diagnosis = model.diagnose(data.X, data.domains, random_state=seed)
        free = DomainMixture(random_state=seed).fit(data.X, data.domains)
    seconds = time.process_time() - begun
    methods = {OURS: judge(data, model), FREE: judge(data, free)}
    methods |= witnesses(data, model) | run_baselines(data, seed)
    return {
        "data": name,
        "seed": seed,
        "n_rows": len(data.X),
        "n_domains": len(np.unique(data.domains)),
        "n_labels": n_labels,
        "methods": methods,
        "by": model.route_.by,
        "reason": model.route_.reason,
        "chosen_n_classes": free.n_classes_,
        "verdict": diagnosis.verdict,
        "findings": {f.code: f.status for f in diagnosis.findings},
        "seconds": seconds,
    }


def witnesses(problem: PanelProblem, model: DomainMixture) -> dict[str, dict]:
    """Accuracy of the classes by shift and by looks, of which the fit chose one."""
    route = model.route_
    other = "looks" if route.by == "shift" else "shift"
    labels = {route.by: model.labels_, other: route.other_labels}
    return {
        by: {"accuracy": matched_accuracy(problem.labels, said)}
        | {"prevalence_error": None}
        for by, said in labels.items()
    }


def judge(problem: PanelProblem, model: DomainMixture) -> dict[str, float]:
    matching = match_classes(problem.labels, model.labels_)
    return {
        "accuracy": matched_accuracy(problem.labels, model.labels_, matching=matching),
        "prevalence_error": prevalence_error(
            problem.prevalence,
            model.prevalence_,
            matching=matching,
            label_names=np.unique(problem.labels),
        ),
    }


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per data set."""
    lines = []
    for name in DATA:
        mine = [run for run in runs if run["data"] == name]
        if not mine:
            continue
        lines.append(
            {
                "data": name,
                "n_seeds": len(mine),
                "n_rows": int(np.mean([run["n_rows"] for run in mine])),
                "n_domains": mine[0]["n_domains"],
                "n_labels": mine[0]["n_labels"],
                "methods": {
                    method: spread(mine, method) for method in mine[0]["methods"]
                },
                "by": [run["by"] for run in mine],
                "chosen_n_classes": [run["chosen_n_classes"] for run in mine],
                "verdicts": [run["verdict"] for run in mine],
            }
        )
    return lines


def spread(runs: list[dict], method: str) -> dict[str, float | None]:
    result: dict[str, float | None] = {}
    for measure in ("accuracy", "prevalence_error"):
        values = [run["methods"][method][measure] for run in runs]
        known = [value for value in values if value is not None]
        result[measure] = float(np.mean(known)) if known else None
        result[f"{measure}_sd"] = deviation(known) if known else None
    return result


if __name__ == "__main__":
    main()
