"""Which columns are features, and what kind of feature each one is.

The rules, in order: a column that was dropped, is empty or never varies is set aside;
one whose name says that it is the answer stops the reading (E120); numbers are used as
they are, unless they only number the rows; dates are set aside; text with few distinct
values becomes one column per value; text that differs in every row is an id; running
text stops the reading (E116); text with too many distinct values is set aside.
"""

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join, n_of, quoted, require_columns
from shoal.io._notation import Notation, has_commas
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.table._cells import (
    Mixed,
    check_flat,
    comma_decimals,
    is_mixed,
    is_number,
    is_spelled,
    is_text,
    looks_like_dates,
    not_a_number,
    numbers,
    row_number,
    short,
    spelled,
    whole,
    words,
    words_among_numbers,
)
from shoal.io.table._table import Column, Message

Array = np.ndarray[Any, Any]


LABEL_NAMES = frozenset(
    "label labels class classes target targets y species diagnosis truth groundtruth "
    "celltype outcome gt answer".split()
)
LABEL_ENDINGS = ("_label", "_class", "_target", "_truth", "_species", "_diagnosis")
ID_NAME = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|key|index|rownames?|nr|no)$")
NO_NAME = re.compile(r"Unnamed: \d+|__index_level_\d+__")


@dataclass(frozen=True)
class Feature:
    """How one column becomes numbers.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date"}
    levels : tuple of str
        Of a category, sorted: one column of X each.
    fill : float, str or None
        What stands for a missing cell; None where none may be missing.
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def width(self) -> int:
        """Number of columns of X."""
        return len(self.levels) if self.kind == "category" else 1

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        if self.kind == "category":
            return [f"{self.name}={level}" for level in self.levels]
        return [self.name]

    def encode(
        self, series: pd.Series, written: Notation, messages: list[Message]
    ) -> Array:
        """Columns of X; NaN where a value is missing and nothing fills it.

        Warnings are appended to ``messages``.
        """
        if self.kind != "category":
            values, wrong = numbers(series, written)
            if wrong.any():
                raise not_a_number(self.name, series, wrong, written)
            return values[:, None]
        text = words(series, written.missing)
        empty = np.asarray(pd.isna(text))
        if self.fill is not None:
            text = np.where(empty, self.fill, text)
        levels = pd.Index(list(self.levels), dtype=object)
        codes = levels.get_indexer(pd.Index(text, dtype=object))
        table = (codes[:, None] == np.arange(len(self.levels))).astype(float)
        unseen = (codes < 0) & ~empty
        if unseen.any():
            first = text[int(np.argmax(unseen))]
            messages.append(
                Message(
                    "W143",
                    f'"{self.name}" has {n_of(int(unseen.sum()), "cell")} that fit '
                    f"has not seen (first: row {row_number(series, unseen)}, "
                    f'"{first}")',
                    "they count as none of the known values",
                )
            )
        if self.fill is None:
            table[empty] = np.nan
        return table


@dataclass
class Plan:
    """Roles of all columns, what is left as features, and what people should know."""

    known: list[str]
    columns: list[Column] = field(default_factory=list)
    features: list[Feature] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    gaps: dict[str, list[str]] = field(default_factory=dict)
    mixed: list[Mixed] = field(default_factory=list)

    def use(self, feature: Feature, reason: str) -> None:
        """Make a column a feature."""
        self.features.append(feature)
        self.columns.append(Column(feature.name, "feature", reason))

    def set_aside(self, name: str, reason: str, short: str) -> None:
        """Leave a column out; ``short`` counts it in the message of E114."""
        self.columns.append(Column(name, "set aside", reason))
        self.reasons[short] += 1

    def warn(self, code: str, text: str, hint: str) -> None:
        """Keep a coded warning."""
        self.messages.append(Message(code, text, hint))


# Numbers that stand for "no value" in many tables.
STAND_INS = (-9, -99, -999, -9999, -99999, 999, 9999, 99999)
#: What is said of columns that are not features because they were named.
GIVEN = {
    "domain": "where a row is from",
    "id": "names the rows",
    "label": "held aside, to score",
    "known": "classes known of some rows",
    "group": "groups the domains",
    "order": "says when a row is from",
}


def plan_columns(
    frame: pd.DataFrame, options: SourceOptions, roles: dict[str, str]
) -> Plan:
    """Look at every column and decide.

    Parameters
    ----------
    frame : pandas.DataFrame
    options : SourceOptions
    roles : dict of str to str
        Columns that are not features, and what they are instead.
    """
    known = [str(name) for name in frame.columns]
    require_columns(options.features or (), known, "features")
    require_columns(options.drop, known, "drop")
    plan = Plan(known)
    dropped = set(options.drop)
    asked = set(known if options.features is None else options.features)
    for name in known:
        if name in roles:
            plan.columns.append(Column(name, roles[name], GIVEN[roles[name]]))
        elif name in dropped:
            plan.set_aside(name, "dropped", "dropped")
        elif name not in asked:
            plan.set_aside(name, "not among the features asked for", "not asked for")
        else:
            series = frame[name]
            check_flat(name, series)
            _decide(plan, name, series, options)
    if plan.mixed:
        raise words_among_numbers(plan.mixed, options.impute)
    if not plan.features:
        raise _nothing_left(plan)
    _tell_gaps(plan)
    return plan


def looks_like_label(name: str, n_values: int, n_rows: int, known: list[str]) -> bool:
    """Whether a column is, by its name, the answer that shoal is to find.

    Only columns with few, repeated values can be: a coordinate called y is none.
    """
    repeated = 2 <= n_values <= min(READING.max_labels, n_rows // 2)
    return repeated and is_label_name(name, known)


def is_label_name(name: str, known: list[str]) -> bool:
    """Whether a name is one that answers have; y is none beside an x."""
    plain = name.casefold().strip()
    if plain == "y" and "x" in (other.casefold() for other in known):
        return False
    return re.sub(r"[ _.-]", "", plain) in LABEL_NAMES or plain.endswith(LABEL_ENDINGS)


def _decide(plan: Plan, name: str, series: pd.Series, options: SourceOptions) -> None:
    """The rules of the module's first lines, for one column."""
    asked = options.features is not None
    if is_number(series) or pd.api.types.is_datetime64_any_dtype(series.dtype):
        _decide_numbers(plan, name, series, options, asked)
        return
    text = words(series, options.missing)
    present = text[text != None]  # noqa: E711  (element by element)
    if not len(present):
        plan.set_aside(name, "empty", "empty")
        return
    written = options.notation
    _, wrong = numbers(series, written)
    is_gap = np.isin(present.astype(str), written.gaps)
    found = present[~is_gap]  # what is a number, if the column is one
    if wrong.sum() == 0 and len(found):
        plan.gaps[name] = sorted(set(present[is_gap]))
        _decide_numbers(plan, name, series, options, asked)
    elif len(found) and is_spelled(text, found, wrong):
        raise spelled(name, series, text, wrong, comma_decimals(found))
    elif len(found) and is_mixed(found, text[wrong]):
        plan.mixed.append(Mixed(name, series, text, wrong))
    else:
        _decide_text(plan, name, series, present, asked)


