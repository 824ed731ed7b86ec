"""How much a page shows, and what goes first when it would be too large."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["STEPS", "Detail", "cut"]

Record = dict[str, Any]

MEGABYTE = 1_000_000
HARD_STOP_MB = 15


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
    said : str
        What the page says about this step; empty for the full page.
    """

    borderline_images: int = 6
    exemplars: int = 4
    pixels: int = 96
    map_share: float = 1.0
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


def cut(summary: Mapping[str, Any], detail: Detail) -> Record:
    """The summary with no more than ``detail`` allows; the original stays."""
    less = dict(summary)
    less["cards"] = [_cut_card(card, detail) for card in summary["cards"]]
    if detail.map_share == 0:
        less["maps"] = []
    return less


def _cut_card(card: Record, detail: Detail) -> Record:
    card = copy.deepcopy(card)
    for place, row in enumerate(card["borderline"]):
        if place >= detail.borderline_images:
            row.pop("image", None)
    for home in card["exemplars"]:
        home["rows"] = home["rows"][: detail.exemplars]
    if detail.pixels < Detail.pixels:
        from shoal.report.thumbnails import shrink

        shown = [row for home in card["exemplars"] for row in home["rows"]]
        for row in [*shown, *card["borderline"]]:
            if "image" in row:
                row["image"] = shrink(row["image"], detail.pixels)
    return card
