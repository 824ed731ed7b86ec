"""How single rows look to people: chosen columns, a snippet of text, or a picture."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.analysis._profile import dense
from shoal.io._images import as_rgb
from shoal.report._gather import ReportRows
from shoal.report._settings import SETTINGS

Record = dict[str, Any]


class RowViewer:
    """Turns row numbers into records that the page can show.

    Parameters
    ----------
    rows : ReportRows
    order : sequence of str
        Features, the most telling first: where there are many, the first are shown.
    telling : list of dict
        For each class, its ``words``.
    """

    def __init__(
        self, rows: ReportRows, order: Sequence[str], telling: list[Record]
    ) -> None:
        self.rows = rows
        self.telling = telling
        self.text_column = _text_column(rows)
        self.columns = self._choose_columns(order)

    def _choose_columns(self, order: Sequence[str]) -> list[Any]:
        rows = self.rows
        if rows.frame is None:
            plain = rows.has_columns and rows.kind == "table"
            names = list(rows.features) if plain else []
        else:
            names = [n for n in rows.frame.columns if n != self.text_column]
        first = [name for name in order if name in set(names)]
        rest = [name for name in names if name not in set(first)]
        chosen = set([*first, *rest][: SETTINGS.columns])
        return [name for name in names if name in chosen]

    def show(self, row: int, index: int) -> Record:
        """Everything the page says of a row as an example of a class."""
        rows = self.rows
        record: Record = {
            "row": int(row),
            "id": str(rows.ids[row]) if rows.ids is not None else str(row),
            "domain": int(rows.codes[row]),
            "p": float(rows.proba[row, index]),
            "values": [self._value(name, row) for name in self.columns],
        }
        if self.text_column is not None:
            words = [entry["word"] for entry in self.telling[index]["words"]]
            text = str(_cell(rows.frame, self.text_column, row))
            record["text"] = snippet(text, words)
        elif rows.has_words:
            record["text"] = _commonest(rows, row)
        if rows.images is not None:
            record["image"] = thumbnail(rows.images(int(row)))
        return record

    def _value(self, name: Any, row: int) -> Any:
        if self.rows.frame is not None:
            return _plain(_cell(self.rows.frame, name, row))
        column = self.rows.features.index(name)
        return _plain(self.rows.X[row, column])


def snippet(text: str, words: Sequence[str]) -> str:
    """The part of a text around the first telling word.

    Examples
    --------
    >>> snippet("a short text", ["text"])
    'a short text'
    """
    text, most = " ".join(text.split()), SETTINGS.snippet_letters
    if len(text) <= most:
        return text
    places = [text.lower().find(word.lower()) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, min(first - most // 4, len(text) - most))
    part = text[start : start + most]
    return "…" * (start > 0) + part + "…" * (start + most < len(text))


def _text_column(rows: ReportRows) -> Any:
    """The column of a text table that holds the text: the one with the longest."""
    if rows.frame is None or rows.kind != "text":
        return None
    few = range(min(rows.n_rows, SETTINGS.text_rows))
    lengths = {}
    for name in rows.frame.columns:
        cells = [_cell(rows.frame, name, row) for row in few]
        if all(isinstance(cell, str) for cell in cells):
            lengths[name] = sum(map(len, cells))
    return max(lengths, key=lengths.__getitem__) if lengths else None


def _cell(frame: Any, name: Any, row: int) -> Any:
    column = frame[name]
    return column.iloc[row] if hasattr(column, "iloc") else column[int(row)]


def _commonest(rows: ReportRows, row: int) -> str:
    counts = np.ravel(dense(rows.X[[row]]))
    order = np.argsort(-counts, kind="stable")[: SETTINGS.words]
    return ", ".join(
        f"{rows.features[column]} × {counts[column]:g}"
        for column in order
        if counts[column] > 0
    )


def _plain(value: Any) -> Any:
    """A cell as JSON knows it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    text, most = str(value), SETTINGS.cell_letters
    return text if len(text) <= most else text[: most - 1] + "…"


# ---- small pictures inside the page --------------------------------------------------


def thumbnail(image: Any, pixels: int = SETTINGS.pixels) -> str:
    """An image as a ``data:`` address, without its metadata.

    Parameters
    ----------
    image : bytes or ndarray of uint8
        A PNG, JPEG or WebP file, or pixels of shape (height, width) or (height, width,
        channels).
    pixels : int, default=96
        Most pixels on each side; smaller images are kept as they are.

    Returns
    -------
    str
        ``data:image/webp;base64,...``
    """
    picture = as_rgb(_open(image))
    picture.thumbnail((pixels, pixels))
    buffer = io.BytesIO()
    # Written anew: a camera's place and time do not travel along.
    picture.save(buffer, format="WEBP", quality=SETTINGS.quality, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def shrink(address: str, pixels: int) -> str:
    """The same thumbnail with fewer pixels."""
    return thumbnail(base64.b64decode(address.partition(",")[2]), pixels)


def _open(image: Any) -> Any:
    from PIL import Image

    if isinstance(image, (bytes, bytearray, memoryview)):
        return Image.open(io.BytesIO(bytes(image)))
    values = np.asarray(image)
    if values.dtype != np.uint8:
        raise TypeError(
            f"images must give bytes or arrays of uint8, got an array of {values.dtype}"
        )
    return Image.fromarray(values.squeeze(-1) if values.shape[-1] == 1 else values)
