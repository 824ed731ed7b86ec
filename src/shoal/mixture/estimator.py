"""DomainMixture: q(d|x) = q(y|x) q(d|y) by maximum likelihood."""

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from shoal.base import LatentShiftEstimator
from shoal.exceptions import CollapseWarning
from shoal.mixture.features import FeatureMap
from shoal.mixture.objective import Penalties, softmax_classes
from shoal.mixture.rows import canonical_rows
from shoal.mixture.search import Options, Solution, find_solution
from shoal.mixture.training import TrainingRows
from shoal.probability import canonical_order, class_posterior, domain_given_class
from shoal.validation import (
    check_n_classes,
    check_X_domains,
    resolve_domain_weight,
    varying_columns,
)

__all__ = ["DomainMixture"]

Array = np.ndarray[Any, Any]


class DomainMixture(LatentShiftEstimator):
    """Draft."""

    _accept_sparse = True

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        search: bool = True,
        scale: str = "auto",
        expansion: str = "auto",
        ridge: float | str = "auto",
        confidence: float | str = "auto",
        moves: bool = True,
        n_random: int = 1,
        max_iter: int = 400,
        tol: float = 1e-7,
        max_search_rows: int = 20_000,
        domain_weight: Any = "equal",
        check_identifiable: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.search = search
        self.scale = scale
        self.expansion = expansion
        self.ridge = ridge
        self.confidence = confidence
        self.moves = moves
        self.n_random = n_random
        self.max_iter = max_iter
        self.tol = tol
        self.max_search_rows = max_search_rows
        self.domain_weight = domain_weight
        self.check_identifiable = check_identifiable
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        domains = domains if domains is not None else y
        X, codes, names = check_X_domains(self, X, domains, accept_sparse=True)
        rows = self._training_rows(X, codes, names, sample_weight)
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1)
        )
        n_classes = check_n_classes(
            self.n_classes, len(names), check_identifiable=self.check_identifiable
        )
        solution = find_solution(rows, n_classes, self._options(), rng)
        self._keep(solution, rows, names)
        self.labels_ = self.predict(X, np.asarray(names)[codes])
        return self

    def _training_rows(self, X, codes, names, sample_weight):
        self.varying_ = varying_columns(X)
        if not self.varying_.all():
            X = X[:, self.varying_]
        mass = np.bincount(codes, weights=sample_weight, minlength=len(names))
        weight = resolve_domain_weight(self.domain_weight, names, mass)
        plain = FeatureMap("column").fit(X, np.ones(X.shape[0]))
        order = canonical_rows(plain.transform(X), codes)
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=float)[order]
        return TrainingRows(X[order], codes[order], sample_weight, weight)

    def _options(self) -> Options:
        return Options(
            search=self.search,
            scale=self.scale,
            expansion=self.expansion,
            ridge=None if self.ridge == "auto" else float(self.ridge),
            confidence=None if self.confidence == "auto" else float(self.confidence),
            moves=self.moves,
            n_random=self.n_random,
            max_search_rows=self.max_search_rows,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )

    def _keep(self, solution: Solution, rows: TrainingRows, names: Array) -> None:
        fit = solution.fit
        self.features_ = solution.features
        self.weights_ = fit.weights
        g = rows.problem(solution.features).class_given_x(fit.weights)
        posterior = class_posterior(g, fit.domain_given_class, rows.codes)
        share = (rows.row_weight / rows.domain_weight[rows.codes])[:, None]
        prevalence = np.zeros((len(names), g.shape[1]))
        np.add.at(prevalence, rows.codes, posterior * share)
        order = canonical_order(prevalence)
        self.weights_ = fit.weights[order]
        self._store(prevalence[:, order], names, rows.domain_weight)
        self.solution_ = solution
        self.n_iter_ = fit.n_iter
        self.history_ = fit.history
        self.penalties_ = solution.penalties

    def _class_given_x(self, X: Any) -> Array:
        if not self.varying_.all():
            X = X[:, self.varying_]
        design = self.features_.transform(X)
        W = self.weights_.astype(design.dtype)
        logits = np.asarray((design @ W[:, :-1].T).T) + W[:, -1:]
        return np.ascontiguousarray(softmax_classes(logits)[0].T).astype(float)
