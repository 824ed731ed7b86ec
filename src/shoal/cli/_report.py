"""``shoal report``: the page of a run, drawn again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import _runs
from shoal.cli._current import fitted_classes
from shoal.cli._messages import CommandError
from shoal.cli._models import Model, load_model
from shoal.cli._options import (
    SafeResults,
    Speech,
    Work,
    speaking,
    split_names,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import (
    name_of,
    pictures_of,
    read_picture,
)
from shoal.io._options import FileOptions

MaybeData = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DATA]",
        help="Rows of the fit, to describe them anew; else from summary.json.",
        show_default=False,
    ),
]
ENDINGS = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What the page shows of rows."""

    images: Path | None = working(
        None,
        "Show the pictures below DIR that the ids of the rows name.",
        metavar="DIR",
    )


@dataclass(frozen=True, kw_only=True)
class Page(Shown):
    """What the page shows."""

    title: str | None = working(None, "Title of the page.")
    max_mb: float = working(5.0, "Size that the page stays below.", min=0.1, max=15)
    sections: list[str] | None = working(
        None, "Only these, and the verdict.", metavar="NAME,NAME"
    )
    open_it: bool = speaking(False, "Show it in the browser.", "--open")

    @property
    def wanted(self) -> list[str] | None:
        """The sections asked for; E002 for one that does not exist."""
        from shoal.report._html import SECTIONS

        names = split_names(self.sections)
        for name in names:
            if name not in SECTIONS:
                text = f'the report has no section "{name}"'
                raise CommandError("E002", text, f"sections are {', '.join(SECTIONS)}")
        return names or None


@dataclass(frozen=True, kw_only=True)
class PageFile(SafeResults):
    """Where the page goes."""

    out: Path | None = speaking(
        None, "Where to; report.html of the run.", metavar="FILE"
    )


@with_groups
def report(
    model: Model,
    rows: FileOptions,
    work: Work,
    page: Page,
    results: PageFile,
    speech: Speech,
    data: MaybeData = None,
) -> None:
    """Draw the report of a run again: with other names, title, sections or size.

    Needs summary.json of the run, not the data. Classes have the names that `shoal
    name` gave them; after a merge, pass the data to see them as one. Sections: where,
    trend, differences, classes, features, map, trust, uncertainty, choice, score,
    reproduce. The page of a run is replaced where nobody changed it; any other only
    with --force.
    """
    import shoal

    with running("report", speech, results) as output:
        run = _runs.settled(model)
        path = results.out or run / _runs.REPORT
        check_ending(path)
        _runs.refuse_changed(path, run, force=results.force)
        wanted = page.wanted
        if data:
            summary = summarize_again(output, model, data, rows, work)
        else:
            summary = named(output, _runs.read_summary(model), shoal.load(model))
            refuse_rows(output, summary)
        if page.images is not None:
            add_pictures(summary, page.images)
        if page.title is not None:
            summary["title"] = page.title
        how = {"max_mb": page.max_mb, "sections": wanted}
        if path.resolve() == (run / _runs.REPORT).resolve():
            with _runs.filled_folder(run) as place:
                drawn = draw(place / _runs.REPORT, summary, **how)
                _runs.renew_record(run, place)
        else:
            drawn = draw(path, summary, **how)
        output.data = drawn | {"path": str(path)}
        output.files = [path]
        show(output, page.max_mb)
        if page.open_it:
            typer.launch(path.absolute().as_uri())


def check_ending(path: Path) -> None:
    """Raise E102 before any work if the file's name promises something else."""
    if path.suffix.lower() not in ENDINGS:
        text = f'the report is a page in HTML, got --out "{path}"'
        hint = "end the name of --out with .html; a browser can print that to PDF"
        raise CommandError("E102", text, hint)


def refuse_rows(output: Output, summary: dict[str, Any]) -> None:
    """Raise E135 where a summary that shows rows is to be drawn without them."""
    if output.redact and not summary.get("redacted"):
        text = "the summary of the run shows rows, which --redact leaves out"
        raise CommandError(
            "E135", text, f"give the data, to describe them anew: {AGAIN}"
        )


