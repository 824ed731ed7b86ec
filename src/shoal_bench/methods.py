"""The methods of the benchmark by name, and those that fit on features.

A method is a function of a problem, a seed and the settings that a spec may change.
Methods on pixels register themselves when ``shoal_bench.image_methods`` is imported,
which needs the extra ``[vision]``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, FastICA
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal.ddfa import DDFA
from shoal.discrete import DiscreteMixture
from shoal.exceptions import CodedError
from shoal.metrics import true_prevalence
from shoal.mixture import DomainMixture
from shoal.probability import shift_prior
from shoal_bench import paper
from shoal_bench.problems import Problem

Array = NDArray[Any]

IMAGE_METHODS = "shoal_bench.image_methods"
PEERS = "shoal_bench.peers"


@dataclass(frozen=True)
class Answer:
    """What a method says about a problem.

    Attributes
    ----------
    classes : ndarray of shape (n_test_rows,)
        Class of each test row: discovered, or a label where the method reads labels.
    prevalence : ndarray of shape (n_domains, n_classes) or None
        Its estimate of p_d(y), rows by domain 0 to r - 1.
    notes : mapping of str to float
        Label-free numbers worth keeping, such as a held-out likelihood.
    """

    classes: Array
    prevalence: Array | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A method as tables show it, whether or not it can run here.

    Attributes
    ----------
    title : str
        In tables. Where the paper has this method, its name there.
    view : {"features", "images"}
        What it fits on.
    labelled : bool, default=False
        Whether it reads the truth: a ceiling or a floor, never a competitor.
    ours : bool, default=False
    """

    title: str
    view: str
    labelled: bool = False
    ours: bool = False


METHODS: Mapping[str, Entry] = {
    "scan": Entry("SCAN", "images"),
    "scan_prior": Entry("SCAN + domain prior", "images"),
    "ddfa_ri": Entry("DDFA (RI)", "images"),
    "ddfa_si": Entry("DDFA (SI)", "images"),
    "ddfa_spi": Entry("DDFA (SPI)", "images"),
    "naive": Entry("Naive", "features"),
    "naive_pca": Entry("Naive (PCA)", "features"),
    "naive_ica": Entry("Naive (ICA)", "features"),
    "majority": Entry("majority class", "features", labelled=True),
    "kmeans": Entry("k-means", "features"),
    "oracle": Entry("supervised network", "images", labelled=True),
    "ours_frozen": Entry("ours, frozen features", "features", ours=True),
    "ours_end_to_end": Entry("ours, end to end", "images", ours=True),
    "gmm": Entry("Gaussian mixture", "features"),
    "ddfa_mlp": Entry("DDFA as published, small network", "features"),
    "ddfa_best": Entry("DDFA, our stages", "features", ours=True),
    "reference": Entry("supervised, linear", "features", labelled=True),
    "um_ssc": Entry("U^m, told the mixes", "features", labelled=True),
    "known_mixes": Entry("ours, told the mixes", "features", labelled=True),
    "max_margin": Entry("maximum margin, no domains", "features"),
}


@dataclass(frozen=True)
class Method:
    """A method that can run: ``answer(problem, seed, **settings)``."""

    name: str
    function: Callable[..., Answer]
    settings: Mapping[str, Any]  # all that it takes, as they are unless set

    @property
    def entry(self) -> Entry:
        """How tables show it."""
        return METHODS[self.name]

    def answer(self, problem: Any, seed: int, **chosen: Any) -> Answer:
        """What it says about a problem, with some settings other than usual."""
        return self.function(problem, seed, **{**self.settings, **chosen})


_REGISTERED: dict[str, Method] = {}


