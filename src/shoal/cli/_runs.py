"""Run folders: filled as a whole or not at all, nobody's files harmed, read again."""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from shoal.cli._messages import CommandError, read_json, write_json
from shoal.cli._options import Results
from shoal.cli._output import SCHEMA, Output
from shoal.io._files import digest_file, sweep, whole_file
from shoal.io._notation import write_rows
from shoal.io._swap import held, is_unfinished, whole_folder

Record = Mapping[str, Any]

#: The file that says how a folder was made, and the digest of each of its files.
RUN = "run.json"
#: The file that makes a folder a model of its own, before any model inside it.
MANIFEST = "manifest.json"
MODEL = "model"
PREVALENCE = "prevalence.csv"
COUNTS = "class_counts.csv"
DIAGNOSTICS = "diagnostics.json"
DRAWS = "draws.npz"
SUMMARY = "summary.json"
REPORT = "report.html"
SKIPPED = "skipped.txt"
UPDATE = "update.json"
CELLS = "classes.h5ad"
ASSIGNMENTS = ("assignments.parquet", "assignments.csv")

#: Every name that a run may write, and the one by which a model saved in the same
#: folder would be taken for that of the run.
FILES = (
    *(MODEL, PREVALENCE, *ASSIGNMENTS, DIAGNOSTICS, DRAWS, SUMMARY, REPORT),
    *(COUNTS, CELLS, SKIPPED, UPDATE, RUN, MANIFEST),
)


# ---- may it be written? --------------------------------------------------------------


def refuse_existing(path: Path, names: Sequence[str] = (), *, force: bool) -> None:
    """Raise E136 if what would be written exists; called before any work is done.

    Parameters
    ----------
    path : Path
        A folder if ``names`` are given, otherwise the file itself.
    names : sequence of str
        Entries of the folder that would be written.
    force : bool
        Only ask whether writing is possible at all.
    """
    with _readable_errors(path):
        _refuse_blocked(path, is_folder=bool(names))
        found = [name for name in names if _is_ours(path / name)]
        if force or not (found if names else path.exists()):
            return
        text = f'"{path}" {_description(path, found)}'
    raise _in_the_way(text)


def refuse_results(results: Results, names: Sequence[str]) -> None:
    """The same for files of these names in --out, if that is given."""
    if results.out is not None:
        refuse_existing(results.out, names, force=results.force)


def refuse_foreign(folder: Path, names: Sequence[str], command: str) -> None:
    """Raise E136 unless all that is there is an earlier, unchanged run of ``command``.

    An unchanged file is one whose digest the run recorded.
    """
    record = _read_record(folder)
    if record.get("command") != command:
        refuse_existing(folder, names, force=False)
        return
    with _readable_errors(folder):
        present = digests(folder)
    for name, content in record["files"].items():
        if present.get(name, content) != content:
            text = f'"{folder}" holds {name}, which was changed since `shoal {command}`'
            raise _in_the_way(text)


def refuse_changed(path: Path, run: Path, *, force: bool) -> None:
    """Raise E136 if a file exists and is not as the run in the folder ``run`` wrote it.

    The page of a run may be drawn again; one that somebody edited, or that belongs to
    something else, may not.
    """
    own = path.absolute().parent == run.absolute() and is_unchanged(run, path.name)
    refuse_existing(path, force=force or own)


def is_unchanged(run: Path, name: str) -> bool:
    """Whether a file of a run is as shoal wrote it."""
    path, recorded = run / name, _read_record(run).get("files", {})
    return path.is_file() and recorded.get(name) == digest_file(path)


def _in_the_way(text: str) -> CommandError:
    hint = "add --force to overwrite, or choose another --out"
    return CommandError("E136", text, hint)


def _refuse_blocked(path: Path, *, is_folder: bool) -> None:
    """Raise E140 where a file stands in the place of a folder, or the reverse."""
    folders = [path, *path.parents] if is_folder else list(path.parents)
    nearest = next(folder for folder in folders if folder.exists())
    text = ""
    if not nearest.is_dir():
        text = f'"{nearest}" is a file, not a folder'
    elif not os.access(nearest, os.W_OK | os.X_OK):
        text = f'no permission to write to "{nearest}"'
    elif not is_folder and path.is_dir():
        text = f'"{path}" is a folder, not a file'
    if text:
        raise CommandError("E140", text, "choose another --out")


