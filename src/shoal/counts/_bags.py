"""Rows as bags: words drawn from the shares of one class, and a mix for each domain.

p_d(bag) = sum over y of p_d(y) times the product over its words of q(word|y)^(t w), w
the weight of a word and t the share of its evidence that counts. Words of one bag come
together, so that a hundred of them say less than a hundred bags: t is below 1, chosen
so that the classes tell the domains of held-out bags best.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from shoal.analysis._resample import Resample, Resampler, draw_rows, match_by_rows
from shoal.analysis.diagnose._rows import OutOfFold
from shoal.counts._settings import SETTINGS
from shoal.probability import TINY, HeldOut, domain_given_class, normalize_rows
from shoal.validation import row_weights
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Bags:
    """What words say of classes, and the mix of every domain.

    Attributes
    ----------
    log_word_given_class : ndarray of shape (n_classes, n_words)
    prevalence : ndarray of shape (n_domains, n_classes)
    share : float
        Of the evidence of a word that counts.
    words : {"counts", "logarithms"}
        What a word weighs: see :func:`weigh_words`.
    """

    log_word_given_class: Array
    prevalence: Array
    share: float
    words: str = "counts"

    def evidence(self, weights: Any) -> Array:
        """Log of p(bag|y), up to a number for each bag."""
        return np.asarray(self.share * (weights @ self.log_word_given_class.T))

    def class_given_x(self, weights: Any, class_weight: Array) -> Array:
        """q(y|x) in the mix of classes that ``class_weight`` says."""
        prior = np.log(np.maximum(class_weight, TINY))
        return np.asarray(softmax(self.evidence(weights) + prior, axis=1))

    def take(self, order: Array) -> "Bags":
        """With the classes in another order."""
        words = self.log_word_given_class[order]
        return replace(
            self, log_word_given_class=words, prevalence=self.prevalence[:, order]
        )


@dataclass(frozen=True)
class Polished:
    """Bags, and what held-out rows say of them.

    Attributes
    ----------
    bags : Bags
    of_domains : HeldOut
        How well classes tell the domains of rows.
    of_words : float
        Mean log-likelihood of the words of a row, all of whose evidence counts.
    """

    bags: Bags
    of_domains: HeldOut
    of_words: float


def weigh_words(X: Any, words: str) -> Any:
    """Counts as weights of words in bags.

    Under "logarithms", log(1 + x), the second occurrence of a word says less than the
    first, as in texts and where genes burst.
    """
    if words == "counts":
        return X
    if not is_sparse(X):
        return np.log1p(X)
    weights = X.astype(float, copy=True)
    weights.data = np.log1p(weights.data)
    return weights


def polish(
    weights: Any,
    codes: Array,
    posterior: Array,
    folds: Array,
    domain_weight: Array,
    *,
    words: str = "counts",
) -> Polished:
    """Bags by EM, begun at the classes of each row, and how good they are.

    Parameters
    ----------
    weights : ndarray or CSR array of shape (n_rows, n_words)
    codes, folds : ndarray of shape (n_rows,)
        Domain and fold of each row.
    posterior : ndarray of shape (n_rows, n_classes)
        p_d(y|x) to begin at.
    domain_weight : ndarray of shape (n_domains,)
    words : {"counts", "logarithms"}
        What ``weights`` are.
    """
    given = weights, codes, folds, domain_weight
    share = _judge(posterior, *given).bags.share
    _, posterior = improve(weights, codes, posterior, share, n_rounds=SETTINGS.rounds)
    found = _judge(posterior, *given)
    posterior = expected(found.bags, weights, codes)
    bags = maximize(weights, codes, posterior, found.bags.share)
    return replace(found, bags=replace(bags, words=words))


def improve(
    weights: Any,
    codes: Array,
    posterior: Array,
    share: float,
    *,
    n_rounds: int,
    row_weight: Array | None = None,
) -> tuple[Bags, Array]:
    """Rounds of EM; the bags, and p_d(y|x) of each row."""
    for _ in range(n_rounds):
        bags = maximize(weights, codes, posterior, share, row_weight)
        before, posterior = posterior, expected(bags, weights, codes)
        if np.abs(posterior - before).max() < SETTINGS.change:
            break
    return maximize(weights, codes, posterior, share, row_weight), posterior


def maximize(
    weights: Any,
    codes: Array,
    posterior: Array,
    share: float,
    row_weight: Array | None = None,
) -> Bags:
    """Shares of words and mixes of domains, given the class of each row (M-step)."""
    if row_weight is not None:
        posterior = posterior * row_weight[:, None]
    words = np.asarray((weights.T @ posterior).T) + SETTINGS.pseudo_count
    prevalence = np.full((int(codes.max()) + 1, posterior.shape[1]), 0.0)
    np.add.at(prevalence, codes, posterior)
    prevalence = normalize_rows(prevalence + SETTINGS.pseudo_rows)
    return Bags(np.log(normalize_rows(words)), prevalence, share)


def expected(bags: Bags, weights: Any, codes: Array) -> Array:
    """p_d(y|x) of every row in its own domain (E-step)."""
    prior = np.log(bags.prevalence)[codes]
    return np.asarray(softmax(bags.evidence(weights) + prior, axis=1))


def _judge(
    posterior: Array, weights: Any, codes: Array, folds: Array, domain_weight: Array
) -> Polished:
    """With the share of evidence under which classes tell held-out domains best."""
    row_weight = row_weights(codes, domain_weight)
    evidence = np.empty_like(posterior)
    whole = maximize(weights, codes, posterior, 1.0)
    for fold in range(int(folds.max()) + 1):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(train) and len(test):
            others = maximize(weights[train], codes[train], posterior[train], 1.0)
            evidence[test] = others.evidence(weights[test])
    prior = np.log(np.maximum(domain_weight @ whole.prevalence, TINY))
    own = domain_given_class(whole.prevalence, domain_weight).T[codes]
    found = {}
    for share in SETTINGS.shares:
        through = (softmax(share * evidence + prior, axis=1) * own).sum(axis=1)
        found[share] = HeldOut(np.log(np.maximum(through, TINY)), row_weight)
    best = max(found, key=lambda share: found[share].mean)
    words = logsumexp(evidence + np.log(whole.prevalence)[codes], axis=1)
    of_words = float(row_weight @ words)
    return Polished(replace(whole, share=best), found[best], of_words)


def out_of_fold(
    bags: Bags,
    weights: Any,
    codes: Array,
    posterior: Array,
    folds: Array,
    domain_weight: Array,
) -> OutOfFold:
    """Classes of rows by bags that have not seen their fold, begun at the fit."""
    n_folds, shape = int(folds.max()) + 1, bags.prevalence.T.shape
    class_given_x = np.empty((len(codes), shape[0]))
    corners, weight = np.empty((n_folds, *shape)), np.empty((n_folds, shape[0]))
    for fold in range(n_folds):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        found, _ = improve(
            weights[train],
            codes[train],
            posterior[train],
            bags.share,
            n_rounds=SETTINGS.refit_rounds,
        )
        # a domain whose only rows are held out is unknown to the fit
        prevalence = bags.prevalence.copy()
        prevalence[: len(found.prevalence)] = found.prevalence
        weight[fold] = domain_weight @ prevalence
        corners[fold] = domain_given_class(prevalence, domain_weight)
        class_given_x[test] = found.class_given_x(weights[test], weight[fold])
    return OutOfFold(class_given_x, corners, weight)


def bags_resampler(
    bags: Bags, weights: Any, codes: Array, row_weight: Array | None = None
) -> Resampler:
    """Rows drawn again, and EM on them from the fit."""
    posterior = expected(bags, weights, codes)
    classes, n_classes = posterior.argmax(axis=1), posterior.shape[1]

    def refit(generator: np.random.Generator) -> Resample:
        drawn = draw_rows(codes, generator, row_weight).astype(float)
        again, found = improve(
            weights,
            codes,
            posterior,
            bags.share,
            n_rounds=SETTINGS.refit_rounds,
            row_weight=drawn,
        )
        own = found.argmax(axis=1)
        renamed = match_by_rows(classes, own, n_classes)
        return Resample(again.prevalence[:, np.argsort(renamed)], renamed[own])

    return Resampler(classes, refit)
