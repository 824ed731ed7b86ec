"""``shoal name``: names for classes, classes merged, and both taken back."""

from pathlib import Path
from typing import Annotated, Any

from shoal.cli.drawing import draw, named
from shoal.cli.groups import with_groups
from shoal.cli.messages import CommandError
from shoal.cli.models import Model
from shoal.cli.naming import bad_names, read_names, split_merge, split_pairs
from shoal.cli.options import Speech, working
from shoal.cli.output import Output, running
from shoal.cli.places import filled_file, is_unchanged, update_record
from shoal.cli.prevalences import current_records
from shoal.cli.runs import (
    MODEL,
    PREVALENCE,
    REPORT,
    SUMMARY,
    folder_of,
    read_summary,
    write_csv,
)
from shoal.cli.tables import percent, plain_table

__all__ = ["name"]

Set = Annotated[
    list[str] | None,
    working("--set", metavar="CLASS=NAME", help="Name a class (repeatable)."),
]
From = Annotated[
    Path | None,
    working("--from", metavar="FILE", help="Names from the report's names.json."),
]
Merge = Annotated[
    str | None,
    working("--merge", metavar="CLASS,CLASS=NAME", help="Make several classes one."),
]
Undo = Annotated[bool, working("--undo", help="Take the last change back.")]
List = Annotated[bool, working("--list", help="Only show the classes.")]


@with_groups
def name(
    model: Model,
    speech: Speech,
    set_names: Set = None,
    from_file: From = None,
    merge: Merge = None,
    undo: Undo = False,
    list_only: List = False,
) -> None:
    """Name classes or merge them; every output then uses the names.

    Classes are called by id (c0, c1, ...) or by their current name. Merging adds
    probabilities, exactly; numbers of classes follow their size, so a merge may change
    them. Each step is kept in the model's classes.json and can be taken back with
    --undo, one after the other. In a run folder, prevalence.csv and report.html follow
    where nobody changed them.
    """
    with running("name", **speech.options) as output:
        chosen = [bool(set_names or from_file), bool(merge), undo, list_only]
        if sum(chosen) != 1:
            raise CommandError(
                "E002",
                "say what to do: --set or --from, --merge, --undo, or --list",
                "see `shoal name --help`",
            )
        before = after = load(model)
        if not list_only:
            after = change(before, set_names, from_file, merge)
            output.files = save(output, model, after)
        output.data = {
            "before": list(before.class_names_),
            "after": list(after.class_names_),
            "history": list(getattr(after, "class_history_", [])),
        }
        show(output, after)


def load(path: Path) -> Any:
    """The model as it is now."""
    import shoal

    return shoal.load(path)


def change(
    model: Any, pairs: list[str] | None, path: Path | None, merge: str | None
) -> Any:
    """The model after one step, which it remembers."""
    from shoal.io import history

    names = read_names(path) if path is not None else {}
    names |= split_pairs(pairs or ())
    classes, new_name = ([], None) if merge is None else split_merge(merge)
    try:
        if names:
            return history.rename(model, names)
        if classes:
            return history.merge(model, classes, new_name)
        return history.undo(model)
    except ValueError as error:
        raise bad_names(str(error)) from error


def save(output: Output, path: Path, model: Any) -> list[Path]:
    """Write the model anew, and what of its run shows names."""
    import shoal
    from shoal.io import read_manifest

    run = folder_of(path)
    place = run / MODEL if (run / MODEL).is_dir() else run
    own = [name for name in (PREVALENCE, REPORT) if is_unchanged(run, name)]
    summary = read_manifest(place)["summary"]
    shoal.save(model, place, summary=summary, force=True)
    files = [place]
    if PREVALENCE in own:
        with filled_file(run / PREVALENCE) as file:
            write_csv(file, current_records(run, model))
        files.append(run / PREVALENCE)
    if REPORT in own and (run / SUMMARY).is_file():
        draw(run / REPORT, named(output, read_summary(run), run))
        files.append(run / REPORT)
    update_record(run, [file.name for file in files])
    return files


def show(output: Output, model: Any) -> None:
    """Classes as they are called now, beside what they were called."""
    found = output.data
    changed = len(found["before"]) == len(found["after"])
    before = found["before"] if changed else [""] * len(found["after"])
    rows = [
        [f"c{index}", name, was if was != name else "", percent(share)]
        for index, (name, was, share) in enumerate(
            zip(found["after"], before, model.class_weight_, strict=True)
        )
    ]
    heads = ["class", "name", "before", "share of all rows"]
    output.show(plain_table("Classes", heads, rows))
    steps = len(found["history"])
    if steps:
        plural = "step" if steps == 1 else "steps"
        output.show(f"{steps} {plural} can be taken back with --undo.")
    if output.files:
        output.show_files()
        output.show("Assignments get the names when `shoal predict` is run again.")
