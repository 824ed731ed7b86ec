"""What is known of rows, in the likelihood of the domains.

A row whose class is known has the likelihood of its domain and that class, g_y T_yd, in
place of the sum over classes. Known shares of a domain are constraints on its mean
responsibilities (posterior regularization: Ganchev et al. 2010, JMLR 11): the entries
of q(d|y) in that domain are multiplied by what fulfils them. So all gradients are those
of any row, with other responsibilities. Groups of rows do not enter: their class is
what all of their rows speak for, once the fit is there.
"""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment, minimize

from shoal.likelihood._settings import SETTINGS
from shoal.probability import normalize_rows
from shoal.validation._known import Knowledge
from shoal.validation._rows import stratified_sample

Array = np.ndarray[Any, Any]


class Constraints:
    """What is known of the rows of a problem, ready for every evaluation of J.

    Parameters
    ----------
    known : Knowledge
    codes : ndarray of shape (n,)
        Domain of each row, non-decreasing.
    n_domains : int
    """

    def __init__(self, known: Knowledge, codes: Array, n_domains: int) -> None:
        self.known, self.codes = known, codes
        self.rows = known.rows
        self.classes = known.classes[self.rows]
        self.edges = np.searchsorted(codes, np.arange(n_domains + 1))

    def restrict(self, joint: Array, rows: slice) -> None:
        """Set g_y T_yd of a block to zero for all classes but the known one."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        columns, classes = self.rows[first:last] - rows.start, self.classes[first:last]
        kept = joint[classes, columns]
        joint[:, columns] = 0
        joint[classes, columns] = kept

    # ---- known shares ---------------------------------------------------------------

    def tilt(
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
        value = float(row_weight @ np.log(total)) - float(target @ multipliers)
        return value, scaled / total

    def gradient(multipliers: Array) -> tuple[float, Array]:
        value, given = dual(multipliers)
        return value, matrix @ (given @ row_weight) - target

    def newton() -> Array:
        """A few steps without bounds; where they fail, others go on."""
        here = np.zeros(len(target))
        value, given = dual(here)
        for _ in range(SETTINGS.newton_steps):
            mass = given @ row_weight
            slope = matrix @ mass - target
            if np.abs(slope).max() <= SETTINGS.newton_close * row_weight.sum():
                break
            curve = np.diag(mass) - (given * row_weight) @ given.T
            step = np.linalg.lstsq(matrix @ curve @ matrix.T, slope, rcond=1e-12)[0]
            there = np.clip(here - step, -most, most)
            ahead, given = dual(there)
            if not ahead <= value:
                break
            here, value = there, ahead
        return here

    start = newton() if free.all() else np.zeros(len(target))
    slope = gradient(start)[1]
    wrong = np.where(free, np.abs(slope), np.maximum(-slope, 0))
    if wrong.max() > SETTINGS.newton_close * row_weight.sum():
        start = minimize(
            gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-most if one else 0.0, most) for one in free],
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 200},
        ).x
    return matrix.T @ start, float(target @ start)


# ---- samples --------------------------------------------------------------


def sample_rows(
    codes: Array, known: Knowledge | None, max_rows: int, rng: np.random.Generator
) -> Array:
    """A stratified sample that leaves out no row whose class is known, if few are."""
    drawn = stratified_sample(codes, max_rows, rng)
    if known is None:
        return drawn
    wanted = known.rows
    return drawn if len(wanted) > max_rows // 2 else np.union1d(drawn, wanted)
