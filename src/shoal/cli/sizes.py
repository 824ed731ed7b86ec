"""How many rows a file may have, without reading it: for the time left."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["guess_rows"]

SAMPLE_BYTES = 65_536


def guess_rows(data: Sequence[str]) -> float | None:
    """About how many rows some files have together; None where nothing can be said."""
    guesses = [_guess(Path(name)) for name in data]
    known = [guess for guess in guesses if guess is not None]
    return sum(known) if len(known) == len(guesses) else None


def _guess(path: Path) -> float | None:
    if not path.is_file():
        return None
    if path.suffix == ".parquet":
        from shoal.io.extras import require

        parquet = require("pyarrow.parquet", "parquet", "reading parquet files")
        return float(parquet.ParquetFile(path).metadata.num_rows)
    if path.suffix in (".csv", ".tsv"):
        with path.open("rb") as file:
            head = file.read(SAMPLE_BYTES)
        lines = max(head.count(b"\n"), 1)
        return path.stat().st_size * lines / max(len(head), 1)
    return None
