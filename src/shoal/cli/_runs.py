"""Run folders: what ``fit`` writes, and what other commands find there again."""

import csv
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError, write_json
from shoal.cli._output import SCHEMA
from shoal.cli._places import MANIFEST, RUN, fingerprints
from shoal.cli._reading import CELLS, write_cells
from shoal.cli._redacting import row_numbers
from shoal.cli._version import collect_versions

if TYPE_CHECKING:
    from shoal.cli._fitting import Fitted


Record = Mapping[str, Any]

MODEL = "model"
PREVALENCE = "prevalence.csv"
COUNTS = "class_counts.csv"
DIAGNOSTICS = "diagnostics.json"
DRAWS = "draws.npz"
SUMMARY = "summary.json"
REPORT = "report.html"
SKIPPED = "skipped.txt"
ASSIGNMENTS = ("assignments.parquet", "assignments.csv")

#: Every name that a run may write, and the one by which a model saved in the same
#: folder would be taken for that of the run.
FILES = (
    *(MODEL, PREVALENCE, *ASSIGNMENTS, DIAGNOSTICS, DRAWS, SUMMARY, REPORT),
    *(COUNTS, CELLS, SKIPPED, RUN, MANIFEST),
)


# ---- writing ---------------------------------------------------------------------


def write_results(
    place: Path,
    fitted: "Fitted",
    summary: Record,
    *,
    redact: bool = False,
    cells: Path | None = None,
) -> None:
    """All files of a fit but its report and its record.

    ``cells`` is the h5ad file that was read, if its cells are to be written too.
    """
    import numpy as np

    import shoal
    from shoal.report import prevalence_records

    table, intervals = fitted.table, fitted.intervals
    stored, training = fitted.stored or fitted.model, _training(summary)
    shoal.save(stored, place / MODEL, schema=table.schema, summary=training)
    write_csv(place / PREVALENCE, prevalence_records(summary))
    _write_rows(place, fitted, redact, cells)
    write_json(place / DIAGNOSTICS, fitted.diagnosis.to_dict())
    np.savez_compressed(
        place / DRAWS,
        draws=intervals.draws,
        domains=np.asarray(intervals.domains, dtype=str),
        classes=np.asarray([group["id"] for group in summary["classes"]]),
    )
    write_json(place / SUMMARY, summary)
    skipped = table.source.get("skipped")
    if skipped and not redact:  # files that could not be read
        (place / SKIPPED).write_text("\n".join(skipped) + "\n", encoding="utf-8")


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
    place: Path, fitted: "Fitted", redact: bool, cells: Path | None
) -> None:
    """The class of every row, how many each domain has, and the cells if there are."""
    from shoal.io import assign, write_assignments
    from shoal.io._assignments import marked

    frames: Iterable[Any]
    if fitted.assign is not None:
        fitted.assign(place / ASSIGNMENTS[0])
        frames = _read_classes(place / ASSIGNMENTS[0])
    else:
        table, model = fitted.table, fitted.model
        if redact or table.ids is None:
            table = replace(table, ids=row_numbers(table))
        frames = list(marked(assign(model, [table])))
        write_assignments(place / assignments_name(), frames)
        if cells is not None:
            about = {"level": fitted.intervals.level, "source": table.source}
            facts = {"intervals": fitted.intervals, "about": about}
            write_cells(place / CELLS, cells, model, frames, **facts)
    write_counts(place / COUNTS, fitted, frames)


def _read_classes(path: Path) -> Iterator[Any]:
    """Domains and classes of rows that were written in parts."""
    from shoal.io._settings import READING
    from shoal.io.source._columnar import read_chunks

    how: dict[str, Any] = {
        "batch_rows": READING.batch_rows,
        "columns": ["domain", "class"],
    }
    for part in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        yield from read_chunks(part, "parquet", **how)


def write_counts(path: Path, fitted: "Fitted", frames: Iterable[Any]) -> None:
    """Rows of each domain by class, the table that compositional tests begin with."""
    from collections import Counter

    from shoal.io._assignments import rows_by_class

    sizes: Counter[Any] = Counter()
    for frame in frames:
        sizes += rows_by_class(frame)
    groups = {str(one): group for one, group in (fitted.table.groups or {}).items()}
    names = fitted.model.class_names_
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["domain", *["group"] * bool(groups), *names])
        for domain in map(str, fitted.model.domains_):
            group = [groups[domain]] if groups else []
            counts = [sizes[domain, name] for name in names]
            writer.writerow([domain, *group, *counts])


def assignments_name() -> str:
    """Parquet where it can be written, CSV elsewhere."""
    from importlib.util import find_spec

    return ASSIGNMENTS[0] if find_spec("pyarrow") else ASSIGNMENTS[1]


def write_record(
    place: Path, command: str, arguments: Sequence[str], details: Record
) -> None:
    """How a folder was made, with the fingerprint of each of its files.

    Written last: it vouches for the others.
    """
    content = {
        "schema": SCHEMA,
        "command": command,
        "arguments": list(arguments),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": collect_versions(),
        **details,
        "files": fingerprints(place),
    }
    write_json(place / RUN, content)


def write_csv(path: Path, records: Sequence[Record]) -> None:
    """Records as CSV; floats in full, so that reading gives the same numbers back."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


# ---- reading ---------------------------------------------------------------------


def folder_of(model: Path) -> Path:
    """The folder of the run that a model belongs to; its own if it lies alone."""
    if (model / MODEL / MANIFEST).is_file():
        return model
    return model.absolute().parent if model.absolute().name == MODEL else model


def read_summary(model: Path) -> dict[str, Any]:
    """The summary beside a model, from which its report is drawn."""
    path = folder_of(model) / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            "E135",
            f'"{path}" is not there, and the report is drawn from it',
            "give the folder that `shoal fit` wrote, or pass the data after the model",
        ) from error
    except (OSError, ValueError) as error:
        raise CommandError(
            "E135", f'"{path}" cannot be read: {error}', "fit again, or pass the data"
        ) from error
    if not isinstance(summary, dict) or "schema" not in summary:
        raise CommandError(
            "E135", f'"{path}" is not a summary of shoal', "fit again, or pass the data"
        )
    return summary
