"""``shoal name``: names for classes, classes merged, and both taken back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from shoal.cli._messages import CommandError
from shoal.cli._models import Model
from shoal.cli._naming import (
    AS_JSON,
    AS_PAIR,
    bad_names,
    check_classes,
    read_names,
    split_merge,
    split_pairs,
)
from shoal.cli._options import Speech, with_groups, working
from shoal.cli._output import Output, running
from shoal.cli._places import filled_file, is_unchanged, update_record
from shoal.cli._reading import CELLS
from shoal.cli._report import draw, named
from shoal.cli._runs import (
    ASSIGNMENTS,
    COUNTS,
    DIAGNOSTICS,
    MODEL,
    PREVALENCE,
    REPORT,
    SUMMARY,
    folder_of,
    read_summary,
    write_csv,
)
from shoal.cli._tables import (
    current_counts,
    current_records,
    percent,
    plain_table,
    text_of,
)

# Files of a run that are not written anew.
AS_FITTED = (SUMMARY, DIAGNOSTICS, *ASSIGNMENTS, CELLS)
# What a step holds beside its names: tables that cannot be computed back.
TABLES = "tables"

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
    --undo, one after the other. In a run folder, prevalence.csv, class_counts.csv and
    report.html follow where nobody changed them.
    """
    with running("name", **speech.options) as output:
        given = {
            "--set": bool(set_names),
            "--from": from_file is not None,
            "--merge": merge is not None,
            "--undo": undo,
            "--list": list_only,
        }
        check_one(given)
        before = after = load(model)
        if not list_only:
            after = change(before, set_names, from_file, merge)
            output.files = save(output, model, before, after)
        output.data = {
            "before": list(before.class_names_),
            "after": list(after.class_names_),
            "history": [
                {key: step[key] for key in step if key != TABLES}
                for step in getattr(after, "class_history_", [])
            ],
        }
        show(output, model, after)


def check_one(given: dict[str, bool]) -> None:
    """Raise E002 unless one thing is to be done; --set and --from are one."""
    options = [option for option, is_given in given.items() if is_given]
    if not options:
        raise CommandError(
            "E002",
            "say what to do: --set or --from, --merge, --undo, or --list",
            "see `shoal name --help`",
        )
    if len(options) > 1 and options != ["--set", "--from"]:
        raise CommandError(
            "E002",
            f"{options[0]} and {options[-1]} exclude each other",
            "do one after the other",
        )


def load(path: Path) -> Any:
    """The model as it is now."""
    import shoal

    return shoal.load(path)


def change(
    model: Any, pairs: list[str] | None, path: Path | None, merge: str | None
) -> Any:
    """The model after one step, which it remembers."""
    from shoal.io.model import _probe as history

    if merge is not None:
        return merged(model, merge)
    if path is None and not pairs:
        return undone(model)
    names = {} if path is None else read_names(path)
    names |= split_pairs(pairs or ())
    if not names:
        raise bad_names(f'all names in "{path}" are empty', AS_JSON)
    check_classes(model, names)
    try:
        return history.rename(model, names)
    except ValueError as error:
        raise bad_names(str(error), AS_PAIR) from error


def merged(model: Any, text: str) -> Any:
    """The model with some classes as one, given as CLASS,CLASS=NAME."""
    from shoal.io.model import _probe as history

    classes, new_name = split_merge(text)
    check_classes(model, classes)
    try:
        return history.merge(model, classes, new_name)
    except ValueError as error:
        members = {model._class_index(key) for key in classes}
        hint = "choose another name"
        if len(members) < 2:
            hint = "name two classes that differ"
        elif len(members) == model.n_classes_:
            hint = "merge fewer classes"
        raise bad_names(str(error), hint) from error


def undone(model: Any) -> Any:
    """The model before its last step."""
    from shoal.io.model import _probe as history

    try:
        return history.undo(model)
    except ValueError as error:
        hint = "`shoal name RUN --list` shows the classes as they are"
        raise bad_names(str(error), hint) from error


def save(output: Output, path: Path, before: Any, model: Any) -> list[Path]:
    """Write the model anew, and what of its run shows names."""
    import shoal
    from shoal.io import read_manifest

    run = folder_of(path)
    place = run / MODEL if (run / MODEL).is_dir() else run
    own = [name for name in (PREVALENCE, COUNTS, REPORT) if is_unchanged(run, name)]
    kept = kept_tables(run, own, before, model)
    summary = read_manifest(place)["summary"]
    shoal.save(model, place, summary=summary, force=True)
    files = [place]
    if PREVALENCE in own:
        earlier = kept.get(PREVALENCE, "")
        records = current_records(run, model, before=before, kept=earlier)
        with filled_file(run / PREVALENCE) as file:
            write_csv(file, records)
        files.append(run / PREVALENCE)
    if COUNTS in own:
        counts = kept.get(COUNTS) or current_counts(run / COUNTS, model, before)
        if counts is not None:
            with filled_file(run / COUNTS) as file:
                file.write_text(counts, encoding="utf-8", newline="")
            files.append(run / COUNTS)
    if REPORT in own and (run / SUMMARY).is_file():
        draw(run / REPORT, named(output, read_summary(run), run))
        files.append(run / REPORT)
    update_record(run, [file.name for file in files])
    return files


def kept_tables(
    run: Path, own: Sequence[str], before: Any, model: Any
) -> dict[str, str]:
    """Tables by name, as a merge kept them that is now taken back.

    A new merge keeps those of now in its step: sums cannot be taken apart again.
    """
    old, new = (getattr(one, "class_history_", []) for one in (before, model))
    if len(new) < len(old):
        return dict(old[-1].get(TABLES, {}))
    if new[-1]["step"] == "merge":
        names = [name for name in own if name != REPORT]
        new[-1][TABLES] = {name: text_of(run / name) for name in names}
    return {}


def show(output: Output, path: Path, model: Any) -> None:
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
    heads = ["class", "name", "before", "share of the average domain"]
    output.show(plain_table("Classes", heads, rows))
    steps = len(found["history"])
    if steps:
        plural = "step" if steps == 1 else "steps"
        output.show(f"{steps} {plural} can be taken back with --undo.")
    if output.files:
        output.show_files()
        stale = [name for name in AS_FITTED if (folder_of(path) / name).exists()]
        if stale:
            output.show(f"These keep the classes of the fit: {', '.join(stale)}.")
        output.show("Rows get the names when `shoal predict` is run again.")
