"""The problem of a spec: rows with their domains, and the truth to score against.

Every problem is mixed by the paper's own prevalence matrices. A data set may be seen in
several *views*: as ``"features"`` (frozen representations, or the columns of a table)
and as ``"images"`` (pixels). A view is registered by the module that can make it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA

from shoal.datasets import make_latent_shift, plan_domains, take
from shoal.datasets.extend import DATA_DIR, find_file
from shoal_bench.datasets import load_fashion_mnist
from shoal_bench.published import PAPER_DATASETS, paper_prevalence
from shoal_bench.spec import Spec

Array = NDArray[Any]

CIFAR_TRAIN_ROWS = 50_000
FASHION_COMPONENTS = 50
TEST_SEED = 10_000  # a stream of its own for generated test rows


@dataclass(frozen=True)
class Dataset:
    """A data set of the benchmark.

    Attributes
    ----------
    title : str
        Its name in tables.
    matrices : str
        Data set of the paper whose matrices mix it; also gives k, r and kappa.
    n_rows : int or None
        Training rows that a problem draws from unless the spec says otherwise; None:
        all there are.
    """

    title: str
    matrices: str
    n_rows: int | None = None

    @property
    def n_classes(self) -> int:
        """The number of true classes."""
        return PAPER_DATASETS[self.matrices].n_classes

    @property
    def n_domains(self) -> tuple[int, ...]:
        """Every r, in increasing order."""
        return tuple(sorted(PAPER_DATASETS[self.matrices].n_domains))

    @property
    def max_condition(self) -> Mapping[float, float]:
        """Largest condition number (kappa) for each alpha."""
        return PAPER_DATASETS[self.matrices].max_condition


DATASETS: Mapping[str, Dataset] = {
    **{key: Dataset(paper.title, key) for key, paper in PAPER_DATASETS.items()},
    "pairs2": Dataset("CIFAR-100 pairs, 2", "fieldguide2"),
    "pairs28": Dataset("CIFAR-100 pairs, 28", "fieldguide28"),
    "gauss2": Dataset("Gaussian, 2", "fieldguide2", 2_000),
    "gauss10": Dataset("Gaussian, 10", "cifar10", 6_000),
    "gauss20": Dataset("Gaussian, 20", "cifar20", 10_000),
    "fashion10": Dataset("Fashion-MNIST", "cifar10", 12_000),
}


@dataclass(frozen=True)
class Truth:
    """What only scoring, and methods that say so, may look at.

    Attributes
    ----------
    labels, labels_test : ndarray of shape (n_samples,)
        Codes 0 to k - 1: the columns of ``prevalence``.
    prevalence : ndarray of shape (n_domains, n_classes)
        The class mix asked for.
    """

    labels: Array
    labels_test: Array
    prevalence: Array


@dataclass(frozen=True)
class Problem:
    """What a method sees: rows and their domains, to fit and to answer for."""

    n_classes: int
    X: Any
    domains: Array
    X_test: Any
    domains_test: Array
    truth: Truth

    @property
    def n_domains(self) -> int:
        """Domains are 0 to n_domains - 1, and each has rows."""
        return int(self.domains.max()) + 1


@dataclass(frozen=True)
class Source:
    """A labelled data set before it is shifted: training rows first, then test rows.

    A label of -1 leaves a row out.
    """

    X: Any
    labels: Array
    n_train: int


Maker = Callable[[Spec, Path | None], Problem]
_MAKERS: dict[tuple[str, str], Maker] = {}


def register_view(dataset: str, view: str, make: Maker) -> None:
    """Say how a data set is seen.

    Parameters
    ----------
    dataset : str
        A key of ``DATASETS``.
    view : str
        ``"features"``, ``"images"``.
    make : callable
        ``make(spec, data_dir) -> Problem``, usually by :func:`shifted`. Raises
        FileNotFoundError, with what to place where, when there are no data.
    """
    _dataset(dataset)
    _MAKERS[dataset, view] = make


def load_problem(
    spec: Spec, view: str = "features", data_dir: str | os.PathLike[str] | None = None
) -> Problem:
    """Make the problem of a spec; a function of its arguments alone.

    Parameters
    ----------
    spec : Spec
    view : str, default="features"
    data_dir : path or None, default=None
        Folder of the data; None: the environment variable ``SHOAL_DATA_DIR``.

    Returns
    -------
    Problem
    """
    _dataset(spec.dataset)
    make = _MAKERS.get((spec.dataset, view))
    if make is None:
        raise ValueError(
            f"dataset {spec.dataset!r} has no view {view!r}; it has "
            f"{[seen for name, seen in _MAKERS if name == spec.dataset]}"
        )
    folder = os.environ.get(DATA_DIR) if data_dir is None else data_dir
    return make(spec, Path(folder) if folder else None)


def prevalence_of(spec: Spec) -> Array:
    """The paper's matrix that mixes a spec's data set."""
    matrices = _dataset(spec.dataset).matrices
    return paper_prevalence(matrices, spec.n_domains, spec.alpha, spec.wave)


def shifted(spec: Spec, source: Source) -> Problem:
    """Distribute the rows of a labelled data set over the domains of a spec.

    The same rows go to the same domains for every view, method and machine.
    """
    generator = np.random.RandomState(spec.seed)
    kept = np.flatnonzero(source.labels >= 0)
    train, test = kept[kept < source.n_train], kept[kept >= source.n_train]
    limit = spec.n_rows or DATASETS[spec.dataset].n_rows
    if limit is not None and limit < len(train):
        train = generator.permutation(train)[:limit]
    # plan_domains counts labels: rows left out need some code, but are in no split
    labels = np.where(source.labels < 0, source.labels.max(), source.labels)
    prevalence = prevalence_of(spec)
    plan = plan_domains(
        labels,
        prevalence,
        splits={"train": train, "test": test},
        valid_share=0,
        random_state=spec.seed,
    )
    truth = Truth(plan.labels(labels, "train"), plan.labels(labels, "test"), prevalence)
    X, domains = take(plan, source.X, "train")
    X_test, domains_test = take(plan, source.X, "test")
    return Problem(prevalence.shape[1], X, domains, X_test, domains_test, truth)


# ---- features of images ----------------------------------------------------------


def features_problem(spec: Spec, data_dir: Path | None) -> Problem:
    """Frozen features of a data set of the paper, from its file."""
    return shifted(spec, _read_features(spec, spec.dataset, data_dir))


def pairs_problem(spec: Spec, data_dir: Path | None) -> Problem:
    """CIFAR-20's features, with classes made of two unlike fine classes each."""
    source = _read_features(spec, "cifar20", data_dir)
    fine, coarse = _read_fine_labels(_find(data_dir, "cifar100", "labels.npz"))
    if not np.array_equal(coarse, source.labels):
        raise ValueError(
            "cifar100/labels.npz and the features are not in the same order; make both "
            "from the same files"
        )
    labels = pair_labels(fine, coarse, DATASETS[spec.dataset].n_classes)
    return shifted(spec, Source(source.X, labels, source.n_train))


