"""A classifier that is told the domain: its class mix by EM, its q(y|x) kept."""

from typing import Any, NamedTuple, Self

import numpy as np

from shoal.analysis import mixture_proportions
from shoal.base import LatentShiftEstimator
from shoal.probability import (
    TINY,
    canonical_order,
    domain_given_class,
    mean_log_likelihood,
    normalize_rows,
)
from shoal.validation import resolve_domain_weight, row_weights
from shoal.vision.extend import check_image_rows, check_images_domains

Array = np.ndarray[Any, Any]

TEMPERATURES = (0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 4.0)


class DomainPrior(LatentShiftEstimator):
    """Class mixes of domains from a fitted classifier that knows nothing of domains.

    Parameters
    ----------
    classifier : object with ``predict_proba``
        A fitted clustering or classifier of images, such as
        :class:`~shoal_bench.scan.SCAN`; used as it is.
    temperature : float or None, default=None
        Its q(y|x) is raised to the power 1 / temperature first, as EM believes in
        probabilities and few networks are calibrated. None: the one of a few under
        which the domains are most likely.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.

    Attributes
    ----------
    prevalence_, domain_given_class_, domains_, labels_, n_classes_
        As in every estimator of shoal.
    temperature_ : float
    prior_ : ndarray of shape (n_classes,)
        The class mix that the classifier's answers are taken to be about: their mean.
    order_ : ndarray of shape (n_classes,)
        Column of the classifier behind each class.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a
    classifier to new a priori probabilities. Neural Computation 14.
    """

    def __init__(
        self,
        classifier: Any,
        *,
        temperature: float | None = None,
        domain_weight: Any = "equal",
    ) -> None:
        self.classifier = classifier
        self.temperature = temperature
        self.domain_weight = domain_weight

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """Of flattened rows, as the classifier takes them."""
        return getattr(self.classifier, "image_shape", None)

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Estimate the class mix of each domain.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3)
        y : array-like of shape (n_samples,)
            Alias of ``domains``.
        domains : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        domains = y if domains is None else domains
        images, codes, names = check_images_domains(self, X, domains)
        proba = self.classifier.predict_proba(images)
        weight = resolve_domain_weight(self.domain_weight, names, np.bincount(codes))
        given = self.temperature
        candidates = TEMPERATURES if given is None else (given,)
        tries = [_mixes(proba, codes, weight, t) for t in candidates]
        best = int(np.argmax([found.likelihood for found in tries]))
        self.temperature_, self.prior_ = candidates[best], tries[best].prior
        prevalence = tries[best].prevalence
        self.order_ = canonical_order(prevalence)
        self._store(prevalence[:, self.order_], names, weight)
        self.labels_ = self._posterior(images, codes, None).argmax(axis=1)
        return self

    def _check_rows(self, X: Any) -> Array:
        return check_image_rows(self, X)

    def _class_given_x(self, X: Array) -> Array:
        """q(y|x) moved from the classifier's own prior to that of the mixes found."""
        proba = _sharpen(self.classifier.predict_proba(X), self.temperature_)
        ratio = proba / np.maximum(self.prior_, TINY)
        return normalize_rows(ratio[:, self.order_] * self.class_weight_)


class _Mixes(NamedTuple):
    prior: Array  # (k,), of the classifier
    prevalence: Array  # (r, k)
    likelihood: float  # of the domains


def _mixes(proba: Array, codes: Array, weight: Array, temperature: float) -> _Mixes:
    """Class mix of each domain, and how likely the domains are through them."""
    proba = _sharpen(proba, temperature)
    prior = row_weights(codes, weight) @ proba
    ratio = proba / np.maximum(prior, TINY)
    prevalence = np.array(
        [mixture_proportions(ratio[codes == code]) for code in range(len(weight))]
    )
    class_given_x = normalize_rows(ratio * (weight @ prevalence))
    domain_given_x = class_given_x @ domain_given_class(prevalence, weight)
    likelihood = mean_log_likelihood(domain_given_x, codes, weight)
    return _Mixes(prior, prevalence, likelihood)


def _sharpen(proba: Array, temperature: float) -> Array:
    # the largest is 1, so that no power of it vanishes
    scaled = proba / proba.max(axis=1, keepdims=True)
    return normalize_rows(scaled ** (1 / temperature))