def register(
    name: str, **settings: Any
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Decorate ``function(problem, seed, **settings) -> Answer``.

    Parameters
    ----------
    name : str
        A key of ``METHODS``.
    **settings
        What a spec may set, each with its usual value.
    """
    if name not in METHODS:
        raise ValueError(f"method must be one of {list(METHODS)}, got {name!r}")

    def keep(function: Callable[..., Answer]) -> Callable[..., Answer]:
        _REGISTERED[name] = Method(name, function, settings)
        return function

    return keep


def find_method(name: str) -> Method:
    """Find the method of a name, or raise what is missing (E132)."""
    missing = absent(name)
    if missing is not None:
        raise missing
    return _REGISTERED[name]


def absent(name: str) -> CodedError | None:
    """What keeps a method from running here: an error to raise or show, or None."""
    if name not in METHODS:
        raise ValueError(f"method must be one of {list(METHODS)}, got {name!r}")
    if METHODS[name].view == "features":
        import_module(PEERS)
    if name in _REGISTERED:
        return None
    text = f"method {name!r} fits on {METHODS[name].view}"
    for package in ("torch", "PIL"):
        if find_spec(package) is None:
            hint = 'pip install "shoal[vision]"'
            return CodedError("E132", f"{text} and needs {package}", hint)
    if find_spec(IMAGE_METHODS) is not None:
        import_module(IMAGE_METHODS)
    if name in _REGISTERED:
        return None
    return CodedError(
        "E132", f"{text}, which this version of shoal cannot", "upgrade shoal"
    )


# ---- methods that fit on features ------------------------------------------------


@register("ours_frozen", search=False)
def _ours_frozen(problem: Problem, seed: int, search: bool) -> Answer:
    return _fit(
        DomainMixture(problem.n_classes, by="shift", search=search, random_state=seed),
        problem,
    )


@register("ddfa_best")
def _ddfa_best(problem: Problem, seed: int) -> Answer:
    return _fit(DDFA(problem.n_classes, random_state=seed), problem)


@register("ddfa_mlp", n_clusters=None)
def _ddfa_mlp(problem: Problem, seed: int, n_clusters: int | None) -> Answer:
    model = paper.ddfa(problem.n_classes, n_clusters=n_clusters, random_state=seed)
    return _fit(model, problem)


@register("naive", n_clusters=None)
def _naive(problem: Problem, seed: int, n_clusters: int | None) -> Answer:
    return _fit_naive(problem, "identity", n_clusters, seed)


@register("naive_pca", n_clusters=None)
def _naive_pca(problem: Problem, seed: int, n_clusters: int | None) -> Answer:
    reduced = PCA(_n_dimensions(problem), random_state=seed)
    return _fit_naive(problem, reduced, n_clusters, seed)


@register("naive_ica", n_clusters=None)
def _naive_ica(problem: Problem, seed: int, n_clusters: int | None) -> Answer:
    reduced = FastICA(_n_dimensions(problem), max_iter=1000, random_state=seed)
    return _fit_naive(problem, reduced, n_clusters, seed)


@register("kmeans", n_init=10)
def _kmeans(problem: Problem, seed: int, n_init: int) -> Answer:
    model = KMeans(problem.n_classes, n_init=n_init, random_state=seed)
    return _cluster(model, problem)


@register("gmm", n_init=3)
def _gmm(problem: Problem, seed: int, n_init: int) -> Answer:
    model = GaussianMixture(problem.n_classes, n_init=n_init, random_state=seed)
    return _cluster(model, problem)


@register("majority")
def _majority(problem: Problem, seed: int) -> Answer:
    """The most common class of each domain under the true prevalence."""
    return Answer(problem.truth.prevalence.argmax(axis=1)[problem.domains_test])


@register("reference")
def _reference(problem: Problem, seed: int) -> Answer:
    """Logistic regression with labels, moved to each domain's true class mix."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return Answer(supervised_classes(model, problem))


def supervised_classes(model: Any, problem: Problem) -> Array:
    """Labels of the test rows by a classifier taught with labels.

    Its probabilities are moved from the class mix of the training rows to the true one
    of each domain.
    """
    truth = problem.truth
    model.fit(problem.X, truth.labels)
    seen = model.classes_  # a class may have no rows in small problems
    proba = np.zeros((len(problem.X_test), problem.n_classes))
    proba[:, seen] = model.predict_proba(problem.X_test)
    source = np.bincount(truth.labels, minlength=problem.n_classes) / len(truth.labels)
    classes = np.empty(len(proba), dtype=int)
    for domain, prevalence in enumerate(truth.prevalence):
        rows = problem.domains_test == domain
        classes[rows] = shift_prior(proba[rows], source, prevalence).argmax(axis=1)
    return classes


def _fit(model: Any, problem: Problem) -> Answer:
    model.fit(problem.X, domains=problem.domains)
    classes = model.predict(problem.X_test, problem.domains_test)
    score = float(model.score(problem.X_test, problem.domains_test))
    return Answer(classes, model.prevalence_, {"score": score})


def _fit_naive(
    problem: Problem, representation: Any, n_clusters: int | None, seed: int
) -> Answer:
    """Algorithms 3 and 4 as written: m = k clusters and one random NMF."""
    model = DiscreteMixture(
        problem.n_classes,
        representation=representation,
        n_words=problem.n_classes if n_clusters is None else n_clusters,
        factorizer="nmf",
        random_state=seed,
    )
    return _fit(model, problem)


def _n_dimensions(problem: Problem) -> int:
    """As many as there are domains (Appendix H), or as there are columns."""
    return min(problem.n_domains, int(problem.X.shape[1]))


def _cluster(model: Any, problem: Problem) -> Answer:
    """Clusters of the rows; their shares among each domain's rows as prevalences.

    Columns keep their scales: those of embeddings and principal components mean
    something, and equal ones would drown the first in the noise of the last.
    """
    found = model.fit_predict(problem.X)
    return cluster_answer(problem, found, model.predict(problem.X_test))


def cluster_answer(problem: Problem, found: Array, classes: Array) -> Answer:
    """Clusters of test rows, with the shares of those of each domain's rows."""
    shares, names, _ = true_prevalence(found, problem.domains)
    prevalence = np.zeros((len(shares), problem.n_classes))
    prevalence[:, names] = shares
    return Answer(classes, prevalence)
