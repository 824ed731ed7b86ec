"""How often 90% intervals cover the true prevalence.

    OMP_NUM_THREADS=1 python benchmarks/tabular/coverage.py

200 generated Gaussian problems: 2 to 6 classes, as many domains as classes up to three
times as many, 50 to 1,000 rows a domain, concentration 1, 3 or 10. Writes
results/tabular/coverage.json. Labels enter only the scoring: classes are matched to
the true ones by the true posterior of the rows.
"""

import json
import time

import numpy as np
from _record import Record, Run, deviation, mean, options
from joblib import Parallel, delayed
from scipy.stats import norm

from shoal import DomainMixture
from shoal.analysis._resample import STRETCH, match_by_rows, shrunken
from shoal.datasets import make_latent_shift

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/coverage.py"
LEVEL = 0.9
SIZES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0)
STRETCHES = (1.0, 1.06, 1.09, 1.125, 1.16, 1.19)


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    parser = options(__doc__, "coverage", problems=200, resamples=60, processes=1)
    parser.add_argument("--no-search", action="store_true")
    args = parser.parse_args()
    search = not args.no_search
    settings = {
        "estimator": f"DomainMixture(k, search={search})",
        "n_resamples": args.resamples,
        "level": LEVEL,
    }
    record = Record(args.record, COMMAND, settings, ("seed",), summarize)
    missing = record.missing((seed,) for seed in range(args.problems))
    found = Parallel(n_jobs=args.processes, return_as="generator_unordered")(
        delayed(run)(seed, args.resamples, search) for (seed,) in missing
    )
    for done in found:
        record.add(done)
    print(json.dumps(summarize(record.runs), indent=1))


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
    start = time.process_time()
    model = DomainMixture(
        settings["n_classes"], by="shift", search=search, random_state=seed
    )
    model.fit(bunch.X, bunch.domains)
    fitted = time.process_time()
    found = model.bootstrap(
        bunch.X, bunch.domains, n_resamples=n_resamples, level=LEVEL, random_state=seed
    )
    seconds = time.process_time() - fitted
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
        "truth": truth.ravel().round(4).tolist(),
        "inside": "".join("01"[int(cell)] for cell in inside.ravel()),
        "stretch_needed": off.ravel().round(3).tolist(),
    }


def summarize(runs: list[Run]) -> dict:
    """Coverage of all cells, and by what may matter to it."""
    truth = np.concatenate([run["truth"] for run in runs])
    inside = np.concatenate([np.array(list(run["inside"])) == "1" for run in runs])
    by_size = {}
    for low, high in zip(SIZES, SIZES[1:], strict=False):
        cells = (truth >= low) & (truth < high if high < 1 else truth <= high)
        if cells.any():
            by_size[f"{low:g} to {high:g}"] = {
                "coverage": mean(inside[cells]),
                "cells": int(cells.sum()),
            }
    coverage = [run["coverage"] for run in runs]
    return {
        "problems": len(runs),
        "stretch": STRETCH,
        "mean_coverage": mean(coverage),
        "sd_over_problems": deviation(coverage, 3),
        "coverage_of_cells": mean(inside),
        "by_prevalence": by_size,
        "by_rows_per_domain": by(runs, "rows_per_domain", (50, 100, 200, 400, 1001)),
        "by_alpha": by(runs, "alpha", (1, 3, 10, 11)),
        "mean_coverage_by_stretch": {
            str(s): mean(np.mean(np.array(r["stretch_needed"]) <= s) for r in runs)
            for s in STRETCHES
        },
        "mean_error": mean(run["error"] for run in runs),
        "mean_width": mean(run["width"] for run in runs),
        "mean_fit_seconds": mean(run["fit_seconds"] for run in runs),
        "mean_bootstrap_seconds": mean(run["bootstrap_seconds"] for run in runs),
    }


def by(runs: list[Run], key: str, edges: tuple[float, ...]) -> dict[str, float]:
    """Mean coverage of problems grouped by one of their settings."""
    groups = {}
    for low, high in zip(edges, edges[1:], strict=False):
        some = [run["coverage"] for run in runs if low <= run[key] < high]
        if some:
            groups[f"{low:g} to {high:g}"] = mean(some)
    return groups


if __name__ == "__main__":
    main()
