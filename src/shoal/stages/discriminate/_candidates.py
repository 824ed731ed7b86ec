"""Discriminators as the user wrote them, and the choice among them by held-out loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.exceptions import DomainMissingError
from shoal.probability import TINY, mean_log_likelihood
from shoal.stages.discriminate._crossfit import (
    check_domain_table,
    cross_fit_proba,
    rows_per_domain,
    takes_sample_weight,
)
from shoal.stages.discriminate._named import (
    ROWS_PER_COLUMN,
    RBFFeatures,
    is_wide,
    named_discriminator,
)
from shoal.validation import check_X, check_X_domains, row_weights
from shoal.validation._domains import check_sample_weight, encode_domains

Array = np.ndarray[Any, Any]

# ---- a classifier that is given, not learned -----------------------------------------


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


# ---- candidates, and the choice among them -------------------------------------------

# From simple to flexible: a tie goes to the earlier one.
AUTO_CANDIDATES = ("components", "logistic", "quadratic", "rbf", "mlp")


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was chosen from.

    Attributes
    ----------
    index : int
        Position of the chosen candidate.
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Its out-of-fold q(d|x).
    losses : ndarray of shape (n_candidates,)
        Out-of-fold cross-entropy of each candidate, domains weighted by q(d), on the
        rows that the choice was made on.
    """

    index: int
    domain_given_x: Array
    losses: Array


# An expansion is tried with ROWS_PER_COLUMN rows a column (below, the plain columns
# win), and up to this many numbers in the expanded table (minutes a fit above it).
MAX_CELLS = 10_000_000
ROWS_FOR_MLP = 2_000


def worth_trying(name: str, n_samples: int, n_features: int) -> bool:
    """Tell whether a named candidate suits a table of this size."""
    if name == "mlp":
        return n_samples >= ROWS_FOR_MLP
    if name == "components":
        return is_wide(n_samples, n_features)
    columns = {
        "quadratic": n_features * (n_features + 3) // 2,
        "rbf": n_features + RBFFeatures().n_centers,
    }.get(name)
    if columns is None:
        return True
    enough_rows = n_samples >= ROWS_PER_COLUMN * columns
    return enough_rows and n_samples * columns <= MAX_CELLS


