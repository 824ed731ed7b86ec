"""The class mix of a new domain: error against rows, coverage, accuracy, fit score.

    OMP_NUM_THREADS=1 python benchmarks/tabular/new_domain.py

The Gaussian problems of the panel (the paper's matrices, 10 and 20 classes, alpha .5,
3 and 10). New domains draw their mix as the old ones did. Beside our error stands that
of the same EM with the true posterior. Writes results/tabular/new_domain.json.
"""

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import shoal
from shoal.analysis.matching import match_by_rows
from shoal.analysis.proportions import mixture_proportions
from shoal.benchmark.published import paper_prevalence
from shoal.datasets import make_latent_shift
from shoal.mixture import DomainMixture

RECORD = Path(__file__).parents[2] / "results" / "tabular" / "new_domain.json"
PANEL = {
    (n_classes, alpha): 6000 if n_classes == 10 else 10_000
    for n_classes in (10, 20)
    for alpha in (0.5, 3.0, 10.0)
}
SIZES = (10, 30, 100, 300, 1000, 3000)
# Beyond, errors of the fitted classes show: their own rows are not many more.
SLOPE_SIZES = SIZES[:-1]


def make_problem(n_classes: int, alpha: float, n_rows: int, seed: int) -> Any:
    data_set = {10: "cifar10", 20: "cifar20"}[n_classes]
    prevalence = paper_prevalence(data_set, n_classes, alpha, seed % 5)
    return make_latent_shift(
        n_rows, prevalence=prevalence, random_state=seed, return_bunch=True
    )


def run(n_classes: int, alpha: float, seed: int, repeats: int, search: bool) -> dict:
    bunch = make_problem(n_classes, alpha, PANEL[n_classes, alpha], seed)
    start = time.perf_counter()
    model = DomainMixture(n_classes, search=search, random_state=seed)
    model.fit(bunch.X, bunch.domains)
    seconds = time.perf_counter() - start
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
    start = time.perf_counter()
    new = model.adapt(rows, random_state=0)
    seconds = time.perf_counter() - start
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


def summarize(runs: list[dict]) -> dict:
    return {key: round(float(np.mean([r[key] for r in runs])), 4) for key in runs[0]}


def slope(by_rows: dict, key: str) -> float:
    """Exponent of the error as a power of the rows."""
    errors = [by_rows[str(n_rows)][key] for n_rows in SLOPE_SIZES]
    return round(float(np.polyfit(np.log(SLOPE_SIZES), np.log(errors), 1)[0]), 3)


def versions() -> dict[str, str]:
    return {
        "shoal": shoal.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--no-search", action="store_true")
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    records = []
    for n_classes, alpha in PANEL:
        for seed in range(args.seeds):
            records.append(
                run(n_classes, alpha, seed, args.repeats, not args.no_search)
            )
            print(json.dumps(records[-1]), flush=True)
    pooled = {
        str(n_rows): summarize([record["sizes"][str(n_rows)] for record in records])
        for n_rows in SIZES
    }
    summary = {
        "problems": len(records),
        "domains_per_size": args.repeats * len(records),
        "slope_10_to_1000": slope(pooled, "error"),
        "oracle_slope_10_to_1000": slope(pooled, "oracle_error"),
        "worst_error_at_1000": max(r["sizes"]["1000"]["error"] for r in records),
        "far_fit_score_max": max(record["far_fit_score"] for record in records),
        "by_rows": pooled,
    }
    print(json.dumps(summary, indent=1))
    result = {
        "command": "OMP_NUM_THREADS=1 python benchmarks/tabular/new_domain.py",
        "estimator": f"DomainMixture(k, search={not args.no_search})",
        "versions": versions(),
        "summary": summary,
        "runs": records,
    }
    args.record.parent.mkdir(parents=True, exist_ok=True)
    args.record.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
