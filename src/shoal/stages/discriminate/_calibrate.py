"""Calibration of q(d|x) on rows that its model was not fitted on.

The calibrated probabilities are ``softmax(slope * log q + offset)``. Temperature
scaling has one slope for all domains and no offset; vector scaling one slope and one
offset per domain. Both minimize the cross-entropy, which is convex in them.

References
----------
Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks. ICML 2017.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax

from shoal.validation import check_choice, row_weights

Array = np.ndarray[Any, Any]

CALIBRATIONS = ("temperature", "vector")

# How sure a classifier may be: an exact zero, the logarithm of which would drown all
# others, counts as this.
FLOOR = 1e-12

# Where every held-out row is right, the best slope is infinite; this one will do.
STEEPEST = 100.0


@dataclass(frozen=True)
class Calibration:
    """A fitted map from q(d|x) to calibrated q(d|x).

    Attributes
    ----------
    slope : ndarray of shape (n_domains,)
        Inverse temperature of each domain's log-probability.
    offset : ndarray of shape (n_domains,)
    loss_before, loss_after : float
        Cross-entropy on the rows it was fitted on, in nats.
    """

    slope: Array
    offset: Array
    loss_before: float
    loss_after: float

    @property
    def temperature(self) -> float:
        """One over the mean slope; above 1 means that q(d|x) was too sure."""
        mean = float(self.slope.mean())
        return 1 / mean if mean > 0 else float("inf")

    def apply(self, domain_given_x: ArrayLike) -> Array:
        """Calibrate rows of q(d|x); float32 stays float32."""
        logits = _log(domain_given_x)
        logits *= self.slope.astype(logits.dtype)
        logits += self.offset.astype(logits.dtype)
        return np.asarray(np.exp(log_softmax(logits, axis=1)))


def fit_calibration(
    domain_given_x: ArrayLike,
    codes: ArrayLike,
    *,
    method: str = "temperature",
    domain_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Calibration:
    """Fit a calibration by minimizing the cross-entropy, domains weighted by q(d).

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        Held-out or out-of-fold rows.
    codes : array-like of shape (n_samples,)
        Domain of each row, 0..n_domains-1.
    method : {"temperature", "vector"}, default="temperature"
    domain_weight : array-like of shape (n_domains,), default=None
        q(d); equal when None.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    Calibration
        Its loss on these rows is never above the loss before.

    Examples
    --------
    >>> import numpy as np
    >>> sure = np.array([[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.01, 0.99]])
    >>> calibration = fit_calibration(sure, [0, 0, 1, 1])  # one in four is wrong
    >>> calibration.apply(sure).round(2)
    array([[0.75, 0.25],
           [0.75, 0.25],
           [0.75, 0.25],
           [0.25, 0.75]])
    """
    check_choice(CALIBRATIONS, method=method)
    logits = _log(domain_given_x)
    codes = np.asarray(codes)
    n_domains = logits.shape[1]
    equal = np.full(n_domains, 1 / n_domains)
    q_d = equal if domain_weight is None else np.asarray(domain_weight, dtype=float)
    weight = row_weights(codes, q_d, sample_weight)
    # One parameter (the common slope), or slopes followed by offsets.
    start = np.ones(1) if method == "temperature" else np.repeat([1.0, 0.0], n_domains)
    # A domain's own probability never counts against it: slopes stay >= 0.
    is_slope = np.arange(len(start)) < n_domains
    bounds = Bounds(
        np.where(is_slope, 0, -np.inf), np.where(is_slope, STEEPEST, np.inf)
    )
    before, _ = _loss_and_gradient(start, logits, codes, weight)
    solution = minimize(
        _loss_and_gradient,
        start,
        args=(logits, codes, weight),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
    )
    improved = solution.fun < before
    slope, offset = _unpack(solution.x if improved else start, n_domains)
    return Calibration(slope, offset, before, min(before, float(solution.fun)))


def _unpack(parameters: Array, n_domains: int) -> tuple[Array, Array]:
    if len(parameters) == 1:
        return np.full(n_domains, parameters[0]), np.zeros(n_domains)
    return parameters[:n_domains], parameters[n_domains:]


def _loss_and_gradient(
    parameters: Array, logits: Array, codes: Array, weight: Array
) -> tuple[float, Array]:
    """Weighted cross-entropy of softmax(slope * logits + offset), and its gradient."""
    n_samples, n_domains = logits.shape
    slope, offset = _unpack(parameters, n_domains)
    scaled = logits * slope
    scaled += offset
    log_q = log_softmax(scaled, axis=1)
    own = np.arange(n_samples), codes
    loss = -float(weight @ log_q[own])
    residual = np.exp(log_q, out=log_q)
    residual[own] -= 1
    residual *= weight[:, None]
    slope_gradient = np.einsum("nd,nd->d", residual, logits)
    if len(parameters) == 1:
        return loss, np.array([slope_gradient.sum()])
    return loss, np.concatenate([slope_gradient, residual.sum(axis=0)])


def _log(domain_given_x: ArrayLike) -> Array:
    """Logarithm in which impossible is very unlikely instead; a new array."""
    q = np.asarray(domain_given_x)
    if not np.issubdtype(q.dtype, np.floating):
        q = q.astype(np.float64)
    floored = np.maximum(q, q.dtype.type(FLOOR))
    return np.log(floored, out=floored)
