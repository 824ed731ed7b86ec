"""The supervised ceiling: the same network, taught with the true labels.

It reads labels and true prevalences, which no method of this library may: it says how
much of what the images allow a method has found.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shoal.probability import shift_prior

if TYPE_CHECKING:
    from shoal.vision.discriminator import ImageDiscriminator

__all__ = ["SupervisedOracle"]

Array = NDArray[Any]


class SupervisedOracle:
    """A network fitted to true labels, which knows each domain's true class mix.

    Parameters
    ----------
    network : ImageDiscriminator
        Settings and initialization; cloned and fitted to labels instead of domains.

    Attributes
    ----------
    network_ : ImageDiscriminator
        Its ``classes_`` are the labels seen.
    label_weight_ : ndarray of shape (n_labels,)
        Share of each label among the training rows.
    """

    def __init__(self, network: "ImageDiscriminator") -> None:
        self.network = network

    def fit(self, X: Any, labels: Any) -> "SupervisedOracle":
        """Learn the labels of images; the best epoch is by held-out cross-entropy."""
        self.network_ = clone(self.network).fit(X, np.asarray(labels))
        _, counts = np.unique(np.asarray(labels), return_counts=True)
        self.label_weight_ = counts / counts.sum()
        return self

    def predict(self, X: Any, domains: Any, prevalence: Any) -> Array:
        """Label of each image, given its domain's true class mix.

        Parameters
        ----------
        X : array-like of shape (n_samples, h, w, 3)
        domains : array-like of shape (n_samples,)
            Row of ``prevalence`` that each image's domain has.
        prevalence : array-like of shape (n_domains, n_classes)
            True p_d(y); column y is label y.
        """
        mixes = np.asarray(prevalence)[:, self.network_.classes_]
        proba = self.network_.predict_proba(X)
        codes = np.asarray(domains)
        found = np.empty(len(proba), dtype=np.intp)
        for domain, mix in enumerate(mixes):
            rows = codes == domain
            posterior = shift_prior(proba[rows], self.label_weight_, mix)
            found[rows] = self.network_.classes_[posterior.argmax(axis=1)]
        return found
