"""What ``check`` says about a table before any fit."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shoal.cli.messages import Message
from shoal.cli.redacting import safe_source

if TYPE_CHECKING:
    from shoal.io import Table

__all__ = ["describe", "remarks"]

# Rows looked at for leaks and copies; more would only sharpen the second digit.
MOST_ROWS = 20_000
SHOWN_LEAKS = 5
# Measured on generated tables: copies of the rows that a fit holds at its peak.
COPIES = 6
# Processor seconds of a fit with all its stages on generated tables of 10 columns: to
# start, for each thousand rows up to MANY, and for each thousand beyond. A guess.
TO_START, PER_THOUSAND, BEYOND, MANY = 3.0, 2.2, 0.4, 10_000
# Of images nothing is known before they are embedded.
UNSEEN = {
    "rows_looked_at": 0,
    "leaks": {},
    "repeated_rows": 0,
    "repeated_excess": None,
}


def describe(table: "Table", seed: int, *, redact: bool = False) -> dict[str, Any]:
    """Columns, domains, leaks, copies and size, as plain numbers and words.

    With ``redact``, without words that may come from a cell or a path.
    """
    import numpy as np

    domains, codes = np.unique(np.asarray(table.domains, str), return_inverse=True)
    sizes, has_columns = np.bincount(codes), table.X is not None
    return {
        "kind": table.kind,
        "source": safe_source(table.source) if redact else table.source,
        "n_rows": table.n_rows,
        "n_features": len(table.feature_names),
        "columns": [
            {"name": one.name, "role": one.role, "reason": "" if redact else one.reason}
            for one in table.columns
        ],
        "domains": dict(zip(domains.tolist(), sizes.tolist(), strict=True)),
        "largest_k": len(domains),
        "images": None if has_columns else _describe_images(table.frame),
        "megabytes": COPIES * _bytes(table.X) / 1e6,
        "seconds_to_fit": _seconds(table.n_rows),
        **(_look(table, codes, np.random.default_rng(seed)) if has_columns else UNSEEN),
    }


def _describe_images(frame: Any) -> dict[str, Any]:
    """Formats of the files, and the least and largest width and height."""
    return {
        "formats": {
            str(name): int(n) for name, n in frame["format"].value_counts().items()
        },
        "width": [int(frame["width"].min()), int(frame["width"].max())],
        "height": [int(frame["height"].min()), int(frame["height"].max())],
    }


def remarks(found: dict[str, Any]) -> Iterator[Message]:
    """What of it deserves a warning, by the thresholds of a diagnosis."""
    from shoal.analysis.diagnose.thresholds import THRESHOLDS
    from shoal.io.names import quoted

    for name, accuracy in found["leaks"].items():
        if accuracy >= THRESHOLDS["leak"]:
            yield Message(
                "W121",
                f'"{name}" alone names the domain in {accuracy:.0%} of rows',
                f"--drop {quoted(name)} unless it is a property of the class",
            )
    copies, looked = found["repeated_rows"], found["rows_looked_at"]
    if copies > THRESHOLDS["repeats"] * looked and (found["repeated_excess"] or 3) > 2:
        yield Message(
            "W122",
            f"{copies} of {looked} rows occur in more than one domain",
            "remove copies; they pull the domains together",
        )


def _look(table: "Table", codes: Any, rng: Any) -> dict[str, Any]:
    """Columns that alone name the domain, and rows with a copy in another domain."""
    import numpy as np

    from shoal.analysis.diagnose.table import find_repeats, naming_columns

    rows = np.arange(len(codes))
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    X, codes = table.X[rows], codes[rows]
    accuracy = naming_columns(X, codes, rng)
    ranked = sorted(accuracy, key=accuracy.__getitem__, reverse=True)[:SHOWN_LEAKS]
    is_bag = table.kind in ("counts", "text")  # short texts are alike by chance
    repeats = None if is_bag else find_repeats(X, codes)
    excess = None if repeats is None or np.isinf(repeats.excess) else repeats.excess
    return {
        "rows_looked_at": len(rows),
        "leaks": {table.feature_names[index]: accuracy[index] for index in ranked},
        "repeated_rows": 0 if repeats is None else repeats.n_rows,
        "repeated_excess": excess,
    }


def _seconds(n_rows: int) -> float:
    few, more = min(n_rows, MANY), max(n_rows - MANY, 0)
    return TO_START + (PER_THOUSAND * few + BEYOND * more) / 1000


def _bytes(X: Any) -> int:
    if X is None:
        return 0
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    return sum(part.nbytes for part in parts)
