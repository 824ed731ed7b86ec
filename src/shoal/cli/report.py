"""``shoal report``: the page of a run, drawn again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.drawing import draw, named, summarize_again
from shoal.cli.groups import with_groups
from shoal.cli.messages import CommandError
from shoal.cli.models import Model
from shoal.cli.options import Force, Redact, Speech, Work, speaking, working
from shoal.cli.output import Output, running
from shoal.cli.pictures import ImagesFolder, add_pictures
from shoal.cli.places import refuse_changed, update_record
from shoal.cli.reading import Rows, split_names
from shoal.cli.runs import REPORT, folder_of, read_summary

__all__ = ["report"]

MaybeData = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DATA]",
        help="Rows of the fit, to describe them anew; else from summary.json.",
        show_default=False,
    ),
]
Title = Annotated[str | None, working("--title", help="Title of the page.")]
MaxMb = Annotated[
    float,
    working("--max-mb", min=0.1, max=15, help="Size that the page stays below."),
]
Sections = Annotated[
    list[str] | None,
    working("--sections", metavar="NAME,NAME", help="Only these, and the verdict."),
]
Open = Annotated[bool, speaking("--open", help="Show it in the browser.")]
OutFile = Annotated[
    Path | None,
    speaking("--out", metavar="FILE", help="Where to; report.html of the run."),
]
ENDINGS = (".html", ".htm")


@with_groups
def report(
    model: Model,
    rows: Rows,
    work: Work,
    speech: Speech,
    data: MaybeData = None,
    title: Title = None,
    max_mb: MaxMb = 5.0,
    sections: Sections = None,
    images: ImagesFolder = None,
    out: OutFile = None,
    open_it: Open = False,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """Draw the report of a run again: with other names, title, sections or size.

    Needs summary.json of the run, not the data. Classes have the names that
    `shoal name` gave them; after a merge, pass the data to see them as one. Sections:
    where, differences, classes, map, trust, uncertainty, choice, score, reproduce. The
    page of a run is replaced where nobody changed it; any other only with --force.
    """
    with running("report", redact=redact, **speech.options) as output:
        run = folder_of(model)
        path = out or run / REPORT
        check_ending(path)
        refuse_changed(path, run, force=force)
        wanted = check_sections(split_names(sections))
        if data:
            summary = summarize_again(output, model, data, rows, work)
        else:
            summary = named(output, read_summary(model), model)
            refuse_rows(summary, redact=redact)
        if images is not None:
            add_pictures(summary, images)
        if title is not None:
            summary["title"] = title
        output.data = draw(path, summary, max_mb=max_mb, sections=wanted)
        output.files = [path]
        if path.resolve() == (run / REPORT).resolve():
            update_record(run, [REPORT])
        show(output, max_mb)
        if open_it:
            typer.launch(path.absolute().as_uri())


def check_ending(path: Path) -> None:
    """Raise E102 before any work if the file's name promises something else."""
    if path.suffix.lower() not in ENDINGS:
        raise CommandError(
            "E102",
            f'the report is a page in HTML, got --out "{path}"',
            "end the name of --out with .html; a browser can print that to PDF",
        )


def refuse_rows(summary: dict[str, Any], *, redact: bool) -> None:
    """Raise E162 where a summary that shows rows is to be drawn without them."""
    if redact and not summary.get("redacted"):
        raise CommandError(
            "E162",
            "the summary of the run shows rows, which --redact leaves out",
            "give the data, to describe them anew: `shoal report RUN DATA`",
        )


def check_sections(names: Sequence[str]) -> list[str] | None:
    """The sections asked for; E002 for one that does not exist."""
    from shoal.report import SECTIONS

    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise CommandError(
            "E002",
            f'the report has no section "{unknown[0]}"',
            f"sections are {', '.join(SECTIONS)}",
        )
    return list(names) or None


def show(output: Output, max_mb: float) -> None:
    """Where the page is, how large, and what did not fit."""
    found = output.data
    output.show(f"Written: {found['path']} ({found['bytes'] / 1e6:.2f} MB)")
    for what in found["left_out"]:
        output.show(f"Left out to stay small: {what}")
    if found["bytes"] > max_mb * 1e6:
        output.warn(
            "W166",
            f"{found['left_out'][-1].partition(': ')[2]}, more than --max-mb "
            f"{max_mb:g}",
            "choose fewer --sections, or allow that size",
        )
