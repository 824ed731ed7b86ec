"""What a table looks like, and which of its columns could be the domain."""

from pathlib import Path
from typing import Any

from shoal.app._settings import PAGE

Record = dict[str, Any]


def preview(path: Path) -> Record:
    """The first rows, every column, and the candidates for the domain.

    Raises
    ------
    shoal.exceptions.CodedError
        Where the file cannot be read, as ``shoal fit`` would.
    """
    from shoal.io._options import SourceOptions
    from shoal.io.source._open import open_content
    from shoal.io.table._columns import looks_like_label
    from shoal.io.table._domains import domain_candidates
    from shoal.io.table._tidy import tidy

    content = open_content(str(path), SourceOptions(require_domain=False))
    frame = tidy(content.frame, content.decimal)
    known = [str(name) for name in frame.columns]
    columns = []
    for name in known:
        values = frame[name].dropna()
        n_values = int(values.nunique())
        columns.append(
            {
                "name": name,
                "n_values": n_values,
                "values": [_cell(one) for one in values.unique()[: PAGE.values]],
                "label": looks_like_label(name, n_values, len(frame), known),
            }
        )
    shown = frame.iloc[: PAGE.preview_rows, : PAGE.preview_columns]
    return {
        "n_rows": len(frame),
        "columns": columns,
        "candidates": [name for name, _ in domain_candidates(frame)],
        "head": known[: PAGE.preview_columns],
        "rows": [[_cell(one) for one in row] for row in shown.to_numpy(dtype=object)],
    }


def _cell(value: Any) -> str:
    """A cell as people write it: 181, not 181.0."""
    if value is None or value != value:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
