"""New rows join a model: what `shoal.update` says of news, and of no news.

    OMP_NUM_THREADS=1 python benchmarks/tabular/update.py

Gaussian problems of four classes, one of which the fit has not seen. New rows are of
two known domains and two new ones, 400 each. In turn nothing is new but the mix of the
new domains; 5%, 15% or 40% of the rows of the new domains are of the unseen class; the
mix of one known domain has moved; one column of one domain is 0.3 standard deviations
off. Seeds 0 and 1 were looked at while this was written; the record has others. Writes
results/tabular/update.json.
"""

import json
import time
import warnings
from typing import Any

import numpy as np
from _record import Record, Run, mean, options

import shoal
from shoal.datasets import make_latent_shift
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/update.py"
N_CLASSES, N_DOMAINS, N_FEATURES = 4, 6, 6
ROWS, NEW_ROWS = 3000, 400
SHARES = (0.05, 0.15, 0.4)
SEPARATIONS = (2.0, 3.0)
FIRST_SEED = 10
OFF = 0.3
ESTIMATORS = {
    "DomainMixture": lambda seed: shoal.DomainMixture(
        N_CLASSES - 1, by="shift", search=False, random_state=seed
    ),
    "DensityMixture": lambda seed: shoal.DensityMixture(
        N_CLASSES - 1, random_state=seed
    ),
}


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    args = options(__doc__, "update", seeds=5, repeats=10).parse_args()
    settings = {"nulls_per_seed": args.repeats, "rows": ROWS, "new_rows": NEW_ROWS}
    key = ("estimator", "separation", "seed")
    record = Record(args.record, COMMAND, settings, key, summarize)
    keys = [
        (name, separation, FIRST_SEED + seed)
        for seed in range(args.seeds)
        for separation in SEPARATIONS
        for name in ESTIMATORS
    ]
    record.fill(keys, lambda *key: run(*key, args.repeats))
    print(json.dumps(summarize(record.runs), indent=1))


def run(name: str, separation: float, seed: int, repeats: int) -> Run:
    """One fit, and all kinds of new rows."""
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
    before = bunch.X[known], bunch.domains[known]
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ESTIMATORS[name](seed).fit(*before)
    seconds = time.perf_counter() - begun
    problem = Problem(bunch, model, before, np.random.default_rng([seed, 7]), seconds)
    found = {"nothing": [problem.ask() for _ in range(repeats)]}
    found |= {f"{share:.0%} unseen": [problem.ask(unseen=share)] for share in SHARES}
    found["mix moved"] = [problem.ask(moved=True)]
    found["looks moved"] = [problem.ask(off=OFF)]
    return {"estimator": name, "separation": separation, "seed": seed, "found": found}


class Problem:
    """New rows of one world."""

    def __init__(
        self, bunch: Any, model: Any, before: Any, rng: Any, seconds: float
    ) -> None:
        self.world, self.model, self.before = bunch.problem.world, model, before
        self.rng, self.seconds = rng, seconds
        labels, domains = bunch.labels[bunch.labels < N_CLASSES - 1], before[1]
        self.mixes = [
            np.bincount(labels[domains == one], minlength=N_CLASSES - 1)
            for one in np.unique(domains)
        ]

    def ask(
        self, unseen: float = 0.0, moved: bool = False, off: float = 0.0
    ) -> dict[str, Any]:
        """What is said of new rows of two known domains and of two new ones."""
        mixes = {one: self.mixes[one] / self.mixes[one].sum() for one in (0, 1)}
        if moved:
            mixes[0] = np.roll(mixes[0], 1) * 0.5 + mixes[0] * 0.5
        for new in (N_DOMAINS, N_DOMAINS + 1):
            mixes[new] = self.rng.dirichlet(np.ones(N_CLASSES - 1))
        rows, labels, domains = [], [], []
        for domain, mix in mixes.items():
            n_new = round(unseen * NEW_ROWS) if domain >= N_DOMAINS else 0
            own = self.rng.choice(N_CLASSES - 1, NEW_ROWS - n_new, p=mix)
            own = np.append(own, np.full(n_new, N_CLASSES - 1))
            code = np.zeros(NEW_ROWS, dtype=int)
            X = self.world.sample(own, code, self.rng)
            if domain == 1:
                X[:, 2] += off * self.before[0][:, 2].std()
            rows.append(X)
            labels.append(own)
            domains.append(np.full(NEW_ROWS, domain))
        return self._say(*map(np.concatenate, (rows, labels, domains)))

    def _say(self, X: Any, labels: Any, domains: Any) -> dict[str, Any]:
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = shoal.update(self.model, X, domains, before=self.before)
        spent = time.perf_counter() - begun
        return {
            "new_class": found.new_class is not None,
            "reason": found.reason,
            "moved": sorted({str(one.name) for one in found.domains if one.moved}),
            "drifted": [
                f"{one.name}:{change.name}"
                for one in found.domains
                for change in one.drifted
            ],
            "accuracy": round(
                matched_accuracy(labels, found.model.predict(X, domains)), 4
            ),
            "times_the_fit": round(spent / self.seconds, 3),
        }


def summarize(runs: list[Run]) -> dict[str, Any]:
    """By estimator and separation; each row of it is a kind of new rows."""
    return {
        f"{name}, separation {separation:g}": summarize_cell(
            [
                one["found"]
                for one in runs
                if (one["estimator"], one["separation"]) == (name, separation)
            ]
        )
        for name in ESTIMATORS
        for separation in SEPARATIONS
    }


def summarize_cell(found: list[dict[str, Any]]) -> dict[str, Any]:
    """How often a class, a moved mix and moved looks are said, and what it costs."""
    lines = {}
    for kind in found[0] if found else ():
        every = [one for run in found for one in run[kind]]
        lines[kind] = {
            "updates": len(every),
            "new_class": mean(one["new_class"] for one in every),
            "mix_moved": mean(bool(one["moved"]) for one in every),
            "looks_moved": mean(bool(one["drifted"]) for one in every),
            "right_column": mean("1:2" in one["drifted"] for one in every),
            "accuracy": mean(one["accuracy"] for one in every),
            "times_the_fit": mean(one["times_the_fit"] for one in every),
        }
    return lines


if __name__ == "__main__":
    main()
