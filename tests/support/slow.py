"""Formulas written out as in a textbook, to compare quick code with."""

import math

import numpy as np


def slow_softmax(row):
    """Exponentials of numbers, divided by their sum."""
    total = sum(math.exp(v) for v in row)
    return [math.exp(v) / total for v in row]


def slow_shares(ratio, weight=None, n_iter=50_000):
    """Class mix of rows with known p(x|y) up to a factor: EM as Saerens wrote it."""
    weight = np.ones(len(ratio)) if weight is None else np.asarray(weight)
    weight = weight / weight.sum()
    shares = np.full(ratio.shape[1], 1 / ratio.shape[1])
    for _ in range(n_iter):
        shares = shares * ((weight / (ratio @ shares)) @ ratio)
    return shares
