"""How often 90% intervals cover the true prevalence.

    OMP_NUM_THREADS=1 python benchmarks/tabular/coverage.py

200 generated Gaussian problems: 2 to 6 classes, as many domains as classes up to three
times as many, 50 to 1,000 rows a domain, concentration 1, 3 or 10. Writes
results/tabular/coverage.json. Labels enter only the scoring: classes are matched to
the true ones by the true posterior of the rows.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed
from scipy.stats import norm

import shoal
from shoal.analysis.matching import match_by_rows
from shoal.analysis.proportions import STRETCH, shrunken
from shoal.datasets import make_latent_shift
from shoal.mixture import DomainMixture

RECORD = Path(__file__).parents[2] / "results" / "tabular" / "coverage.json"
LEVEL = 0.9
SIZES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
STRETCHES = (1.0, 1.06, 1.09, 1.125, 1.16, 1.19)


def draw_problem(seed: int) -> dict:
    """Settings of one problem, all from its seed."""
    rng = np.random.default_rng([2024, seed])
    n_classes = int(rng.integers(2, 7))
    return {
        "n_classes": n_classes,
        "n_domains": int(rng.integers(n_classes, 3 * n_classes + 1)),
        "rows_per_domain": round(50 * 20 ** rng.random()),
        "alpha": float(rng.choice([1.0, 3.0, 10.0])),
    }


def run(seed: int, n_resamples: int, search: bool) -> dict:
    """Fit and resample one problem; which cells are covered, at several widths."""
    settings = draw_problem(seed)
    n_domains = settings["n_domains"]
    bunch = make_latent_shift(
        n_domains * settings["rows_per_domain"],
        n_classes=settings["n_classes"],
        n_domains=n_domains,
        alpha=settings["alpha"],
        random_state=seed,
        return_bunch=True,
    )
    start = time.perf_counter()
    model = DomainMixture(settings["n_classes"], search=search, random_state=seed)
    model.fit(bunch.X, bunch.domains)
    fitted = time.perf_counter()
    found = model.bootstrap(
        bunch.X, bunch.domains, n_resamples=n_resamples, level=LEVEL, random_state=seed
    )
    seconds = time.perf_counter() - fitted
    truth_of = match_by_rows(
        bunch.posterior.argmax(axis=1), model.labels_, settings["n_classes"]
    )
    truth = bunch.prevalence[:, truth_of]
    centre, variance = shrunken(
        found.prevalence, found.draws.var(axis=0, ddof=1), found.n_rows[:, None]
    )
    # in normal standard deviations at the level: covered where the stretch is larger
    off = np.abs(truth - centre) / np.sqrt(variance) / norm.ppf((1 + LEVEL) / 2)
    inside = (found.low <= truth) & (truth <= found.high)
    return {
        "seed": seed,
        **settings,
        "coverage": float(inside.mean()),
        "error": float(np.abs(found.prevalence - truth).mean()),
        "width": float((found.high - found.low).mean()),
        "co_assignment": float(found.co_assignment.mean()),
        "fit_seconds": round(fitted - start, 2),
        "bootstrap_seconds": round(seconds, 2),
        "truth": truth.ravel().round(5).tolist(),
        "inside": inside.ravel().astype(int).tolist(),
        "stretch_needed": off.ravel().round(4).tolist(),
    }


def summarize(records: list[dict]) -> dict:
    truth = np.concatenate([record.pop("truth") for record in records])
    inside = np.concatenate([record.pop("inside") for record in records])
    needed = [np.array(record.pop("stretch_needed")) for record in records]
    bins = zip(SIZES, SIZES[1:], strict=False)
    by_size = {}
    for low, high in bins:
        cells = (truth >= low) & (truth < high if high < 1 else truth <= high)
        by_size[f"{low:g} to {high:g}"] = {
            "coverage": round(float(inside[cells].mean()), 3),
            "cells": int(cells.sum()),
        }
    coverage = np.array([record["coverage"] for record in records])

    def by(key: str, edges: list) -> dict:
        groups = {}
        for low, high in zip(edges, edges[1:], strict=False):
            some = [r["coverage"] for r in records if low <= r[key] < high]
            groups[f"{low:g} to {high:g}"] = round(float(np.mean(some)), 3)
        return groups

    return {
        "problems": len(records),
        "level": LEVEL,
        "stretch": STRETCH,
        "mean_coverage": round(float(coverage.mean()), 4),
        "sd_over_problems": round(float(coverage.std()), 3),
        "coverage_of_cells": round(float(inside.mean()), 4),
        "by_prevalence": by_size,
        "by_rows_per_domain": by("rows_per_domain", [50, 100, 200, 400, 1001]),
        "by_alpha": by("alpha", [1, 3, 10, 11]),
        "mean_coverage_by_stretch": {
            str(s): round(float(np.mean([(n <= s).mean() for n in needed])), 4)
            for s in STRETCHES
        },
        "mean_error": round(float(np.mean([r["error"] for r in records])), 4),
        "mean_width": round(float(np.mean([r["width"] for r in records])), 4),
        "mean_fit_seconds": round(
            float(np.mean([r["fit_seconds"] for r in records])), 2
        ),
        "mean_bootstrap_seconds": round(
            float(np.mean([r["bootstrap_seconds"] for r in records])), 2
        ),
    }


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
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--no-search", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    found = Parallel(n_jobs=args.processes, return_as="generator")(
        delayed(run)(seed, args.resamples, not args.no_search)
        for seed in range(args.problems)
    )
    records = []
    for record in found:
        records.append(record)
        shown = ("seed", "n_classes", "n_domains", "rows_per_domain", "alpha",
                 "coverage", "error", "fit_seconds", "bootstrap_seconds")  # fmt: skip
        print({key: record[key] for key in shown}, flush=True)
    summary = summarize(records)
    print(json.dumps(summary, indent=1))
    result = {
        "command": "OMP_NUM_THREADS=1 python benchmarks/tabular/coverage.py",
        "estimator": f"DomainMixture(k, search={not args.no_search})",
        "n_resamples": args.resamples,
        "versions": versions(),
        "summary": summary,
        "runs": records,
    }
    args.record.parent.mkdir(parents=True, exist_ok=True)
    args.record.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