def pair_labels(fine: ArrayLike, coarse: ArrayLike, n_classes: int) -> Array:
    """Classes whose members do not look alike, while members of different ones do.

    A class is the i-th fine class of one superclass of CIFAR-100 together with the i-th
    of the superclass ten further on (bears and bicycles); the other fine classes of
    both (leopards and buses) are in other classes. Clustering by looks then finds the
    superclasses; FieldGuide's butterflies and their caterpillars pose the same riddle.

    Parameters
    ----------
    fine, coarse : array-like of shape (n_samples,)
        CIFAR-100's two labels.
    n_classes : {2, 28}

    Returns
    -------
    ndarray of shape (n_samples,)
        0 to n_classes - 1; -1 for rows of fine classes that no class uses.
    """
    fine, coarse = np.asarray(fine), np.asarray(coarse)
    # k = 2: large carnivores and vehicles; otherwise all superclasses in turn
    firsts = [8] if n_classes == 2 else range(10)
    members = [np.unique(fine[coarse == superclass]) for superclass in range(20)]
    pairs = [(members[s][i], members[s + 10][i]) for i in range(5) for s in firsts]
    if not 2 <= n_classes <= len(pairs):
        raise ValueError(f"n_classes must be 2, or from 11 to 50, got {n_classes!r}")
    class_of = np.full(int(fine.max()) + 1, -1)
    for number, pair in enumerate(pairs[:n_classes]):
        class_of[list(pair)] = number
    return np.asarray(class_of[fine])


