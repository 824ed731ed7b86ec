"""What the templates ask for, section by section, and the one HTML file."""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from shoal.io._files import write_whole
from shoal.io._notation import visible
from shoal.report._assets import FIRST_SCRIPT, TEMPLATES, asset, policy
from shoal.report._cards import QUESTIONS, UNPROVEN
from shoal.report._settings import SETTINGS
from shoal.report._view import (
    HARD_STOP_MB,
    MEGABYTE,
    SCHEMA,
    Detail,
    View,
    cut,
    fixed,
    percent,
    points,
    short,
    signed,
    steps_for,
)
from shoal.report.figures import _prevalence, _svg
from shoal.report.figures._checks import check_bar, choice_panels, gauges
from shoal.report.figures._flows import neighbours_picture, tree_picture
from shoal.report.figures._looks import look_panels, marks_picture
from shoal.report.figures._maps import MOST_PANELS, Map
from shoal.report.figures._prevalence import trend_panels

# ---- what the templates ask for ------------------------------------------------------

Record = dict[str, Any]

#: Results that a program may want, kept in the page.
RESULTS = (
    "schema",
    "title",
    "kind",
    "redacted",
    "size",
    "made",
    "source",
    "columns",
    "domains",
    "classes",
    "verdict",
    "prevalence",
    "differences",
    "groups",
    "checks",
    "reruns",
    "choice",
    "neighbours",
    "score",
)
STATUS = {
    "ok": "no sign of a problem found",
    "caution": "caution",
    "fail": "problem",
}
VERDICTS = {
    "clear": ("ok", "Clear"),
    "caution": ("caution", "Use with caution"),
    "do not use": ("fail", "Do not use"),
    "not checked": ("unknown", "Not checked"),
}