def _is_ours(path: Path) -> bool:
    """Whether an entry exists; others have files called manifest.json, too."""
    if path.name != MANIFEST or not path.is_file():
        return path.exists()
    try:
        content = read_json(path)
    except ValueError:
        return False
    return isinstance(content, dict) and {"format", "digest"} <= set(content)


def _description(path: Path, found: Sequence[str]) -> str:
    """What is in the way: a run and its day, or the first of some files."""
    if RUN in found:
        day = time.strftime("%d %B %Y", time.localtime((path / RUN).stat().st_mtime))
        return f"already holds a run of {day.removeprefix('0')}"
    if MANIFEST in found:
        return "already holds a saved model"
    return f"already holds {found[0]}" if found else "exists already"


# ---- writing -------------------------------------------------------------------------


@contextlib.contextmanager
def reserved(folder: Path, names: Sequence[str], *, force: bool) -> Iterator[None]:
    """Keep others from writing to a folder until the body ends; E136 if one does.

    What is in the way is refused as by :func:`refuse_existing`.
    """
    refuse_existing(folder, names, force=force)
    with contextlib.ExitStack() as stack:
        with _readable_errors(folder):
            stack.enter_context(_parents(folder))
            stack.enter_context(held(folder))
        refuse_existing(folder, names, force=force)  # written while we came here
        yield


@contextlib.contextmanager
def filled_folder(folder: Path, *, instead_of: Sequence[str] = ()) -> Iterator[Path]:
    """Temporary folder to fill; what is in it takes its place if the body ends well.

    Entries of the same name are replaced, and those named in ``instead_of`` go, so
    that no page of an earlier run stays beside a new model; others stay. All of it is
    one step: whatever stops the body or this process leaves one run or the other.
    """

    def stays(entry: Path) -> bool:
        return entry.name not in instead_of or not _is_ours(entry)

    with _readable_errors(folder), _parents(folder):
        with whole_folder(folder, stays=stays) as place:
            yield place


def keep(
    output: Output,
    results: Results,
    names: Sequence[str],
    *fill: Callable[[Path], Any],
) -> None:
    """Let all of ``fill`` write entries of these names to --out, if that is given."""
    if results.out is None:
        return
    # a model saved there by itself would be taken for one of these
    instead = [MANIFEST] * (MODEL in names)
    with filled_folder(results.out, instead_of=instead) as place:
        for write in fill:
            write(place)
    output.files = [results.out / name for name in names]


@contextlib.contextmanager
def filled_file(path: Path) -> Iterator[Path]:
    """Temporary file to write, in the place of ``path`` if the body ends well."""
    with _readable_errors(path), _parents(path), whole_file(path) as place:
        sweep(path)
        yield place


@contextlib.contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above; those made for nothing are removed again."""
    absent = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in absent:
            with contextlib.suppress(OSError):  # not empty: somebody else's by now
                parent.rmdir()
        raise


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Errors of the file system as E140."""
    try:
        yield
    except OSError as error:
        text = f'cannot write to "{path}": {error.strerror or error}'
        raise CommandError("E140", text, "choose another --out") from error


# ---- the record of a run -------------------------------------------------------------


#: What shoal stands on, and what it can do without.
PACKAGES = """
    numpy scipy scikit-learn pandas joblib safetensors skops typer rich jinja2
    matplotlib pyarrow faiss-cpu lightgbm torch ray h5py
""".split()


def write_record(place: Path, output: Output, details: Record) -> None:
    """How a folder was made, with the digest of each of its files.

    Written last: it vouches for the others.
    """
    content = {
        "schema": SCHEMA,
        "command": output.command,
        "arguments": list(output.arguments),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": collect_versions(),
        **details,
        "files": digests(place),
    }
    write_json(place / RUN, output.allowed(content))


