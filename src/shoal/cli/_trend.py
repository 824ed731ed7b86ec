"""``shoal trend``: the mix of classes in the order of time, and where it changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.cli import _runs
from shoal.cli._messages import CommandError
from shoal.cli._models import Model, load_model
from shoal.cli._options import (
    CsvResults,
    Speech,
    Work,
    with_groups,
    working,
)
from shoal.cli._output import running
from shoal.cli._reading import Data, name_of
from shoal.cli._tables import percent, shortened_table, show_changes
from shoal.io._options import FileOptions

if TYPE_CHECKING:
    from shoal.io import Table

#: As a table, with all numbers, and as a figure.
FILES = ("trend.csv", "trend.json", "trend.png")


@dataclass(frozen=True, kw_only=True)
class TrendOptions:
    """What is asked of the order."""

    order: str | None = working(
        None, "Column of numbers or dates; the domain if not given.", metavar="COL"
    )
    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)
    strength: float | None = working(
        None, "How much neighbours count; 0 not at all. Chosen if not given.", min=0
    )
    alarm: float = working(
        0.05, "Rate at which a series without a change gets one.", min=0.001, max=0.5
    )
    permutations: int = working(999, "Shuffles behind the p-values.", min=1)


@with_groups
def trend(
    model: Model,
    data: Data,
    rows: FileOptions,
    asked: TrendOptions,
    work: Work,
    results: CsvResults,
    speech: Speech,
) -> None:
    """How the mix of classes moves in time, and where it changes.

    DATA are best the rows of the fit. Mixes of neighbouring times are smoothed, as far
    as the likelihood of held-out rows asks for it, so that thin years borrow from the
    years beside them. A change is a split into before and after that tells more than
    the best split of shuffled times: years that merely scatter have none. Rows of the
    same time share a mix, whatever their domain. With --out, writes trend.csv,
    trend.json and trend.png.
    """
    from shoal.analysis._trend import trend as ask

    with running("trend", speech, results) as output:
        _runs.refuse_results(results, FILES)
        plan = {"read": f"reading {name_of(data)}", "trend": "smoothing"}
        with output.stages(plan):
            output.begin("read")
            loaded = load_model(model)
            table = loaded.known_table(output, data, rows)
            order = read_order(asked.order, table, data, rows)
            output.begin("trend")
            found = ask(
                loaded.model,
                table.X,
                table.domains,
                order=order,
                strength=asked.strength,
                level=asked.level,
                alarm=asked.alarm,
                n_permutations=asked.permutations,
                random_state=work.seed,
            )
        output.found(found.to_dict())
        _runs.keep_found(output, results, FILES, found, drawn)
        output.show(shares_table(found))
        show_changes(output, output.data)
        output.show_files()


def read_order(
    name: str | None, table: "Table", data: Sequence[str], rows: FileOptions
) -> Any:
    """The cells of a column that the model does not know; None for the domain."""
    from shoal.io._options import SourceOptions
    from shoal.io.source._open import open_content

    column = getattr(table.schema.domain, "column", None)
    if name in (None, column):
        return None
    if len(data) != 1 or data[0] == "-":
        text = f"--order {name} needs a single file, got {', '.join(data)}"
        raise CommandError("E002", text, "join the files, or give them as one table")
    frame = open_content(data[0], SourceOptions(domain=name, **rows.of_files)).frame
    if name not in frame.columns:
        text = f'"{data[0]}" has no column "{name}"'
        hint = f"it has {', '.join(map(str, frame.columns))}"
        raise CommandError("E107", text, hint)
    return frame[name].to_numpy()[table.places]


def drawn(found: Any) -> Any:
    """The figure of a trend."""
    from matplotlib.figure import Figure

    from shoal.plots import plot_trend

    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    plot_trend(found, ax=figure.add_subplot())
    return figure


# ---- what is shown -------------------------------------------------------------------


def shares_table(found: Any) -> Any:
    """Smoothed shares with their intervals, time by time."""
    by_time: dict[Any, list[dict[str, Any]]] = {}
    for record in found.to_records():
        by_time.setdefault(record["time"], []).append(record)
    rows = [
        [str(time), f"{own[0]['n_rows']:,}", *map(_share, own)]
        for time, own in by_time.items()
    ]
    heads = ["time", "rows", *map(str, found.class_names)]
    title = f"Smoothed share of each class, with {found.level:.0%} intervals"
    return shortened_table(title, heads, rows)


def _share(record: Mapping[str, Any]) -> str:
    low, high = 100 * record["low"], 100 * record["high"]
    return f"{percent(record['estimate'])} ({low:.0f}-{high:.0f})"
