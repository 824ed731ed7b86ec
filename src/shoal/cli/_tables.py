"""Tables that commands print and write."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import _runs
from shoal.cli._messages import write_json
from shoal.cli._options import NUMBERS
from shoal.cli._output import Output
from shoal.cli._reading import row_numbers
from shoal.io._notation import visible, write_rows

if TYPE_CHECKING:
    from shoal.cli._fit import Fitted


# ---- tables --------------------------------------------------------------------------

Record = Mapping[str, Any]

#: Shape and word, never colour alone.
MARKS = {"ok": ("✓ ok", "green"), "caution": ("! caution", "yellow"),
         "fail": ("✗ fail", "red")}  # fmt: skip

#: Shape and word, never colour alone.
VERDICTS = {
    "clear": "✓ clear (no sign of a problem found)",
    "caution": "! use with caution (see the warnings)",
    "do not use": "✗ do not use (see the warnings)",
}


def percent(share: float) -> str:
    """A share as tables show it."""
    return f"{100 * share:.1f}%"


def share_with_interval(record: Record) -> str:
    """A prevalence and its interval as tables show them."""
    low, high = 100 * record["lo"], 100 * record["hi"]
    return f"{percent(record['estimate'])} ({low:.0f}-{high:.0f})"


def plain_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    whole: bool = False,
) -> Any:
    """A table of text; columns of numbers are flush right.

    With ``whole``, cells of numbers are broken at their newlines only.
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    # a title wider than its table would be broken
    table = Table(title=title, title_justify="left", min_width=min(len(title), 60))
    for index, name in enumerate(columns):
        is_number = all(row[index][:1].isdigit() or not row[index] for row in rows)
        # names of columns and domains may look like rich's markup: take them as text
        column: dict[str, Any] = {"justify": "right" if is_number else "left"}
        if whole and is_number:
            lines = (line for row in rows for line in row[index].splitlines())
            column |= {"no_wrap": True, "min_width": max(map(len, lines))}
        table.add_column(Text(name), **column)
    for row in rows:
        table.add_row(*(Text(visible(cell, lines=whole)) for cell in row))
    return table


@dataclass(frozen=True)
class SharesTable:
    """Share of each class in each domain, as whole as the terminal is wide.

    Intervals stand beside their share, then below it, then in prevalence.csv only; of
    more classes than fit, the first are shown.

    Parameters
    ----------
    build : callable
        From the cell of a record and a number of classes to a table.
    n_classes : int
    with_intervals : bool
        Whether there is room for intervals on any terminal.
    """

    build: Callable[[Callable[[Record], str], int], Any]
    n_classes: int
    with_intervals: bool

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """The fullest table of which no cell is cut."""

        def fits(table: Any) -> bool:
            least = table.__rich_measure__(console, options).minimum
            return bool(least <= options.max_width)

        full = (share_with_interval, _share_over_interval) * self.with_intervals
        for cell in (*full, _share):
            table = self.build(cell, self.n_classes)
            if fits(table):
                break
        else:
            numbers = range(1, self.n_classes)
            too_many = lambda n: not fits(self.build(_share, n))  # noqa: E731
            n_shown = max(bisect_left(numbers, True, key=too_many), 1)
            table = self.build(_share, n_shown)
        yield table


def prevalence_table(
    records: Sequence[Record],
    domain_name: str,
    notes: Mapping[str, str] | None = None,
    unit: str = "rows",
) -> SharesTable:
    """Share of each class in each domain, with intervals.

    Parameters
    ----------
    records : sequence of mapping
        Of prevalence.csv: one per domain and class.
    domain_name : str
        What a domain is called here.
    notes : mapping of str to str, default=None
        Something to say about a class, by its id, in the head of its column.
    unit : {"rows", "words"}
        What was counted.
    """
    names = {record["class_id"]: record["class_name"] for record in records}
    heads = [_head(class_id, names[class_id], notes or {}) for class_id in names]
    by_domain: dict[str, list[Record]] = {}
    for record in records:
        by_domain.setdefault(record["domain"], []).append(record)
    first = [visible(domain_name), unit]
    wide = len(heads) > NUMBERS.most_with_intervals

    def build(cell: Callable[[Record], str], n_classes: int) -> Any:
        rows = {
            name: [visible(name), f"{own[0]['n_rows']:,}", *map(cell, own[:n_classes])]
            for name, own in by_domain.items()
        }
        how = f", with {records[0]['level']:.0%} intervals" * (cell is not _share)
        columns, left = [*first, *heads[:n_classes]], len(heads) - n_classes
        more = [f"{left} more class{'es' * (left > 1)}"] * (left > 0)
        more = ["the intervals"] * (cell is _share and not wide) + more
        said = [f"prevalence.csv has {' and '.join(more)}."] * bool(more)
        title = f"Share of each class in each domain{how}"
        shown, sections = list(rows.values()), 0
        if len(rows) > NUMBERS.shown_rows:
            spread, (alone, word) = spread_rows(by_domain, percent), largest(by_domain)
            title = f"Share of each class in {len(rows):,} domains"
            shown = [row[: len(columns)] for row in spread]
            shown, sections = [*shown, *(rows[name] for name in alone)], len(spread)
            said = [f"{word}{how if alone else ''}.", "prevalence.csv has all."]
        table = plain_table(title, columns, shown, whole=True)
        if sections:
            table.rows[sections - 1].end_section = True
        table.caption, table.caption_justify = "\n".join(said) or None, "left"
        return table

    return SharesTable(build, len(heads), not wide)


