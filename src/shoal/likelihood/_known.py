"""What is known of rows, in the likelihood of the domains.

A row whose class is known has the likelihood of its domain and that class, g_y T_yd, in
place of the sum over classes; rows of one class have that of all their domains and of
sharing a class, sum_y prod_i g_y(x_i) T_yd. Both say what responsibilities are, and
nothing else changes: the gradient is that of any row. Known shares of a domain are
constraints on its mean responsibilities (posterior regularization: Ganchev et al. 2010,
JMLR 11): the entries of q(d|y) in that domain are multiplied by what fulfils them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

from shoal._known import Known
from shoal.likelihood._settings import SETTINGS
from shoal.probability import normalize_rows
from shoal.validation._rows import stratified_sample

Array = np.ndarray[Any, Any]


class Constraints:
    """What is known of the rows of a problem, ready for every evaluation of J.

    Parameters
    ----------
    known : Known
    codes : ndarray of shape (n,)
        Domain of each row, non-decreasing.
    n_domains : int
    """

    def __init__(self, known: Known, codes: Array, n_domains: int) -> None:
        self.known, self.codes = known, codes
        self.rows = known.rows
        self.classes = known.classes[self.rows]
        self.linked = np.flatnonzero(known.groups >= 0)
        # of a subset of the rows, some groups are gone
        self.groups = np.unique(known.groups[self.linked], return_inverse=True)[1]
        self.edges = np.searchsorted(codes, np.arange(n_domains + 1))

    def even(self, row_weight: Array) -> Array:
        """Weights that are the same in a group, which is counted as one thing."""
        if not len(self.linked):
            return row_weight
        own = row_weight[self.linked]
        mean = np.bincount(self.groups, own) / np.bincount(self.groups)
        result = row_weight.copy()
        result[self.linked] = mean[self.groups]
        return result

    def prepare(
        self, problem: Any, weights: Array, likelihood: Array
    ) -> tuple["Restriction", Array, float]:
        """For one evaluation: how rows are restricted, T tilted, and what that adds."""
        T, value = self._tilt(problem, weights, likelihood)
        pooled = None
        if len(self.linked):
            pooled = self._pool(problem, weights, T)
        return Restriction(self, pooled), T, value

    def restrict(self, joint: Array, rows: slice, pooled: Array | None = None) -> None:
        """Set g_y T_yd of a block to zero for all classes but the known one."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        columns, classes = self.rows[first:last] - rows.start, self.classes[first:last]
        kept = joint[classes, columns]
        joint[:, columns] = 0
        joint[classes, columns] = kept
        if pooled is not None:
            first, last = np.searchsorted(self.linked, [rows.start, rows.stop])
            columns = self.linked[first:last] - rows.start
            joint[:, columns] = pooled[:, self.groups[first:last]]

    def _pool(self, problem: Any, weights: Array, T: Array) -> Array:
        """For each group: responsibilities times the geometric mean of its rows."""
        g = problem.g(weights, self.linked) * T[:, self.codes[self.linked]]
        logs = np.log(np.maximum(g, SETTINGS.floor))
        size = np.bincount(self.groups)
        total = np.stack([np.bincount(self.groups, row) for row in logs])
        top = total.max(axis=0)
        shared = np.exp(total - top)
        mass = shared.sum(axis=0)
        return np.asarray(shared / mass * np.exp((np.log(mass) + top) / size))

    # ---- known shares ---------------------------------------------------------------

    def _tilt(
        self, problem: Any, weights: Array, likelihood: Array
    ) -> tuple[Array, float]:
        """T with the columns of domains whose shares are known moved to fulfil them."""
        n_classes = len(weights)
        shares = self.known.full_shares(n_classes)
        orders = dict(self.known.orders)
        T, value = likelihood, 0.0
        for domain in range(len(shares)):
            rows = slice(int(self.edges[domain]), int(self.edges[domain + 1]))
            told = ~np.isnan(shares[domain])
            if rows.start == rows.stop or not (told.any() or domain in orders):
                continue
            g = problem.g(weights, rows).astype(float)
            joint = g * np.maximum(likelihood[:, [domain]], SETTINGS.floor)
            self.restrict(joint, rows)
            row_weight = problem.row_weight[rows].astype(float)
            matrix, target, free = _conditions(
                shares[domain], orders.get(domain, ()), float(row_weight.sum())
            )
            tilt, added = _solve_tilt(joint, row_weight, matrix, target, free)
            if T is likelihood:
                T = likelihood.copy()
            T[:, domain] *= np.exp(tilt)
            value += added
        return T, value

    # ---- which class is which ------------------------------------------------------

    def match(self, problem: Any, weights: Array, T: Array) -> Array:
        """Order of the classes of a solution in which the known ones come first."""
        n_classes, n_names = len(weights), len(self.known.names)
        g = problem.class_given_x(weights).astype(float)
        cost = np.zeros((n_names, n_classes))
        logs = np.log(np.maximum(g[self.rows], SETTINGS.least_known))
        np.subtract.at(cost, self.classes, logs)
        mix = self._mixes(normalize_rows(g * T.T[self.codes]))
        sizes = np.diff(self.edges)
        apart = (self.known.shares[:, :, None] - mix[:, None, :]) ** 2
        cost += (sizes[:, None, None] * np.nan_to_num(apart)).sum(axis=0)
        for domain, order in self.known.orders:
            rank = np.arange(len(order)) / (len(order) - 1)
            cost[list(order)] += sizes[domain] * rank[:, None] * mix[domain]
        first = linear_sum_assignment(cost)[1]
        return np.r_[first, np.setdiff1d(np.arange(n_classes), first)]

    def _mixes(self, posterior: Array) -> Array:
        sums = np.zeros((len(self.edges) - 1, posterior.shape[1]))
        np.add.at(sums, self.codes, posterior)
        return np.asarray(sums / np.maximum(np.diff(self.edges), 1)[:, None])


