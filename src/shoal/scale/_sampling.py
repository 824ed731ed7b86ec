"""How many rows each domain has, exactly, and a stated sample of them.

Every row has a number that its file, its place in it and the seed decide. Of each
domain, the rows with the smallest numbers are the sample: it depends neither on the
engine nor on the parts, and a row can tell by itself whether it is in it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import digest_json, require_columns
from shoal.io._options import SourceOptions
from shoal.io._read import read
from shoal.io._settings import READING
from shoal.io.table._cells import words
from shoal.io.table._domains import DomainRule, ask_for_domain, learn_domains
from shoal.io.table._table import Column, Message, Table
from shoal.scale._exact import RowReader, chance_of, domain_codes
from shoal.scale._parts import Part
from shoal.scale._running import (
    Result,
    Running,
    Task,
    Where,
    begin,
    pack_frame,
    unpack_frames,
)
from shoal.scale._settings import SETTINGS
from shoal.validation import check_whole
from shoal.validation._rows import even_quota

Array = np.ndarray[Any, Any]

EVERY = np.uint64(2**64 - 1)


def draw(
    data: Any,
    n_rows: int = SETTINGS.sample,
    *,
    domain: str,
    **options: Any,
) -> Table:
    """The sample that :func:`shoal.scale.fit` would learn from.

    Parameters
    ----------
    data, domain, **options
        As in :func:`shoal.scale.fit`.
    n_rows : int, default=200000
        Spread as evenly over the domains as they allow.

    Returns
    -------
    Table
        As of :func:`shoal.io.read`; ``ids`` are the numbers of the rows in the data
        set, from 1, unless ``id`` names a column.
    """
    check_whole(2, n_rows=n_rows)
    where, reading = Where.split(options)
    with begin(data, where) as running:
        return draw_table(
            running, n_rows, SourceOptions(domain=domain, **reading)
        ).table


@dataclass(frozen=True, eq=False)
class Domains:
    """Where rows come from, counted over all of them.

    Attributes
    ----------
    rule : DomainRule
    missing : tuple of str
        Text that means "no value".
    names : ndarray of shape (n_domains,)
    sizes : ndarray of shape (n_domains,)
    messages : list of Message
    """

    rule: DomainRule
    missing: tuple[str, ...]
    names: Array
    sizes: Array
    messages: list[Message] = field(compare=False)

    def codes(self, frame: pd.DataFrame) -> Array:
        """Place of the domain of each row among the names, -1 where it has none."""
        series = frame[self.rule.column]
        return domain_codes(series, self.rule, self.missing, self.names.tolist())


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample, and how to tell its rows from the others.

    Attributes
    ----------
    table : Table
    domains : Domains
    cut : ndarray of shape (n_domains,)
        Rows whose number is at most this are in the sample.
    rows : RowReader
        How to read all rows as the sample was read.
    """

    table: Table
    domains: Domains
    cut: Array
    rows: RowReader

    @property
    def is_everything(self) -> bool:
        """Whether no row is left out."""
        return len(self.table.X) == int(self.domains.sizes.sum())


# ---- counting ------------------------------------------------------------------------


@dataclass(frozen=True)
class CountDomains(Task):
    """Rows of each value of a column."""

    column: str
    missing: tuple[str, ...]

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """Words and how many rows have them."""
        total: Counter[str | None] = Counter()
        for frame in part.frames([self.column]):
            place, cells = pd.factorize(frame[self.column], use_na_sentinel=True)
            sizes = np.bincount(place + 1, minlength=len(cells) + 1).tolist()
            total[None] += sizes[0]
            for word, size in zip(
                words(pd.Series(cells), self.missing), sizes[1:], strict=True
            ):
                total[word] += size
            _refuse_many(len(total), self.column)
        found = pd.DataFrame({"word": list(total), "rows": list(total.values())})
        return {"frame": pack_frame(found.astype({"word": object}))}