def collect_versions() -> dict[str, str | None]:
    """Version by name; None where a package is not installed. Imports none of them."""
    import shoal

    known: dict[str, str | None] = {
        "shoal": shoal.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    return known | {name: _installed(name) for name in PACKAGES}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def renew_record(run: Path, place: Path) -> None:
    """Note in ``place``, which is to be filled into a run, what it holds anew."""
    record = _read_record(run)
    if not record:
        return
    new = digests(place)
    folders = {entry.name for entry in place.iterdir() if entry.is_dir()}
    kept = {
        name: content
        for name, content in record["files"].items()
        if name.partition("/")[0] not in folders
    }
    write_json(place / RUN, record | {"files": kept | new})


def digests(folder: Path) -> dict[str, str]:
    """Digest of every file below a folder but its record, by its relative name."""
    return {
        path.relative_to(folder).as_posix(): digest_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / RUN
    }


def _read_record(folder: Path) -> dict[str, Any]:
    """The record of a run; empty where there is none that makes sense."""
    try:
        record = read_json(folder / RUN)
        known = record["schema"] == SCHEMA and isinstance(record["files"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(record) if known else {}


# ---- reading a run again, and its tables ---------------------------------------------


def folder_of(model: Path) -> Path:
    """The folder of the run that a model belongs to; its own if it lies alone."""
    if (model / MODEL / MANIFEST).is_file():
        return model
    return model.absolute().parent if model.absolute().name == MODEL else model


#: What commands read of a run beside tables, which people may edit.
READ_AGAIN = (f"{MODEL}/{MANIFEST}", SUMMARY, DRAWS)


def settled(model: Path) -> Path:
    """The folder of a run, every file of which is of that run; E135 if it is not.

    A run that was being replaced when a command was stopped is put in place first.
    """
    for folder in (model, model.absolute().parent):
        if is_unfinished(folder):
            with _readable_errors(folder), held(folder):
                pass
    run = folder_of(model)
    recorded = _read_record(run).get("files", {})
    with _readable_errors(run):
        for name in READ_AGAIN:
            path = run / name
            if name in recorded and path.is_file():
                if digest_file(path) != recorded[name]:
                    text = f'"{run}" holds {name}, which is not of the run in {RUN}'
                    hint = (
                        f"fit again with --force; or remove {RUN} if you put it there"
                    )
                    raise CommandError("E135", text, hint)
    return run


def load_settled(model: Path) -> Any:
    """The model of a run, every file of which is of that run."""
    import shoal

    settled(model)
    return shoal.load(model)


def read_summary(model: Path) -> dict[str, Any]:
    """The summary beside a model, from which its report is drawn."""
    path = folder_of(model) / SUMMARY
    again = "fit again, or pass the data"
    try:
        summary = read_json(path)
    except FileNotFoundError as error:
        text = f'"{path}" is not there, and the report is drawn from it'
        hint = (
            "give the folder that `shoal fit` wrote, or pass the data after the model"
        )
        raise CommandError("E135", text, hint) from error
    except (OSError, ValueError) as error:
        raise CommandError(
            "E135", f'"{path}" cannot be read: {error}', again
        ) from error
    if not isinstance(summary, dict) or "schema" not in summary:
        raise CommandError("E135", f'"{path}" is not a summary of shoal', again)
    return summary


def write_csv(path: Path, records: Sequence[Record], *, plain: bool) -> None:
    """Records as CSV; floats in full, so that reading gives the same numbers back."""
    rows = [list(records[0]), *(list(record.values()) for record in records)]
    with path.open("w", encoding="utf-8", newline="") as file:
        write_rows(file, rows, plain=plain)


def keep_json(output: Output, results: Results, name: str) -> None:
    """What a command has found as JSON, in --out."""
    keep(output, results, [name], lambda place: write_json(place / name, output.data))


def keep_found(
    output: Output,
    results: Results,
    names: Sequence[str],
    found: Any,
    draw: Callable[[Any], Any],
    *more: Callable[[Path], Any],
) -> None:
    """What was found as a table, with all its numbers, and as a figure, in --out."""

    def write(place: Path) -> None:
        write_csv(place / names[0], found.to_records(), plain=results.plain_csv)
        write_json(place / names[1], found.to_dict())
        draw(found).savefig(place / names[2], dpi=150)

    keep(output, results, names, write, *more)


def write_cells(
    path: Path, source: Path, model: Any, frames: Iterable[Any], **facts: Any
) -> None:
    """Copy the cells of ``source`` and add the classes that ``frames`` say."""
    from shoal.io._annotation import Annotation, n_cells_of

    found = Annotation.of(model, frames, n_cells_of(source), **facts)
    with filled_file(path) as place:
        found.write(source, place)


def assignments_name() -> str:
    """Parquet where it can be written, CSV elsewhere."""
    from importlib.util import find_spec

    return ASSIGNMENTS[0] if find_spec("pyarrow") else ASSIGNMENTS[1]