def show(output: Output, max_mb: float) -> None:
    """Where the page is, how large, and what did not fit."""
    found = output.data
    output.show(f"Written: {found['path']} ({found['bytes'] / 1e6:.2f} MB)")
    for what in found["left_out"]:
        output.show(f"Left out to stay small: {what}")
    if found["bytes"] > max_mb * 1e6:
        output.warn(
            "W162",
            f"{found['left_out'][-1].partition(': ')[2]}, more than --max-mb "
            f"{max_mb:g}",
            "choose fewer --sections, or allow that size",
        )


# ---- drawing -------------------------------------------------------------------------

AGAIN = "`shoal report RUN DATA`"


def draw(path: Path, summary: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Write the page; its path, size, and what was left out to stay below it."""
    from shoal.report import write

    try:
        with _runs.filled_file(path) as place:
            done = write(summary, place, **options)
    except (KeyError, TypeError, IndexError) as error:
        text = f"the summary of the run is damaged ({type(error).__name__}: {error})"
        hint = f"fit again, or give the data: {AGAIN}"
        raise CommandError("E135", text, hint) from error
    return dict(done)


def named(output: Output, summary: dict[str, Any], fitted: Any) -> dict[str, Any]:
    """The summary with the names that the classes of a model have now."""
    from shoal.report._view import rename

    names = {
        f"c{index}": str(fitted.class_names_[now])
        for index, now in enumerate(fitted_classes(fitted))
    }
    ids = [group["id"] for group in summary.get("classes", [])]
    if ids != list(names):
        text = "the summary of the run has other classes than its model"
        raise CommandError("E135", text, f"fit again, or give the data: {AGAIN}")
    if len(set(names.values())) < len(names):
        text = "merged classes are drawn apart, under one name"
        hint = f"{AGAIN}, with the data of the fit, draws them as one"
        output.warn("W162", text, hint)
    return rename(summary, names)


def summarize_again(
    output: Output, model: Path, data: Sequence[str], rows: FileOptions, work: Work
) -> dict[str, Any]:
    """A summary of the model as it is now, on the rows of its fit."""
    from threadpoolctl import threadpool_limits

    from shoal.cli._fit import Fitted, Settings, summary_of

    settings = Settings(work)
    plan = {
        "read": f"reading {name_of(data)}",
        "diagnose": "asking whether to trust the classes",
        "intervals": f"intervals: {settings.n_resamples} resamples",
    }
    with output.stages(plan), threadpool_limits(1):
        output.begin("read")
        loaded = load_model(model)
        table = loaded.known_table(output, data, rows)
        output.begin("diagnose")
        X, domains, seed = table.X, table.domains, work.seed
        diagnosis = loaded.model.diagnose(X, domains, random_state=seed)
        output.begin("intervals")
        intervals = loaded.model.bootstrap(
            X, domains, n_jobs=work.n_jobs, random_state=seed
        )
    fitted = Fitted(table, loaded.model, None, intervals, diagnosis)
    shown = Path(data[0]) if table.kind == "images" else None
    pictures = pictures_of(shown, table)
    return summary_of(output, fitted, work, _runs.folder_of(model), images=pictures)


# ---- pictures ------------------------------------------------------------------------


def add_pictures(summary: Mapping[str, Any], folder: Path) -> None:
    """Put the pictures of the rows that a summary shows into it."""
    from shoal.report._gather import thumbnail

    shown = list(_shown_rows(summary))
    if not shown:
        text = "the summary of the run shows no rows"
        raise CommandError("E135", text, "fit without --redact")
    for row in shown:
        row["image"] = thumbnail(read_picture(folder, row["id"]))


def _shown_rows(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for card in summary.get("cards", []):
        for home in card["exemplars"]:
            yield from home["rows"]
        yield from card["borderline"]
