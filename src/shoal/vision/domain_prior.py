"""A classifier that is told the domain: its class mix by EM, its q(y|x) kept."""

from typing import Any, Self

import numpy as np

from shoal.analysis.proportions import mixture_proportions
from shoal.base import LatentShiftEstimator
from shoal.probability import canonical_order, normalize_rows
from shoal.validation import resolve_domain_weight
from shoal.vision.rows import check_image_rows, check_images_domains

__all__ = ["DomainPrior"]

Array = np.ndarray[Any, Any]

TINY = 1e-300


class DomainPrior(LatentShiftEstimator):
    """Class mixes of domains from a fitted classifier that knows nothing of domains.

    Parameters
    ----------
    classifier : object with ``predict_proba``
        A fitted clustering or classifier of images, such as
        :class:`~shoal.vision.scan.SCAN`; used as it is.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.

    Attributes
    ----------
    prevalence_, domain_given_class_, domains_, labels_, n_classes_
        As in every estimator of shoal.
    prior_ : ndarray of shape (n_classes,)
        The class mix that the classifier's answers are taken to be about: their mean.
    order_ : ndarray of shape (n_classes,)
        Column of the classifier behind each class.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a
    classifier to new a priori probabilities. Neural Computation 14.
    """

    def __init__(self, classifier: Any, *, domain_weight: Any = "equal") -> None:
        self.classifier = classifier
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
        mass = np.bincount(codes)
        weight = resolve_domain_weight(self.domain_weight, names, mass)
        self.prior_ = (weight / mass)[codes] @ proba
        ratio = proba / np.maximum(self.prior_, TINY)
        prevalence = np.array(
            [mixture_proportions(ratio[codes == code]) for code in range(len(names))]
        )
        self.order_ = canonical_order(prevalence)
        self._store(prevalence[:, self.order_], names, weight)
        self.labels_ = self._posterior(images, codes, None).argmax(axis=1)
        return self

    def _check_rows(self, X: Any) -> Array:
        return check_image_rows(self, X)

    def _class_given_x(self, X: Array) -> Array:
        """q(y|x) moved from the classifier's own prior to that of the mixes found."""
        proba = self.classifier.predict_proba(X)[:, self.order_]
        prior = np.maximum(self.prior_[self.order_], TINY)
        return normalize_rows(proba * self.class_weight_ / prior)
