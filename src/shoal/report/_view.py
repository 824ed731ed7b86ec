"""What pages, pictures and other programs ask of a summary, and how much is shown."""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup, escape

from shoal.report._settings import SETTINGS

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


# ---- which of many domains are looked at one by one ----------------------------------
# Of thousands of thin domains, those that differ most are those whose few rows chance
# has drawn from one class: a list of them is a list of accidents.


def looked_at(thin: Sequence[bool]) -> list[int]:
    """Domains whose own shares are told: all of a few; of many, those not thin."""
    if len(thin) <= SETTINGS.domains_drawn:
        return list(range(len(thin)))
    return [d for d, few_rows in enumerate(thin) if not few_rows]


def drawn(
    estimate: Sequence[Sequence[float]], sizes: Sequence[int], thin: Sequence[bool]
) -> tuple[list[int], str]:
    """Domains that pictures show, and which these are (nothing where it is all).

    Those furthest from the mean mix; where all are thin, the largest.
    """
    n_domains = len(estimate)
    if n_domains <= SETTINGS.domains_drawn:
        return list(range(n_domains)), ""
    among = looked_at(thin)
    if not among:
        order = sorted(range(n_domains), key=lambda d: (-sizes[d], d))
        which = "with most rows, all of them thin"
    else:
        mean = [sum(column) / n_domains for column in zip(*estimate, strict=True)]
        away = {
            d: max(abs(a - b) for a, b in zip(estimate[d], mean, strict=True))
            for d in among
        }
        order = sorted(among, key=lambda d: (-away[d], d))
        which = "whose mix differs most from the average"
        which += ", thin ones left out" * (len(among) < n_domains)
    return sorted(order[: SETTINGS.domains_drawn]), which


# ---- how much a page shows, and what goes first when it would be too large -----------


@dataclass(frozen=True)
class Detail:
    """Amounts that a page may show.

    Attributes
    ----------
    borderline_images : int
        Pictures of borderline rows for each class.
    exemplars : int
        Surest rows for each class and domain.
    pixels : int
        Side of a thumbnail.
    map_share : float
        Share of the points of the maps; 0 leaves the maps out.
    table_rows : int
        Domains in the table of shares; None: all.
    data : bool
        Whether the page holds what it offers to download.
    said : str
        What the page says about this step; empty for the full page.
    """

    borderline_images: int = SETTINGS.borderline
    exemplars: int = SETTINGS.exemplars
    pixels: int = SETTINGS.pixels
    map_share: float = 1.0
    table_rows: int | None = None
    data: bool = True
    said: str = ""


#: From the full page down to the smallest.
STEPS = (
    Detail(),
    Detail(2, said="all but 2 pictures of borderline rows per class"),
    Detail(0, said="the pictures of borderline rows"),
    Detail(0, 2, said="half of the surest rows (2 per class and domain are shown)"),
    Detail(0, 1, said="most of the surest rows (1 per class and domain is shown)"),
    Detail(0, 1, 64, said="size of the pictures (64 pixels)"),
    Detail(0, 1, 40, said="size of the pictures (40 pixels)"),
    Detail(0, 1, 40, 0.5, said="half of the points of the maps"),
    Detail(0, 1, 40, 0.1, said="nine of ten points of the maps"),
    Detail(0, 1, 40, 0.0, said="the maps"),
)


def steps_for(summary: Mapping[str, Any]) -> list[Detail]:
    """The steps that save something on this page.

    With thousands of domains, it is their numbers that are large, and nobody reads them
    here: they go before any picture does.
    """
    full, *less = [one for one in STEPS if not one.said or _matters(summary, one)]
    n_domains, most = len(summary["domains"]), SETTINGS.table_rows
    if n_domains <= most:
        return [full, *less]
    said = f"all but the {most:,} largest of {n_domains:,} domains in the table"
    short = replace(full, table_rows=most, said=said)
    bare = replace(short, data=False, said="tables to download from this page")
    return [
        full,
        short,
        bare,
        *(replace(one, table_rows=most, data=False) for one in less),
    ]


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
        for rows in (
            card["borderline"],
            card.get("disputed", []),
            *(home["rows"] for home in card["exemplars"]),
        )
        for row in rows
        if "image" in row
    ]


def cut(summary: Mapping[str, Any], detail: Detail) -> Record:
    """The summary with no more than ``detail`` allows; the original stays."""
    less = dict(summary)
    less["cards"] = [_cut_card(card, detail) for card in summary["cards"]]
    if detail.map_share == 0:
        less["maps"] = []
    return less


def _cut_card(card: Record, detail: Detail) -> Record:
    card = copy.deepcopy(card)
    doubtful = [card["borderline"], card.get("disputed", [])]
    for rows in doubtful:
        for row in rows[detail.borderline_images :]:
            row.pop("image", None)
    for home in card["exemplars"]:
        home["rows"] = home["rows"][: detail.exemplars]
    if detail.pixels < Detail.pixels:
        from shoal.report._gather import shrink

        shown = [row for home in card["exemplars"] for row in home["rows"]]
        for row in [*shown, *doubtful[0], *doubtful[1]]:
            if "image" in row:
                row["image"] = shrink(row["image"], detail.pixels)
    return card
