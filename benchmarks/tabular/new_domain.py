"""The class mix of a new domain: error against rows, coverage, accuracy, fit score.

    OMP_NUM_THREADS=1 python benchmarks/tabular/new_domain.py

The Gaussian problems of the panel (the paper's matrices, 10 and 20 classes, alpha .5,
3 and 10). New domains draw their mix as the old ones did. Beside our error stands that
of the same EM with the true posterior. Writes results/tabular/new_domain.json.
"""

import json
import time
from typing import Any

import numpy as np
from _record import Record, Run, mean, options

from shoal import DomainMixture
from shoal.analysis._resample import match_by_rows, mixture_proportions
from shoal.datasets import make_latent_shift
from shoal_bench.published import paper_prevalence

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/new_domain.py"
PANEL = {
    (n_classes, alpha): 6000 if n_classes == 10 else 10_000
    for n_classes in (10, 20)
    for alpha in (0.5, 3.0, 10.0)
}
SIZES = (10, 30, 100, 300, 1000, 3000)
# Beyond, errors of the fitted classes show: their own rows are not many more.
SLOPE_SIZES = SIZES[:-1]


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    parser = options(__doc__, "new_domain", seeds=3, repeats=20)
    parser.add_argument("--no-search", action="store_true")
    args = parser.parse_args()
    search = not args.no_search
    settings = {
        "estimator": f"DomainMixture(k, search={search})",
        "domains_per_size": args.repeats,
    }
    key = ("n_classes", "alpha", "seed")
    record = Record(args.record, COMMAND, settings, key, summarize_runs)
    keys = [(*problem, seed) for seed in range(args.seeds) for problem in PANEL]
    record.fill(keys, lambda *key: run(*key, args.repeats, search))
    print(json.dumps(summarize_runs(record.runs), indent=1))


def make_problem(n_classes: int, alpha: float, n_rows: int, seed: int) -> Any:
    data_set = {10: "cifar10", 20: "cifar20"}[n_classes]
    prevalence = paper_prevalence(data_set, n_classes, alpha, seed % 5)
    return make_latent_shift(
        n_rows, prevalence=prevalence, random_state=seed, return_bunch=True
    )


def run(n_classes: int, alpha: float, seed: int, repeats: int, search: bool) -> dict:
    bunch = make_problem(n_classes, alpha, PANEL[n_classes, alpha], seed)
    start = time.process_time()
    model = DomainMixture(n_classes, by="shift", search=search, random_state=seed)
    model.fit(bunch.X, bunch.domains)
    seconds = time.process_time() - start
    truth_of = match_by_rows(bunch.posterior.argmax(axis=1), model.labels_, n_classes)
    rng = np.random.default_rng([seed, n_classes])
    found = {
        str(n_rows): summarize(
            [
                adapt_once(bunch, model, truth_of, alpha, n_rows, rng)
                for _ in range(repeats)
            ]
        )
        for n_rows in SIZES
    }
    far = rng.normal(size=(300, bunch.X.shape[1])) + 8
    record = {"n_classes": n_classes, "alpha": alpha, "seed": seed, "sizes": found}
    record["slope"] = slope(found, "error")
    record["far_fit_score"] = round(model.adapt(far, random_state=0).fit_score, 3)
    record["fit_seconds"] = round(seconds, 2)
    return record


def adapt_once(
    bunch: Any,
    model: DomainMixture,
    truth_of: np.ndarray,
    alpha: float,
    n_rows: int,
    rng: np.random.Generator,
) -> dict:
    """One new domain of ``n_rows`` rows; ``truth_of`` names each fitted class."""
    n_classes = len(truth_of)
    mix = rng.dirichlet(np.full(n_classes, alpha / n_classes))
    labels = rng.choice(n_classes, size=n_rows, p=mix)
    rows = bunch.problem.world.sample(labels, np.zeros(n_rows, dtype=int), rng)
    start = time.process_time()
    new = model.adapt(rows, random_state=0)
    seconds = time.process_time() - start
    truth = mix[truth_of]
    density = bunch.problem.class_given_x(rows) / bunch.prevalence.mean(axis=0)
    oracle = mixture_proportions(density)
    return {
        "error": np.abs(new.prevalence - truth).mean(),
        "oracle_error": np.abs(oracle - mix).mean(),
        "coverage": np.mean((new.low <= truth) & (truth <= new.high)),
        "accuracy": np.mean(truth_of[new.predict(rows)] == labels),
        "accuracy_not_adapted": np.mean(truth_of[model.predict(rows)] == labels),
        "fit_score": new.fit_score,
        "seconds": seconds,
    }


def summarize(trials: list[dict]) -> dict:
    return {key: mean(trial[key] for trial in trials) for key in trials[0]}


def slope(by_rows: dict, key: str) -> float:
    """Exponent of the error as a power of the rows."""
    errors = [by_rows[str(n_rows)][key] for n_rows in SLOPE_SIZES]
    return round(float(np.polyfit(np.log(SLOPE_SIZES), np.log(errors), 1)[0]), 3)


def summarize_runs(runs: list[Run]) -> dict:
    pooled = {
        str(n_rows): summarize([run["sizes"][str(n_rows)] for run in runs])
        for n_rows in SIZES
    }
    return {
        "problems": len(runs),
        "slope_10_to_1000": slope(pooled, "error"),
        "oracle_slope_10_to_1000": slope(pooled, "oracle_error"),
        "worst_error_at_1000": max(run["sizes"]["1000"]["error"] for run in runs),
        "far_fit_score_max": max(run["far_fit_score"] for run in runs),
        "by_rows": pooled,
    }


if __name__ == "__main__":
    main()
