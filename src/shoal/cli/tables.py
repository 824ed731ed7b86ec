"""Tables that commands print; each shows records that are also written or in --json."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shoal.cli.output import Output

__all__ = [
    "VERDICTS",
    "findings_table",
    "percent",
    "plain_table",
    "prevalence_table",
    "share_with_interval",
    "shortened_table",
    "warn_findings",
]

Record = Mapping[str, Any]

SHOWN_ROWS = 40
# More columns than this would not fit with their intervals.
MOST_WITH_INTERVALS = 8

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
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> Any:
    """A table of text; columns of numbers are set flush right."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    # a title wider than its table would be broken
    table = Table(title=title, title_justify="left", min_width=min(len(title), 60))
    for index, name in enumerate(columns):
        is_number = all(row[index][:1].isdigit() or not row[index] for row in rows)
        # names of columns and domains may look like rich's markup: take them as text
        table.add_column(Text(name), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def prevalence_table(
    records: Sequence[Record],
    domain_name: str,
    notes: Mapping[str, str] | None = None,
    unit: str = "rows",
) -> Any:
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
    wide = len(names) > MOST_WITH_INTERVALS
    cell = _share if wide else share_with_interval
    by_domain: dict[str, list[Record]] = {}
    for record in records:
        by_domain.setdefault(record["domain"], []).append(record)
    rows = [
        [domain, f"{own[0]['n_rows']:,}", *map(cell, own)]
        for domain, own in by_domain.items()
    ]
    how = "" if wide else f", with {records[0]['level']:.0%} intervals"
    title = f"Share of each class in each domain{how}"
    return shortened_table(title, [domain_name, unit, *heads], rows)


def shortened_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Any:
    """A table of the first rows; files and --json have all."""
    more = f" (first {SHOWN_ROWS} of {len(rows)}; --json has all)"
    return plain_table(
        title + more * (len(rows) > SHOWN_ROWS), columns, rows[:SHOWN_ROWS]
    )


def _share(record: Record) -> str:
    return percent(record["estimate"])


def _head(class_id: str, name: str, notes: Mapping[str, str]) -> str:
    head = class_id if name == class_id else f"{name} ({class_id})"
    return f"{head}\n{notes[class_id]}" if class_id in notes else head


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
        advice = f"\n→ {finding['advice']}" if finding["advice"] else ""
        seen = f"{finding['reason']}{advice} [{finding['code']}]"
        table.add_row(Text(finding["question"]), Text(word, style=color), Text(seen))
    return table


def warn_findings(output: Output, findings: Sequence[Record]) -> None:
    """Say every finding that is not fine."""
    for finding in findings:
        if finding["status"] != "ok":
            output.warn(finding["code"], finding["reason"], finding["advice"])
