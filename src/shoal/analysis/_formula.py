"""Formulas such as ``~ treatment + age | patient``, and the columns they stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.exceptions import InputError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ComparisonNumbers:
    """What decides; see the comments for why."""

    # Half a row is added to a class and to all others before odds are taken: the
    # logarithm of a count of zero is then finite, and least biased (Haldane, Anscombe).
    added: float = 0.5
    # Shuffles of the residuals: p-values in steps of 1/2000.
    permutations: int = 1999
    # More distinct values of a column of text are names of rows, not a category.
    most_levels: int = 20
    # Where fewer than one over this many arrangements differ, shuffles say nothing.
    useful_p: float = 0.05
    # A column that the others leave less of than this share of it is one of them.
    collinear: float = 1e-8
    # What a statistic may fall short of the one seen, relative to it, and be as large.
    same_statistic: float = 1e-9


NUMBERS = ComparisonNumbers()


NAME = r"""`[^`]+`|"[^"]+"|'[^']+'|[^\s+|~()*:,`"']+"""
TERM = re.compile(rf"C\(\s*({NAME})\s*(?:,\s*({NAME})\s*)?\)|({NAME})")
# What follows a sign that stands outside of quotes.
OUTSIDE = r"""(?=(?:[^`"']|`[^`]*`|"[^"]*"|'[^']*')*$)"""
GRAMMAR = 'write it as "~ treatment + age", with "| patient" for pairs'


def refused(text: str, hint: str = GRAMMAR) -> InputError:
    """The error of a formula, or of the table that it is about."""
    return InputError("E170", text, hint)


@dataclass(frozen=True)
class Term:
    """One covariate: numbers as they are, or levels against a reference."""

    name: str
    is_category: bool = False
    reference: str | None = None


@dataclass(frozen=True)
class Formula:
    """The covariates, and the column that says which domains belong together."""

    terms: tuple[Term, ...]
    pairs: str | None = None

    @property
    def names(self) -> list[str]:
        """Of all columns that it needs."""
        paired = [] if self.pairs is None else [self.pairs]
        return [*(one.name for one in self.terms), *paired]


def parse_formula(text: str) -> Formula:
    """Read a formula.

    Parameters
    ----------
    text : str
        Covariates joined by ``+`` after ``~``. ``C(x)`` takes numbers as categories,
        ``C(x, level)`` says which level the others are compared with; quotes or
        backticks protect a name with spaces. ``| pair`` says which domains belong
        together.

    Examples
    --------
    >>> parse_formula("~ C(drug, none) + age | patient").names
    ['drug', 'age', 'patient']
    """
    sides = re.split("~" + OUTSIDE, text) if isinstance(text, str) else []
    if len(sides) != 2:
        raise refused(f"formula must have one ~, got {text!r}")
    before, after = sides
    if before.strip():
        raise refused(
            f"formula has {before.strip()!r} before ~; the mix is always on that side"
        )
    covariates, *pairs = re.split(r"\|" + OUTSIDE, after)
    terms = tuple(_term(one, text) for one in re.split(r"\+" + OUTSIDE, covariates))
    if pairs and not re.fullmatch(NAME, "|".join(pairs).strip()):
        raise refused(f"formula {text!r} needs one column after |")
    formula = Formula(terms, _bare(pairs[0]) if pairs else None)
    twice = [one for one in formula.names if formula.names.count(one) > 1]
    if twice:
        raise refused(f"formula {text!r} has {twice[0]!r} twice")
    return formula


def _term(part: str, text: str) -> Term:
    found = TERM.fullmatch(part.strip())
    if found is None:
        what = part.strip() or "nothing"
        raise refused(f"formula {text!r} has {what!r} where a column should be")
    category, reference, plain = found.groups()
    if category is None:
        if re.fullmatch(r"-?\d+", plain):
            raise refused(
                f"formula {text!r} has the number {plain}; an intercept is always there"
            )
        return Term(_bare(plain))
    return Term(_bare(category), True, None if reference is None else _bare(reference))


def _bare(name: str) -> str:
    name = name.strip()
    return name[1:-1] if name[:1] in "`\"'" else name


# ---- the columns of a design ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Effect:
    """One column of the design: a number, or a level against the reference."""

    term: str
    name: str
    column: Array


