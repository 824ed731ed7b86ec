"""What a fitted DDFA says: predictions from its stages, and its hooks."""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from shoal.analysis._rank import soften
from shoal.analysis._resample import Resampler, table_resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold
from shoal.base import LatentShiftEstimator
from shoal.base._hooks import made_up_rows
from shoal.base._shown import UsualRow, usual_row
from shoal.probability import mean_log_likelihood, normalize_rows
from shoal.stages._words import single_word_bags
from shoal.stages.adjust import maximum_likelihood
from shoal.stages.discriminate import Discriminator
from shoal.stages.discriminate._candidates import is_given
from shoal.validation._rows import match_keys, row_keys

Array = np.ndarray[Any, Any]

# Rows that are predicted together: few calls of the discriminator, and q(d|x) of all
# rows never exists.
PREDICT_ROWS = 16_384


class FittedStages(LatentShiftEstimator):
    """A discriminator, clusters, a factorization and an adjuster, all fitted."""

    discriminator_: Any
    discretizer_: Any
    adjuster_: Any

    @property
    def _block_rows(self) -> int | None:  # type: ignore[override]
        """A function or frozen model is asked once, about all rows."""
        model = getattr(self.discriminator_, "estimator_", self.discriminator_)
        return None if is_given(model) else PREDICT_ROWS

    def _class_given_x(self, X: Any) -> Array:
        domain_given_x = self.discriminator_.predict_proba(self._used_columns(X))
        return np.asarray(self.adjuster_.predict_proba(domain_given_x))

    def _score_rows(self, X: Any, codes: Array, sample_weight: Any) -> float:
        explained = self._class_given_x(X) @ self.domain_given_class_
        softened = soften(explained, self.domain_weight_, len(self.labels_))
        return mean_log_likelihood(softened, codes, sample_weight=sample_weight)

    # ---- hooks --------------------------------------------------------------------

    _fits_in_parts = True
    _grows = True

    def _used_columns(self, X: Any) -> Any:
        return X if self.varying_.all() else X[:, self.varying_]

    def _familiar_space(self, X: Any) -> Array:
        return np.asarray(self.scaler_.transform(self._used_columns(X)))

    def _usual_row(self) -> UsualRow:
        return usual_row(self.varying_, self.scaler_.mean_)

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        """Clusters drawn again: those of fit where a row was in it, else predicted.

        Clusters of fit come from out-of-fold q(d|x).
        """
        if self.discretizer_ is None:
            return super()._resampler(X, codes, weight)
        position = match_keys(self.row_keys_, row_keys(X, codes))
        clusters = self.discretizer_.labels_[position]
        new = position < 0
        if new.any():
            clusters[new] = self._clusters(X[new])
        bags = single_word_bags(clusters, self.discretizer_.n_clusters_)
        return table_resampler(self, bags, codes, weight)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        """The fitted kind of discriminator is refitted out of fold, the rest kept."""
        n_folds, seed = int(folds.max()) + 1, int(rng.integers(2**31 - 1))
        model = getattr(self.discriminator_, "estimator_", self.discriminator_)
        if is_given(model):
            domain_given_x = np.asarray(self.discriminator_.predict_proba(rows.rows.X))
        else:
            again = Discriminator(
                clone(model),
                cross_fit=n_folds,
                domain_weight=dict(enumerate(self.domain_weight_)),
                random_state=seed,
            ).fit(rows.rows.X, rows.rows.codes)
            domain_given_x = np.asarray(again.domain_given_x_)
        return OutOfFold(
            self.adjuster_.predict_proba(domain_given_x),
            np.repeat(self.domain_given_class_[None], n_folds, axis=0),
            np.repeat(self.class_weight_[None], n_folds, axis=0),
            domain_given_x,
        )

    def _probe_rows(self, n_rows: int) -> Array:
        scaler = self.scaler_
        return made_up_rows(n_rows, self.varying_, scaler.mean_, scaler.scale_)

    def _lean(self) -> Self:
        copied = super()._lean()
        copied.__dict__.pop("row_keys_", None)
        for name, of_rows in (
            ("discriminator_", "domain_given_x_"),
            ("discretizer_", "labels_"),
        ):
            part = copy.copy(getattr(copied, name))
            setattr(copied, name, part)
            if hasattr(part, of_rows):
                delattr(part, of_rows)
        return copied

    def _cluster_counts(self, codes: Array) -> Array | None:
        if self.discretizer_ is None:
            return None
        shape = len(self.domains_), self.discretizer_.n_clusters_
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts, (codes, self.discretizer_.labels_), 1)
        return counts

    def _clusters(self, X: Any) -> Array:
        """Cluster of each row; X is validated."""
        points = self.discriminator_.predict_proba(self._used_columns(X))
        return np.asarray(self.discretizer_.predict(points))

    def _factorize_counts(self, counts: Array, seed: int) -> None:
        """The last two stages again, from counts of shape (n_domains, n_clusters)."""
        self._random = np.random.RandomState(seed)  # a model from a file has none
        table = normalize_rows(counts)
        self.factorization_ = self._factorizer(table).fit(table).factorization_
        prevalence = self.factorization_.class_given_domain
        self._store(prevalence, self.domains_, self.domain_weight_)
        self.adjuster_ = self.adjuster_.fit(self.domain_given_class_)

    def _reorder_classes(self, order: Array) -> None:
        super()._reorder_classes(order)
        self.adjuster_.fit(self.domain_given_class_)


def likeliest(
    solutions: Sequence[Array],
    domain_given_x: Array,
    codes: Array,
    domain_weight: Array,
    n_rows: int,
) -> int:
    """Position of the q(d|y) through which q(d|x) explains the domains best.

    Each row is replaced by its likeliest mixture of the classes; what that says of the
    row's own domain counts, in nats, each domain equally.

    Parameters
    ----------
    solutions : sequence of ndarray of shape (n_classes, n_domains)
        Candidates for q(d|y).
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Out-of-fold.
    codes : ndarray of shape (n_samples,)
    domain_weight : ndarray of shape (n_domains,)
    n_rows : int
        Number of rows that the solutions were made from.

    Examples
    --------
    >>> import numpy as np
    >>> domain_given_x, codes = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 1])
    >>> flat, sharp = np.full((2, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> likeliest([flat, sharp], domain_given_x, codes, np.full(2, 0.5), n_rows=100)
    1
    """
    scores = []
    for domain_given_class in solutions:
        class_given_x = maximum_likelihood(domain_given_x, domain_given_class)
        explained = class_given_x @ domain_given_class
        softened = soften(explained, domain_weight, n_rows)
        scores.append(mean_log_likelihood(softened, codes))
    return int(np.argmax(scores))
