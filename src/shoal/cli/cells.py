"""h5ad files in, h5ad files out: the cells of the input with their classes."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from shoal.cli.messages import CommandError
from shoal.cli.places import filled_file

__all__ = ["CELLS", "h5ad_of", "require_h5ad", "write_cells"]

#: The copy of the input in the folder of a run.
CELLS = "classes.h5ad"


def h5ad_of(data: Sequence[str], format: str | None) -> Path | None:
    """The h5ad file that is the input; None for any other."""
    if len(data) != 1 or data[0] == "-":
        return None
    path = Path(data[0])
    named = path.suffix.lower() == ".h5ad" if format is None else format == "h5ad"
    return path if named and path.is_file() else None


def require_h5ad(data: Sequence[str], format: str | None, *, redact: bool) -> Path:
    """The input of a command whose output is to be an h5ad file."""
    if redact:
        raise CommandError(
            "E002",
            "an h5ad file holds the cells themselves, which --redact leaves out",
            "end --out with .parquet or .csv",
        )
    source = h5ad_of(data, format)
    if source is None:
        raise CommandError(
            "E002",
            f'only an h5ad file can be written as one, not "{data[0]}"',
            "end --out with .parquet or .csv",
        )
    return source


def write_cells(
    path: Path, source: Path, model: Any, frames: Iterable[Any], **facts: Any
) -> None:
    """Copy the cells of ``source`` and add the classes that ``frames`` say."""
    from shoal.io.annotation import Annotation, n_cells_of

    found = Annotation.of(model, frames, n_cells_of(source), **facts)
    with filled_file(path) as place:
        found.write(source, place)