@dataclass(frozen=True, eq=False)
class Restriction:
    """Constraints at one place."""

    constraints: Constraints
    pooled: Array | None

    def __call__(self, joint: Array, rows: slice) -> None:
        """Change g_y T_yd of a block, in place."""
        self.constraints.restrict(joint, rows, self.pooled)


def _conditions(
    shares: Array, order: tuple[int, ...], mass: float
) -> tuple[Array, Array, Array]:
    """Conditions B N = b (``free``) or B N >= b on the class masses of a domain."""
    identity = np.eye(len(shares))
    told = ~np.isnan(shares)
    steps = [identity[a] - identity[b] for a, b in zip(order, order[1:], strict=False)]
    matrix = np.vstack([identity[told], np.reshape(steps, (len(steps), len(shares)))])
    target = np.r_[shares[told] * mass, np.zeros(len(steps))]
    free = np.r_[np.ones(int(told.sum()), bool), np.zeros(len(steps), bool)]
    return matrix, target, free


def _solve_tilt(
    joint: Array, row_weight: Array, matrix: Array, target: Array, free: Array
) -> tuple[Array, float]:
    """Logarithms that T of one domain is multiplied by, and what J gains by that.

    The smallest change (in relative entropy) of the responsibilities that fulfils the
    conditions; its dual is convex in as many numbers as there are conditions.
    """
    most = SETTINGS.most_tilt

    def dual(multipliers: Array) -> tuple[float, Array]:
        scaled = joint * np.exp(matrix.T @ multipliers)[:, None]
        total = np.maximum(scaled.sum(axis=0), SETTINGS.floor**2)
        mass = scaled @ (row_weight / total)
        value = float(row_weight @ np.log(total)) - float(target @ multipliers)
        return value, matrix @ mass - target

    bounds = [(-most if one else 0.0, most) for one in free]
    found = minimize(
        dual,
        np.zeros(len(target)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
    )
    return matrix.T @ found.x, float(target @ found.x)


# ---- samples --------------------------------------------------------------


def sample_rows(
    codes: Array, known: Known | None, max_rows: int, rng: np.random.Generator
) -> Array:
    """A stratified sample that leaves out no row whose class is known, if few are."""
    drawn = stratified_sample(codes, max_rows, rng)
    if known is None:
        return drawn
    wanted = np.flatnonzero((known.classes >= 0) | (known.groups >= 0))
    return drawn if len(wanted) > max_rows // 2 else np.union1d(drawn, wanted)
