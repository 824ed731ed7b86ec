"""What a fitted CountMixture says, and its hooks."""

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from shoal._unknown import Strangers
from shoal.analysis._resample import Resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, sample_numbers
from shoal.base import LatentShiftEstimator
from shoal.base._explained import UsualRow
from shoal.counts._bags import (
    Bags,
    bags_resampler,
    expected,
    out_of_fold,
    weigh_words,
)
from shoal.counts._components import Components
from shoal.mixture._route import Route

Array = np.ndarray[Any, Any]


class FittedCounts(LatentShiftEstimator):
    """Components, the mixture on them, and maybe bags, all fitted."""

    components_: Components
    head_: Any
    bags_: Bags | None
    route_: Route | None

    _accept_sparse = True

    def _class_given_x(self, X: Any) -> Array:
        bags = self.bags_
        if bags is None:
            return np.asarray(self.head_._class_given_x(self.components_.transform(X)))
        return bags.class_given_x(weigh_words(X, bags.words), self.class_weight_)

    def _posterior(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Array:
        if self.bags_ is not None:
            return super()._posterior(X, codes, prevalence)
        points = self.components_.transform(X)
        return np.asarray(self.head_._posterior(points, codes, prevalence))

    def _most_probable(self, X: Any, codes: Array | None) -> Array:
        return self._posterior(X, codes, None).argmax(axis=1)

    # ---- hooks: questions about points are for the mixture of components ----------

    @property
    def _sees_looks(self) -> bool:  # type: ignore[override]
        return bool(self.head_._sees_looks)

    def _told_apart(self) -> str:
        route = self.route_
        judged = route is not None and route.reason != "alone"
        return str(route if judged else self.head_._told_apart())

    def _novelty_quantiles(self) -> Array | None:
        return self.head_._novelty_quantiles()  # type: ignore[no-any-return]

    def _strangers(self) -> Strangers | None:
        # bags of words have classes of their own
        return self.head_._strangers() if self.bags_ is None else None

    def _novelty(self, X: Any) -> Array:
        return np.asarray(self.head_._novelty(self.components_.transform(X)))

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        if self.bags_ is not None:
            return self.bags_.evidence(weigh_words(X, self.bags_.words))
        points = self.components_.transform(X)
        return np.asarray(self.head_._origin._log_evidence(points, codes))

    def _usual_row(self) -> UsualRow:
        """A row without words: what it has says more than what it lacks."""
        n_words = self.n_features_in_
        return UsualRow(np.zeros(n_words), np.ones(n_words, dtype=bool))

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        if self.bags_ is not None:
            weights = weigh_words(X, self.bags_.words)
            return bags_resampler(self.bags_, weights, codes, weight)
        points = self.components_.transform(X)
        return self.head_._resampler(points, codes, weight)  # type: ignore[no-any-return]

    def _diagnosed_rows(
        self, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> DiagnosedRows:
        """Points of the rows; of bags, these go along for the fits out of fold."""
        points = self.components_.transform(X)
        if self.bags_ is None:
            return self.head_._diagnosed_rows(points, codes, max_rows, rng)  # type: ignore[no-any-return]
        numbers, _ = sample_numbers(self.head_, points, codes, max_rows, rng)
        points, codes = points[numbers], codes[numbers]
        rows = self.head_._diagnosed_rows(points, codes, max_rows, rng)
        weights = weigh_words(X[numbers], self.bags_.words)
        posterior = expected(self.bags_, weights, codes)
        return replace(rows, X=weights, posterior=posterior)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        if self.bags_ is None:
            return self.head_._out_of_fold(rows, folds, rng)  # type: ignore[no-any-return]
        given = rows.X, rows.rows.codes, rows.posterior, folds, self.domain_weight_
        return out_of_fold(self.bags_, *given)

    def _probe_rows(self, n_rows: int) -> Array:
        """Small counts, which every weighting takes."""
        shape = n_rows, self.n_features_in_
        return np.random.default_rng(0).poisson(1.0, size=shape).astype(float)

    def _fitted_arrays(self) -> list[Array]:
        words = [] if self.bags_ is None else [self.bags_.log_word_given_class]
        return [self.prevalence_, *words, *self.head_._fitted_arrays()]

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        extended = super()._with_domain(domains, prevalence)
        extended.head_ = self.head_._with_domain(domains, prevalence)
        return extended

    def _lean(self) -> Self:
        copied = super()._lean()
        copied.head_ = self.head_._lean()
        copied.route_ = self.route_ and self.route_.lean()
        return copied

    def _dump(self, writer: Any) -> dict[str, Any]:
        plain = copy.copy(self)
        plain.mixture = None  # it has been cloned, and the clone is the head
        del plain.head_
        return {**writer.plain(plain), "head": writer.model(self.head_)}

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Self:
        parts = {key: content[key] for key in ("params", "state")}
        model = reader.plain(cls, parts)
        model.head_ = reader.model(content["head"])
        return model  # type: ignore[no-any-return]
