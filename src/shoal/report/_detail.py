"""How much a page shows, and what goes first when it would be too large."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.report._settings import SETTINGS

Record = dict[str, Any]


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