def choose_discriminator(
    candidates: Sequence[Any],
    X: Any,
    codes: Array,
    domain_weight: Array,
    *,
    n_folds: int = 5,
    sample_weight: Array | None = None,
    max_samples: int = 20_000,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> Choice:
    """Cross-fit each candidate on the same folds and keep the best.

    The loss is the cross-entropy of the out-of-fold q(d|x) with domains weighted by
    ``domain_weight``. The earliest candidate that is within one standard error of the
    smallest loss wins; the error is that of the difference, row by row.

    Parameters
    ----------
    candidates : sequence of scikit-learn classifiers
        From simple to flexible.
    X : {array, sparse matrix} of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
    domain_weight : ndarray of shape (n_domains,)
        q(d).
    n_folds : int, default=5
    sample_weight : ndarray of shape (n_samples,), default=None
    max_samples : int, default=20_000
        With more rows, the choice is made on about this many, drawn from each domain
        in proportion; the winner alone is then cross-fitted on all rows.
    random_state : int, default=None
    n_jobs : int, default=None

    Returns
    -------
    Choice
    """
    options: dict[str, Any] = {
        "n_folds": n_folds,
        "sample_weight": sample_weight,
        "domain_weight": domain_weight,
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    if len(candidates) == 1 or len(codes) <= max_samples:
        return _compare(candidates, X, codes, options)
    rows = _pilot_rows(codes, n_folds, max_samples, random_state)
    weight = None if sample_weight is None else sample_weight[rows]
    some = options | {"sample_weight": weight}
    pilot = _compare(candidates, X[rows], codes[rows], some)
    full = _compare([candidates[pilot.index]], X, codes, options)
    return replace(pilot, domain_given_x=full.domain_given_x)


def _pilot_rows(
    codes: Array, n_folds: int, max_samples: int, random_state: int | None
) -> Array:
    """Mask of a sample in which every domain can still be dealt into the folds."""
    counts = np.bincount(codes)
    share = max_samples / len(codes)
    quota = np.maximum(np.ceil(share * counts), n_folds)
    return rows_per_domain(codes, quota, check_random_state(random_state))


def _compare(
    candidates: Sequence[Any], X: Any, codes: Array, options: dict[str, Any]
) -> Choice:
    """Choose on all the rows given; ``options`` are those of the cross-fit."""
    domain_weight = options["domain_weight"]
    tables = [
        cross_fit_proba(candidate, X, codes, len(domain_weight), **options)
        for candidate in candidates
    ]
    own = [table[np.arange(len(codes)), codes].astype(float) for table in tables]
    row_losses = -np.log(np.maximum(own, TINY))
    weight = row_weights(codes, domain_weight, options["sample_weight"])
    index, losses = simplest_within_error(row_losses, weight)
    return Choice(index, tables[index], losses)


def simplest_within_error(row_losses: Array, weight: Array) -> tuple[int, Array]:
    """First candidate within one standard error of the best, and all mean losses.

    Parameters
    ----------
    row_losses : ndarray of shape (n_candidates, n_samples)
    weight : ndarray of shape (n_samples,)
        Sums to 1.
    """
    losses = row_losses @ weight
    excess = row_losses - row_losses[losses.argmin()]
    mean = excess @ weight
    error = np.sqrt((excess - mean[:, None]) ** 2 @ weight**2)
    return int(np.argmax(mean <= error)), losses


# ---- From what the user wrote to classifiers that can be fitted ----------------------


def is_choice(estimator: Any) -> bool:
    """Tell whether ``estimator`` leaves a choice: "auto" or a list."""
    return isinstance(estimator, (list, tuple)) or (
        isinstance(estimator, str) and estimator == "auto"
    )


def is_given(estimator: Any) -> bool:
    """Tell whether ``estimator`` is used as it is: frozen, or a function."""
    if isinstance(estimator, (FrozenEstimator, OracleDiscriminator)):
        return True
    return callable(estimator) and not hasattr(estimator, "fit")


def needs_all_columns(discriminator: Any) -> bool:
    """Tell whether a model knows columns by their place, so that none may be left out.

    It was fitted elsewhere, or reads rows as images (``needs_all_columns``).
    """
    model = getattr(discriminator, "estimator", discriminator)
    reads_images = bool(getattr(model, "needs_all_columns", False))
    return is_given(discriminator) or is_given(model) or reads_images


def check_classifier(estimator: Any) -> None:
    """Raise unless ``estimator`` is a classifier that can state q(d|x)."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            "estimator must be 'auto', a short name, a scikit-learn classifier (an "
            f"object, not its class) or a callable, got {estimator!r}"
        )
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, and a discriminator must state q(d|x); "
            f"wrap it, CalibratedClassifierCV({name}(...)), or choose another"
        )
    for key, value in estimator.get_params().items():
        if key.split("__")[-1] == "class_weight" and value is not None:
            raise ValueError(
                f"{key}={value!r} of {name} would change the shares of domains behind "
                "domain_weight's back; leave it None and set domain_weight"
            )


def with_seeds(estimator: Any, seed: int) -> Any:
    """Return a clone in which every ``random_state`` that was None is ``seed``."""
    copy = clone(estimator)
    unset = [
        key
        for key, value in copy.get_params().items()
        if key.split("__")[-1] == "random_state" and value is None
    ]
    return copy.set_params(**dict.fromkeys(unset, seed))


def list_candidates(
    estimator: Any,
    shape: tuple[int, int],
    counts: Array,
    *,
    weighted: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Unfitted classifiers by name, from simple to flexible.

    Parameters
    ----------
    estimator : str, classifier or list of them
    shape : tuple (n_samples, n_features)
        "auto" leaves out what does not suit a table of this size.
    counts : ndarray of shape (n_domains,)
        Rows of each domain.
    weighted : bool, default=False
        Whether the rows have weights; "auto" then leaves out what cannot use them.
    seed : int, default=0
        For every ``random_state`` that is None.
    """
    automatic = isinstance(estimator, str) and estimator == "auto"
    if automatic:
        wanted: list[Any] = [n for n in AUTO_CANDIDATES if worth_trying(n, *shape)]
    else:
        wanted = list(estimator) if is_choice(estimator) else [estimator]
    if not wanted:
        raise ValueError("estimator is an empty list; name at least one candidate")
    made: dict[str, Any] = {}
    for entry in wanted:
        model = named_discriminator(entry, counts) if isinstance(entry, str) else entry
        check_classifier(model)
        if weighted and automatic and not takes_sample_weight(model):
            continue
        name = entry if isinstance(entry, str) else type(entry).__name__
        if name in made:
            name = f"{name} {len(made) + 1}"
        made[name] = with_seeds(model, seed)
    return made
