"""Features by class: a curve or a bar for each, and a heat map of what tells."""

import math
from typing import Any

from markupsafe import Markup

from shoal.report._view import View, fixed, percent, short
from shoal.report.figures._svg import element, number, picture, tip

# ---- feature by feature: a curve or a bar for each class, in all domains or one ------

Record = dict[str, Any]


class _Ridge:
    """Where classes and values lie in a panel."""

    width, top, bottom = 290, 10, 24
    step, curve = 34, 27  # from one class to the next, and height of its curve
    letter, longest = 6.6, 12

    def __init__(self, view: View, feature: Record) -> None:
        names = [min(len(group["name"]), self.longest) for group in view.classes]
        self.left = 14 + self.letter * max(names)
        self.right = self.width - 10
        self.height = self.top + self.step * len(names) + self.bottom
        ends: list[float] = [0, 1] if feature["indicator"] else feature["ends"]
        self.low, self.high = ends
        span = max(self.high - self.low, 1e-9)
        self.digits = max(1 - math.floor(math.log10(span)), 0)

    def x(self, value: float) -> float:
        inside = min(max((value - self.low) / (self.high - self.low), 0), 1)
        return self.left + inside * (self.right - self.left)

    def floor(self, index: int) -> float:
        return self.top + self.step * (index + 1) - 4

    def axis(self, as_shares: bool) -> Markup:
        middle = (self.low + self.high) / 2
        texts = []
        for value, anchor in ((self.low, "start"), (middle, ""), (self.high, "end")):
            text = percent(value) if as_shares else fixed(value, self.digits)
            texts.append(
                element("text", text, x=self.x(value), y=self.height - 6,
                        class_=f"tick {anchor}".strip())
            )  # fmt: skip
        return element("g", *texts, aria_hidden="true")


def look_panels(view: View) -> list[tuple[str, Markup]]:
    """Name and picture of each feature."""
    looks = view.summary["looks"]
    places = ["all domains", *(view.domain(d) for d in looks["domains"])]
    return [
        (feature["feature"], _panel(view, feature, key, places))
        for key, feature in enumerate(looks["features"])
    ]


def _panel(view: View, feature: Record, key: int, places: list[str]) -> Markup:
    ridge = _Ridge(view, feature)
    drawn = zip(feature["slots"], places, strict=True)
    slots = [
        element("g", *_slot(view, ridge, feature, *one), class_=f"slot s{place}")
        for place, one in enumerate(drawn)
    ]
    said = " ".join(
        _spoken(feature, index, one, "all domains")
        for index, one in enumerate(feature["slots"][0])
    )
    names = [
        element("text", view.name_html(f"c{index}", "tspan"), x=4,
                y=ridge.floor(index) - 4, class_="domain")
        for index in range(len(view.classes))
    ]  # fmt: skip
    return picture(
        view,
        f"look-{key}",
        (ridge.width, ridge.height),
        f"{feature['feature']} by class",
        said,
        [ridge.axis(feature["indicator"]), *names, *slots],
        class_="look",
    )


def _slot(
    view: View, ridge: _Ridge, feature: Record, slot: list[Record], place: str
) -> list[Markup]:
    """The classes of one choice of domain, all at the same scale."""
    tallest = max((max(_shares(one)) for one in slot if one["counts"]), default=1.0)
    found = []
    for index, one in enumerate(slot):
        floor = ridge.floor(index)
        parts: list[Any] = [
            tip(view, _spoken(feature, index, one, place)),
            element("rect", x=0, y=floor - ridge.step + 4, width=ridge.width,
                    height=ridge.step, class_="band"),
            element("path", d=f"M{number(ridge.left)} {number(floor)}"
                    f"H{number(ridge.right)}", class_="grid"),
        ]  # fmt: skip
        if one["counts"] is None:
            parts.append(
                element("text", "too few rows", x=ridge.left + 4, y=floor - 5,
                        class_="value small start")
            )  # fmt: skip
        elif feature["indicator"]:
            parts += _bar(ridge, floor, one)
        else:
            parts += _curve(ridge, floor, one, tallest)
        found.append(element("g", *parts, class_=f"row {view.hue(index)}"))
    return found


def _shares(one: Record) -> list[float]:
    return [count / one["rows"] for count in one["counts"]]


