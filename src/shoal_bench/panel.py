"""A panel of tabular problems and the methods compared on them.

Each problem is a function of its name and a seed; labels are used to make a problem
and to score a method, never inside one. Real data come from the folder that
``SHOAL_DATA_DIR`` names (see :mod:`shoal.datasets`).
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from shoal.datasets import (
    load_penguins,
    load_portal_rodents,
    make_latent_shift,
    plan_domains,
    take,
)
from shoal.ddfa import DDFA
from shoal.exceptions import ShoalWarning
from shoal.metrics import (
    majority_accuracy,
    match_classes,
    matched_accuracy,
    prevalence_error,
    true_prevalence,
)
from shoal.mixture import DomainMixture
from shoal.probability import shift_prior
from shoal_bench import paper
from shoal_bench.datasets import load_fashion_mnist, load_mnist
from shoal_bench.published import paper_prevalence

Array = NDArray[Any]


@dataclass(frozen=True)
class PanelProblem:
    """Training rows with their domains, and labelled test rows to score on."""

    name: str
    n_classes: int
    X: Array
    domains: Array
    labels: Array
    X_test: Array
    domains_test: Array
    labels_test: Array
    reference: str = "linear"  # features of the labelled reference

    @property
    def prevalence(self) -> Array:
        """True class mix of the training rows, one row per sorted domain."""
        return true_prevalence(self.labels, self.domains)[0]


# ---- problems --------------------------------------------------------------------


def gaussian(n_classes: int, alpha: float, n_rows: int, seed: int) -> PanelProblem:
    """Round clouds mixed by the paper's matrices for r = k; one wave per seed."""
    dataset = {10: "cifar10", 20: "cifar20"}[n_classes]
    prevalence = paper_prevalence(dataset, n_classes, alpha, seed % 5)
    name = f"gauss k{n_classes} a{alpha:g}"
    return _generated(name, n_rows, seed, prevalence=prevalence, kind="gaussian")


def xor(seed: int) -> PanelProblem:
    """Opposite clouds on a circle: no linear class boundary."""
    shape = {"kind": "xor", "n_classes": 4, "n_domains": 8}
    return _generated("xor", 8000, seed, reference="quadratic", **shape)


def multimodal(seed: int) -> PanelProblem:
    """Caterpillar and butterfly: every class in two far-apart pieces."""
    shape = {"kind": "multimodal", "n_classes": 5, "n_domains": 10}
    return _generated("multimodal", 8000, seed, reference="quadratic", **shape)


def images(name: str, load: Callable[..., Any], seed: int) -> PanelProblem:
    """Principal components of small images, mixed by the paper's r = 10, alpha = 3."""
    data = load(split="all")
    random = np.random.RandomState(seed)
    train = random.permutation(60_000)[:12_000]
    splits = {"train": train, "test": np.arange(60_000, 70_000)}
    prevalence = paper_prevalence("cifar10", 10, 3, seed % 5)
    plan = plan_domains(
        data.labels, prevalence, splits=splits, valid_share=0, random_state=seed
    )
    pixels = data.X.reshape(len(data.X), -1)
    X, domains = take(plan, pixels, "train")
    X_test, domains_test = take(plan, pixels, "test")
    pca = PCA(50, random_state=seed).fit(X / 255.0)
    return PanelProblem(
        name,
        10,
        pca.transform(X / 255.0),
        domains,
        plan.labels(data.labels, "train"),
        pca.transform(X_test / 255.0),
        domains_test,
        plan.labels(data.labels, "test"),
    )


def rodents(species: tuple[str, ...], seed: int) -> PanelProblem:
    """Trapped rodents by plot; a new subsample and split for each seed."""
    data = load_portal_rodents(species=species, random_state=seed)
    rows = (data.X, data.domains, data.labels)
    return _halves(f"rodents {len(species)}", rows, seed)


def penguins(seed: int) -> PanelProblem:
    """Penguins by island, scored on the fitted rows: there are only 342."""
    data = load_penguins()
    rows = (data.X, data.domains, data.labels)
    return PanelProblem("penguins", 3, *rows, *rows)


RODENTS = ("DM", "PP", "PB", "OT")
PROBLEMS: Mapping[str, Callable[[int], PanelProblem]] = {
    "gauss k10 a0.5": lambda seed: gaussian(10, 0.5, 12_000, seed),
    "gauss k10 a3": lambda seed: gaussian(10, 3, 12_000, seed),
    "gauss k10 a10": lambda seed: gaussian(10, 10, 12_000, seed),
    "gauss k20 a0.5": lambda seed: gaussian(20, 0.5, 20_000, seed),
    "gauss k20 a3": lambda seed: gaussian(20, 3, 20_000, seed),
    "gauss k20 a10": lambda seed: gaussian(20, 10, 20_000, seed),
    "fashion-mnist": lambda seed: images("fashion-mnist", load_fashion_mnist, seed),
    "mnist": lambda seed: images("mnist", load_mnist, seed),
    "penguins": penguins,
    "rodents 4": lambda seed: rodents(RODENTS, seed),
    "rodents 6": lambda seed: rodents((*RODENTS, "RM", "DS"), seed),
    "xor": xor,
    "multimodal": multimodal,
}


