"""Why a row is of its class: evidence in nats, by column and by domain.

The log odds of two classes in a domain are the log odds of their shares there, which is
what the domain says, and the evidence of the row. That is split among the columns by
Shapley's rule: what a column adds to those already seen, in the mean over all orders in
which columns can be seen. The parts add up to the log odds exactly, columns that play
the same role get the same, and one that changes nothing gets nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.probability import TINY
from shoal.validation._domains import encode_domains
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]
# From masks of columns, (n_masks, n_players), to the evidence where these are seen.
Game = Callable[[Array], Array]

#: Names of the parts that are no columns.
DOMAIN, USUAL, TOGETHER = "(domain)", "(usual row)", "(all columns)"


@dataclass(frozen=True)
class ExplanationNumbers:
    """How orders of columns are counted."""

    # Of so many columns all subsets are asked: a thousand rows, in milliseconds.
    exact_columns: int = 10
    # Of more, some orders and their reverses. Where nothing but sums matters (linear
    # evidence) one of them is exact already.
    pairs: int = 8
    # Cells of made-up rows for one explanation: where words are many, orders are few.
    cells: int = 20_000_000


NUMBERS = ExplanationNumbers()


@dataclass(frozen=True, eq=False)
class RowExplanation:
    """Why a row is of one class rather than of another, in nats.

    A nat multiplies the odds by 2.7, three nats by 20. Positive parts speak for the
    class, negative ones for the other.

    Attributes
    ----------
    class_name, other_name : str
        The most probable class, and the one that it is held against.
    classes : (int, int)
        Their numbers.
    probability, other_probability : float
        p_d(y|x) of both.
    log_odds : float
        Of the one against the other: the sum of all parts.
    domain : hashable or None
    domain_evidence : float
        Log odds of the shares of the two classes in the domain.
    base : float
        Evidence of a row with all columns as usual; 0 where columns can be left unseen.
    columns : list of str
    values : list
        What stands in them.
    evidence : ndarray of shape (n_columns,)
    error : ndarray of shape (n_columns,)
        Standard error of each; 0 where all orders of columns were counted.
    """

    class_name: str
    other_name: str
    classes: tuple[int, int]
    probability: float
    other_probability: float
    log_odds: float
    domain: Any
    domain_evidence: float
    base: float
    columns: list[str]
    values: list[Any] = field(repr=False)
    evidence: Array
    error: Array = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict for each part: the domain, the usual row, then columns by size.

        Columns that say nothing are left out, and so is a usual row that does.
        """
        parts: list[tuple[str, Any, float, float]] = [
            (DOMAIN, self.domain, self.domain_evidence, 0.0)
        ]
        if self.base:
            parts.append((USUAL, None, self.base, 0.0))
        order = np.argsort(-np.abs(self.evidence), kind="stable")
        parts += [
            (
                self.columns[one],
                self.values[one],
                float(self.evidence[one]),
                float(self.error[one]),
            )
            for one in order
            if self.evidence[one]
        ]
        names = ("part", "value", "nats", "error")
        return [dict(zip(names, part, strict=True)) for part in parts]

    def to_frame(self) -> Any:
        """The same as a table."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    def __str__(self) -> str:
        """In a sentence, with the parts that weigh most."""
        parts = sorted(self.to_records(), key=lambda one: -abs(one["nats"]))[:5]
        told = ", ".join(f"{one['part']} {one['nats']:+.2f}" for one in parts)
        return (
            f"{self.class_name} ({self.probability:.0%}) rather than {self.other_name} "
            f"({self.other_probability:.0%}), {self.log_odds:+.2f} nats: {told}"
        )


def explain(
    model: Any,
    x: Any,
    domain: Any = None,
    *,
    prevalence: Any = None,
    against: Any = None,
    random_state: Any = 0,
) -> RowExplanation:
    """Why a row is of its class; see ``model.explain``."""
    check_is_fitted(model)
    if model._origin._takes_images:
        raise ValueError("explain is about columns, and this model takes images")
    X = model._check_rows(_one_row(x))
    if X.shape[0] != 1:
        raise ValueError(f"x must be one row, got {X.shape[0]}; ask for each of them")
    if prevalence is not None and domain is not None:
        raise ValueError("pass domain or prevalence, not both")
    return explain_checked(
        model,
        X,
        domain,
        prevalence=prevalence,
        against=against,
        random_state=random_state,
    )


def explain_checked(
    model: Any,
    X: Any,
    domain: Any,
    *,
    prevalence: Any = None,
    against: Any = None,
    random_state: Any = 0,
) -> RowExplanation:
    """The same of one row that the model has validated."""
    code = encode_domains(domain, model.domains_, n_samples=1)
    mix = None if prevalence is None else model._check_prevalence(prevalence)
    asked = _Asked(model, X, code, mix)
    first, second = asked.two_classes(against)

    def game(masks: Array) -> Array:
        found = asked.evidence(masks)
        return np.asarray(found[:, first] - found[:, second])

    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    names, evidence, error, base = asked.split(game, np.random.default_rng(seed))
    chances = softmax(asked.log_posterior)
    share = float(asked.log_share[first] - asked.log_share[second])
    return RowExplanation(
        class_name=str(model.class_names_[first]),
        other_name=str(model.class_names_[second]),
        classes=(first, second),
        probability=float(chances[first]),
        other_probability=float(chances[second]),
        log_odds=float(asked.log_posterior[first] - asked.log_posterior[second]),
        domain=domain,
        domain_evidence=share,
        base=base,
        columns=names,
        values=asked.values(len(names)),
        evidence=evidence,
        error=error,
    )


class _Asked:
    """One validated row, a domain or a mix, and what the model says of both."""

    def __init__(self, model: Any, X: Any, code: Any, mix: Array | None) -> None:
        self.model, self.fitted, self.code = model, model._origin, code
        self.X = X
        if mix is not None:
            parts = model._split_prevalence(mix)
        elif code is not None:
            parts = self.fitted.prevalence_[code[0]]
        else:
            parts = self.fitted.prevalence_.mean(axis=0)
        self.log_part = np.log(np.maximum(parts, TINY))
        self.log_share = np.log(np.maximum(model._add_up(parts), TINY))
        # who belongs to whom where classes were merged
        self.member = model._add_up(np.eye(self.fitted.n_classes_))
        self.log_posterior = self._evidence_of(X)[0] + self.log_share
        self._find_players()

    def _find_players(self) -> None:
        """Columns in which the row is not as usual, of those that the fit has used."""
        self.dense, usual = self.X, self.fitted._usual_row()
        self.usual: Array | None = None
        if usual is None:
            return
        if is_sparse(self.X):
            self.dense = self.X.toarray()
        self.usual, row = usual.values, self.dense[0]
        same = (row == usual.values) | (np.isnan(row) & np.isnan(usual.values))
        self.players = np.flatnonzero(usual.used & ~same)

    def two_classes(self, against: Any) -> tuple[int, int]:
        """The most probable class, and the next or the one that was asked for."""
        order = np.argsort(-self.log_posterior, kind="stable")
        first, second = int(order[0]), int(order[1])
        if against is not None:
            second = self.model._class_index(against)
        if first == second:
            raise ValueError(f"against={against!r} is the class of the row itself")
        return first, second

    def split(
        self, game: Game, rng: np.random.Generator
    ) -> tuple[list[str], Array, Array, float]:
        """Names, evidence and error of all columns, and the evidence without any."""
        if self.usual is None:  # a row that cannot be taken apart
            return [TOGETHER], game(np.ones((1, 0), dtype=bool)), np.zeros(1), 0.0
        found, doubt, base = shapley(game, len(self.players), rng)
        n_columns = self.dense.shape[1]
        evidence, error = np.zeros(n_columns), np.zeros(n_columns)
        evidence[self.players], error[self.players] = found, doubt
        names = getattr(self.fitted, "feature_names_in_", range(n_columns))
        return [str(name) for name in names], evidence, error, base

    def values(self, n_columns: int) -> list[Any]:
        """What stands in the columns of the row."""
        if self.usual is None:
            return [None] * n_columns
        return list(self.dense[0].tolist())

    def evidence(self, masks: Array) -> Array:
        """Log p(x|y), up to one number, where only some columns are seen."""
        if self.usual is None:
            return self._evidence_of(self.X)
        own = self.dense[0, self.players]
        if is_sparse(self.X) and not self.usual.any():
            rows, columns = np.nonzero(masks)
            cells = own[columns], (rows, self.players[columns])
            shape = len(masks), self.dense.shape[1]
            return self._evidence_of(sparse.csr_array(cells, shape=shape))
        rows = np.repeat(self.dense, len(masks), axis=0)
        usual = self.usual[self.players].astype(rows.dtype)
        rows[:, self.players] = np.where(masks, own, usual)
        return self._evidence_of(rows)

    def _evidence_of(self, X: Any) -> Array:
        codes = None if self.code is None else np.repeat(self.code, X.shape[0])
        logs = self.fitted._log_evidence(X, codes) + self.log_part
        whole = logsumexp(logs[:, :, None], b=self.member, axis=1)
        return np.asarray(whole - self.log_share)


def shapley(
    game: Game, n_players: int, rng: np.random.Generator
) -> tuple[Array, Array, float]:
    """What each player adds, in the mean over orders, with its error; and without any.

    Of few players over all orders; of more over orders and their reverses, drawn at
    random. Either way all of it adds up to the value of all players together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shares, _, base = shapley(lambda masks: 1 + masks @ [2.0, -1.0], 2, rng)
    >>> shares, base
    (array([ 2., -1.]), 1.0)
    """
    base = float(game(np.zeros((1, n_players), dtype=bool))[0])
    if not n_players:
        return np.zeros(0), np.zeros(0), base
    if n_players <= NUMBERS.exact_columns:
        return _over_all_orders(game, n_players), np.zeros(n_players), base
    most = NUMBERS.cells // (2 * n_players**2)
    n_pairs = int(np.clip(most, 2, NUMBERS.pairs))
    drawn = np.empty((n_pairs, n_players))
    for pair in range(n_pairs):
        order = rng.permutation(n_players)
        drawn[pair] = (_steps(game, order) + _steps(game, order[::-1])) / 2
    error = drawn.std(axis=0, ddof=1) / math.sqrt(n_pairs)
    return drawn.mean(axis=0), error, base


def _over_all_orders(game: Game, n_players: int) -> Array:
    """By what a player adds to each set of others, weighted by how often it comes."""
    numbers = np.arange(2**n_players)
    masks = (numbers[:, None] >> np.arange(n_players)) & 1 == 1
    values, size = game(masks), masks.sum(axis=1)
    often = [1 / (n_players * math.comb(n_players - 1, s)) for s in range(n_players)]
    result = np.empty(n_players)
    for player in range(n_players):
        without = numbers[~masks[:, player]]
        added = values[without | 1 << player] - values[without]
        result[player] = added @ np.array(often)[size[without]]
    return result


def _steps(game: Game, order: Array) -> Array:
    """What each player adds to those before it in an order."""
    rank = np.argsort(order)
    values = game(rank < np.arange(len(order) + 1)[:, None])
    result = np.empty(len(order))
    result[order] = np.diff(values)
    return result


def _one_row(x: Any) -> Any:
    """A single row as a table of one."""
    if hasattr(x, "to_frame") and getattr(x, "ndim", 0) == 1:  # a pandas Series
        return x.to_frame().T.infer_objects()
    shape = np.shape(x)
    if len(shape) != 1:
        return x
    return x.reshape(1, -1) if isinstance(x, np.ndarray) else [list(x)]
