"""Classifiers that keep the state with the best held-out cross-entropy.

This is how the paper trains its discriminator: on T, with the best epoch on V chosen
by the loss. scikit-learn's own ``early_stopping`` of networks watches the accuracy,
which is the wrong quantity for q(d|x).
"""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from shoal.probability import TINY
from shoal.stages.discriminate._crossfit import rows_per_domain
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]


def hold_out_rows(
    codes: Array, fraction: float, random_state: np.random.RandomState
) -> Array:
    """Mask of the rows to hold out: ``fraction`` of each class, at least one row.

    A class with a single row keeps it for training.
    """
    counts = np.bincount(codes)
    quota = np.clip(np.rint(fraction * counts), 1, np.maximum(counts - 1, 0))
    return rows_per_domain(codes, quota, random_state)


def cross_entropy(proba: Array, codes: Array) -> float:
    """Mean of -log q(d|x) over rows, in nats."""
    own = proba[np.arange(len(codes)), codes].astype(float)
    return float(-np.log(np.maximum(own, TINY)).mean())


class _Rows(NamedTuple):
    X: Array
    codes: Array


class _EarlyStopped(ClassifierMixin, BaseEstimator):
    """Split off held-out rows, train, keep the best; a subclass trains."""

    validation_fraction: float
    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Train on most rows of X with classes y, choose the best on the others."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                "validation_fraction must be between 0 and 1, got "
                f"{self.validation_fraction!r}"
            )
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has only one class; at least two are needed")
        random_state = check_random_state(self.random_state)
        held_out = hold_out_rows(codes, self.validation_fraction, random_state)
        seen = ~held_out
        if not held_out.any():  # one row per class: nothing to spare
            seen[:] = held_out[:] = True
        train, rest = (_Rows(X[rows], codes[rows]) for rows in (seen, held_out))
        self._train(train, rest, random_state)
        return self

    def predict(self, X: Any) -> Array:
        """Most probable class of each row."""
        proba = self.predict_proba(X)
        return np.asarray(self.classes_[proba.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self._proba(X)

    def _proba(self, X: Array) -> Array:
        raise NotImplementedError

    def _train(
        self, train: _Rows, held_out: _Rows, random_state: np.random.RandomState
    ) -> None:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class EarlyStoppedMLP(_EarlyStopped):
    """A network trained on T that keeps the epoch with the best loss on V.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(64, 64, 64)
    alpha : float, default=0.1
        Strength of the L2 penalty.
    batch_size : int, default=128
    learning_rate_init : float, default=3e-3
        Step size of Adam.
    max_epochs : int, default=100
    patience : int or None, default=5
        Stop after this many epochs without a better held-out loss. None runs all
        epochs and keeps the best, as the paper's code did.
    validation_fraction : float, default=0.1
        Share of each class that is held out; at least one row of each class that has
        two.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    network_ : MLPClassifier
        With the weights of the best epoch.
    held_out_losses_ : ndarray of shape (n_iter_,)
        Mean held-out cross-entropy after each epoch, in nats.
    best_epoch_ : int
        Index of the smallest of them.
    n_iter_ : int
        Number of epochs run.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> net = EarlyStoppedMLP(random_state=0).fit(X, y)
    >>> bool(net.held_out_losses_[net.best_epoch_] == net.held_out_losses_.min())
    True
    """

    hidden_layer_sizes: tuple[int, ...] = (64, 64, 64)
    _: KW_ONLY
    alpha: float = 0.1
    batch_size: int = 128
    learning_rate_init: float = 3e-3
    max_epochs: int = 100
    patience: int | None = 5
    validation_fraction: float = 0.1
    random_state: Any = None

    def _proba(self, X: Array) -> Array:
        return np.asarray(self.network_.predict_proba(X))

    def _train(
        self, train: _Rows, held_out: _Rows, random_state: np.random.RandomState
    ) -> None:
        from sklearn.neural_network import MLPClassifier

        check_whole(1, max_epochs=self.max_epochs)
        net = self.network_ = MLPClassifier(
            self.hidden_layer_sizes,
            alpha=self.alpha,
            batch_size=min(self.batch_size, len(train.X)),
            learning_rate_init=self.learning_rate_init,
            # The object, not a seed: partial_fit would repeat one order of rows.
            random_state=random_state,
        )
        classes = np.arange(len(self.classes_))
        losses: list[float] = []
        patience = np.inf if self.patience is None else self.patience
        for epoch in range(self.max_epochs):
            net.partial_fit(train.X, train.codes, classes=classes)
            proba = net.predict_proba(held_out.X)
            losses.append(cross_entropy(proba, held_out.codes))
            if losses[-1] <= min(losses):
                self.best_epoch_ = epoch
                best = copy.deepcopy((net.coefs_, net.intercepts_))
            elif epoch - self.best_epoch_ >= patience:
                break
        net.coefs_, net.intercepts_ = best
        self.held_out_losses_ = np.array(losses)
        self.n_iter_ = len(losses)


@dataclass(eq=False, repr=False)
class EarlyStoppedBoosting(_EarlyStopped):
    """LightGBM trees on T, as many as give the best loss on V.

    Needs the package lightgbm (``pip install "shoal[boost]"``).

    Parameters
    ----------
    max_rounds : int, default=300
    learning_rate : float, default=0.1
    num_leaves : int, default=15
    patience : int, default=10
        Stop after this many rounds without a better held-out loss.
    validation_fraction : float, default=0.1
        Share of each class that is held out.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    booster_ : lightgbm.Booster
    n_iter_ : int
        Number of rounds kept.
    """

    max_rounds: int = 300
    _: KW_ONLY
    learning_rate: float = 0.1
    num_leaves: int = 15
    patience: int = 10
    validation_fraction: float = 0.1
    random_state: Any = None

    def _proba(self, X: Array) -> Array:
        return np.asarray(self.booster_.predict(X))

    def _train(
        self, train: _Rows, held_out: _Rows, random_state: np.random.RandomState
    ) -> None:
        try:
            import lightgbm
        except ImportError as error:
            raise ImportError(
                "EarlyStoppedBoosting needs the package lightgbm; pip install "
                '"shoal[boost]", or use the estimator "boost" (scikit-learn)'
            ) from error
        settings = {
            "objective": "multiclass",
            "num_class": len(self.classes_),
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "seed": int(random_state.randint(2**31 - 1)),
            "deterministic": True,  # the same trees for any number of threads
            "force_row_wise": True,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(train.X, label=train.codes)
        self.booster_ = lightgbm.train(
            settings,
            rows,
            num_boost_round=self.max_rounds,
            valid_sets=[rows.create_valid(held_out.X, label=held_out.codes)],
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )
        self.n_iter_ = self.booster_.best_iteration
