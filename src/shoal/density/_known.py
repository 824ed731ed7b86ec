"""What is known of rows, in the EM of a DensityMixture.

A row whose class is known is expected in no other; a group of rows of one class is one
draw of a class with several rows; the mix of a domain is the likeliest with its known
shares, or of the known order.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.isotonic import isotonic_regression

from shoal._known import Knowledge
from shoal.density._gaussian import Density, Rows
from shoal.probability import TINY

Array = np.ndarray[Any, Any]


def restrict(logs: Array, rows: Rows, density: Density) -> Array:
    """Change log p(x, component|d) in place; what each row's likelihood is divided by.

    The likelihood of a group is that of all its rows, and counted once.
    """
    known, owner = rows.known, density.owner
    size = np.ones(len(logs))
    if known is None:
        return size
    told = known.rows
    other = owner[None, :] != known.classes[told][:, None]
    logs[told] = np.where(other, -np.inf, logs[told])
    linked = np.flatnonzero(known.groups >= 0)
    if not len(linked):
        return size
    groups = np.unique(known.groups[linked], return_inverse=True)[1]
    own = np.stack(
        [logsumexp(logs[linked][:, owner == y], axis=1) for y in np.unique(owner)],
        axis=1,
    )
    log_mix = np.log(np.maximum(density.mix, TINY))[rows.codes[linked]]
    total = np.zeros((int(groups.max()) + 1, own.shape[1]))
    np.add.at(total, groups, own - log_mix)
    logs[linked] += (total[groups] + log_mix - own)[:, owner]
    size[linked] = np.bincount(groups)[groups]
    return size


def draws(rows: Rows) -> Array | None:
    """How much of a draw from the mix each row is; None where all are whole ones."""
    if rows.known is None or not (rows.known.groups >= 0).any():
        return None
    part = np.ones(len(rows.X))
    linked = np.flatnonzero(rows.known.groups >= 0)
    number = np.unique(rows.known.groups[linked], return_inverse=True)[1]
    part[linked] /= np.bincount(number)[number]
    return part


def constrain(mix: Array, known: Knowledge | None) -> Array:
    """Mixes with the known shares; those of a known order are pooled until they fit."""
    if known is None:
        return mix
    mix = known.impose(mix)
    for domain, order in known.orders:
        own = list(order)
        mix[domain, own] = isotonic_regression(mix[domain, own], increasing=False)
    return mix


def own_class(rows: Rows, class_given_x: Array, corners: Array) -> Array:
    """q(d|x) through the classes, q(d, y|x) where the class is known."""
    each = class_given_x * corners.T[rows.codes]
    if rows.known is None:
        return np.asarray(each.sum(axis=1))
    told = rows.known.rows
    result = each.sum(axis=1)
    result[told] = each[told, rows.known.classes[told]]
    return np.asarray(result)


# ---- starts --------------------------------------------------------------------------


def named(labels: Array, rows: Rows, n_classes: int, n_components: int) -> Array:
    """A partition whose parts are called as most of their known rows are."""
    known = rows.known
    if known is None:
        return labels
    parts, piece = np.divmod(labels, n_components)
    cost = np.zeros((len(known.names), n_classes))
    np.subtract.at(cost, (known.classes[known.rows], parts[known.rows]), 1.0)
    counts = np.zeros((rows.n_domains, n_classes))
    np.add.at(counts, (rows.codes, parts), rows.weight)
    sizes = np.maximum(counts.sum(axis=1), TINY)
    mix = counts / sizes[:, None]
    apart = (known.shares[:, :, None] - mix[:, None, :]) ** 2
    cost += (sizes[:, None, None] * np.nan_to_num(apart)).sum(axis=0)
    for domain, order in known.orders:
        rank = np.arange(len(order)) / (len(order) - 1)
        cost[list(order)] += sizes[domain] * rank[:, None] * mix[domain]
    first = linear_sum_assignment(cost)[1]
    order = np.r_[first, np.setdiff1d(np.arange(n_classes), first)]
    classes = np.argsort(order)[parts]
    classes[known.rows] = known.classes[known.rows]
    return np.asarray(classes * n_components + piece)


def by_nearest(rows: Rows, n_classes: int) -> Array | None:
    """Class of each row by the nearest mean of known rows, if every class has some."""
    known = rows.known
    if known is None or known.n_told < n_classes:
        return None
    told = known.rows
    member = np.eye(n_classes)[known.classes[told]]
    means = member.T @ rows.X[told] / member.sum(axis=0)[:, None]
    squares = (means**2).sum(axis=1) - 2 * rows.X @ means.T
    return np.asarray(squares.argmin(axis=1))


def blind(rows: Rows) -> Rows:
    """The rows as those see them who know nothing."""
    return replace(rows, known=None)
