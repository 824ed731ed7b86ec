"""From a summary to one HTML file that needs nothing else."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from shoal.io._files import write_whole
from shoal.report._page import PageContent
from shoal.report._view import (
    HARD_STOP_MB,
    MEGABYTE,
    SCHEMA,
    STEPS,
    Detail,
    cut,
    fixed,
    percent,
    points,
    short,
    signed,
)
from shoal.report.figures import _cells, _prevalence

#: Sections of the page after the verdict, in reading order.
SECTIONS = (
    "where",
    "differences",
    "classes",
    "map",
    "trust",
    "uncertainty",
    "choice",
    "score",
    "reproduce",
)
TEMPLATES = Path(__file__).parent / "templates"


def render(
    summary: Mapping[str, Any],
    *,
    max_mb: float = 5,
    sections: Sequence[str] | None = None,
) -> str:
    """Turn a summary into one HTML page that works offline.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`, or the same read back from JSON.
    max_mb : float, default=5
        Size to stay below, at most 15. Pictures, rows and points are left out, in this
        order, until the page fits; the page says what was left out.
    sections : sequence of str, default=None
        Some of :data:`SECTIONS`; all when None. The verdict is always there.

    Returns
    -------
    str
    """
    return _fit(summary, max_mb, sections)[0]


def write(
    summary: Mapping[str, Any],
    path: Any,
    *,
    max_mb: float = 5,
    sections: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Render a summary into a file, whole or not at all.

    Parameters
    ----------
    summary : dict
    path : path-like
        Replaced when it exists.
    max_mb : float, default=5
    sections : sequence of str, default=None

    Returns
    -------
    dict
        ``path``, ``bytes`` and ``left_out``, a list of what did not fit.
    """
    text, left_out = _fit(summary, max_mb, sections)
    target, content = Path(path), text.encode()
    write_whole(target, content)
    return {"path": target, "bytes": len(content), "left_out": left_out}


def _fit(
    summary: Mapping[str, Any], max_mb: float, sections: Sequence[str] | None
) -> tuple[str, list[str]]:
    """The fullest page below the size, and what it leaves out."""
    if not 0 < max_mb <= HARD_STOP_MB:
        raise ValueError(
            f"max_mb must lie between 0 and {HARD_STOP_MB}, got {max_mb!r}"
        )
    if summary.get("schema") != SCHEMA:
        raise ValueError(
            f"summary has schema {summary.get('schema')!r}; this version of shoal "
            f"renders {SCHEMA!r}"
        )
    wanted = _check_sections(sections)
    left_out: list[str] = []
    for detail in STEPS:
        if detail.said and not _matters(summary, detail):
            continue
        left_out = left_out + [detail.said] if detail.said else []
        text = _build(cut(summary, detail), detail, wanted, left_out)
        if len(text.encode()) <= max_mb * MEGABYTE:
            return text, left_out
    # rounded up, so that the number said is a limit that would do
    size = math.ceil(len(text.encode()) / MEGABYTE * 100) / 100
    if size > HARD_STOP_MB:
        raise ValueError(
            f"the report needs {size:.2f} MB, more than {HARD_STOP_MB}; pass fewer "
            "sections"
        )
    return text, [*left_out, f"nothing more: the page needs {size:.2f} MB"]


def _matters(summary: Mapping[str, Any], detail: Detail) -> bool:
    """Whether a step saves anything here: not every page has pictures."""
    if "map" in detail.said:
        return bool(summary["maps"])
    if "pictures" in detail.said:
        return any(_pictures(summary))
    return any(card["exemplars"] for card in summary["cards"])


def _pictures(summary: Mapping[str, Any]) -> list[str]:
    return [
        row["image"]
        for card in summary["cards"]
        for rows in (card["borderline"], *(home["rows"] for home in card["exemplars"]))
        for row in rows
        if "image" in row
    ]


def _check_sections(sections: Sequence[str] | None) -> list[str]:
    if sections is None:
        return list(SECTIONS)
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise ValueError(
            f"sections has {unknown[0]!r}; there are {', '.join(SECTIONS)}"
        )
    return [name for name in SECTIONS if name in sections]


def _build(
    summary: Mapping[str, Any],
    detail: Detail,
    sections: list[str],
    left_out: list[str],
) -> str:
    page = PageContent(summary, detail, sections)
    return _template().render(
        page=page,
        view=page.view,
        figures=_prevalence,
        cells=_cells,
        summary=summary,
        left_out=left_out,
        data=_embedded(page.results()),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        script=Markup((TEMPLATES / "report.js").read_text(encoding="utf-8")),
    )


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "points": points,
        "short": short,
        "fixed": fixed,
        "signed": signed,
        "marked": mark_words,
    }
    return environment.get_template("report.html")


def _embedded(results: Mapping[str, Any]) -> Markup:
    """JSON inside a script element: nothing in it may end the element."""
    text = json.dumps(results, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


def mark_words(text: str, words: Sequence[str]) -> Markup:
    """HTML of a text with some of its words marked.

    Examples
    --------
    >>> mark_words("Fish & chips", ["fish"])
    Markup('<mark>Fish</mark> &amp; chips')
    """
    if not words:
        return escape(text)
    longest_first = sorted(words, key=len, reverse=True)
    found = re.compile(
        r"(?<!\w)(" + "|".join(map(re.escape, longest_first)) + r")(?!\w)",
        re.IGNORECASE,
    )
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(found.split(text))
    )
