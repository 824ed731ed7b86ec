"""What differs between two fits: classes, their shares, rows that moved, columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._resample import match_by_rows, shrunken, stretched_quantile
from shoal.validation import check_domains

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class UpdateNumbers:
    """What decides; see the comments for why."""

    # A new class changes everything that is said later, and what is only probably there
    # can wait for more rows: the share of rows outside of all classes must be above
    # zero at this level, for all questions of one update together.
    sure: float = 0.99
    # Rows outside of all classes have to come together in one class: with fewer than
    # this, nobody could say what it looks like.
    least_rows: int = 20
    # Classes are still those that they were if so many rows of each stay in them.
    kept: float = 0.8
    # The new class is in the new rows: among those of the fit it is rarer by this.
    rarer: float = 3.0
    # A drift of the mix or of looks is said if chance would say it once in so many
    # updates, whatever the number of classes, columns and domains.
    doubt: float = 0.05
    # And if it is worth a word: standard deviations of the column.
    least_offset: float = 0.1
    # Two classes of two fits are one if they share so much: rows of both over the
    # geometric mean of their sizes.
    same_class: float = 0.5


NUMBERS = UpdateNumbers()


@dataclass(frozen=True, eq=False)
class Side:
    """One of two fits, and the class that it gives to the rows they share.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
    class_names : list of str
    domains : list
    prevalence : ndarray of shape (n_domains, n_classes)
    variance : ndarray of shape (n_domains, n_classes) or None
        Of the shares; None where nobody asked.
    n_rows : ndarray of shape (n_domains,)
    columns : list of str
    """

    labels: Array
    class_names: list[str]
    domains: list[Any]
    prevalence: Array
    variance: Array | None
    n_rows: Array
    columns: list[str]


class ClassPair(NamedTuple):
    """A class of the first fit and its counterpart in the second.

    Attributes
    ----------
    before, after : str or None
        Names; None where there is no counterpart.
    alike : float
        Rows of both over the geometric mean of their sizes: 1 for the same rows.
    """

    before: str | None
    after: str | None
    alike: float


class ShareChange(NamedTuple):
    """Share of a class in a domain: the second fit against the first.

    ``low`` and ``high`` are NaN where nobody knows how sure the shares are; ``sure``
    says whether the change is beyond doubt, for all of them together.
    """

    domain: Any
    before_class: str
    after_class: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    sure: bool


@dataclass(frozen=True, eq=False)
class RunDifference:
    """What differs between two fits.

    Attributes
    ----------
    pairs : list of ClassPair
        All classes of both.
    shares : list of ShareChange
        Of matched classes in domains that both know.
    moved : ndarray of shape (n_rows,), bool
        Rows that both know, and that are not in the counterpart of their class.
    domains_lost, domains_new, columns_lost, columns_new : list
    level : float
    """

    pairs: list[ClassPair]
    shares: list[ShareChange]
    moved: Array = field(repr=False)
    domains_lost: list[Any]
    domains_new: list[Any]
    columns_lost: list[str]
    columns_new: list[str]
    level: float

    @property
    def classes_lost(self) -> list[str]:
        """Classes of the first fit without a counterpart."""
        return [one.before for one in self.pairs if one.before and not one.after]

    @property
    def classes_new(self) -> list[str]:
        """Classes of the second fit without a counterpart."""
        return [one.after for one in self.pairs if one.after and not one.before]

    @property
    def renamed(self) -> list[tuple[str, str]]:
        """Matched classes that are called otherwise."""
        return [
            (one.before, one.after)
            for one in self.pairs
            if one.before and one.after and one.before != one.after
        ]

    @property
    def findings(self) -> list[str]:
        """What differs, in sentences; none where nothing does."""
        said = [f"Class {one} is lost." for one in self.classes_lost]
        said += [f"Class {one} is new." for one in self.classes_new]
        said += [f"Class {a} is called {b}." for a, b in self.renamed]
        if self.moved.any():
            n_moved, n_rows = int(self.moved.sum()), len(self.moved)
            said.append(
                f"{n_moved:,} of {n_rows:,} rows moved to another class "
                f"({n_moved / n_rows:.1%})."
            )
        said += [
            f"{one.domain}: the share of {one.after_class} changed from "
            f"{one.before:.1%} to {one.after:.1%} ({one.low:+.1%} to {one.high:+.1%})."
            for one in self.shares
            if one.sure
        ]
        for what, lost, new in (
            ("Domain", self.domains_lost, self.domains_new),
            ("Column", self.columns_lost, self.columns_new),
        ):
            said += [f"{what} {one} is lost." for one in lost]
            said += [f"{what} {one} is new." for one in new]
        return said

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per domain and matched class."""
        return [one._asdict() for one in self.shares]

    def to_frame(self) -> Any:
        """The same as a table."""
        import pandas as pd

        return pd.DataFrame(self.to_records(), columns=ShareChange._fields)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as JSON takes it."""
        shares = [
            {key: None if value != value else value for key, value in one.items()}
            for one in self.to_records()
        ]
        return {
            "classes": [one._asdict() for one in self.pairs],
            "renamed": [list(one) for one in self.renamed],
            "shares": [{**one, "domain": str(one["domain"])} for one in shares],
            "n_rows": len(self.moved),
            "n_moved": int(self.moved.sum()),
            "domains_lost": [str(one) for one in self.domains_lost],
            "domains_new": [str(one) for one in self.domains_new],
            "columns_lost": self.columns_lost,
            "columns_new": self.columns_new,
            "level": self.level,
            "findings": self.findings,
        }

    def __str__(self) -> str:
        return "\n".join(self.findings) or "Nothing differs."


def diff(
    first: Any,
    second: Any,
    X: Any,
    domains: Any,
    *,
    intervals: Sequence[Any] | None = None,
    level: float = 0.9,
) -> RunDifference:
    """Say what differs between two fitted models, by rows that both can class.

    Parameters
    ----------
    first, second : fitted LatentShiftEstimator
    X : array-like of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,)
        Rows of domains that only one of the two knows are left aside.
    intervals : pair of Intervals, default=None
        Of ``bootstrap`` of each; without them nobody knows how sure changes are.
    level : float, default=0.9
        Nominal coverage of the intervals of changes.

    Returns
    -------
    RunDifference

    Examples
    --------
    >>> import shoal
    >>> from shoal.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = shoal.DensityMixture(3, random_state=0)
    >>> model = model.fit(penguins.X, penguins.domains)
    >>> named = model.set_names({"c0": "Adelie"})
    >>> print(shoal.diff(model, named, penguins.X, penguins.domains))
    Class c0 is called Adelie.
    """
    for one in (first, second):
        check_is_fitted(one)
    codes, present = check_domains(domains, n_samples=np.shape(X)[0], least=1)
    known = [
        {*first.domains_.tolist()} & {*second.domains_.tolist()} & {name}
        for name in present.tolist()
    ]
    rows = np.flatnonzero(np.array([bool(one) for one in known])[codes])
    if not rows.size:
        raise ValueError("domains has no domain that both models know; pass such rows")
    chosen = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
    given = (None, None) if intervals is None else tuple(intervals)
    if len(given) != 2:
        raise ValueError(f"intervals must be two, one of each, got {len(given)}")
    sides = [
        _side(model, model.predict(chosen, present[codes[rows]]), own)
        for model, own in zip((first, second), given, strict=True)
    ]
    return compare_sides(*sides, level=level)


def _side(model: Any, labels: Array, intervals: Any) -> Side:
    n_domains = len(model.domains_)
    columns = getattr(model, "feature_names_in_", range(model.n_features_in_))
    known = intervals is not None
    return Side(
        labels=labels,
        class_names=[str(one) for one in model.class_names_],
        domains=model.domains_.tolist(),
        prevalence=model.prevalence_,
        variance=intervals.draws.var(axis=0, ddof=1) if known else None,
        n_rows=np.asarray(intervals.n_rows) if known else np.zeros(n_domains),
        columns=[str(one) for one in columns],
    )


def compare_sides(first: Side, second: Side, *, level: float = 0.9) -> RunDifference:
    """The difference, from what both say of the same rows."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    matched, alike = _match(first, second)
    pairs = [
        ClassPair(first.class_names[a], second.class_names[b], alike[a, b])
        for a, b in sorted(matched.items())
    ]
    lost = [one for y, one in enumerate(first.class_names) if y not in matched]
    gone = set(matched.values())
    new = [one for y, one in enumerate(second.class_names) if y not in gone]
    pairs += [ClassPair(one, None, 0.0) for one in lost]
    pairs += [ClassPair(None, one, 0.0) for one in new]
    counterpart = np.array(
        [matched.get(y, -1) for y in range(len(first.class_names))], dtype=int
    )
    return RunDifference(
        pairs=pairs,
        shares=_shares(first, second, matched, level),
        moved=counterpart[first.labels] != second.labels,
        domains_lost=[one for one in first.domains if one not in second.domains],
        domains_new=[one for one in second.domains if one not in first.domains],
        columns_lost=[one for one in first.columns if one not in second.columns],
        columns_new=[one for one in second.columns if one not in first.columns],
        level=level,
    )