def _generated(
    name: str, n_rows: int, seed: int, *, reference: str = "linear", **options: Any
) -> PanelProblem:
    rows = make_latent_shift(n_rows, random_state=seed, **options)
    return _halves(name, rows, seed, reference)


def _halves(
    name: str, rows: tuple[Array, Array, Array], seed: int, reference: str = "linear"
) -> PanelProblem:
    """Half of the rows of each domain to fit, the other half to score."""
    X, domains, labels = rows
    train, test = train_test_split(
        np.arange(len(X)), test_size=0.5, stratify=domains, random_state=seed
    )
    halves = [part[half] for half in (train, test) for part in rows]
    problem = PanelProblem(name, len(np.unique(labels)), *halves)
    return replace(problem, reference=reference)


# ---- methods ---------------------------------------------------------------------


def run_method(name: str, problem: PanelProblem, seed: int) -> dict[str, Any]:
    """Fit one method and score it on the test rows.

    Returns
    -------
    dict
        ``accuracy`` (matched, on test rows), ``prevalence_error`` (mean absolute, same
        matching; None for methods without prevalences) and ``seconds`` of fitting.
    """
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        classes, prevalence = METHODS[name](problem, seed)
    seconds = time.perf_counter() - begun
    if name in ("majority", "reference"):
        return {
            "accuracy": float(classes),
            "prevalence_error": None,
            "seconds": seconds,
        }
    error = None
    if prevalence is not None:
        matching = match_classes(problem.labels_test, classes)
        error = prevalence_error(
            problem.prevalence,
            prevalence,
            matching=matching,
            label_names=np.unique(problem.labels),
        )
    return {
        "accuracy": matched_accuracy(problem.labels_test, classes),
        "prevalence_error": error,
        "seconds": seconds,
    }


def _fit(estimator: Any, problem: PanelProblem) -> tuple[Array, Array]:
    model = estimator.fit(problem.X, domains=problem.domains)
    return model.predict(problem.X_test, problem.domains_test), model.prevalence_


def _kmeans(problem: PanelProblem, seed: int, *, standardized: bool) -> Any:
    """k-means of the columns as they are, or each divided by its deviation.

    Nothing without labels says which is right (inertias are in the units of the
    columns), so tables show both.
    """
    scale = _scaling(problem.X, standardized)
    model = KMeans(problem.n_classes, n_init=10, random_state=seed)
    model.fit(scale.transform(problem.X))
    return model.predict(scale.transform(problem.X_test)), None


def _gmm(problem: PanelProblem, seed: int) -> tuple[Array, None]:
    """A Gaussian mixture from both scales, of which the likelier is kept.

    Its densities are compared in the units of the columns; the scale matters to its
    k-means starts alone.
    """
    best = -np.inf
    for standardized in (False, True):
        scale = _scaling(problem.X, standardized)
        model = GaussianMixture(problem.n_classes, n_init=3, random_state=seed)
        rows = scale.transform(problem.X)
        units = np.log(scale.scale_).sum() if standardized else 0.0
        score = model.fit(rows).score(rows) - units
        if score > best:
            best, found = score, model.predict(scale.transform(problem.X_test))
    return found, None


def _scaling(X: Array, standardized: bool) -> StandardScaler:
    return StandardScaler(with_mean=standardized, with_std=standardized).fit(X)


def _majority(problem: PanelProblem, seed: int) -> tuple[float, None]:
    return majority_accuracy(problem.labels_test, problem.domains_test), None


def _reference(problem: PanelProblem, seed: int) -> tuple[float, None]:
    """Logistic regression with labels, moved to each domain's true class mix."""
    steps: list[Any] = [StandardScaler()]
    if problem.reference == "quadratic":
        steps += [PolynomialFeatures(2), StandardScaler()]
    model = make_pipeline(*steps, LogisticRegression(max_iter=500))
    model.fit(problem.X, problem.labels)
    proba = model.predict_proba(problem.X_test)
    source = np.array([np.mean(problem.labels == label) for label in model.classes_])
    chosen = np.empty(len(proba), dtype=int)
    for code, domain in enumerate(np.unique(problem.domains)):
        rows = problem.domains_test == domain
        shifted = shift_prior(proba[rows], source, problem.prevalence[code])
        chosen[rows] = shifted.argmax(axis=1)
    return float(np.mean(model.classes_[chosen] == problem.labels_test)), None


Method = Callable[[PanelProblem, int], tuple[Any, Any]]
METHODS: Mapping[str, Method] = {
    "route": lambda p, s: _fit(DomainMixture(p.n_classes, random_state=s), p),
    "mixture": lambda p, s: _fit(
        DomainMixture(p.n_classes, by="shift", random_state=s), p
    ),
    "mixture, no search": lambda p, s: _fit(
        DomainMixture(p.n_classes, search=False, random_state=s), p
    ),
    "ddfa": lambda p, s: _fit(DDFA(p.n_classes, random_state=s), p),
    "ddfa published, logit": lambda p, s: _fit(
        paper.ddfa(p.n_classes, discriminator="logistic", random_state=s), p
    ),
    "ddfa published, mlp": lambda p, s: _fit(
        paper.ddfa(p.n_classes, discriminator="mlp", random_state=s), p
    ),
    "k-means": partial(_kmeans, standardized=False),
    "k-means, standardized": partial(_kmeans, standardized=True),
    "gmm": _gmm,
    "majority": _majority,
    "reference": _reference,
}
