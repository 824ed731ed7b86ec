"""What pages, pictures and other programs ask of a summary, and how much is shown."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from shoal.report._alone import drawn

Record = dict[str, Any]

#: Of every summary; keys are only added within a number.
SCHEMA = "shoal-report/1"
MEGABYTE = 1_000_000
HARD_STOP_MB = 15
MINUS = "\N{MINUS SIGN}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share as people read it.

    Examples
    --------
    >>> percent(0.256)
    '26%'
    """
    return "–" if share is None else f"{100 * share:.{digits}f}%"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "–" if difference is None else signed(round(100 * difference), 0)


def fixed(value: float | None, digits: int) -> str:
    """A number with a fixed number of digits; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", MINUS)


def signed(value: float, digits: int) -> str:
    """A number with its sign; none where it rounds to zero.

    Examples
    --------
    >>> signed(1.25, 1), signed(-0.01, 1)
    ('+1.2', '0.0')
    """
    rounded = round(value, digits)
    sign = "+" if rounded > 0 else MINUS if rounded < 0 else ""
    return f"{sign}{abs(value):.{digits}f}"


def short(value: Any) -> str:
    """A number of any size in four digits; everything else as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value:.0f}".replace("-", MINUS)
    return f"{value:.4g}".replace("-", MINUS)


class View:
    """A summary as page and pictures see it.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`, or that dict after a trip through JSON.
    """

    def __init__(self, summary: Mapping[str, Any]) -> None:
        self.summary = summary
        self.classes = summary["classes"]
        self.domains = summary["domains"]
        self.prevalence = summary["prevalence"]
        self.names = {group["id"]: group["name"] for group in self.classes}
        sizes, thin = (
            [domain[name] for domain in self.domains] for name in ("rows", "thin")
        )
        # domains that pictures show, and which of many these are
        self.shown, self.shown_which = drawn(self.estimate, sizes, thin)
        self._tokens = re.compile(r"\{(c\d+)\}")

    @property
    def estimate(self) -> list[list[float]]:
        """Prevalences, one row per domain."""
        return self.prevalence["estimate"]

    @property
    def many_classes(self) -> bool:
        """More classes than colours."""
        return len(self.classes) > 8

    def hue(self, index: int) -> str:
        """CSS class that carries the colour of a class; none where all are grey."""
        return "grey" if self.many_classes else f"k{index}"

    def domain(self, index: int) -> str:
        """Name of a domain."""
        return str(self.domains[index]["name"])

    def interval(self, d: int, y: int) -> tuple[float, float] | None:
        """The wide interval of a prevalence."""
        low, high = self.prevalence["low"], self.prevalence["high"]
        return None if low is None else (low[d][y], high[d][y])

    def middle(self, d: int, y: int) -> tuple[float, float] | None:
        """The interval that holds half of the resamples."""
        low, high = self.prevalence["low50"], self.prevalence["high50"]
        return None if low is None else (low[d][y], high[d][y])

    def named(self, text: str) -> str:
        """Plain text with names in the place of ``{c0}``."""
        return self._tokens.sub(lambda m: str(self.names.get(m[1], m[0])), text)

    def named_html(self, text: str) -> Markup:
        """The same as HTML, where each name knows its class."""
        parts = self._tokens.split(text)
        return Markup("").join(
            self.name_html(part) if place % 2 and part in self.names else escape(part)
            for place, part in enumerate(parts)
        )

    def name_html(self, class_id: str, tag: str = "span") -> Markup:
        """The name of a class; it changes with the name typed into the page."""
        return Markup("<{0} data-name='{1}'>{2}</{0}>").format(
            Markup(tag), class_id, self.names[class_id]
        )

    def reading(self, d: int, y: int) -> str:
        """One prevalence as a sentence; the class as ``{c0}``."""
        share = percent(self.estimate[d][y])
        said = f"{self.domain(d)}: about {share} {{c{y}}}"
        between = self.interval(d, y)
        if between is None:
            return said + "."
        low, high = (percent(edge) for edge in between)
        level = percent(self.prevalence["level"])
        return f"{said}, very likely ({level}) between {low} and {high}."


# ---- tables that others read out of a summary, and new names for its classes ---------


def prevalence_records(summary: Mapping[str, Any]) -> list[Record]:
    """One record per domain and class, with the columns of ``prevalence.csv``.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`.
    """
    table = summary["prevalence"]
    return [
        {
            "domain": domain["name"],
            "class_id": group["id"],
            "class_name": group["name"],
            "estimate": table["estimate"][d][y],
            "lo": table["low"] and table["low"][d][y],
            "hi": table["high"] and table["high"][d][y],
            "level": table["level"],
            "n_rows": domain["rows"],
            "flag": "thin" if domain["thin"] else "",
        }
        for d, domain in enumerate(summary["domains"])
        for y, group in enumerate(summary["classes"])
    ]


def rename(summary: Mapping[str, Any], names: Mapping[str, str]) -> Record:
    """A copy of the summary with other class names.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`.
    names : mapping of str to str
        New name by id, such as ``{"c0": "Adelie"}``.

    Returns
    -------
    dict
    """
    ids = [group["id"] for group in summary["classes"]]
    unknown = [key for key in names if key not in ids]
    if unknown:
        raise ValueError(f"names has {unknown[0]!r}; classes are {', '.join(ids)}")
    renamed = copy.deepcopy(dict(summary))
    for group in renamed["classes"]:
        group["name"] = str(names.get(group["id"], group["name"]))
    return renamed