def count_domains(
    running: Running, options: SourceOptions, rule: DomainRule | None = None
) -> Domains:
    """Rows of every domain, by a rule from cells to domains; it is learned if None."""
    column = _domain_column(running, options)
    task = CountDomains(column, options.missing)
    packed = [one["frame"] for one in running.run("count domains", task)]
    counted = unpack_frames(packed).groupby("word", dropna=False)["rows"].sum()
    _refuse_many(len(counted), column)
    empty = int(counted[counted.index.isna()].sum())
    counted = counted[counted.index.notna()]
    messages = _without_domain(empty, column, options)
    if counted.empty:
        raise InputError("E115", "no row has a domain", "choose another column")
    if rule is None:
        # so few of each that they fit into memory, so many that thin ones are known
        few = np.repeat(
            counted.index.to_numpy(dtype=object), counted.clip(upper=READING.thin)
        )
        shown = pd.Series(few, name=column)
        if pd.api.types.is_bool_dtype(running.data.first_frame()[column].dtype):
            shown = (shown == "True").rename(column)
        _, _, rule, more = learn_domains(shown, options)
        messages += more
    cells = pd.Series(counted.index.to_numpy(dtype=object), name=column)
    domains, _ = rule.apply(cells, options.missing)
    names, codes = np.unique(domains, return_inverse=True)
    sizes = np.bincount(codes, weights=counted.to_numpy()).astype(np.int64)
    return Domains(rule, options.missing, names, sizes, messages)


def _refuse_many(n_values: int, column: str) -> None:
    most = SETTINGS.most_domains
    if n_values > most:
        raise InputError(
            "E109",
            f'"{column}" has more than {most:,} values',
            "group it first, or choose another column",
        )


def _domain_column(running: Running, options: SourceOptions) -> str:
    known = list(running.data.columns)
    if not isinstance(options.domain, str):
        raise ask_for_domain(running.data.first_frame(), matrix=False)
    require_columns([options.domain], known, "domain")
    for name in ("text", "domain_file", "domain_bins", "layer", "use_rep"):
        if getattr(options, name) is not None:
            raise InputError(
                "E002", f"{name} is not for data read in parts", "leave it out"
            )
    if options.counts or options.impute in ("drop", "keep"):
        name = "counts" if options.counts else f'impute="{options.impute}"'
        raise InputError(
            "E002", f"{name} is not for data read in parts", "use --engine memory"
        )
    return options.domain


def _without_domain(count: int, column: str, options: SourceOptions) -> list[Message]:
    if not count:
        return []
    text = f'{count:,} rows have no domain in "{column}"'
    if not options.drop_missing_domain:
        raise InputError("E115", text, "--drop-missing-domain, or fill them")
    return [Message("W144", f"{text}; left out", "fill them in to keep them")]


# ---- drawing -------------------------------------------------------------------------


@dataclass(frozen=True)
class DrawRows(Task):
    """Rows whose number is small enough.

    ``limits`` has an entry for each of the domains; without domains, one for all rows.
    """

    columns: tuple[str, ...]
    domains: Domains | None
    limits: Array
    seed: int

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """The rows, their numbers and their places in the data set."""
        frames, chances = [], []
        for frame in part.frames(self.columns):
            chance = chance_of(part, frame.index, self.seed)
            codes = _codes(frame, self.domains)
            keep = (chance <= self.limits[codes]) & (codes >= 0)
            frames.append(frame[keep])
            chances.append(chance[keep])
        kept = pd.concat(frames)
        rows = kept.index.to_numpy(dtype=np.int64)
        chance = np.concatenate(chances)
        return {"frame": pack_frame(kept), "chance": chance, "row": rows}


