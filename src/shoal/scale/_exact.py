"""What a model learned from a sample, made exact over all rows.

The discriminator, the clusters and q(y|x) stay as the sample taught them. What is
counted is counted over all rows: the cluster-by-domain table of DDFA, and for models of
q(y|x) the moments that the likelihood of q(d|y) depends on.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.io.table._table import Message
from shoal.probability import TINY, normalize_rows
from shoal.scale._parts import Part
from shoal.scale._rows import Batch, RowReader
from shoal.scale._running import Result, Task
from shoal.scale._settings import SETTINGS

Array = np.ndarray[Any, Any]

# ---- DDFA: the table of clusters by domains ------------------------------------------


@dataclass(frozen=True)
class CountClusters(Task):
    """Rows of each domain in each cluster, those of the sample left out.

    The sample is counted where it was fitted, each row by a discriminator that has not
    seen it; all other rows are new to the discriminator anyway.
    """

    model: Any
    rows: RowReader
    cut: Array
    shape: tuple[int, ...]

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """Counts of shape (n_domains, n_clusters)."""
        model = self.model
        counts = np.zeros(self.shape, dtype=np.int64)
        for batch in self.rows.batches(part, messages):
            new = batch.chance > self.cut[batch.codes]
            if new.any():
                clusters = model._clusters(model._check_rows(batch.X[new]))
                np.add.at(counts, (batch.codes[new], clusters), 1)
        return {"counts": counts}


# ---- models of q(y|x): moments of the posterior --------------------------------------


@dataclass(frozen=True)
class SumMoments(Task):
    """Sums of the posterior of the class given row and domain, and of its products.

    With R = normalize(q(y|x) T[y, d]), the sum of R over the rows of a domain is the
    gradient of the log-likelihood in log T[:, d], and that of R R' its curvature.
    """

    model: Any
    rows: RowReader
    domain_given_class: Array
    familiar: bool = False  # also how usual the rows are among those of fit

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """First and second moments, log-likelihood and rows of each domain."""
        familiar = np.zeros(1)
        n_classes, n_domains = self.domain_given_class.shape
        first = np.zeros((n_domains, n_classes))
        second = np.zeros((n_domains, n_classes, n_classes))
        value, count = np.zeros(n_domains), np.zeros(n_domains, dtype=np.int64)
        for batch in self.rows.batches(part, messages):
            for domain, joint in self._by_domain(batch):
                density = np.maximum(joint.sum(axis=1), TINY)
                posterior = joint / density[:, None]
                first[domain] += posterior.sum(axis=0)
                second[domain] += posterior.T @ posterior
                value[domain] += np.log(density).sum()
                count[domain] += len(joint)
            if self.familiar:
                familiar += self.model._familiarity(batch.X).sum()
        return {"first": first, "second": second, "value": value, "count": count,
                "familiar": familiar}  # fmt: skip

    def _by_domain(self, batch: Batch) -> Any:
        """q(y|x) T[y, d] of the rows of each domain of a batch."""
        order = np.argsort(batch.codes, kind="stable")
        class_given_x = self.model._class_given_x(self.model._check_rows(batch.X))
        codes, class_given_x = batch.codes[order], class_given_x[order]
        present, starts = np.unique(codes, return_index=True)
        for domain, start, stop in zip(
            present, starts, [*starts[1:], len(codes)], strict=True
        ):
            rows = class_given_x[start:stop]
            yield domain, rows * self.domain_given_class[:, domain]


def add_up(results: Iterable[Result]) -> Result:
    """Sums of the arrays of all results, in the order of the parts."""
    total: Result = {}
    for result in results:
        for name, value in result.items():
            total[name] = total[name] + value if name in total else value
    return total


def next_solution(
    sums: Result, domain_given_class: Array, domain_weight: Array, imaginary: float
) -> tuple[Array, Array]:
    """One Newton step of the likelihood of q(d|y), q(y|x) held fixed.

    Maximizes over T the sum of w_i log sum_y q(y|x_i) T[y, d_i], each row of T a
    distribution. At the maximum T G(T) = T q(y), G the gradient in T: the fixed point
    of EM. The step solves 1 / G = 1 / q(y) with 1 / G linear in T: with the moments N
    and C of the posterior, and u = T / T0, in each domain ::

        C (u - 1) = N^2 / (T0 q(y)) - N

    and the k sums of T0 u give the q(y). Where the classes of all rows are sure this is
    a step of EM, which then needs no second; where they are not, it is Newton's.

    Parameters
    ----------
    sums : dict
        ``first``, ``second`` and ``count`` at ``domain_given_class``.
    domain_given_class : ndarray of shape (n_classes, n_domains)
        T0.
    domain_weight : ndarray of shape (n_domains,)
    imaginary : float
        Rows added to each class and domain.

    Returns
    -------
    domain_given_class : ndarray of shape (n_classes, n_domains)
    prevalence : ndarray of shape (n_domains, n_classes)
    """
    T = domain_given_class.T
    weight = (domain_weight / np.maximum(sums["count"], 1))[:, None]
    # imaginary rows, as many in every cell, keep all shares off zero
    added = imaginary / sums["count"].sum()
    gradient = weight * sums["first"] + added
    curvature = weight[:, :, None] * sums["second"] + added * np.eye(T.shape[1])
    fixed = np.zeros(T.shape, dtype=bool)
    while True:
        step, size = _step(gradient, curvature, T, fixed)
        vanishing = (1 + step < SETTINGS.shortest) & ~fixed
        if not vanishing.any():
            break
        fixed |= vanishing
    moved = normalize_rows((T * np.minimum(1 + step, SETTINGS.longest)).T)
    return moved, normalize_rows(moved.T / np.maximum(size, TINY))


def _step(
    gradient: Array, curvature: Array, T: Array, fixed: Array
) -> tuple[Array, Array]:
    """Step u - 1 that keeps the sum of T u for each class, and 1 / q(y).

    Entries that are ``fixed`` shrink as far as they may; all others are free.
    """
    free, down = ~fixed, np.where(fixed, SETTINGS.shortest - 1, 0.0)
    rest = gradient + (curvature @ down[:, :, None])[:, :, 0]
    matrix = curvature * (free[:, :, None] & free[:, None, :])
    matrix += fixed[:, :, None] * np.eye(T.shape[1])
    by_rest = np.linalg.solve(matrix, np.where(free, rest, -down)[:, :, None])[:, :, 0]
    ties = np.where(free, gradient**2 / T, 0.0)[:, :, None] * np.eye(T.shape[1])
    by_size = np.linalg.solve(matrix, ties)
    size = np.linalg.solve(
        (T[:, :, None] * by_size).sum(axis=0), (T * by_rest).sum(axis=0)
    )
    return by_size @ size - by_rest, size


def next_shares(sums: Result, shares: Array) -> tuple[Array, Array]:
    """One Newton step of the likelihood of a class mix, and the covariance of shares.

    As :func:`next_solution`, for one domain whose shares sum to 1.

    Examples
    --------
    >>> posterior = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> sums = {"first": posterior.sum(axis=0)[None], "count": np.array([4]),
    ...         "second": (posterior.T @ posterior)[None]}
    >>> shares, covariance = next_shares(sums, np.array([0.75, 0.25]))
    >>> shares, covariance.diagonal()
    (array([0.75, 0.25]), array([0.046875, 0.046875]))
    """
    count = int(sums["count"][0])
    gradient, curvature = sums["first"][0] / count, sums["second"][0] / count
    curvature = curvature + 1e-12 * np.eye(len(shares))
    free = np.ones(len(shares), dtype=bool)
    while True:
        step, tied = _step_of_shares(gradient, curvature, shares, free)
        vanishing = (1 + step < SETTINGS.shortest) & free
        if not vanishing.any() or vanishing[free].all():
            break
        free &= ~vanishing
    moved = shares * np.clip(1 + step, SETTINGS.shortest, SETTINGS.longest)
    return moved / moved.sum(), tied * np.outer(shares, shares) / count


def _step_of_shares(
    gradient: Array, curvature: Array, shares: Array, free: Array
) -> tuple[Array, Array]:
    """Step u - 1 that keeps the sum of p0 u, and the covariance that u has.

    Classes that are not free shrink as far as they may.
    """
    down = np.where(free, 0.0, SETTINGS.shortest - 1)
    inverse = np.zeros_like(curvature)
    inverse[np.ix_(free, free)] = np.linalg.inv(curvature[np.ix_(free, free)])
    towards = inverse @ shares
    tied = inverse - np.outer(towards, towards) / (shares @ towards)
    by_rest = inverse @ (gradient + curvature @ down) - down
    by_size = inverse @ (gradient**2 / shares)
    step = by_size * (shares @ by_rest) / (shares @ by_size) - by_rest
    return step, tied
