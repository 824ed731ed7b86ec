"""Peers from neighbouring settings, on features, written from their papers' text.

Importing this module registers them. Two are *told* the true class mix of every domain,
so they are ceilings; one is told no domain at all, which shows what domains are worth.
Approximations: one linear layer in place of the papers' networks; L-BFGS on all rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from shoal.probability import TINY, domain_given_class, shift_prior
from shoal_bench.methods import Answer, cluster_answer, register
from shoal_bench.problems import Problem

Array = NDArray[Any]


# ---- told the mixes --------------------------------------------------------------


@register("um_ssc", ridge=3e-4, max_iter=300)
def _um_ssc(problem: Problem, seed: int, **settings: Any) -> Answer:
    """Surrogate set classification, U^m, with the true mixes given.

    A classifier for balanced classes is learned through the map that turns its answer
    into that of a classifier of sets: Lu N, Lei S, Niu G, Sato I, Sugiyama M (2021),
    Binary classification from multiple unlabeled datasets via surrogate set
    classification, ICML; here with more than two classes.
    """
    balanced = np.full(problem.n_classes, 1 / problem.n_classes)
    return _told(problem, prior=balanced, **settings)


@register("known_mixes", ridge=3e-4, max_iter=300)
def _known_mixes(problem: Problem, seed: int, **settings: Any) -> Answer:
    """Our likelihood with its table q(d|y) given: only q(y|x) is left to learn."""
    return _told(problem, prior=None, **settings)


def _told(problem: Problem, prior: Array | None, ridge: float, max_iter: int) -> Answer:
    """Learn q(y|x) under a class prior (None: that of all rows) from known mixes."""
    prevalence = problem.truth.prevalence
    share = np.bincount(problem.domains, minlength=len(prevalence))
    share = share / share.sum()
    pooled = share @ prevalence
    # A classifier for another prior is the same one with its logits moved.
    moved = 0.0 if prior is None else np.log(np.maximum(pooled, TINY) / prior)
    X, X_test = _scaled(problem)
    table = domain_given_class(prevalence, share)[:, problem.domains].T
    weights = fit_told(X, table, moved, ridge, max_iter)
    proba = softmax(X_test @ weights[:-1] + weights[-1] + moved, axis=1)
    classes = np.empty(len(proba), dtype=int)
    for domain, mix in enumerate(prevalence):
        rows = problem.domains_test == domain
        classes[rows] = shift_prior(proba[rows], pooled, mix).argmax(axis=1)
    return Answer(classes, prevalence)


def fit_told(
    X: Array, table: Array, moved: Array | float, ridge: float, max_iter: int
) -> Array:
    """Weights and, last, offsets of q(y|x) that make the domains likeliest.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    table : ndarray of shape (n_rows, n_classes)
        q(d|y) of each row's own domain.
    moved : ndarray of shape (n_classes,) or float
        Added to the logits before they meet the table.
    ridge : float
        On the weights alone.
    max_iter : int

    Returns
    -------
    ndarray of shape (n_columns + 1, n_classes)
    """
    n_rows, n_columns = X.shape
    shape = (n_columns + 1, table.shape[1])

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        class_given_x = softmax(X @ weights[:-1] + weights[-1] + moved, axis=1)
        joint = class_given_x * table
        likelihood = np.maximum(joint.sum(axis=1), TINY)
        slope = (class_given_x - joint / likelihood[:, None]) / n_rows
        gradient = np.vstack([X.T @ slope + ridge * weights[:-1], slope.sum(axis=0)])
        value = -np.log(likelihood).mean() + ridge / 2 * np.sum(weights[:-1] ** 2)
        return float(value), gradient.ravel()

    found = minimize(
        loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter},
    )  # fmt: skip
    return np.asarray(found.x).reshape(shape)


# ---- told no domain --------------------------------------------------------------


@register("max_margin", steps=400, inner_steps=10, batch_size=1_000, balance=10.0)
def _max_margin(problem: Problem, seed: int, **settings: Any) -> Answer:
    """Labels that a linear classifier learns best: TURTLE's search, one feature space.

    Gadetsky A, Jiang Y, Brbic M (2024), Let go of your labels with unsupervised
    transfer, ICML. Soft labels are a linear function of the features; a classifier
    takes some steps towards them, then they take one towards the classifier, and an
    entropy keeps all classes in use. First-order gradients, as in the paper; the start
    (few rows as class directions) and the steps are ours.
    """
    X, X_test = _scaled(problem)
    weights = search_labels(X, problem.n_classes, seed, **settings)
    found, answered = ((rows @ weights).argmax(axis=1) for rows in (X, X_test))
    return cluster_answer(problem, found, answered)


def search_labels(
    X: Array,
    n_classes: int,
    seed: int,
    steps: int,
    inner_steps: int,
    batch_size: int,
    balance: float,
) -> Array:
    """Weights of the labelling, of shape (n_columns, n_classes)."""
    generator = np.random.RandomState(seed)
    labels = X[generator.permutation(len(X))[:n_classes]].T.copy()
    labels /= np.linalg.norm(labels, axis=0)
    rule = np.zeros_like(labels)  # the linear classifier
    outer, inner = _Adam(labels, 0.01), _Adam(rule, 0.01)
    for _ in range(steps):
        rows = X[generator.permutation(len(X))[:batch_size]]
        soft = softmax(rows @ labels, axis=1)
        for _ in range(inner_steps):
            inner.step(rows.T @ (softmax(rows @ rule, axis=1) - soft) / len(rows))
        # cross-entropy of the classifier, and the entropy of all classes' shares
        mean = np.maximum(soft.mean(axis=0), TINY)
        slope = -log_softmax(rows @ rule, axis=1) + balance * (np.log(mean) + 1)
        slope = soft * (slope - (soft * slope).sum(axis=1, keepdims=True))
        outer.step(rows.T @ slope / len(rows))
    return labels


class _Adam:
    """Adam on one array, changed in place."""

    def __init__(self, values: Array, rate: float) -> None:
        self.values, self.rate, self.count = values, rate, 0
        self.first, self.second = np.zeros_like(values), np.zeros_like(values)

    def step(self, gradient: Array) -> None:
        self.count += 1
        self.first += 0.1 * (gradient - self.first)
        self.second += 0.001 * (gradient**2 - self.second)
        first = self.first / (1 - 0.9**self.count)
        second = self.second / (1 - 0.999**self.count)
        self.values -= self.rate * first / (np.sqrt(second) + 1e-8)


def _scaled(problem: Problem) -> tuple[Array, Array]:
    """Centred rows, and one scale for all columns: those of embeddings mean much."""
    X = np.asarray(problem.X, dtype=float)
    centre, scale = X.mean(axis=0), np.sqrt(X.var(axis=0).mean())
    return (X - centre) / scale, (np.asarray(problem.X_test) - centre) / scale
