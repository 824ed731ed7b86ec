"""Cells: generated counts of six types in eight donors, beside k-means on PCA.

    OMP_NUM_THREADS=1 python benchmarks/tabular/cells.py

A gene's count is negative binomial (dispersion 5) about the share of its type times
the size of the cell, which is log-normal; small means drop out. `separation` is the
mean log fold change of a type's 60 markers among 2,000 genes, `donor` the standard
deviation of a log effect of each donor on each gene. Mixes are Dirichlet (alpha 1).
Types are seen by the scores alone; but components and bags were set while looking at
seeds 0 and 1 of all four kinds, so that these are development numbers.
Records already in results/tabular/cells.json are not run again.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from _record import Record, options, spread
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from shoal import CountMixture, DensityMixture
from shoal.counts._components import Components, log_normalized
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/cells.py"
N_CELLS, N_TYPES, N_DONORS, N_GENES, N_MARKERS = 3000, 6, 8, 2000, 60
DISPERSION, SIZE, SIZE_SPREAD = 5.0, 2000, 0.4
SETTINGS = {"n_components": 20, "n_init": 10}
Array = np.ndarray


class Kind(NamedTuple):
    """How far apart types are, and how much donors differ."""

    separation: float
    donor: float


KINDS = {
    "apart": Kind(1.0, 0.0),
    "overlapping": Kind(0.5, 0.0),
    "apart, donors differ": Kind(1.0, 0.3),
    "overlapping, donors differ": Kind(0.5, 0.2),
}


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    parser = options(__doc__, "cells", seeds=3)
    parser.add_argument("--data", nargs="*", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    record = Record(args.record, COMMAND, SETTINGS, ("data", "seed"), summarize)
    keys = [(name, seed) for seed in range(args.seeds) for name in args.data]
    record.fill(keys, run_once)


def make_cells(kind: Kind, seed: int) -> tuple[sparse.csr_array, Array, Array]:
    """Counts, donors and types."""
    rng = np.random.default_rng(seed)
    base = rng.gamma(0.5, 1, N_GENES) + 0.01
    change = np.zeros((N_TYPES, N_GENES))
    for row in change:
        genes = rng.choice(N_GENES, N_MARKERS, replace=False)
        sign = rng.choice([1, -1], N_MARKERS, p=[0.8, 0.2])
        size = rng.normal(kind.separation, 0.5 * kind.separation, N_MARKERS)
        row[genes] = sign * size
    effect = rng.normal(0, kind.donor, (N_DONORS, N_GENES))
    mixes = rng.dirichlet(np.ones(N_TYPES), N_DONORS)
    sizes = rng.multinomial(N_CELLS, rng.dirichlet(np.full(N_DONORS, 4.0)))
    donors = np.repeat(np.arange(N_DONORS), sizes)
    types = np.array([rng.choice(N_TYPES, p=mixes[donor]) for donor in donors])
    mean = base * np.exp(change[types] + effect[donors])
    mean /= mean.sum(axis=1, keepdims=True)
    mean *= rng.lognormal(np.log(SIZE), SIZE_SPREAD, N_CELLS)[:, None]
    counts = rng.poisson(rng.gamma(DISPERSION, mean / DISPERSION)).astype(float)
    counts[rng.random(counts.shape) < 1 / (1 + np.exp(1.5 * np.log(mean) + 2))] = 0
    return sparse.csr_array(counts), donors, types


def run_once(name: str, seed: int) -> dict:
    """Every method on one draw."""
    X, donors, types = make_cells(KINDS[name], seed)
    n_components, n_init = SETTINGS["n_components"], SETTINGS["n_init"]
    kmeans = KMeans(N_TYPES, n_init=n_init, random_state=seed)
    looks = DensityMixture()
    ours = {
        "shoal": CountMixture(N_TYPES, random_state=seed),
        "shoal, by looks": CountMixture(N_TYPES, mixture=looks, random_state=seed),
    }
    accuracy, seconds = {}, {}

    def score(method: str, classes: Array, begun: float) -> None:
        seconds[method] = time.process_time() - begun
        accuracy[method] = matched_accuracy(types, classes)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, model in ours.items():
            begun = time.process_time()
            score(method, model.fit_predict(X, donors), begun)
        begun = time.process_time()
        logs = log_normalized(X, float(np.median(X.sum(axis=1)))).toarray()
        points = PCA(n_components, random_state=seed).fit_transform(logs)
        score("k-means on PCA", kmeans.fit_predict(points), begun)
        begun = time.process_time()
        inside = Components("log", n_components, seed).fit(X, donors).transform(X)
        score("k-means on shoal's PCA", kmeans.fit_predict(inside), begun)
    return {
        "data": name,
        "seed": seed,
        **KINDS[name]._asdict(),
        "polished": ours["shoal"].bags_ is not None,
        "accuracy": accuracy,
        "seconds": seconds,
    }


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per kind."""
    lines = []
    for name in KINDS:
        mine = [run for run in runs if run["data"] == name]
        if mine:
            methods = mine[0]["accuracy"]
            found = {key: [run["accuracy"][key] for run in mine] for key in methods}
            accuracy = {key: spread(one) for key, one in found.items()}
            lines.append({"data": name, "n_seeds": len(mine), "accuracy": accuracy})
    return lines


if __name__ == "__main__":
    main()