def decimal_of(frame: pd.DataFrame, options: SourceOptions) -> str:
    """The decimal sign of the columns of text that hold numbers: "," where one does."""
    names = options.text_columns
    if options.domain_bins is not None:
        names = names - {options.domain}
    left = [name for name in frame.columns if name not in names]
    for name in left:
        if is_text(frame[name]) and _holds_commas(frame[name], options):
            return ","
    return "."


def _holds_commas(series: pd.Series, options: SourceOptions) -> bool:
    # lists do not hash, and are refused later
    values = list(dict.fromkeys(one.strip() for one in series if isinstance(one, str)))
    cells = values[:: max(len(values) // READING.look_rows, 1)]
    empty = options.notation.empty
    return has_commas([one for one in cells if one not in empty], few=False)


def _decide_numbers(
    plan: Plan, name: str, series: pd.Series, options: SourceOptions, asked: bool
) -> None:
    values, _ = numbers(series, options.notation)
    present = values[~np.isnan(values)]
    dates = pd.api.types.is_datetime64_any_dtype(series.dtype)
    if not len(present):
        plan.set_aside(name, "empty", "empty")
    elif present.min() == present.max():
        plan.set_aside(name, "the same in every row", "constant")
    elif not asked and _is_label(name, present, plan.known):
        raise _looks_like_answer(name)
    elif not asked and dates:
        _set_aside_dates(plan, name)
    elif not asked and _numbers_rows(name, present):
        _set_aside_id(plan, name, ", or --features to insist")
    else:
        plan.use(Feature(name, "date" if dates else "number"), "number")
        _warn_stand_in(plan, name, present)


def _warn_stand_in(plan: Plan, name: str, present: Array) -> None:
    """W148 for a number such as -999 that lies far from all others of its column."""
    for value in STAND_INS:
        same = present == value
        rest = present[~same]
        if same.sum() < 2 or len(rest) < 10:
            continue
        low, high = float(rest.min()), float(rest.max())
        if max(low - value, value - high) > READING.stand_in_away * (high - low):
            plan.warn(
                "W148",
                f'"{name}" is {value:g} in {int(same.sum()):,} rows and {low:.4g} to '
                f"{high:.4g} in all others",
                f"--na {value:g} if that means missing",
            )
            return


def _decide_text(
    plan: Plan, name: str, series: pd.Series, present: Array, asked: bool
) -> None:
    levels = pd.unique(present)
    n_rows, n_levels = len(present), len(levels)
    n_words = np.mean([1 + cell.count(" ") for cell in present[:1000]])
    most = READING.max_levels_asked if asked else READING.max_levels
    if n_levels == 1:
        plan.set_aside(name, "the same in every row", "constant")
    elif not asked and looks_like_label(name, n_levels, n_rows, plan.known):
        raise _looks_like_answer(name)
    elif not asked and looks_like_dates(levels):
        _set_aside_dates(plan, name)
    elif n_levels <= min(most, max(n_rows // 2, 2)):
        feature = Feature(name, "category", tuple(sorted(levels)))
        plan.use(feature, f"{n_levels} values, one column each")
    elif n_levels >= 0.95 * n_rows and n_words < READING.words_of_text:
        _set_aside_id(plan, name)
    elif n_words >= READING.words_of_text:
        raise InputError(
            "E116",
            f'column "{name}" holds free text (row {int(series.index[0]) + 1}: '
            f'"{short(present[0])}")',
            f"--text {shlex.quote(name)} or --drop {quoted(name)}",
        )
    else:
        plan.set_aside(name, f"text with {n_levels} values", "text")
        plan.warn(
            "W117",
            f'"{name}" has {n_levels:,} different values, more than {most}; not used',
            f"group them, --text {shlex.quote(name)}, or --drop {quoted(name)} for "
            "quiet",
        )


def _is_label(name: str, present: Array, known: list[str]) -> bool:
    # The name first: counting the values of every column would take long.
    if not is_label_name(name, known) or not whole(present):
        return False
    return looks_like_label(name, len(np.unique(present)), len(present), known)


def _numbers_rows(name: str, present: Array) -> bool:
    """Whole numbers, all different, that run on or are called an id."""
    if len(present) < 10 or not whole(present):
        return False
    steps = np.diff(present)
    # Rows that were left out leave gaps in their numbers; wider ones are those of a
    # measurement that the table is sorted by.
    few_left_out = len(steps) >= 30 and steps.sum() <= READING.max_gap * len(steps)
    if few_left_out and (steps > 0).all():
        return True
    # Without gaps, the order of the rows does not matter: a table may be shuffled. The
    # span is looked at first, as counting the values of every column would take long.
    low, high = present.min(), present.max()
    counts_rows = low >= 0 and high - low == len(present) - 1
    called = bool(ID_NAME.search(name.casefold()) or NO_NAME.fullmatch(name))
    return bool(counts_rows or called) and len(np.unique(present)) == len(present)


def _set_aside_id(plan: Plan, name: str, or_else: str = "") -> None:
    plan.set_aside(name, "different in every row", "ids")
    if not NO_NAME.fullmatch(name):  # row numbers without a name surprise nobody
        plan.warn(
            "W117",
            f'"{name}" is different in every row; not used',
            f"--id {shlex.quote(name)} makes this quiet{or_else}",
        )


def _set_aside_dates(plan: Plan, name: str) -> None:
    plan.set_aside(name, "dates", "dates")
    plan.warn(
        "W117",
        f'"{name}" holds dates; not used',
        f"--drop {quoted(name)} makes this quiet; dates often name the domain",
    )


def _looks_like_answer(name: str) -> InputError:
    return InputError(
        "E120",
        f'column "{name}" looks like a label',
        f"--label {shlex.quote(name)} to hold it aside, or --features to insist",
    )


def _tell_gaps(plan: Plan) -> None:
    """W148 names every word that was taken for a gap among numbers, once."""
    columns = [name for name, found in plan.gaps.items() if found]
    if not columns:
        return
    cells = sorted({f'"{cell}"' for found in plan.gaps.values() for cell in found})
    where = f'"{columns[0]}"' if len(columns) == 1 else f"{len(columns)} columns"
    plan.warn(
        "W148",
        f"{join(cells)} among the numbers of {where} "
        f"{'means' if len(cells) == 1 else 'mean'} missing",
        "--na-only if that is wrong, with --na for what does mean missing",
    )


def _nothing_left(plan: Plan) -> InputError:
    why = ", ".join(f"{count} {reason}" for reason, count in plan.reasons.items())
    total = sum(plan.reasons.values())
    text = f"all {total} columns were set aside ({why})" if total else (
        "there is no column beside the domain"
    )  # fmt: skip
    return InputError("E114", text, "`shoal check` lists why; use --text or --features")
