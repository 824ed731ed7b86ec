"""DomainMixture's speed as ratios within one run.

    OMP_NUM_THREADS=1 python benchmarks/mixture.py [--rows 1000000]

- a whole fit on the penguins against GaussianMixture(n_init=10);
- one gradient against two matrix products and one exp of its shape;
- fit time against rows (20 features, 30 domains, 10 classes): log-log slope;
- peak memory of a fit against the size of the design matrix, linear and with bumps.

All times are processor time. Writes results/performance/mixture.json after each part.
The whole takes about a quarter of an hour on one core.
"""

import argparse
import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _measure import environment, peak_bytes, slope, timed, write_json
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from shoal import DomainMixture
from shoal.datasets import load_penguins, make_latent_shift
from shoal.likelihood._problem import MixtureProblem, Penalties

RECORD = Path(__file__).parents[1] / "results" / "performance" / "mixture.json"


def main() -> None:
    """Measure everything, print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    record: dict = {
        "command": "OMP_NUM_THREADS=1 python benchmarks/mixture.py",
        "environment": environment(),
    }
    parts = {
        "penguins": penguins,
        "gradient": lambda: [
            gradient(p, dtype) for p in (20, 128) for dtype in ("f8", "f4")
        ],
        "memory": lambda: [memory(200_000, "linear"), memory(100_000, "rbf")],
        "rows": lambda: rows(args.rows),
    }
    for name, measure in parts.items():
        record[name] = measure()
        print(name, json.dumps(record[name], indent=1), flush=True)
        write_json(args.record, record)


def penguins(n_repeats: int = 7) -> dict:
    data = load_penguins()
    gmm = seconds(lambda: GaussianMixture(3, n_init=10, random_state=0).fit(data.X),
                  n_repeats)  # fmt: skip
    times = {
        name: seconds(
            lambda search=search: DomainMixture(3, search=search, random_state=0).fit(
                data.X, data.domains
            ),
            n_repeats,
        )
        for name, search in (("searched", True), ("search=False", False))
    }
    return {
        "gmm_seconds": gmm,
        "ratio": {name: value / gmm for name, value in times.items()},
    }


def gradient(n_columns: int, dtype: str, n_rows: int = 40_000, k: int = 20) -> dict:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_rows, n_columns)).astype(dtype)
    codes = np.sort(rng.integers(0, 20, n_rows))
    problem = MixtureProblem(Z, codes, np.full(n_rows, 1 / n_rows), 20)
    weights = 0.1 * rng.normal(size=(k, n_columns + 1))
    T = rng.dirichlet(np.ones(20), k)
    plain = weights[:, :-1].astype(dtype)
    bare = seconds(lambda: np.exp(Z @ plain.T).T @ Z, 15)
    result = {"columns": n_columns, "classes": k, "dtype": dtype}
    for confidence in (0.0, 0.03):
        penalties = Penalties(1e-4, confidence)
        ours = seconds(
            lambda p=penalties: problem.value_and_gradient(weights, T, p), 15
        )
        result[f"ratio_confidence_{confidence:g}"] = ours / bare
    return result


def rows(most: int) -> dict:
    sizes = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000) if n <= most]
    times: dict[str, list[float]] = {"searched": [], "search=False": []}
    for n_rows in sizes:
        X, domains = problem_of(n_rows)
        for name, search in (("searched", True), ("search=False", False)):
            model = DomainMixture(10, search=search, random_state=0)
            times[name].append(timed(partial(model.fit, X, domains)))
            print(f"{n_rows} rows, {name}: {times[name][-1]:.1f} s", flush=True)
    slopes = {
        name: {
            "all": slope(sizes, value),
            "largest three": slope(sizes[-3:], value[-3:]),
        }
        for name, value in times.items()
    }
    return {"rows": sizes, "seconds": times, "slope": slopes}


def memory(n_rows: int, expansion: str) -> dict:
    """Most that a fit holds beyond X, as a multiple of the features it climbs on."""
    X, domains = problem_of(n_rows)
    model = DomainMixture(
        10, search=False, expansion=expansion, max_iter=5, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # five iterations are few
        peak = peak_bytes(lambda: model.fit(X, domains))
    n_columns = model.weights_.shape[1] - 1
    design = X.dtype.itemsize * n_rows * n_columns
    return {
        "rows": n_rows,
        "expansion": expansion,
        "columns": n_columns,
        "peak_over_design": peak / design,
    }


def problem_of(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, domains, _ = make_latent_shift(
        n_rows, n_classes=10, n_domains=30, n_features=20, random_state=0
    )
    return X, domains


def seconds(function, n_repeats: int) -> float:
    """Median processor time."""
    return float(np.median([timed(function) for _ in range(n_repeats)]))


if __name__ == "__main__":
    main()
