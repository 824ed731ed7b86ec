"""How often the number of classes is found.

    OMP_NUM_THREADS=1 python benchmarks/tabular/choose.py

Penguins for 20 seeds, 20 generated problems with twice as many domains as classes or
more, and as many without any shift, through DomainMixture; eight smaller ones through
DDFA, whose own None takes the rank alone. Writes results/tabular/choose.json.
"""

import time
import warnings
from typing import Any

import numpy as np
from _record import Record, Run, mean, options

from shoal import DDFA, DomainMixture, choose_n_classes
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import IdentifiabilityWarning

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/choose.py"


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    args = options(__doc__, "choose", seeds=20).parse_args()
    record = Record(args.record, COMMAND, {}, ("study", "seed"), summarize)
    seeds = {name: range(args.seeds) for name in STUDIES}
    seeds["ddfa"] = range(min(args.seeds, 8))
    keys = [(name, seed) for name in STUDIES for seed in seeds[name]]
    record.fill(keys, lambda name, seed: {"study": name, **STUDIES[name](seed)})
    record.write()


def penguins(seed: int) -> dict:
    data = load_penguins()
    return {"truth": 3, **run(data.X, data.domains, seed)}


def generated(seed: int) -> dict:
    """3 to 8 classes, 2 to 3 times as many domains, 6,000 rows in 10 columns."""
    n_classes = 3 + seed % 6
    n_domains = (2 + seed // 6 % 2) * n_classes
    X, domains, _ = make_latent_shift(
        6000, n_classes=n_classes, n_domains=n_domains, random_state=1000 + seed
    )
    return {"truth": n_classes, "n_domains": n_domains, **run(X, domains, seed)}


def without_shift(seed: int) -> dict:
    n_classes = 3 + seed % 6
    X, domains, _ = make_latent_shift(
        3000, kind="no_shift", n_classes=n_classes, random_state=2000 + seed
    )
    return {"truth": None, **run(X, domains, seed)}


def through_ddfa(seed: int) -> dict:
    n_classes = 3 + seed % 4
    X, domains, _ = make_latent_shift(
        3000, n_classes=n_classes, n_domains=2 * n_classes, random_state=3000 + seed
    )
    ddfa = DDFA(random_state=seed)
    return {"truth": n_classes, **run(X, domains, seed, ddfa, n_resamples=0)}


def run(
    X: np.ndarray,
    domains: np.ndarray,
    seed: int,
    estimator: Any = None,
    **settings: Any,
) -> dict:
    """The choice, and what fit makes of n_classes=None."""
    start = time.process_time()
    choice = choose_n_classes(
        X, domains, estimator=estimator, random_state=seed, **settings
    )
    chosen = time.process_time()
    model = estimator or DomainMixture(search=False, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, domains)
    fitted = time.process_time()
    warned = any(issubclass(w.category, IdentifiabilityWarning) for w in caught)
    return {
        "seed": seed,
        "chosen": choice.n_classes,
        "best_held_out": int(choice.candidates[choice.held_out.argmax()]),
        "rank": choice.rank,
        "in_fit": model.n_classes_,
        "warned": warned,
        "seconds": round(chosen - start, 2),
        "fit_seconds": round(fitted - chosen, 2),
        "sentence": choice.sentence,
    }


STUDIES = {
    "penguins": penguins,
    "generated": generated,
    "without_shift": without_shift,
    "ddfa": through_ddfa,
}


def summarize(runs: list[Run]) -> dict:
    """Share of right choices in each study."""
    return {
        name: summarize_study([run for run in runs if run["study"] == name])
        for name in STUDIES
        if any(run["study"] == name for run in runs)
    }


def summarize_study(runs: list[Run]) -> dict:
    ways = ("chosen", "best_held_out", "rank", "in_fit")
    return {
        "n": len(runs),
        "right": {way: mean(run[way] == run["truth"] for run in runs) for way in ways},
        "warned": mean(run["warned"] for run in runs),
        "mean_seconds": mean(run["seconds"] for run in runs),
    }


if __name__ == "__main__":
    main()
