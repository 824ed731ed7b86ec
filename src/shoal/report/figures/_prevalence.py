"""Who lives where: dots with intervals, stacked bars, groups of domains."""

import os
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from shoal.report._view import MOST_DOMAINS, View, percent
from shoal.report.figures._svg import element, picture, tip

WIDTH = 290
TOP, BOTTOM = 8, 26
VALUE = 54  # room for "100%" at the right
LETTER = 7.0  # width of a letter of a domain's name
LONGEST = 14
# Height of a row, for up to so many domains.
STEPS = ((6, 28.0), (15, 22.0), (30, 17.0), (MOST_DOMAINS, 15.0))
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Textures over the colours of classes: one per colour, the first is plain.
TEXTURES = (
    "",
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",
    "M2 2h.01M6 6h.01",
    "M0 2H8M0 6H8",
    "M-2 6L2 10M0 0L8 8M6 -2L10 2",
    "M2 0V8M6 0V8",
    "M0 4H8M4 0V8",
    "M0 0L8 8M8 0L0 8",
)


def dot_panels(view: View) -> list[Markup]:
    """One panel per class: a dot and two intervals for each domain."""
    return [_dot_panel(view, index) for index in range(len(view.classes))]


def _dot_panel(view: View, index: int) -> Markup:
    names = [view.domain(d) for d in view.shown]
    frame = _Frame(names)
    rows = [_dot_row(view, frame, place, d, index)
            for place, d in enumerate(view.shown)]  # fmt: skip
    return picture(
        view,
        f"where-c{index}",
        (WIDTH, frame.height),
        f"Share of {{c{index}}} in each domain",
        _spoken(view, index),
        [frame.axis(), *rows],
        class_=view.hue(index),
    )


class _Frame:
    """Where domains and shares lie in a panel."""

    def __init__(self, names: list[str]) -> None:
        self.names = clip_names(names)
        widest = max(map(len, self.names), default=0)
        self.left = 16 + LETTER * widest
        self.right = WIDTH - VALUE
        self.step = next(step for most, step in STEPS if len(names) <= most)
        self.height = TOP + self.step * len(names) + BOTTOM

    def x(self, share: float) -> float:
        return self.left + share * (self.right - self.left)

    def y(self, place: int) -> float:
        return TOP + self.step * (place + 0.5)

    def axis(self) -> Markup:
        bottom = self.height - BOTTOM
        lines = [
            element("path", d=f"M{self.x(tick):.1f} {TOP}V{bottom:.1f}", class_="grid")
            for tick in TICKS
        ]
        labels = [
            element(
                "text",
                percent(tick) if tick == 1 else f"{100 * tick:.0f}",
                x=self.x(tick),
                y=bottom + 16,
                class_="tick",
            )
            for tick in TICKS
        ]
        return element("g", *lines, *labels, aria_hidden="true")


def _dot_row(view: View, frame: _Frame, place: int, d: int, index: int) -> Markup:
    y, share = frame.y(place), view.estimate[d][index]
    thin = view.domains[d]["thin"]
    marks: list[Any] = [tip(view, view.reading(d, index))]
    for between, name in ((view.interval(d, index), "wide"),
                          (view.middle(d, index), "half")):  # fmt: skip
        if between is not None:
            low, high = (frame.x(edge) for edge in between)
            marks.append(
                element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_=name)
            )
    marks.append(
        element(
            "circle",
            cx=frame.x(share),
            cy=y,
            r=5.0,
            class_="dot hollow" if thin else "dot",
            data_value=repr(share),
        )
    )
    label = element("text", frame.names[place], x=4, y=y + 4, class_="domain")
    value = element("text", percent(share), x=WIDTH - 4, y=y + 4, class_="value")
    band = element("rect", x=0, y=y - frame.step / 2, width=WIDTH, height=frame.step,
                   class_="band")  # fmt: skip
    return element("g", band, label, *marks, value, class_="row", data_domain=d)


def _spoken(view: View, index: int) -> str:
    """All shares of a class in words, or the extremes where there are many."""
    order = sorted(view.shown, key=lambda d: -view.estimate[d][index])
    if len(order) <= 12:
        return " ".join(view.reading(d, index) for d in view.shown)
    most = " ".join(view.reading(d, index) for d in order[:3])
    least = " ".join(view.reading(d, index) for d in order[-3:])
    return f"Highest: {most} Lowest: {least} All shares are in the table below."


def clip_names(names: Sequence[str]) -> list[str]:
    """Names short enough for a label, with what tells them apart kept.

    Examples
    --------
    >>> clip_names(["Station 01 of the northern river",
    ...             "Station 02 of the northern river"])
    ['Station 01…', 'Station 02…']
    >>> clip_names(["a quite long and only name", "b"])
    ['a quite…y name', 'b']
    """
    if max(map(len, names), default=0) <= LONGEST:
        return list(names)
    common = len(os.path.commonprefix([name[::-1] for name in names]))
    if len(names) > 1 and common > 2:  # an end that all share tells nothing
        return [_clip(name[: len(name) - common].rstrip() + "…") for name in names]
    return [_clip(name) for name in names]


