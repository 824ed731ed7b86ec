"""``shoal name``: names for classes, classes merged, and both taken back."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import _runs
from shoal.cli._current import current_counts, current_records, text_of
from shoal.cli._messages import CommandError, read_json
from shoal.cli._models import Model, load_model
from shoal.cli._options import (
    NUMBERS,
    PLAIN_CSV,
    CsvResults,
    Speech,
    speaking,
    split_names,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._report import draw, named
from shoal.cli._tables import percent, plain_table
from shoal.exceptions import CodedError
from shoal.io._notation import is_utf8

if TYPE_CHECKING:
    from shoal.io import Table


# Files of a run that are not written anew.
AS_FITTED = (_runs.SUMMARY, _runs.DIAGNOSTICS, *_runs.ASSIGNMENTS, _runs.CELLS)
# What a step holds beside its names: tables that cannot be computed back.
TABLES = "tables"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One step: names, a merge, or either taken back."""

    set_names: list[str] | None = working(
        None, "Name a class (repeatable).", "--set", metavar="CLASS=NAME"
    )
    from_file: Path | None = working(
        None, "Names from the report's names.json.", "--from", metavar="FILE"
    )
    merge: str | None = working(
        None, "Make several classes one.", metavar="CLASS,CLASS=NAME"
    )
    undo: bool = working(False, "Take the last change back.")
    list_only: bool = working(False, "Only show the classes.", "--list")
    plain_csv: bool = speaking(False, PLAIN_CSV)

    def refuse_several(self) -> None:
        """Raise E002 unless one thing is to be done; --set and --from are one."""
        given = {
            "--set": bool(self.set_names),
            "--from": self.from_file is not None,
            "--merge": self.merge is not None,
            "--undo": self.undo,
            "--list": self.list_only,
        }
        options = [option for option, is_given in given.items() if is_given]
        if not options:
            text = "say what to do: --set or --from, --merge, --undo, or --list"
            raise CommandError("E002", text, "see `shoal name --help`")
        if len(options) > 1 and options != ["--set", "--from"]:
            text = f"{options[0]} and {options[-1]} exclude each other"
            raise CommandError("E002", text, "do one after the other")

    def apply(self, model: Any) -> Any:
        """The model after one step, which it remembers."""
        from shoal.io.model import _card as history

        if self.merge is not None:
            return merged(model, self.merge)
        if self.undo:
            hint = "`shoal name RUN --list` shows the classes as they are"
            return _stepped(history.undo, model, hint=hint)
        names = {} if self.from_file is None else read_names(self.from_file)
        names |= split_pairs(self.set_names or ())
        if not names:
            raise bad_names(f'all names in "{self.from_file}" are empty', AS_JSON)
        check_classes(model, names)
        check_text(names.values())
        return _stepped(history.rename, model, names, hint=AS_PAIR)


@with_groups
def name(model: Model, change: Change, speech: Speech) -> None:
    """Name classes or merge them; every output then uses the names.

    Classes are called by id (c0, c1, ...) or by their current name. Merging adds
    probabilities, exactly; numbers of classes follow their size, so a merge may change
    them. Each step is kept in the model's classes.json and can be taken back with
    --undo, one after the other. In a run folder, prevalence.csv, class_counts.csv and
    report.html follow where nobody changed them.
    """
    with running("name", speech, CsvResults(plain_csv=change.plain_csv)) as output:
        change.refuse_several()
        before = after = _runs.load_settled(model)
        if not change.list_only:
            after = change.apply(before)
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


def merged(model: Any, text: str) -> Any:
    """The model with some classes as one, given as CLASS,CLASS=NAME."""
    from shoal.io.model import _card as history

    classes, new_name = split_merge(text)
    check_text([new_name or ""])
    check_classes(model, classes)
    members = {model._class_index(key) for key in classes}
    hint = "choose another name"
    if len(members) < 2:
        hint = "name two classes that differ"
    elif len(members) == model.n_classes_:
        hint = "merge fewer classes"
    return _stepped(history.merge, model, classes, new_name, hint=hint)


def _stepped(step: Callable[..., Any], model: Any, *how: Any, hint: str) -> Any:
    """The model after a step; E002 where it cannot be taken."""
    try:
        return step(model, *how)
    except ValueError as error:
        raise bad_names(str(error), hint) from error


def save(output: Output, path: Path, before: Any, model: Any) -> list[Path]:
    """Write the model anew, and what of its run shows names."""
    import shoal
    from shoal.io.model._models import read_manifest

    run = _runs.folder_of(path)
    place = run / _runs.MODEL if (run / _runs.MODEL).is_dir() else run
    own = [
        name
        for name in (_runs.PREVALENCE, _runs.COUNTS, _runs.REPORT)
        if _runs.is_unchanged(run, name)
    ]
    kept = kept_tables(run, own, before, model)
    summary = read_manifest(place)["summary"]
    if place == run:
        return [shoal.save(model, place, summary=summary, force=True)]
    with _runs.filled_folder(run) as new:  # with the rest of the run, in one step
        shoal.save(model, new / _runs.MODEL, summary=summary)
        if _runs.PREVALENCE in own:
            earlier = kept.get(_runs.PREVALENCE, "")
            records = current_records(run, model, before=before, kept=earlier)
            _runs.write_csv(new / _runs.PREVALENCE, records, plain=output.plain_csv)
        if _runs.COUNTS in own:
            counts = kept.get(_runs.COUNTS) or current_counts(
                run / _runs.COUNTS, model, before, plain=output.plain_csv
            )
            if counts is not None:
                (new / _runs.COUNTS).write_text(counts, encoding="utf-8", newline="")
        if _runs.REPORT in own and (run / _runs.SUMMARY).is_file():
            draw(new / _runs.REPORT, named(output, _runs.read_summary(run), model))
        names = sorted(entry.name for entry in new.iterdir())
        _runs.renew_record(run, new)
    return [run / name for name in names]


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
        names = [name for name in own if name != _runs.REPORT]
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
        stale = [name for name in AS_FITTED if (_runs.folder_of(path) / name).exists()]
        if stale:
            output.show(f"These keep the classes of the fit: {', '.join(stale)}.")
        output.show("Rows get the names when `shoal predict` is run again.")


