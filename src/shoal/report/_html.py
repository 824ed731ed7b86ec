"""One offline HTML file: from a summary, or about a fit in one call."""

import base64
import hashlib
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
from shoal.io._notation import visible
from shoal.report._page import PageContent
from shoal.report._summary import summarize
from shoal.report._view import (
    HARD_STOP_MB,
    MEGABYTE,
    SCHEMA,
    Detail,
    cut,
    fixed,
    percent,
    points,
    short,
    signed,
    steps_for,
)
from shoal.report.figures import _prevalence, _svg
from shoal.report.figures._flows import tree_picture

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
        Some of them, such as ``["where", "trust"]``; all when None. The verdict is
        always there.

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


# ---- style and scripts, and the policy that allows these and nothing else ------------

TEMPLATES = Path(__file__).parent / "templates"

#: Runs before anything is drawn: what needs scripts may now be shown.
FIRST_SCRIPT = Markup('document.documentElement.classList.add("js")')


def policy(style: str, *scripts: str) -> Markup:
    """What the page allows itself: this style, these scripts, pictures inside it."""
    allowed = " ".join(_hash(script) for script in scripts)
    return Markup(
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def asset(name: str) -> Markup:
    """A file beside the templates, as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


# ---- about a fit in one call ---------------------------------------------------------


def report(
    model: Any,
    X: Any,
    domains: Any = None,
    path: Any = "report.html",
    *,
    n_resamples: int = 200,
    random_state: int = 0,
    max_mb: float = 5,
    sections: Sequence[str] | None = None,
    **options: Any,
) -> Path:
    """Resample, diagnose and describe a fit, and write the page about it.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows of fit.
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    path : path-like, default="report.html"
        Replaced when it exists.
    n_resamples : int, default=200
        Behind the intervals; 0 for none.
    random_state : int, default=0
        Of the resamples, the checks and the points of the map.
    max_mb : float, default=5
    sections : sequence of str, default=None
        As in :func:`shoal.report.render`.
    **options
        Those of :func:`shoal.report.summarize`; ``intervals`` and ``diagnosis`` are
        computed unless they are given.

    Returns
    -------
    pathlib.Path
        Of the page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from shoal import DomainMixture
    >>> from shoal.datasets import load_penguins
    >>> data = load_penguins(as_frame=True)
    >>> model = DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(data.X, data.domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model.report(data.X, data.domains, Path(folder) / "birds.html",
    ...                         n_resamples=20, title="Penguins")
    ...     page.name, "Penguins" in page.read_text(encoding="utf-8")
    ('birds.html', True)
    """
    seed = {"random_state": random_state}
    if "diagnosis" not in options:
        options["diagnosis"] = model.diagnose(X, domains, **seed)
    if "intervals" not in options and n_resamples:
        drawn = model.bootstrap(X, domains, n_resamples=n_resamples, **seed)
        options["intervals"] = drawn
    if hasattr(X, "columns"):
        options = {"frame": X} | options
    summary = summarize(model, X, domains, seed=random_state, **options)
    return Path(write(summary, path, max_mb=max_mb, sections=sections)["path"])