def _curve(ridge: _Ridge, floor: float, one: Record, tallest: float) -> list[Markup]:
    """Steps as an area, the middle half of the rows as a line below it."""
    shares = _shares(one)
    wide = (ridge.right - ridge.left) / len(shares)
    path = f"M{number(ridge.left)} {number(floor)}"
    for place, share in enumerate(shares):
        top = floor - ridge.curve * share / max(tallest, 1e-12)
        path += f"V{number(top)}H{number(ridge.left + wide * (place + 1))}"
    low, middle, high = (ridge.x(value) for value in one["quarters"])
    return [
        element("path", d=f"{path}V{number(floor)}Z", class_="fill"),
        element("path", d=f"M{number(low)} {number(floor + 2.5)}H{number(high)}",
                class_="quarters"),
        element("path", d=f"M{number(middle)} {number(floor - 1.5)}v6",
                class_="middle", data_value=repr(one["quarters"][1])),
    ]  # fmt: skip


def _bar(ridge: _Ridge, floor: float, one: Record) -> list[Markup]:
    """How many rows of a class have a property, as a share."""
    share, end = one["mean"], ridge.x(one["mean"])
    inside = share > 0.8
    return [
        element("rect", x=ridge.left, y=floor - 17, width=end - ridge.left, height=15,
                class_="fill", data_value=repr(share)),
        element("text", percent(share), x=end - 5 if inside else end + 5, y=floor - 5,
                class_=f"value small halo{'' if inside else ' start'}"),
    ]  # fmt: skip


def _spoken(feature: Record, index: int, one: Record, place: str) -> str:
    """One class in one choice of domain, in words."""
    name = f"{{c{index}}} in {place}"
    if one["counts"] is None:
        return f"{name}: too few rows."
    rows = f"about {one['rows']:,.0f} rows"
    if feature["indicator"]:
        return f"{name}: {percent(one['mean'])} of {rows}."
    low, middle, high = map(short, one["quarters"])
    return f"{name}: half of {rows} between {low} and {high}, the middle at {middle}."


# ---- a heat map: columns that tell classes apart, by class ---------------------------

# Width and height of a cell, width of a letter, and letters of a name that are shown.
CELL, ROW, LETTER, LONGEST = 20.0, 22.0, 7.6, 16
# What is rarest is still seen to be a cell.
FAINTEST = 0.06


def marks_picture(view: View) -> Markup:
    """Rows are classes, columns the marks of each; the darkest class has most."""
    record = view.summary["marks"]
    marks, levels = record["marks"], record["levels"]
    names = [_cut(mark["name"]) for mark in marks]
    left = 14 + LETTER * max(min(len(one["name"]), LONGEST) for one in view.classes)
    top = 12 + LETTER * max(map(len, names))
    size = left + CELL * len(marks) + 4, top + ROW * len(levels) + 4
    heads = [
        element("text", name, x=0.0, y=0.0, class_="tick start",
                transform=f"translate({left + CELL * place + 14:.1f} {top - 6:.1f}) "
                "rotate(-90)")
        for place, name in enumerate(names)
    ]  # fmt: skip
    rows = [
        element("g", *_row(view, index, left, top), class_=view.hue(index))
        for index in range(len(levels))
    ]
    said = " ".join(
        f"{{c{index}}}: "
        + ", ".join(one["name"] for one in marks if one["of"] == f"c{index}")
        + "."
        for index in range(len(levels))
        if any(one["of"] == f"c{index}" for one in marks)
    )
    return picture(
        view, "marks", size, "Marks of the classes", said, [*heads, *rows],
        class_="heat",
    )  # fmt: skip


def _row(view: View, index: int, left: float, top: float) -> list[Markup]:
    record = view.summary["marks"]
    y = top + ROW * index
    label = view.name_html(f"c{index}", "tspan")
    cells = [element("text", label, x=4.0, y=y + 15, class_="domain")]
    for place, mark in enumerate(record["marks"]):
        level = record["levels"][index][place]
        column = [row[place] for row in record["levels"]]
        low = min(0.0, *column)
        share = (level - low) / max(max(column) - low, 1e-300)
        said = _said(mark["name"], level, record["unit"])
        cells.append(
            element("rect", tip(view, f"{said} in {{c{index}}}"), x=left + CELL * place,
                    y=y, width=CELL - 1, height=ROW - 1, class_="fill",
                    fill_opacity=max(share, FAINTEST))
        )  # fmt: skip
    return cells


def _said(name: str, level: float, unit: str) -> str:
    return f"{name}: {short(level) if unit == 'mean' else _share(level)}"


def _share(level: float) -> str:
    return percent(level) if level >= 0.1 else f"{100 * level:.2g}%"


def _cut(name: Any) -> str:
    text = str(name)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
