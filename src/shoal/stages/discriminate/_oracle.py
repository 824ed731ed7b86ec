"""Classifiers of domains: what they share, and the one that is given, not learned."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shoal.exceptions import DomainMissingError
from shoal.probability import mean_log_likelihood
from shoal.stages.discriminate._crossfit import check_domain_table
from shoal.validation import (
    check_sample_weight,
    check_X,
    check_X_domains,
    encode_domains,
)

Array = np.ndarray[Any, Any]


class DomainClassifier(ClassifierMixin, BaseEstimator):
    """What follows from q(d|x) alone."""

    def predict_proba(self, X: Any) -> Array:
        """q(d|x) of each row."""
        raise NotImplementedError

    def predict(self, X: Any) -> Array:
        """Most probable domain of each row."""
        proba = self.predict_proba(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def score(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> float:
        """Mean over domains of the mean log q(d|x) of their rows, higher is better.

        Not the accuracy: the likelihood is what a discriminator is chosen by.
        """
        check_is_fitted(self)
        domains = domains if domains is not None else y
        if domains is None:
            raise DomainMissingError(
                "score requires y to be passed, but the target y is None: pass the "
                "domain of each row"
            )
        proba = self.predict_proba(X)
        codes = encode_domains(domains, self.classes_, n_samples=len(proba))
        assert codes is not None
        weight = None if sample_weight is None else np.asarray(sample_weight)
        return mean_log_likelihood(proba, codes, self.domain_weight_, weight)

    def _set_domains(self, X: Any, domains: Any, accept_sparse: bool) -> Any:
        """Validate the training rows; X and the domain code of each row."""
        X, codes, classes = check_X_domains(
            self, X, domains, accept_sparse=accept_sparse
        )
        fractions = classes.dtype.kind == "f" and (classes != np.rint(classes)).any()
        if fractions and 2 * len(classes) > len(codes):
            raise ValueError(
                "Unknown label type: continuous. domains must name places, not "
                f"measure them, got {len(classes)} different numbers in {len(codes)} "
                "rows: pass strings or whole numbers"
            )
        self.classes_ = classes
        return X, codes


class OracleDiscriminator(DomainClassifier):
    """A discriminator that is known, not learned.

    Parameters
    ----------
    function : callable
        Takes X of shape (n_samples, n_features), returns q(d|x) of shape
        (n_samples, n_domains) with columns in the sorted order of the domains.

    Attributes
    ----------
    classes_ : ndarray of shape (n_domains,)
        The domains, sorted.
    domain_given_x_ : ndarray of shape (n_samples, n_domains)
        q(d|x) of the training rows.
    held_out_loss_ : float
        Their cross-entropy, domains weighted equally, in nats.
    domain_weight_ : ndarray of shape (n_domains,)
        Equal shares.

    Examples
    --------
    >>> import numpy as np
    >>> def left_or_right(X):
    ...     right = 1 / (1 + np.exp(-X[:, 0]))
    ...     return np.column_stack([1 - right, right])
    >>> oracle = OracleDiscriminator(left_or_right)
    >>> oracle.fit([[-1.0], [2.0]], ["left", "right"]).predict([[0.5]])
    array(['right'], dtype='<U5')
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        """Record the domains and check what the function returns.

        Parameters are those of :meth:`Discriminator.fit`; ``sample_weight`` counts in
        ``held_out_loss_`` only.
        """
        if not callable(self.function):
            raise TypeError(
                "function must be callable, X -> (n_samples, n_domains), got "
                f"{self.function!r}"
            )
        domains = domains if domains is not None else y
        X, codes = self._set_domains(X, domains, accept_sparse=False)
        weight = check_sample_weight(
            sample_weight, len(codes), codes=codes, names=self.classes_
        )
        self.domain_weight_ = np.full(len(self.classes_), 1 / len(self.classes_))
        self.domain_given_x_ = self._ask(X)
        self.held_out_loss_ = -mean_log_likelihood(
            self.domain_given_x_, codes, self.domain_weight_, weight
        )
        return self

    def predict_proba(self, X: Any) -> Array:
        """Ask the function, and check what it says: (n_samples, n_domains)."""
        check_is_fitted(self)
        return self._ask(check_X(self, X))

    def _ask(self, X: Any) -> Array:
        return check_domain_table(self.function(X), len(self.classes_), "function")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # it does not learn
        return tags