def shortened_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Any:
    """A table of the first rows; files and --json have all."""
    shown = rows[: NUMBERS.shown_rows]
    if len(shown) < len(rows):
        title += f" (first {len(shown)} of {len(rows)}; --json has all)"
    return plain_table(title, columns, shown)


def _share(record: Record) -> str:
    return percent(record["estimate"])


def _share_over_interval(record: Record) -> str:
    return share_with_interval(record).replace(" (", "\n(")


def _head(class_id: str, name: str, notes: Mapping[str, str]) -> str:
    head = class_id if name == class_id else f"{name} ({class_id})"
    parts = [head, notes[class_id]] if class_id in notes else [head]
    return "\n".join(map(visible, parts))


def findings_table(findings: Sequence[Record]) -> Any:
    """Every check: its light, its code, what was seen, what to do."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Checks", title_justify="left", show_lines=True)
    table.add_column("check", max_width=24)
    table.add_column("status", no_wrap=True)
    table.add_column("what was seen, and what to do")
    for finding in findings:
        word, color = MARKS[finding["status"]]
        advice = f"\n→ {visible(finding['advice'])}" if finding["advice"] else ""
        # what is fine has no code to look up
        code = f" [{finding['code']}]" * (finding["status"] != "ok")
        seen = f"{visible(finding['reason'])}{advice}{code}"
        table.add_row(Text(finding["question"]), Text(word, style=color), Text(seen))
    return table


def warn_findings(output: Output, findings: Sequence[Record]) -> None:
    """Say every finding that is not fine."""
    for finding in findings:
        if finding["status"] != "ok":
            output.warn(finding["code"], finding["reason"], finding["advice"])


def show_results(output: Output) -> None:
    """Classes by domains, the verdict, and what was written."""
    found = output.data
    warn_findings(output, found["findings"])
    score = found["score"]
    labels = score["matching"] if score else {}
    records, column, unit = (
        found[key] for key in ("prevalence", "domain_name", "unit")
    )
    output.show(prevalence_table(records, column, labels, unit))
    if found["choice"]:
        output.show(found["choice"] + ".")
    if score:
        output.show(
            f"Held-aside labels: {percent(score['accuracy'])} of rows in the matching "
            f"class (most common label of each domain: {percent(score['majority'])}); "
            f"prevalences off by {percent(score['prevalence_error'])} on average."
        )
    output.show(found["evidence"], f"Verdict: {VERDICTS[found['verdict']]}")
    if found["trend"]:
        show_changes(output, found["trend"])
    if found["scale"]:
        _show_costs(output, found["scale"])
    output.show_files()


def show_changes(output: Output, found: Mapping[str, Any]) -> None:
    """Where the mix changes, or that it does not; of a trend as a dict."""
    if found["least_p"] > found["alarm"]:
        n_times = len(found["times"])
        output.warn(
            "W171",
            f"{n_times} times can be shuffled in so few ways that no change could be "
            "called surprising",
            "go by the intervals, or use more times",
        )
    elif not found["changes"]:
        output.show(f"No change point (p = {found['p_value']:.3f}).")
    else:
        output.show(changes_table(found))


def changes_table(found: Mapping[str, Any]) -> Any:
    """Change points, the class that moves most, and how sure each is."""
    rows = []
    for one in found["changes"]:
        y = one["moved"]
        mixes = f"{percent(one['before'][y])} to {percent(one['after'][y])}"
        rows.append(
            [
                f"between {one['last']} and {one['first']}",
                f"{found['classes'][y]}: {mixes}",
                f"{one['p_value']:.3f}",
            ]
        )
    heads = ["change", "class that moves most", "p"]
    title = f"Change points (false alarms: {100 * found['alarm']:g}% of series)"
    return plain_table(title, heads, rows)


def _show_costs(output: Output, record: dict[str, Any]) -> None:
    """Say what was sampled and what every stage has cost."""
    costs = [f"{one['stage']} {one['seconds']:.1f} s" for one in record["stages"]]
    output.show(
        f"{record['rows']:,} rows in {record['parts']} parts; learned from a sample of "
        f"{record['sampled']:,}; {record['exact']}.",
        f"Cost: {', '.join(costs)}.",
    )


# ---- the files of a fit --------------------------------------------------------------


def write_results(
    output: Output,
    place: Path,
    fitted: "Fitted",
    summary: Record,
    cells: Path | None = None,
) -> None:
    """All files of a fit but its report and its record.

    ``cells`` is the h5ad file that was read, if its cells are to be written too.
    """
    import numpy as np

    import shoal
    from shoal.report._view import prevalence_records

    table, intervals = fitted.table, fitted.intervals
    stored, training = fitted.stored or fitted.model, _training(summary)
    shoal.save(stored, place / _runs.MODEL, schema=table.schema, summary=training)
    plain, records = output.plain_csv, prevalence_records(summary)
    _runs.write_csv(place / _runs.PREVALENCE, records, plain=plain)
    _write_rows(place, fitted, output, cells)
    write_json(place / _runs.DIAGNOSTICS, output.allowed(fitted.diagnosis.to_dict()))
    np.savez_compressed(
        place / _runs.DRAWS,
        draws=intervals.draws,
        domains=np.asarray(intervals.domains, dtype=str),
        classes=np.asarray([group["id"] for group in summary["classes"]]),
    )
    write_json(place / _runs.SUMMARY, summary)
    skipped = table.source.get("skipped")
    if skipped and not output.redact:  # files that could not be read
        (place / _runs.SKIPPED).write_text("\n".join(skipped) + "\n", encoding="utf-8")


def _training(summary: Record) -> dict[str, Any]:
    """What a model should know of its training: sizes and the verdict, no rows."""
    return {
        "rows": summary["size"]["rows"],
        "domains": {one["name"]: one["rows"] for one in summary["domains"]},
        "verdict": summary["verdict"],
        "seed": summary["made"]["seed"],
        "source": summary["source"],
    }


def _write_rows(
    place: Path, fitted: "Fitted", output: Output, cells: Path | None
) -> None:
    """The class of every row, how many each domain has, and the cells if there are."""
    from shoal.io import assign, write_assignments
    from shoal.io._assignments import marked

    frames: Iterable[Any]
    if fitted.assign is not None:
        fitted.assign(place / _runs.ASSIGNMENTS[0])
        frames = _read_classes(place / _runs.ASSIGNMENTS[0])
    else:
        table, model = fitted.table, fitted.model
        if output.redact or table.ids is None:
            table = replace(table, ids=row_numbers(table))
        frames = list(marked(assign(model, [table])))
        name, plain = _runs.assignments_name(), output.plain_csv
        write_assignments(place / name, frames, plain_csv=plain)
        if cells is not None:
            about = {"level": fitted.intervals.level, "source": table.source}
            facts = {"intervals": fitted.intervals, "about": about}
            _runs.write_cells(place / _runs.CELLS, cells, model, frames, **facts)
    _write_counts(place / _runs.COUNTS, fitted, frames, plain=output.plain_csv)


def _read_classes(path: Path) -> Iterator[Any]:
    """Domains and classes of rows that were written in parts."""
    from shoal.io._settings import READING
    from shoal.io.source._others import arrow_chunks

    parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    columns, batch = ["domain", "class"], READING.batch_rows
    for part in parts:
        yield from arrow_chunks(part, "parquet", batch_rows=batch, columns=columns)


def _write_counts(
    path: Path, fitted: "Fitted", frames: Iterable[Any], *, plain: bool
) -> None:
    """Rows of each domain by class, the table that compositional tests begin with."""
    from shoal.io._assignments import rows_by_class

    sizes: Counter[Any] = Counter()
    for frame in frames:
        sizes += rows_by_class(frame)
    groups = {str(one): group for one, group in (fitted.table.groups or {}).items()}
    names = fitted.model.class_names_
    rows = [["domain", *["group"] * bool(groups), *names]]
    for domain in map(str, fitted.model.domains_):
        group = [groups[domain]] if groups else []
        rows.append([domain, *group, *(sizes[domain, one] for one in names)])
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, rows, plain=plain)


# ---- the mixes of so many domains that nobody reads them one by one ------------------

Mixes = Mapping[str, Sequence[Mapping[str, Any]]]

#: What the rows of the summary are called, and the share of domains below.
SPREAD = {"a tenth are below": 0.1, "half are below": 0.5, "nine tenths are below": 0.9}


def spread_rows(mixes: Mixes, cell: Callable[[float], str]) -> list[list[str]]:
    """How the share of each class is spread over domains, all of which count alike.

    ``mixes`` has the records of each domain, one for each class.
    """
    import numpy as np

    shares = np.array([[one["estimate"] for one in own] for own in mixes.values()])
    n_rows = sum(own[0]["n_rows"] for own in mixes.values())
    rows = [["average of all", f"{n_rows:,}", *map(cell, shares.mean(axis=0))]]
    for name, below in SPREAD.items():
        rows.append([name, "", *map(cell, np.quantile(shares, below, axis=0))])
    return rows


def largest(mixes: Mixes) -> tuple[list[str], str]:
    """The largest of the domains whose own shares can be read, and a word on them."""
    wide = [name for name, own in mixes.items() if own[0]["flag"] != "thin"]
    wide.sort(key=lambda name: -int(mixes[name][0]["n_rows"]))
    shown = wide[: NUMBERS.largest_domains]
    if not shown:
        return shown, "No domain has rows enough to be read alone"
    thin = " that are not thin" if len(wide) < len(mixes) else ""
    return shown, f"Below the line: the {len(shown)} largest{thin}"