class PageContent:
    """A summary, cut to size, as the templates see it."""

    status = STATUS
    unproven = UNPROVEN
    most_panels = MOST_PANELS

    def __init__(
        self, summary: Mapping[str, Any], detail: Detail, sections: list[str]
    ) -> None:
        self.summary = summary
        self.view = View(summary)
        self.detail = detail
        self.sections = [name for name in sections if self._has(name)]

    def _has(self, section: str) -> bool:
        """Whether there is anything to say."""
        content = {
            "differences": self.summary["differences"] or self.summary["groups"],
            "trend": self.summary.get("trend"),
            "features": self.summary.get("looks"),
            "map": self.summary["maps"],
            "trust": self.summary["checks"],
            "uncertainty": self.summary["prevalence"]["low"] or self.summary["reruns"],
            "choice": self.summary["choice"] or self.summary["neighbours"],
            "score": self.summary["score"],
        }
        return bool(content.get(section, True))

    def results(self) -> Record:
        """What a program may want of the page."""
        keys = RESULTS if self.detail.data else ("schema", "classes")
        return {key: self.summary[key] for key in keys}

    @property
    def table_domains(self) -> list[int]:
        """Domains in the table of shares: all, or the largest, in their order."""
        sizes = [domain["rows"] for domain in self.summary["domains"]]
        order = sorted(range(len(sizes)), key=lambda d: (-sizes[d], d))
        return sorted(order[: self.detail.table_rows])

    # ---- verdict and names --------------------------------------------------------

    @property
    def verdict(self) -> tuple[str, str]:
        """Status and words of the verdict."""
        return VERDICTS[self.summary["verdict"]["word"]]

    @property
    def set_aside(self) -> list[Record]:
        """Columns that the fit did not use."""
        used = ("feature", "domain")
        return [entry for entry in self.summary["columns"] if entry["role"] not in used]

    @property
    def name_command(self) -> str:
        """The command that puts the names into the model."""
        path = self.summary["made"]["model_path"]
        return f"shoal name {shlex.quote(path) if path else 'MODEL'} --from names.json"

    def homes(self, card: Record) -> list[int]:
        """Domains with most rows of a class, in the order of all domains."""
        rows = card["rows_by_domain"]
        most = sorted(range(len(rows)), key=lambda d: -rows[d])[: SETTINGS.homes]
        cut = len(most) < len(rows)  # where some are left out, empty ones are first
        return sorted(d for d in most if rows[d] or not cut)

    # ---- pictures -----------------------------------------------------------------

    def maps(self) -> list[Map]:
        """Views of the rows as points."""
        return [
            Map(self.view, record, self.detail.map_share)
            for record in self.summary["maps"]
        ]

    def trend_panels(self) -> list[Markup]:
        """The mix in the order of time, class by class."""
        return trend_panels(self.view)

    def marks(self) -> Markup | None:
        """The heat map of what tells classes apart; None of a few columns."""
        return marks_picture(self.view) if self.summary.get("marks") else None

    def look_panels(self) -> list[tuple[str, Markup]]:
        """How the most telling features are spread, class by class."""
        return look_panels(self.view)

    def look_places(self) -> list[str]:
        """Where they can be looked at."""
        looks = self.summary["looks"]
        return ["All domains", *(self.view.domain(d) for d in looks["domains"])]

    def neighbours(self) -> Markup:
        """Fits with one class fewer and more beside this one."""
        return neighbours_picture(self.view)

    def difference_scale(self) -> _svg.DifferenceScale:
        """The axis of the largest differences."""
        return _svg.DifferenceScale(self.summary["differences"])

    def choice_panels(self) -> list[tuple[str, str, Markup]]:
        """Curves over the number of classes."""
        return choice_panels(self.view) if self.summary["choice"] else []

    # ---- checks -------------------------------------------------------------------

    def questions(self) -> list[Record]:
        """Each question with its worst status, its bar and its findings."""
        checks = self.summary["checks"]
        bars = gauges(checks)
        found = []
        for question, why in QUESTIONS:
            own = [f for f in checks["findings"] if f["question"] == question]
            status = {finding["code"]: finding["status"] for finding in own}
            gauge = bars[question]
            found.append(
                {
                    "question": question,
                    "why": why,
                    "status": _worst(list(status.values())),
                    "gauge": gauge,
                    "bar": check_bar(gauge, status[gauge.code]),
                    "findings": own,
                }
            )
        return found

    def heat(self) -> list[tuple[int, list[float | None]]]:
        """How far each class lies from its mean in each shown domain.

        None where the class has too few rows there to say.
        """
        table = self.summary["checks"]["numbers"]["class_domain_shift"]
        found = []
        for d in self.view.shown:
            rows = self.view.domains[d]["rows"]
            seen = [
                share * rows >= SETTINGS.rows_to_compare
                for share in self.view.estimate[d]
            ]
            shifts = [table[y][d] if enough else None for y, enough in enumerate(seen)]
            found.append((d, shifts))
        return found

    # ---- uncertainty --------------------------------------------------------------

    def spread(self, d: int, y: int) -> tuple[float | None, float | None]:
        """Half the width of an estimate's interval, and of its range over re-runs."""
        between, reruns = self.view.interval(d, y), self.summary["reruns"]
        sampling = None if between is None else (between[1] - between[0]) / 2
        rerun = None
        if reruns is not None:
            rerun = (reruns["high"][d][y] - reruns["low"][d][y]) / 2
        return sampling, rerun

    def rows_wanted(self, d: int) -> int | None:
        """Rows that would bring every share of a domain to within five points."""
        if self.view.prevalence["low"] is None:
            return None
        widest = max(self.spread(d, y)[0] or 0.0 for y in range(len(self.view.classes)))
        excess = widest / SETTINGS.half_width
        rows = self.view.domains[d]["rows"]
        return round(rows * excess**2) if widest > SETTINGS.half_width else None


def _worst(statuses: list[str]) -> str:
    return next((s for s in ("fail", "caution") if s in statuses), "ok")


# ---- from a summary to one HTML file -------------------------------------------------

#: Sections of the page after the verdict, in reading order.
SECTIONS = (
    "where",
    "trend",
    "differences",
    "classes",
    "features",
    "map",
    "trust",
    "uncertainty",
    "choice",
    "score",
    "reproduce",
)


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
        Size to stay below, at most 15. Domains beyond the first thousand in tables,
        pictures, rows and points are left out, in this order, until the page fits; the
        page says what was left out.
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
    wanted, summary = _check_sections(sections), _shown(summary)
    left_out: list[str] = []
    for detail in steps_for(summary):
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


def _shown(value: Any) -> Any:
    """A summary with every control character in its texts spelled out."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(one) for key, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list) else value


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
    style, script = asset("report.css"), asset("report.js")
    return _template().render(
        page=page,
        view=page.view,
        figures=_prevalence,
        cells=_svg,
        tree=tree_picture(page.view),
        summary=summary,
        left_out=left_out,
        data=_embedded(page.results()),
        style=style,
        script=script,
        first_script=FIRST_SCRIPT,
        policy=policy(style, FIRST_SCRIPT, script),
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