@dataclass(frozen=True, eq=False)
class Design:
    """What mixes are explained by.

    Attributes
    ----------
    effects : list of Effect
        Those that are asked about.
    nuisance : ndarray of shape (n_domains, n_nuisance)
        The intercept, or one column for each pair.
    blocks : ndarray of shape (n_domains,)
        Number of the pair of each domain; zero for all without pairs.
    """

    effects: list[Effect]
    nuisance: Array
    blocks: Array

    @property
    def columns(self) -> Array:
        """All of them, (n_domains, n_effects)."""
        return np.column_stack([one.column for one in self.effects])


def make_design(
    formula: Formula, table: Mapping[str, Any], domains: list[str]
) -> Design:
    """Columns of numbers for a formula; E170 where these cannot answer it.

    ``table`` holds columns with one entry per domain, in the order of ``domains``.
    """
    for name in formula.names:
        if name not in table:
            known = ", ".join(map(str, table))
            raise refused(
                f'the table of domains has no column "{name}"', f"it has {known}"
            )
        _refuse_gaps(name, np.asarray(table[name], dtype=object), domains)
    effects = [
        one for term in formula.terms for one in _effects(term, table[term.name])
    ]
    blocks = np.zeros(len(domains), dtype=int)
    if formula.pairs is not None:
        blocks = np.unique(_texts(table[formula.pairs]), return_inverse=True)[1]
        if np.bincount(blocks).max() == 1:
            text = (
                f'"{formula.pairs}" pairs nothing: each of its values is of one domain'
            )
            raise refused(text, "leave it out after |, or name the column of the pairs")
    nuisance = np.eye(blocks.max() + 1)[blocks]
    design = Design(effects, nuisance, blocks)
    _refuse_collinear(design, formula.pairs)
    return design


def _texts(values: Any) -> Array:
    return np.array([str(value) for value in np.asarray(values, dtype=object)])


def _refuse_gaps(name: str, values: Array, domains: list[str]) -> None:
    import pandas as pd

    empty = [bool(pd.isna(value)) or value == "" for value in values]
    if any(empty):
        first = domains[empty.index(True)]
        text = f'"{name}" has no value for {sum(empty)} domains, such as "{first}"'
        raise refused(text, "fill it in, or leave it out of the formula")


def _effects(term: Term, values: Any) -> list[Effect]:
    numbers = None if term.is_category else _numbers(values)
    if numbers is not None:
        if np.ptp(numbers) == 0:
            raise refused(
                f'"{term.name}" is {numbers[0]:g} in every domain', "leave it out"
            )
        return [Effect(term.name, term.name, numbers)]
    texts = _texts(values)
    levels = sorted(set(texts))
    if not 2 <= len(levels) <= NUMBERS.most_levels:
        text = f'"{term.name}" has {len(levels)} distinct values, and is no number'
        raise refused(text, f"a category has 2 to {NUMBERS.most_levels}; leave it out")
    reference = levels[0] if term.reference is None else term.reference
    if reference not in levels:
        text = f'"{term.name}" has no level "{reference}"'
        raise refused(text, f"it has {', '.join(levels)}")
    levels.remove(reference)
    return [
        Effect(term.name, f"{term.name}: {one} vs {reference}", (texts == one) * 1.0)
        for one in levels
    ]


def _numbers(values: Any) -> Array | None:
    """The values as numbers; None where they are none (truths are categories)."""
    values = np.asarray(values)
    if values.dtype == bool or any(isinstance(one, bool) for one in values.tolist()):
        return None
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        return None
    if not np.isfinite(numbers).all():
        raise refused(
            "a covariate holds an infinite number", "fill in what was measured"
        )
    return np.asarray(numbers)


def _refuse_collinear(design: Design, pairs: str | None) -> None:
    """Raise where a column says no more than those before it, or no freedom is left."""
    known = design.nuisance
    for one in design.effects:
        fitted = known @ np.linalg.lstsq(known, one.column, rcond=None)[0]
        rest = ((one.column - fitted) ** 2).sum()
        centred = one.column - one.column.mean()
        if rest <= NUMBERS.collinear * (centred**2).sum():
            other = f'the pairs of "{pairs}"' if pairs else "the other covariates"
            text = f'"{one.name}" cannot be told from {other}'
            raise refused(text, "leave one of them out")
        known = np.column_stack([known, one.column])
    if known.shape[0] - known.shape[1] < 1:
        text = f"{known.shape[0]} domains cannot tell {known.shape[1]} coefficients"
        raise refused(text, "use fewer covariates, or more domains")
