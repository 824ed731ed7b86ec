"""Run folders: what ``fit`` writes, and what other commands find there again."""

import csv
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.messages import CommandError
from shoal.cli.output import SCHEMA
from shoal.cli.places import RUN, fingerprints
from shoal.cli.plain import write_json
from shoal.cli.version import collect_versions

if TYPE_CHECKING:
    from shoal.cli.fitting import Fitted

__all__ = [
    "DIAGNOSTICS",
    "DRAWS",
    "FILES",
    "MODEL",
    "PREVALENCE",
    "REPORT",
    "SUMMARY",
    "assignments_name",
    "folder_of",
    "read_summary",
    "write_csv",
    "write_record",
    "write_results",
]

Record = Mapping[str, Any]

MODEL = "model"
PREVALENCE = "prevalence.csv"
DIAGNOSTICS = "diagnostics.json"
DRAWS = "draws.npz"
SUMMARY = "summary.json"
REPORT = "report.html"
SKIPPED = "skipped.txt"
ASSIGNMENTS = ("assignments.parquet", "assignments.csv")

#: Every name that a run may write.
FILES = (
    *(MODEL, PREVALENCE, *ASSIGNMENTS, DIAGNOSTICS, DRAWS, SUMMARY, REPORT),
    *(SKIPPED, RUN),
)


# ---- writing ---------------------------------------------------------------------


def write_results(
    place: Path, fitted: "Fitted", summary: Record, *, redact: bool = False
) -> None:
    """All files of a fit but its report and its record."""
    import numpy as np

    import shoal
    from shoal.report import prevalence_records

    table, intervals = fitted.table, fitted.intervals
    stored, training = fitted.stored or fitted.model, _training(summary)
    shoal.save(stored, place / MODEL, schema=table.schema, summary=training)
    write_csv(place / PREVALENCE, prevalence_records(summary))
    _write_assignments(place, fitted, redact)
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


def _write_assignments(place: Path, fitted: "Fitted", redact: bool) -> None:
    from shoal.io import assign, write_assignments
    from shoal.io.marking import marked

    if fitted.assign is not None:
        fitted.assign(place / ASSIGNMENTS[0])
        return
    table = fitted.table
    if redact or table.ids is None:
        table = replace(table, ids=row_numbers(table))
    rows = marked(assign(fitted.model, [table]))
    write_assignments(place / assignments_name(), rows)


def row_numbers(table: Any) -> Any:
    """Numbers of the rows in their source, from 1."""
    import numpy as np

    if table.frame is not None:  # its index knows which rows were left out
        return np.asarray(table.frame.index) + 1
    return np.arange(1, table.n_rows + 1)


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
    if (model / MODEL / "manifest.json").is_file():
        return model
    return model.absolute().parent if model.absolute().name == MODEL else model


def read_summary(model: Path) -> dict[str, Any]:
    """The summary beside a model, from which its report is drawn."""
    path = folder_of(model) / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            "E162",
            f'"{path}" is not there, and the report is drawn from it',
            "give the folder that `shoal fit` wrote, or pass the data after the model",
        ) from error
    except (OSError, ValueError) as error:
        raise CommandError(
            "E162", f'"{path}" cannot be read: {error}', "fit again, or pass the data"
        ) from error
    if not isinstance(summary, dict) or "schema" not in summary:
        raise CommandError(
            "E162", f'"{path}" is not a summary of shoal', "fit again, or pass the data"
        )
    return summary