# ---- names of classes, read and put on a model ---------------------------------------

#: Names by class id, for a fitted model and the table that it was fitted to.
Names = Callable[[Output, Any, "Table"], Mapping[str, str]]
AS_PAIR = "write names such as c0=Adelie; no two alike, and none the id of another"
AS_MERGE = "write two classes or more and a name, such as c2,c5=Gentoo"
AS_JSON = 'write names such as {"c0": "Adelie"}'


def names_from(path: Path) -> Names:
    """The names in a JSON file, or those of an earlier run whose classes match."""
    if path.is_dir():
        loaded = load_model(path)
        return lambda output, model, table: carried_names(output, loaded, model, table)
    names = read_names(path)
    return lambda output, model, table: names


def carried_names(
    output: Output, loaded: Any, model: Any, table: "Table"
) -> dict[str, str]:
    """Names of the earlier classes that hold almost the same rows as new ones."""
    import numpy as np

    from shoal.base import class_ids
    from shoal.io import Schema

    old, earlier = loaded.model, Schema.from_dict(loaded.schema)
    X, alike = table.X, earlier.feature_names == table.schema.feature_names
    if earlier.n_columns is not None and table.schema.n_columns is not None:
        # a matrix: by the names of its columns, where both have them
        X = earlier.encode(X, names=table.schema.names or None)
    elif not alike or old.n_features_in_ != X.shape[1]:
        raise bad_names(
            f'"{loaded.path}" was fitted to other columns than these',
            "fit the same columns, or give the names as JSON",
        )
    domains = np.asarray(table.domains)
    known = set(domains.tolist()) <= set(old.domains_.tolist())
    before = old.predict(X, domains if known else None)
    now = model.predict(table.X, domains)
    shared = np.zeros((model.n_classes_, len(old.class_names_)))
    np.add.at(shared, (now, before), 1)
    sizes = np.maximum(shared.sum(axis=1)[:, None], shared.sum(axis=0))
    same = shared >= NUMBERS.same_class * np.maximum(sizes, 1)
    # an id is no name, and may be that of another class here
    ids = class_ids(old.n_classes_)
    named = [name not in ids for name in old.class_names_]
    for index in np.flatnonzero(~same.any(axis=1)):
        output.warn(
            "W161",
            f'c{index} matches no class of "{loaded.path}"',
            f"look at its card, then `shoal name` --set c{index}=NAME",
        )
    matches = np.argwhere(same & named)
    return {f"c{new}": old.class_names_[one] for new, one in matches}


def read_names(path: Path) -> dict[str, str]:
    """Names by class id, from a JSON file such as the report's names.json."""
    try:
        content = read_json(path)
    except FileNotFoundError as error:
        raise CommandError(
            "E101", f'no file or folder "{path}"', "check the path of the names"
        ) from error
    except CodedError:
        raise
    except (OSError, ValueError) as error:
        raise bad_names(f'"{path}" is not JSON: {error}', AS_JSON) from error
    if isinstance(content, dict) and isinstance(content.get("names"), dict):
        content = content["names"]
    if not isinstance(content, dict) or not all(
        isinstance(name, str) for name in content.values()
    ):
        raise bad_names(f'"{path}" holds no names by class', AS_JSON)
    return {key: name for key, name in content.items() if name}


def split_pairs(given: Sequence[str]) -> dict[str, str]:
    """Names given as ``c0=Adelie``."""
    names = {}
    for pair in given:
        key, equals, name = pair.partition("=")
        if not (equals and key.strip() and name.strip()):
            raise bad_names(f'"{pair}" is not CLASS=NAME', AS_PAIR)
        names[key.strip()] = name.strip()
    return names


def split_merge(given: str) -> tuple[list[str], str | None]:
    """Classes and their new name, given as ``c2,c5=Gentoo``; the name may be absent.

    Quotes protect a comma or an equals sign in the name of a class.
    """
    parts = re.fullmatch(r'((?:"[^"]*"|[^=])*)(?:=(.*))?', given, re.DOTALL)
    classes, name = parts.groups(default="") if parts else (given, "")
    keys = [key.strip() for key in split_names([classes]) if key.strip()]
    if len(keys) < 2:
        raise bad_names(f'"{given}" names fewer than two classes', AS_MERGE)
    return keys, name.strip() or None


def check_classes(model: Any, keys: Iterable[str]) -> None:
    """Raise E002 for the first that is neither id nor name of a class."""
    for key in keys:
        try:
            model._class_index(key)
        except ValueError as error:
            hint = "call a class by its id or its current name"
            raise bad_names(str(error), hint) from error


def check_text(names: Iterable[str]) -> None:
    """Raise E002 for a name that no file can hold: half of a character."""
    for name in names:
        if not is_utf8(name):
            raise bad_names(f'"{name}" is not text', "write it in UTF-8")


def renamed(model: Any, names: Mapping[str, str]) -> Any:
    """The model with new names; E002 where these cannot be used."""
    check_classes(model, names)
    check_text(names.values())
    return _stepped(type(model).set_names, model, dict(names), hint=AS_PAIR)


def bad_names(text: str, hint: str) -> CommandError:
    """The error of names that cannot be used."""
    return CommandError("E002", text, hint)
