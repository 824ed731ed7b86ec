"""How often the number of classes is found.

    OMP_NUM_THREADS=1 python benchmarks/tabular/choose.py

Penguins for 20 seeds, 20 generated problems with twice as many domains as classes or
more, and as many without any shift. Writes results/tabular/choose.json.
"""

import argparse
import json
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import scipy
import sklearn

import shoal
from shoal.analysis.choose import choose_n_classes
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import IdentifiabilityWarning
from shoal.mixture import DomainMixture

RECORD = Path(__file__).parents[2] / "results" / "tabular" / "choose.json"


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


def run(X: np.ndarray, domains: np.ndarray, seed: int) -> dict:
    """The choice, and what fit makes of n_classes=None."""
    start = time.perf_counter()
    choice = choose_n_classes(X, domains, random_state=seed)
    chosen_in = time.perf_counter() - start
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DomainMixture(search=False, random_state=seed).fit(X, domains)
    warned = any(issubclass(w.category, IdentifiabilityWarning) for w in caught)
    return {
        "seed": seed,
        "chosen": choice.n_classes,
        "best_held_out": int(choice.candidates[choice.held_out.argmax()]),
        "rank": choice.rank,
        "in_fit": model.n_classes_,
        "warned": warned,
        "seconds": round(chosen_in, 2),
        "sentence": choice.sentence,
    }


def summary(records: list[dict]) -> dict:
    truth = [record["truth"] for record in records]
    share = {
        key: float(np.mean([r[key] == t for r, t in zip(records, truth, strict=True)]))
        for key in ("chosen", "best_held_out", "rank", "in_fit")
    }
    warned = float(np.mean([record["warned"] for record in records]))
    seconds = float(np.mean([record["seconds"] for record in records]))
    return {
        "n": len(records),
        "right": share,
        "warned": warned,
        "mean_seconds": round(seconds, 2),
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
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    result: dict = {
        "command": "OMP_NUM_THREADS=1 python benchmarks/tabular/choose.py",
        "versions": versions(),
    }
    for study in (penguins, generated, without_shift):
        records = []
        for seed in range(args.seeds):
            records.append(study(seed))
            print(study.__name__, records[-1], flush=True)
        result[study.__name__] = {"summary": summary(records), "runs": records}
        print(study.__name__, result[study.__name__]["summary"], flush=True)
    args.record.parent.mkdir(parents=True, exist_ok=True)
    args.record.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
