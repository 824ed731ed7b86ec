"""What a model learned from a sample, made exact over all rows, and these rows."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from shoal.exceptions import InputError, ModelFileError
from shoal.io.table._cells import row_number
from shoal.io.table._domains import DomainRule
from shoal.io.table._missing import FILL, complete_rows
from shoal.io.table._schema import Schema
from shoal.io.table._table import Message
from shoal.probability import TINY, normalize_rows
from shoal.scale._parts import Part
from shoal.scale._running import Result, Task
from shoal.scale._settings import SETTINGS
from shoal.validation._rows import row_keys

# ---- rows of a part as a model takes them: numbers, and the code of their domain -----

Array = np.ndarray[Any, Any]


class Batch(NamedTuple):
    """Some rows.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Domain of each row, as an index into those of the model.
    chance : ndarray of shape (n_rows,)
        What decides whether a row is in a sample, see :func:`chance_of`.
    frame : DataFrame
        The rows as they were read.
    """

    X: Any
    codes: Array
    chance: Array
    frame: pd.DataFrame


@dataclass(frozen=True)
class RowReader:
    """How the rows of a part become numbers; small, and the same everywhere.

    Attributes
    ----------
    schema : Schema
    domains : ndarray of shape (n_domains,) or None
        Names of the model's domains; None: all rows are of one, with code 0.
    seed : int
        Of :func:`chance_of`.
    drop_missing_domain : bool
    beside : tuple of str
        Columns to read that are no features.
    """

    schema: Schema
    domains: Array | None
    seed: int = 0
    drop_missing_domain: bool = False
    beside: tuple[str, ...] = ()

    def batches(self, part: Part, messages: list[Message]) -> Iterator[Batch]:
        """The rows of a part, piece by piece."""
        rule = None if self.domains is None else self.schema.domain
        own = () if rule is None else (str(rule.column),)
        columns = dict.fromkeys([*self.schema.needed, *self.beside, *own])
        for frame in part.frames(list(columns)):
            codes = np.zeros(len(frame), dtype=np.intp)
            if rule is not None:
                codes = self._codes(frame[rule.column], rule, messages)
                frame, codes = frame[codes >= 0], codes[codes >= 0]
            whole, found = complete_rows(frame, self.schema)
            messages += found
            frame, codes = frame[whole], codes[whole]
            if len(frame):
                X = self.schema.encode(frame, messages)
                yield Batch(X, codes, chance_of(part, frame.index, self.seed), frame)

    def _codes(
        self, series: pd.Series, rule: DomainRule, messages: list[Message]
    ) -> Array:
        """Code of the domain of each row, -1 where there is none."""
        assert self.domains is not None
        names = self.domains.tolist()
        codes = domain_codes(series, rule, self.schema.missing, names)
        empty = codes < 0
        if empty.any():
            first = row_number(series, empty)
            if not self.drop_missing_domain:
                raise InputError(
                    "E115",
                    f'rows have no domain (first: row {first} of "{series.name}")',
                    "--drop-missing-domain, or fill them",
                )
            text = f"rows without a domain are left out (first: row {first})"
            messages.append(Message("W144", text, "fill them in to keep them"))
        return codes


def without_gaps(
    schema: Schema, frame: pd.DataFrame
) -> tuple[pd.DataFrame, list[Message]]:
    """Rows that were drawn, without those that fit would have left out.

    E115 where that leaves none.
    """
    whole, noticed = complete_rows(frame, schema)
    if len(whole) and not whole.any():
        raise InputError("E115", "every row that was drawn has a missing value", FILL)
    return frame[whole], noticed


def schema_of(model: Any, columns: Sequence[str]) -> Schema:
    """How columns become numbers for a model; E135, E002 or E133 where they do not."""
    known = getattr(model, "schema_", None)
    if known is None:
        raise ModelFileError(
            "E135",
            "the model does not say which columns it takes",
            "fit with shoal.scale.fit, or set model.schema_ = table.schema.to_dict()",
        )
    schema = Schema.from_dict(known)
    if schema.n_columns is not None:
        raise InputError(
            "E002",
            "the model takes a matrix, and Parquet files have columns with names",
            "use shoal predict on the npy, npz or h5ad file",
        )
    schema.require(columns)
    return schema


def known_rule(schema: Schema, columns: Sequence[str]) -> DomainRule:
    """From cells to domains; E133 where no column says where rows come from."""
    rule = schema.domain
    if rule is None or rule.column is None or rule.column not in columns:
        column = getattr(rule, "column", None) or "domain"
        raise ModelFileError(
            "E133",
            f'the model needs "{column}" to know where each row is from',
            "supply it, or --pooled (predict only) to do without",
        )
    return rule


def domains_of(
    series: pd.Series, rule: DomainRule, missing: Sequence[str]
) -> tuple[list[Any], Array]:
    """Distinct domains of a column, and which of them each row has (-1: none).

    Names are few and rows are many: only the distinct cells are looked at.
    """
    place, cells = pd.factorize(series, use_na_sentinel=True)
    distinct = pd.Series(cells, name=series.name)
    _, empty = rule.apply(distinct, missing)
    domains, _ = rule.apply(distinct[~empty], missing)
    names, codes = np.unique(domains.astype(str), return_inverse=True)
    first = [int(np.flatnonzero(codes == code)[0]) for code in range(len(names))]
    code_of_cell = np.full(len(distinct) + 1, -1)  # the last: cells without a value
    code_of_cell[:-1][~empty] = codes
    return [domains[one : one + 1].tolist()[0] for one in first], code_of_cell[place]


def domain_codes(
    series: pd.Series, rule: DomainRule, missing: Sequence[str], names: Sequence[Any]
) -> Array:
    """Place of the domain of each row among ``names``, -1 where it has none.

    E134 where a domain is not among them.
    """
    found, place = domains_of(series, rule, missing)
    known = {name: code for code, name in enumerate(names)}
    unseen = [name for name in found if name not in known]
    if unseen:
        raise ModelFileError(
            "E134",
            f'the model has not seen the domain "{unseen[0]}"',
            "`shoal adapt` first, or --pooled",
        )
    return np.array([*(known[name] for name in found), -1], dtype=np.intp)[place]


def chance_of(part: Part, index: pd.Index, seed: int) -> Array:
    """A number in [0, 2^64) for each row, as if drawn: the same whatever is read first.

    It depends on the seed, the name of the file and the number of the row in it.
    """
    name = hashlib.blake2b(f"{seed}:{part.name}".encode(), digest_size=8).digest()
    salt = np.full(len(index), int.from_bytes(name, "little"), dtype=np.uint64)
    in_file = index.to_numpy() - part.start + part.first
    return row_keys(in_file[:, None].astype(float), salt)


# ---- what a model learned from a sample, made exact over all rows --------------------
# The discriminator, the clusters and q(y|x) stay as the sample taught them. What is
# counted is counted over all rows: the cluster-by-domain table of DDFA, and for models
# of q(y|x) the moments that the likelihood of q(d|y) depends on.


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