def _clip(name: str) -> str:
    """A name cut in its middle: its end may be what tells it from the others."""
    if len(name) <= LONGEST:
        return name
    end = LONGEST // 2 - 1
    return name[: LONGEST - 1 - end].rstrip() + "…" + name[-end:].lstrip()


# ---- stacked bars ------------------------------------------------------------------


def patterns() -> Markup:
    """Textures that stacked bars and legends refer to."""
    found = [
        element(
            "pattern",
            element("path", d=path, class_="texture"),
            id=f"texture{index}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for index, path in enumerate(TEXTURES)
        if path
    ]
    return element(
        "svg", element("defs", *found), width=0, height=0, aria_hidden="true",
        class_="hidden",
    )  # fmt: skip


def stacked_bars(view: View) -> list[tuple[str, Markup]]:
    """One bar per domain, with the domain's name."""
    return [(view.domain(d), _bar(view, d)) for d in view.shown]


def _bar(view: View, d: int) -> Markup:
    shares = view.estimate[d]
    parts, start = [], 0.0
    for index, share in enumerate(shares):
        place = {"x": percent_of(start), "width": percent_of(share)}
        layers = [element("rect", width="100%", height=26, class_="fill")]
        if index < len(TEXTURES) and TEXTURES[index] and not view.many_classes:
            layers.append(
                element("rect", width="100%", height=26, fill=f"url(#texture{index})")
            )
        if share >= 0.08:
            name = view.name_html(f"c{index}", "tspan")
            label = element("text", name, " ", percent(share), x=7, y=18)
            layers.append(label)
        parts.append(
            element(
                "svg",
                tip(view, view.reading(d, index)),
                *layers,
                **place,
                height=26,
                class_=f"segment {view.hue(index)}",
                data_class=f"c{index}",
            )
        )
        start += share
    said = ", ".join(f"{percent(s)} {{c{i}}}" for i, s in enumerate(shares))
    spoken = f"{view.domain(d)}: {said}"
    return element(
        "svg",
        tip(view, spoken),
        *parts,
        width="100%",
        height=26,
        role="img",
        aria_label=view.named(spoken),
        class_="bar",
    )


def percent_of(share: float) -> str:
    """A share as a width."""
    return f"{100 * share:.3f}%"


def legend(view: View) -> Markup:
    """Names beside their colour and texture."""
    return Markup("").join(
        element(
            "span",
            swatch(view, index),
            view.name_html(group["id"]),
            class_=f"key {view.hue(index)}",
            data_class=group["id"],
            tabindex=0,
        )
        for index, group in enumerate(view.classes)
    )


def swatch(view: View, index: int) -> Markup:
    """A small square of the colour and texture of a class."""
    layers = [element("rect", width=14, height=14, rx=3, class_="fill")]
    if index < len(TEXTURES) and TEXTURES[index] and not view.many_classes:
        layers.append(
            element("rect", width=14, height=14, rx=3, fill=f"url(#texture{index})")
        )
    return element("svg", *layers, width=14, height=14, aria_hidden="true",
                   class_=f"swatch {view.hue(index)}")  # fmt: skip


# ---- groups of domains -------------------------------------------------------------


def group_panels(view: View) -> list[Markup]:
    """One panel per class: the domains of each group as dots, their mean as a line."""
    groups = view.summary["groups"]
    return [_group_panel(view, groups, index) for index in range(len(view.classes))]


def _group_panel(view: View, groups: list[dict[str, Any]], index: int) -> Markup:
    frame = _Frame([group["group"] for group in groups])
    rows = []
    for place, group in enumerate(groups):
        y, mean = frame.y(place), group["mean"][index]
        dots = [
            element(
                "circle",
                tip(view, view.reading(d, index)),
                cx=frame.x(view.estimate[d][index]),
                cy=y,
                r=3.5,
                class_="dot faint",
            )
            for d in group["domains"]
        ]
        line = element(
            "path",
            d=f"M{frame.x(mean):.1f} {y - 9:.1f}v18",
            class_="mean",
            data_value=repr(mean),
        )
        label = element("text", frame.names[place], x=4, y=y + 4, class_="domain")
        value = element("text", percent(mean), x=WIDTH - 4, y=y + 4, class_="value")
        rows.append(element("g", label, *dots, line, value, class_="row"))
    said = "; ".join(
        f"{g['group']} {percent(g['mean'][index])} on average over "
        f"{len(g['domains'])} domains"
        for g in groups
    )
    return picture(
        view,
        f"group-c{index}",
        (WIDTH, frame.height),
        f"Share of {{c{index}}} in groups of domains",
        f"{said}.",
        [frame.axis(), *rows],
        class_=view.hue(index),
    )
