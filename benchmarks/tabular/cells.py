"""Cells: generated and real counts of types in donors, beside k-means and Leiden.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/cells.py

Generated: a gene's count is negative binomial (dispersion 5) about the share of its
type times the size of the cell, which is log-normal; small means drop out.
`separation` is the mean log fold change of a type's 60 markers among 2,000 genes,
`donor` the standard deviation of a log effect of each donor on each gene. Mixes are
Dirichlet (alpha 1).

Real, as `SHOAL_DATA_DIR/cells/*.h5ad` with `sample` and `label` in `obs`, left out
where the files are not there: `blood`, five types of blood cells of two donors before
and after interferon, four samples (Kang 2018, GSE96583, as in the example of the R
package muscat); `blood, dealt`, those before interferon dealt to eight domains;
`lines`, cancer cell lines in five libraries of two protocols, two of which hold three
of the five lines (Tian 2019, GSE118767, singlets that CEL-seq2 and Drop-seq gave).

Labels are seen by the scores alone; but the route and the bags were set while looking
at seeds 0 to 2, so that these are development numbers; `--first 3` makes others. Leiden
(of the packages leidenalg and igraph, if they are installed) gets the resolution that
gives it as many clusters as there are labels. Runs in the record are not run again.
"""

import os
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _real import deal_rows
from _record import Record, options, spread
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

import shoal.io
from shoal import CountMixture
from shoal.counts._components import Components, log_normalized
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/cells.py"
N_CELLS, N_TYPES, N_DONORS, N_GENES, N_MARKERS = 3000, 6, 8, 2000, 60
DISPERSION, SIZE, SIZE_SPREAD = 5.0, 2000, 0.4
SETTINGS = {"n_components": 20, "n_init": 10, "neighbours": 15}
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


REAL = {"blood": "blood", "blood, dealt": "blood", "lines": "lines"}


def main() -> None:
    """Run what is missing, then write the record with its summary."""
    names = [*KINDS, *(name for name in REAL if file_of(name).exists())]
    parser = options(__doc__, "cells", seeds=3, first=0)
    parser.add_argument("--data", nargs="*", default=names, choices=names)
    args = parser.parse_args()
    record = Record(args.record, COMMAND, SETTINGS, ("data", "seed"), summarize)
    seeds = range(args.first, args.first + args.seeds)
    record.fill([(name, seed) for seed in seeds for name in args.data], run_once)


def file_of(name: str) -> Path:
    """Where a real data set is."""
    return Path(os.environ.get("SHOAL_DATA_DIR", "")) / "cells" / f"{REAL[name]}.h5ad"


def read_cells(name: str, seed: int) -> tuple[sparse.csr_array, Array, Array]:
    """Counts, samples and types."""
    if name in KINDS:
        return make_cells(KINDS[name], seed)
    table = shoal.io.read(file_of(name), domain="sample", label="label", counts=True)
    types = np.unique(table.labels, return_inverse=True)[1]
    if name != "blood, dealt":
        return table.X, table.domains, types
    before = np.flatnonzero([one.startswith("ctrl") for one in table.domains])
    which, domains = deal_rows(types[before], 8, 1.0, 600, seed)
    return table.X[before][which], domains, types[before][which]


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
    X, donors, types = read_cells(name, seed)
    n_types = len(np.unique(types))
    accuracy, seconds = {}, {}
    # four samples of blood hold five types
    free = {"check_identifiable": False, "random_state": seed}
    ours = CountMixture(n_types, **free)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, find_classes in methods(ours, X, donors, seed).items():
            begun = time.process_time()
            classes = find_classes()
            seconds[method] = time.process_time() - begun
            accuracy[method] = matched_accuracy(types, classes)
    own = [np.bincount(types[donors == one]).max() for one in np.unique(donors)]
    accuracy["majority"] = float(sum(own) / len(types))
    return {
        "data": name,
        "seed": seed,
        "n_cells": len(types),
        "n_genes": X.shape[1],
        "n_types": n_types,
        "spoke": [ours.route_.by, ours.route_.reason],
        "bags": None if ours.bags_ is None else ours.bags_.words,
        "accuracy": accuracy,
        "seconds": seconds,
    }


def methods(
    ours: CountMixture, X: Array, donors: Array, seed: int
) -> dict[str, Callable[[], Array]]:
    """Ours, and what people use, on the same counts."""
    n_types, n_components = ours.n_classes, SETTINGS["n_components"]
    kmeans = KMeans(n_types, n_init=SETTINGS["n_init"], random_state=seed)
    size = float(np.median(X.sum(axis=1)))
    logs = log_normalized(X, size)
    points = PCA(n_components, random_state=seed).fit_transform(logs.toarray())
    codes = np.unique(donors, return_inverse=True)[1]
    inside = Components("log", n_components, seed).fit(X, codes).transform(X)
    normalized = clone(ours).set_params(weighting="none")
    found = {
        "shoal": lambda: ours.fit_predict(X, donors),
        "shoal, normalized X": lambda: normalized.fit_predict(logs, donors),
        "k-means on PCA": lambda: kmeans.fit_predict(points),
        "k-means on shoal's PCA": lambda: kmeans.fit_predict(inside),
    }
    if find_spec("leidenalg") and find_spec("igraph"):
        found["Leiden on PCA"] = lambda: leiden(points, n_types, seed)
    return found


def leiden(points: Array, n_clusters: int, seed: int) -> Array:
    """Communities of nearest neighbours, at a resolution found by halving."""
    import igraph
    import leidenalg

    near = kneighbors_graph(points, SETTINGS["neighbours"])
    graph = igraph.Graph(
        len(points), list(zip(*(near + near.T).nonzero(), strict=True))
    )
    graph.simplify()
    low, high, best = 0.0, 4.0, None
    for _ in range(12):
        resolution = (low + high) / 2
        kind = leidenalg.RBConfigurationVertexPartition
        found = leidenalg.find_partition(
            graph, kind, resolution_parameter=resolution, seed=seed
        )
        if best is None or abs(len(found) - n_clusters) < abs(len(best) - n_clusters):
            best = found
        if len(found) == n_clusters:
            break
        low, high = (resolution, high) if len(found) < n_clusters else (low, resolution)
    return np.array(best.membership)


def summarize(runs: list[dict]) -> list[dict]:
    """Mean and standard deviation over seeds, one entry per kind."""
    lines = []
    for name in (*KINDS, *REAL):
        mine = [run for run in runs if run["data"] == name]
        if mine:
            methods = mine[0]["accuracy"]
            found = {key: [run["accuracy"][key] for run in mine] for key in methods}
            accuracy = {key: spread(one) for key, one in found.items()}
            lines.append({"data": name, "n_seeds": len(mine), "accuracy": accuracy})
    return lines


if __name__ == "__main__":
    main()
