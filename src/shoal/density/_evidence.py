"""How much domains differ in their mix, and how much in what classes look like.

S, the *shift*: nats a held-out row gains when every domain has a mix of its own, over
one mix for all. V, the *drift*: what it gains further when every domain may also move
all classes by an offset. Where p(x|y) is the same everywhere, V is not above zero.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from shoal.density._choose import fit_without, moving, search_sample, take
from shoal.density._em import DensityFit, Prior, expect
from shoal.density._estimator import DensityMixture
from shoal.density._gaussian import Density, Rows, log_density, without_drift
from shoal.density._settings import DECISIONS
from shoal.density._starts import (
    DensityOptions,
    continue_from,
    make_prior,
    read_options,
)
from shoal.probability import TINY, HeldOut
from shoal.validation._domains import encode_domains
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ShiftEvidence:
    """Held-out nats a row, gained by a mix per domain and by a drift per domain.

    Attributes
    ----------
    shift, shift_error : float
        S and its standard error.
    drift, drift_error : float
        V and its standard error.
    drift_by_domain, drift_by_domain_error : ndarray of shape (n_domains,)
        V among the rows of each domain. One domain that drifts leaves the others worse
        off too, without drift; the largest ``offset`` tells which it is.
    drift_by_column, drift_by_column_error : ndarray of shape (n_features,)
        What the offsets gain in the density of a column alone, over the same offset for
        all domains; NaN for columns that do not vary, and in wide tables, where
        components were fitted.
    offset : ndarray of shape (n_domains, n_features)
        Drift of each domain, in standard deviations of the columns, against the median
        domain: where classes would lie without drift, nobody knows.
    domains : ndarray of shape (n_domains,)
    feature_names : list of str
    n_classes : int
    covariance : {"tied", "diag", "full"}
    """

    shift: float
    shift_error: float
    drift: float
    drift_error: float
    drift_by_domain: Array
    drift_by_domain_error: Array = field(repr=False)
    drift_by_column: Array
    drift_by_column_error: Array = field(repr=False)
    offset: Array = field(repr=False)
    domains: Array
    feature_names: list[str]
    n_classes: int
    covariance: str

    @property
    def has_drift(self) -> bool:
        """Whether drift pays beyond doubt."""
        return self.drift > DECISIONS.sure * self.drift_error

    def __str__(self) -> str:
        lines = [
            f"shift  S = {self.shift:+.3f} +- {self.shift_error:.3f} nats a row",
            f"drift  V = {self.drift:+.3f} +- {self.drift_error:.3f} nats a row",
        ]
        if self.has_drift:
            domain, column = self.furthest
            lines.append(f"most in domain {domain}, column {column}")
        return "\n".join(lines)

    @property
    def furthest(self) -> tuple[Any, str]:
        """The domain and the column with the largest offset where drift gains most.

        In wide tables, where gains by column are not known, the largest of all.
        """
        size = np.abs(self.offset)
        known = ~np.isnan(self.drift_by_column)
        column = int(size.max(axis=0).argmax())
        if known.any():
            column = int(np.nanargmax(self.drift_by_column))
        return self.domains[int(size[:, column].argmax())], self.feature_names[column]


def shift_and_drift(
    X: Any,
    domains: Any,
    n_classes: int | None = None,
    *,
    estimator: DensityMixture | None = None,
    random_state: Any = None,
) -> ShiftEvidence:
    """Say whether domains differ in their mix, or in what classes look like.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    n_classes : int, default=None
        None chooses it.
    estimator : fitted DensityMixture, default=None
        Asked about its own classes, of which X are the rows; None fits one.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    ShiftEvidence

    Examples
    --------
    >>> from shoal.datasets import load_penguins
    >>> from shoal.density import shift_and_drift
    >>> penguins = load_penguins()
    >>> evidence = shift_and_drift(penguins.X, penguins.domains, 3, random_state=0)
    >>> evidence.shift > 0.4, evidence.has_drift
    (True, False)
    """
    if estimator is None:
        model = DensityMixture(n_classes, drift=False, random_state=random_state)
        estimator = model.fit(X, domains)
    check_is_fitted(estimator)
    X = estimator._check_rows(X)
    codes = encode_domains(domains, estimator.domains_, n_samples=X.shape[0])
    if codes is None:
        raise ValueError("domains must be passed: the domain of each row of fit")
    seed = check_random_state(random_state).randint(2**31 - 1)
    with threadpool_limits(1):
        return _evidence(estimator, X, codes, np.random.default_rng(seed))


def _evidence(
    model: DensityMixture, X: Array, codes: Array, rng: np.random.Generator
) -> ShiftEvidence:
    columns, density = model.columns_, replace(model.density_, drift=None)
    order = columns.order(X, codes)
    rows = columns.rows(X[order], codes[order], None, len(density.mix))
    rows = search_sample(rows, rng)
    options = read_options(model)._replace(tail=model.tail_)
    prior = make_prior(rows, model.n_classes_, int(rng.integers(2**31 - 1)))
    start = DensityFit(density, expect(rows, density), 0.0, [], True)
    fit = continue_from(rows, start, prior, options)
    offset = continue_from(rows, fit, moving(prior), options).density.drift
    assert offset is not None
    found = weigh_evidence(rows, fit, prior, options, rng)
    for name in ("drift_by_column", "drift_by_column_error"):
        of_features = np.full(model.n_features_in_, np.nan)
        if columns.components is None:
            of_features[columns.varying] = found[name]
        found[name] = of_features
    spread = np.ones(model.n_features_in_)
    spread[columns.varying] = columns.scale
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return ShiftEvidence(
        **found,
        offset=columns.restore(offset - np.median(offset, axis=0)) / spread,
        domains=model.domains_,
        feature_names=[str(name) for name in names],
        n_classes=model.n_classes_,
        covariance=model.covariance_,
    )


def weigh_evidence(
    rows: Rows,
    fit: DensityFit,
    prior: Prior,
    options: DensityOptions,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """The numbers of a :class:`ShiftEvidence`, from a fit without drift.

    By column they are those of the density's own columns.
    """
    one_mix = replace(prior, mix_rows=np.inf)
    folds = fold_of_rows(rows.codes, DECISIONS.n_folds, rng)
    shift, drift = np.empty(len(rows.X)), np.empty(len(rows.X))
    columns = np.empty(rows.X.shape)
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        one, own, moved = (
            fit_without(rows, fit, each, test, options)
            for each in (one_mix, prior, moving(prior))
        )
        left_out = take(rows, test)
        level = expect(left_out, own).log_likelihood
        shift[test] = level - expect(left_out, one).log_likelihood
        drift[test] = expect(left_out, moved).log_likelihood - level
        alike = replace(moved, drift=_median_drift(moved))
        by_column = (column_log_densities(left_out, each) for each in (moved, alike))
        columns[test] = np.subtract(*by_column)
    return _summary(rows, shift, drift, columns)


def _median_drift(density: Density) -> Array:
    """The drift of the median domain, for all of them."""
    assert density.drift is not None
    return np.tile(np.median(density.drift, axis=0), (len(density.drift), 1))


def _summary(rows: Rows, shift: Array, drift: Array, columns: Array) -> dict[str, Any]:
    domains = [rows.codes == code for code in range(rows.n_domains)]
    by_domain = np.array([_mean(drift[own], rows.weight[own]) for own in domains])
    by_column = np.array([_mean(each, rows.weight) for each in columns.T])
    shift_mean, shift_error = _mean(shift, rows.weight)
    drift_mean, drift_error = _mean(drift, rows.weight)
    return {
        "shift": shift_mean,
        "shift_error": shift_error,
        "drift": drift_mean,
        "drift_error": drift_error,
        "drift_by_domain": by_domain[:, 0],
        "drift_by_domain_error": by_domain[:, 1],
        "drift_by_column": by_column[:, 0],
        "drift_by_column_error": by_column[:, 1],
    }


def _mean(each: Array, weight: Array) -> tuple[float, float]:
    """Mean and standard error; of no rows at all, NaN."""
    if not weight.sum() > 0:
        return float("nan"), float("nan")
    known = HeldOut(each, weight / weight.sum())
    return known.mean, known.standard_error()


def column_log_densities(rows: Rows, density: Density) -> Array:
    """Log p(x_j|d) of each column alone, of shape (n_rows, n_columns); 0 in gaps."""
    X = without_drift(rows, density.drift)
    variance = density.covariance
    if density.kind != "diag":
        variance = np.diagonal(variance, axis1=-2, axis2=-1)
    variance = np.broadcast_to(variance, density.means.shape)
    log_mix = np.log(np.maximum(density.mix, TINY))[:, density.owner]
    log_mix = (log_mix + np.log(density.share))[rows.codes]
    logs = np.empty(X.shape)
    for column in range(X.shape[1]):
        squares = (X[:, [column]] - density.means[:, column]) ** 2
        spread = variance[:, column]
        each = log_density(squares / spread, np.log(spread), 1, density.tail)
        logs[:, column] = logsumexp(each + log_mix, axis=1)
    return logs if rows.gaps is None else np.where(rows.gaps.seen, logs, 0)