def _match(first: Side, second: Side) -> tuple[dict[int, int], Array]:
    """Classes paired one to one, where they share most of their rows; and how much."""
    sizes = len(first.class_names), len(second.class_names)
    shared = np.zeros(sizes)
    np.add.at(shared, (first.labels, second.labels), 1)
    both = np.sqrt(np.outer(shared.sum(axis=1), shared.sum(axis=0)))
    alike = np.divide(shared, both, out=np.zeros_like(shared), where=both > 0)
    renamed = match_by_rows(first.labels, second.labels, max(sizes))
    matched = {int(a): b for b, a in enumerate(renamed[: sizes[1]]) if a < sizes[0]}
    same = {a: b for a, b in matched.items() if alike[a, b] >= NUMBERS.same_class}
    return same, alike


def _shares(
    first: Side, second: Side, matched: dict[int, int], level: float
) -> list[ShareChange]:
    common = [one for one in first.domains if one in second.domains]
    doubt = norm.ppf(1 - NUMBERS.doubt / (2 * max(len(common) * len(matched), 1)))
    found = []
    for domain in common:
        d, e = first.domains.index(domain), second.domains.index(domain)
        for a, b in sorted(matched.items()):
            was, now = float(first.prevalence[d, a]), float(second.prevalence[e, b])
            error = np.sqrt(_variance(first, d, a) + _variance(second, e, b))
            reach, moved = float(stretched_quantile(level) * error), now - was
            found.append(
                ShareChange(
                    domain,
                    first.class_names[a],
                    second.class_names[b],
                    was,
                    now,
                    moved,
                    moved - reach,
                    moved + reach,
                    bool(abs(moved) > doubt * error),
                )
            )
    return found


def _variance(side: Side, domain: int, index: int) -> float:
    """Of a share, no less than that of counting rows; NaN where nobody asked."""
    if side.variance is None:
        return float("nan")
    known, n_rows = side.variance[domain, index], max(side.n_rows[domain], 1)
    return float(shrunken(side.prevalence[domain, index], known, n_rows)[1])