def _read_features(spec: Spec, dataset: str, data_dir: Path | None) -> Source:
    kind = spec.options.get("features", "simclr_pca128")
    return _load_features(_find(data_dir, "features", f"{dataset}_{kind}.npz"))


@lru_cache(maxsize=2)
def _load_features(path: Path) -> Source:
    with np.load(path) as data:
        n_train = int(data["n_train"]) if "n_train" in data else CIFAR_TRAIN_ROWS
        return Source(
            data["features"].astype(np.float32), data["labels"].astype(int), n_train
        )


def _read_fine_labels(path: Path) -> tuple[Array, Array]:
    with np.load(path) as data:
        fine, coarse = (
            np.concatenate([data[f"{kind}_tr"], data[f"{kind}_te"]]).astype(int)
            for kind in ("fine", "coarse")
        )
    return fine, coarse


def _find(data_dir: Path | None, folder: str, name: str) -> Path:
    return find_file(
        [name],
        data_dir / folder if data_dir else None,
        what="the benchmark",
        how=f"place it in {DATA_DIR}/{folder} (results/README.md says what is in it)",
    )


# ---- the tabular twin ------------------------------------------------------------


def gaussian_problem(spec: Spec, data_dir: Path | None) -> Problem:
    """Round clouds mixed by the paper's matrices; half as many test rows as rows."""
    n_rows = spec.n_rows or DATASETS[spec.dataset].n_rows or 6_000
    prevalence = prevalence_of(spec)
    made = make_latent_shift(
        n_rows, prevalence=prevalence, random_state=spec.seed, return_bunch=True
    )
    X_test, domains_test, labels_test = made.problem.sample(
        max(n_rows // 2, len(prevalence)), random_state=TEST_SEED + spec.seed
    )
    truth = Truth(made.labels, labels_test, prevalence)
    return Problem(
        prevalence.shape[1], made.X, made.domains, X_test, domains_test, truth
    )


def fashion_problem(spec: Spec, data_dir: Path | None) -> Problem:
    """Principal components of Fashion-MNIST, fitted on the problem's own rows."""
    problem = shifted(spec, _load_fashion(data_dir))
    scaled, scaled_test = problem.X / 255.0, problem.X_test / 255.0
    pca = PCA(FASHION_COMPONENTS, random_state=spec.seed).fit(scaled)
    return Problem(
        problem.n_classes,
        pca.transform(scaled),
        problem.domains,
        pca.transform(scaled_test),
        problem.domains_test,
        problem.truth,
    )


@lru_cache(maxsize=1)
def _load_fashion(data_dir: Path | None) -> Source:
    folder = data_dir / "fashion-mnist" if data_dir else None
    # else where Debian's package puts it
    path = folder if folder is not None and folder.is_dir() else None
    data = load_fashion_mnist(path, split="all")
    return Source(data.X, data.labels, int(np.sum(data.split == "train")))


def _dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"dataset must be one of {list(DATASETS)}, got {name!r}")
    return DATASETS[name]


for _name in PAPER_DATASETS:
    register_view(_name, "features", features_problem)
for _name in ("pairs2", "pairs28"):
    register_view(_name, "features", pairs_problem)
for _name in ("gauss2", "gauss10", "gauss20"):
    register_view(_name, "features", gaussian_problem)
register_view("fashion10", "features", fashion_problem)