def draw_rows(
    running: Running,
    columns: Sequence[str],
    n_rows: int,
    seed: int,
    domains: Domains | None = None,
) -> tuple[pd.DataFrame, Array]:
    """Rows of a sample by their place in the data set, and what limits each domain."""
    sizes = np.array([running.data.n_rows]) if domains is None else domains.sizes
    if n_rows < len(sizes):
        raise InputError(
            "E002",
            f"a sample of {n_rows} rows cannot hold rows of all {len(sizes)} domains",
            "raise it",
        )
    quota = even_quota(sizes, n_rows)
    task = DrawRows(tuple(columns), domains, _limits(sizes, quota), seed)
    results = list(running.run("draw a sample", task))
    frame = unpack_frames([one["frame"] for one in results])
    frame.index = pd.Index(np.concatenate([one["row"] for one in results]))
    chance = np.concatenate([one["chance"] for one in results])
    codes = _codes(frame, domains)
    cut = np.full(len(sizes), EVERY)
    order = np.lexsort([chance, codes])
    rank = np.arange(len(order)) - np.searchsorted(codes[order], codes[order])
    chosen = order[rank < quota[codes[order]]]
    for code in np.flatnonzero(quota < sizes):
        cut[code] = chance[chosen][codes[chosen] == code].max(initial=np.uint64(0))
    return frame.iloc[np.sort(chosen)], cut


def _codes(frame: pd.DataFrame, domains: Domains | None) -> Array:
    if domains is None:
        return np.zeros(len(frame), dtype=np.intp)
    return domains.codes(frame)


def _limits(sizes: Array, quota: Array) -> Array:
    """Numbers below which a domain surely has its quota of rows."""
    share, sigmas = quota / np.maximum(sizes, 1), SETTINGS.spare
    spare = sigmas * np.sqrt(share * (1 - share) / sizes) + sigmas**2 / sizes
    scaled = np.minimum(share + spare, 1 - 2**-53) * 2.0**64
    return np.where(share + spare < 1, scaled.astype(np.uint64), EVERY)


def draw_table(running: Running, n_rows: int, options: SourceOptions) -> Drawn:
    """A sample, its columns understood as :func:`shoal.io.read` does."""
    columns = _columns(running, options)
    domains = count_domains(running, options)
    rule, column = domains.rule, str(options.domain)
    frame, cut = draw_rows(running, columns, n_rows, options.seed, domains)
    numbers = frame.index.to_numpy()
    told = domains.names[domains.codes(frame)]
    table = read(
        frame.reset_index(drop=True).assign(**{column: told}),
        **{name: getattr(options, name) for name in
           ("id", "label", "group", "features", "na", "na_only", "decimal", "seed")},
        domain=column,
        impute=options.impute or "stop",  # a sample says little of the gaps elsewhere
    )  # fmt: skip
    own = [one for one in table.messages if one.code not in ("W111", "W144")]
    schema = replace(table.schema, domain=rule)
    table = replace(
        table,
        schema=schema,
        ids=numbers + 1 if options.id is None else table.ids,
        frame=table.frame.set_axis(numbers),
        messages=[*domains.messages, *own],
        columns=[
            *table.columns,
            *(Column(name, "set aside", "dropped") for name in options.drop),
        ],
        source={
            "path": running.data.source,
            "rows": int(domains.sizes.sum()),
            "sampled": len(numbers),
            "bytes": running.data.n_bytes,
            "fingerprint": digest_json({"files": running.data.files})[:16],
        },
    )
    rows = RowReader(schema, domains.names, options.seed, options.drop_missing_domain)
    return Drawn(table, domains, cut, rows)


def _columns(running: Running, options: SourceOptions) -> list[str]:
    """What has to be read: all columns, unless they are named."""
    known = list(running.data.columns)
    for option in ("features", "drop", "id", "label", "group"):
        given = getattr(options, option) or ()
        names = [given] if isinstance(given, str) else given
        require_columns(names, known, option)
    if options.features is None:
        return [name for name in known if name not in options.drop]
    named = (options.domain, options.id, options.label, options.group)
    wanted = {*options.features, *named}
    return [name for name in known if name in wanted]
