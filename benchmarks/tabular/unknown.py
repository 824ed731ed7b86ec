"""A class that nobody has seen, in a new domain: what `adapt` says of its share.

    OMP_NUM_THREADS=1 python benchmarks/tabular/unknown.py

Gaussian problems of five classes; the rows of one are taken out before the fit. New
domains hold none of it, 5%, 20% or 50%, and mix the other classes anew. Seeds 0 to 4
are development (the levels of rejection were set while looking at them), seeds from 10
on confirmation. Writes results/tabular/unknown.json.
"""

import json
import warnings
from typing import Any

import numpy as np
from _record import Record, Run, mean, options

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.density import DensityMixture

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/unknown.py"
N_CLASSES = 5
N_DOMAINS = 8
N_FEATURES = 6
ROWS = 4000
NEW_ROWS = (100, 1000)
SHARES = (0.0, 0.05, 0.2, 0.5)
# From classes that overlap to classes far apart.
SEPARATIONS = (1.0, 2.0, 3.0)
CONFIRMATION = 10
ESTIMATORS = {
    "DomainMixture": lambda seed: DomainMixture(
        N_CLASSES - 1, by="shift", search=False, random_state=seed
    ),
    "DensityMixture": lambda seed: DensityMixture(N_CLASSES - 1, random_state=seed),
}


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    args = options(__doc__, "unknown", seeds=10, repeats=10).parse_args()
    settings = {"domains_per_share": args.repeats, "rows": ROWS, "level": 0.9}
    key = ("estimator", "separation", "seed")
    record = Record(args.record, COMMAND, settings, key, summarize)
    seeds = range(CONFIRMATION, CONFIRMATION + args.seeds)
    keys = [
        (name, separation, seed)
        for seed in [*range(5), *seeds]
        for separation in SEPARATIONS
        for name in ESTIMATORS
    ]
    record.fill(keys, lambda *key: run(*key, args.repeats))
    print(json.dumps(summarize(record.runs), indent=1))


def run(name: str, separation: float, seed: int, repeats: int) -> Run:
    """One problem with a class left out, and new domains of it."""
    bunch = make_latent_shift(
        ROWS,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        n_features=N_FEATURES,
        separation=separation,
        random_state=seed,
        return_bunch=True,
    )
    known = bunch.labels < N_CLASSES - 1
    model = ESTIMATORS[name](seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(bunch.X[known], bunch.domains[known])
    rng = np.random.default_rng([seed, int(10 * separation)])
    found = {
        f"{n_rows} rows, {share:.0%}": [
            adapt_once(bunch, model, share, n_rows, rng) for _ in range(repeats)
        ]
        for n_rows in NEW_ROWS
        for share in SHARES
    }
    return {"estimator": name, "separation": separation, "seed": seed, "found": found}


def adapt_once(
    bunch: Any, model: Any, share: float, n_rows: int, rng: np.random.Generator
) -> list[Any]:
    """Best guess, interval and verdict of one new domain."""
    mix = (1 - share) * rng.dirichlet(np.ones(N_CLASSES - 1))
    n_new = round(share * n_rows)
    labels = rng.choice(N_CLASSES - 1, size=n_rows - n_new, p=mix / mix.sum())
    labels = np.append(labels, np.full(n_new, N_CLASSES - 1))
    rows = bunch.problem.world.sample(labels, np.zeros(n_rows, dtype=int), rng)
    unknown = model.adapt(rows, random_state=0).unknown
    numbers = [round(float(x), 3) for x in (unknown.share, unknown.low, unknown.high)]
    return [*numbers, unknown.verdict]


def summarize(runs: list[Run]) -> dict[str, Any]:
    """By part, estimator and separation; each row of it is a kind of new domain."""
    parts = {
        "development": [run for run in runs if run["seed"] < CONFIRMATION],
        "confirmation": [run for run in runs if run["seed"] >= CONFIRMATION],
    }
    return {
        part: {
            f"{name}, separation {separation:g}": summarize_cell(
                [
                    run["found"]
                    for run in some
                    if (run["estimator"], run["separation"]) == (name, separation)
                ]
            )
            for name in ESTIMATORS
            for separation in SEPARATIONS
        }
        for part, some in parts.items()
    }


def summarize_cell(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Covered, said to be present, said to be negligible; error of the best guess."""
    lines = {}
    for n_rows in NEW_ROWS:
        for share in SHARES if found else ():
            key = f"{n_rows} rows, {share:.0%}"
            every = [one for run in found for one in run[key]]
            guesses = [one[0] for one in every if not np.isnan(one[0])]
            lines[key] = {
                "covered": mean(one[1] <= share <= one[2] for one in every),
                "present": mean(one[3] == "present" for one in every),
                "negligible": mean(one[3] == "negligible" for one in every),
                "guess": mean(guesses) if guesses else None,
                "low": mean(one[1] for one in every),
                "high": mean(one[2] for one in every),
            }
    return lines


if __name__ == "__main__":
    main()
