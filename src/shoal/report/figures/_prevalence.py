"""Who lives where, and when: dots with intervals, bars, groups, and lines over time."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from shoal.report._settings import SETTINGS
from shoal.report._view import View, percent
from shoal.report.figures._svg import element, percent_of, picture, tip

# Letters of a name beside a picture.
LONGEST = 14
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


class _Frame:
    """Where domains (or groups of them) and shares lie in a panel."""

    width, top, bottom = 290, 8, 26
    value_room, letter = 54, 7.0  # of "100%" at the right, of a letter of a name
    # height of a row, for up to so many of them
    steps = ((6, 28.0), (15, 22.0), (30, 17.0), (SETTINGS.domains_drawn, 15.0))
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)

    def __init__(self, names: list[str]) -> None:
        self.names = clip_names(names)
        self.left = 16 + self.letter * max(map(len, self.names), default=0)
        self.right = self.width - self.value_room
        self.step = next(step for most, step in self.steps if len(names) <= most)
        self.height = self.top + self.step * len(names) + self.bottom

    def x(self, share: float) -> float:
        return self.left + share * (self.right - self.left)

    def y(self, place: int) -> float:
        return self.top + self.step * (place + 0.5)

    def row(self, place: int, share: float, marks: list[Markup]) -> list[Markup]:
        """Name, marks and share of what stands at a place."""
        y = self.y(place) + 4
        label = element("text", self.names[place], x=4, y=y, class_="domain")
        value = element("text", percent(share), x=self.width - 4, y=y, class_="value")
        return [label, *marks, value]

    def axis(self) -> Markup:
        bottom = self.height - self.bottom
        lines = [
            element(
                "path", d=f"M{self.x(t):.1f} {self.top}V{bottom:.1f}", class_="grid"
            )
            for t in self.ticks
        ]
        labels = [
            element("text", percent(t) if t == 1 else f"{100 * t:.0f}", x=self.x(t),
                    y=bottom + 16, class_="tick")
            for t in self.ticks
        ]  # fmt: skip
        return element("g", *lines, *labels, aria_hidden="true")

    def picture(
        self, view: View, index: int, names: tuple[str, str], said: str, rows: Any
    ) -> Markup:
        """The panel of a class; ``names`` are its key and what its shares are of."""
        return picture(
            view,
            f"{names[0]}-c{index}",
            (self.width, self.height),
            f"Share of {{c{index}}} in {names[1]}",
            said,
            [self.axis(), *rows],
            class_=view.hue(index),
        )


# ---- shares of domains ---------------------------------------------------------------


def dot_panels(view: View) -> list[Markup]:
    """One panel per class: a dot and two intervals for each domain."""
    frame = _Frame([view.domain(d) for d in view.shown])
    return [
        frame.picture(
            view,
            index,
            ("where", "each domain"),
            _spoken(view, index),
            [_dot_row(view, frame, *place, index) for place in enumerate(view.shown)],
        )
        for index in range(len(view.classes))
    ]


def _dot_row(view: View, frame: _Frame, place: int, d: int, index: int) -> Markup:
    y, share = frame.y(place), view.estimate[d][index]
    marks: list[Any] = [tip(view, view.reading(d, index))]
    for between, name in ((view.interval(d, index), "wide"),
                          (view.middle(d, index), "half")):  # fmt: skip
        if between is not None:
            low, high = (frame.x(edge) for edge in between)
            marks.append(
                element("path", d=f"M{low:.1f} {y:.1f}H{high:.1f}", class_=name)
            )
    dot = "dot hollow" if view.domains[d]["thin"] else "dot"
    marks.append(
        element("circle", cx=frame.x(share), cy=y, r=5.0, class_=dot,
                data_value=repr(share))
    )  # fmt: skip
    band = element("rect", x=0, y=y - frame.step / 2, width=frame.width,
                   height=frame.step, class_="band")  # fmt: skip
    cells = frame.row(place, share, marks)
    return element("g", band, *cells, class_="row", data_domain=d)


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
        layers = _coloured(view, index, width="100%", height=26)
        if share >= 0.08:
            name = view.name_html(f"c{index}", "tspan")
            layers.append(element("text", name, " ", percent(share), x=7, y=18))
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
    layers = _coloured(view, index, width=14, height=14, rx=3)
    return element("svg", *layers, width=14, height=14, aria_hidden="true",
                   class_=f"swatch {view.hue(index)}")  # fmt: skip


def _coloured(view: View, index: int, **shape: Any) -> list[Markup]:
    """Rectangles with the colour of a class and, where it has one, its texture."""
    layers = [element("rect", **shape, class_="fill")]
    if index < len(TEXTURES) and TEXTURES[index] and not view.many_classes:
        layers.append(element("rect", **shape, fill=f"url(#texture{index})"))
    return layers


# ---- groups of domains -------------------------------------------------------------


def group_panels(view: View) -> list[Markup]:
    """One panel per class: the domains of each group as dots, their mean as a line."""
    groups = view.summary["groups"]
    frame = _Frame([group["group"] for group in groups])
    return [
        frame.picture(
            view,
            index,
            ("group", "groups of domains"),
            "; ".join(
                f"{group['group']} {percent(group['mean'][index])} on average over "
                f"{len(group['domains'])} domains"
                for group in groups
            )
            + ".",
            [_group_row(view, frame, *place, index) for place in enumerate(groups)],
        )
        for index in range(len(view.classes))
    ]


def _group_row(
    view: View, frame: _Frame, place: int, group: dict[str, Any], index: int
) -> Markup:
    y, mean = frame.y(place), group["mean"][index]
    dots = [
        element("circle", tip(view, view.reading(d, index)), cy=y, r=3.5,
                cx=frame.x(view.estimate[d][index]), class_="dot faint row")
        for d in group["domains"]
    ]  # fmt: skip
    line = element("path", d=f"M{frame.x(mean):.1f} {y - 9:.1f}v18", class_="mean",
                   data_value=repr(mean))  # fmt: skip
    return element("g", *frame.row(place, mean, [*dots, line]), class_="row")


# ---- the mix in the order of time: a line with its interval for each class -----------

Record = dict[str, Any]


def trend_panels(view: View) -> list[Markup]:
    """One panel per class: smoothed shares, every time by itself, changes."""
    trend = view.summary["trend"]
    frame = _Time(trend["times"])
    return [
        _panel(view, frame, trend, f"c{index}", index)
        for index in range(len(view.classes))
    ]


def _panel(
    view: View, frame: "_Time", trend: Record, class_id: str, index: int
) -> Markup:
    own = [one for one in trend["shares"] if one["class_id"] == class_id]
    xs = [frame.x(place) for place in frame.places]
    edges = {
        name: [
            f"{x:.1f} {frame.y(one[name]):.1f}" for x, one in zip(xs, own, strict=True)
        ]
        for name in ("low", "high", "estimate")
    }
    band = "L".join([*edges["low"], *edges["high"][::-1]])
    parts = [
        frame.axis(),
        *(frame.change(one) for one in trend["changes"]),
        element("path", d=f"M{band}Z", class_="flow"),
        element("path", d=f"M{'L'.join(edges['estimate'])}", class_="wide"),
        *(
            element(
                "circle",
                element("title", f"{one['time']}: {percent(one['unsmoothed'])} alone"),
                cx=x, cy=frame.y(one["unsmoothed"]), r=2.2, class_="dot faint",
            )
            for x, one in zip(xs, own, strict=True)
        ),
    ]  # fmt: skip
    return picture(
        view,
        f"trend-{class_id}",
        (frame.width, frame.height),
        f"Share of {{{class_id}}} in the order of time",
        ", ".join(f"{one['time']}: {percent(one['estimate'])}" for one in own),
        parts,
        class_=view.hue(index),
    )


class _Time:
    """Times to the right, shares upwards."""

    width, height = 290, 170
    left, right, top, bottom = 36, 12, 10, 26

    def __init__(self, times: list[Any]) -> None:
        self.times = times
        self.places = [_place(time) for time in times]
        self.of = dict(zip(map(str, times), self.places, strict=True))

    def x(self, place: float) -> float:
        first, last = self.places[0], self.places[-1]
        share = (place - first) / (last - first) if last > first else 0.5
        return self.left + share * (self.width - self.left - self.right)

    def y(self, share: float) -> float:
        return self.top + (1 - share) * (self.height - self.top - self.bottom)

    def axis(self) -> Markup:
        across = [
            element("path", d=f"M{self.left} {self.y(t):.1f}H{self.width - self.right}",
                    class_="grid")
            for t in (0.0, 0.5, 1.0)
        ]  # fmt: skip
        shares = [
            element("text", percent(t), x=self.left - 4, y=self.y(t) + 4,
                    class_="tick end")
            for t in (0.0, 0.5, 1.0)
        ]  # fmt: skip
        ends = [(0, "start"), (-1, "end")] if len(self.times) > 1 else [(0, "")]
        times = [
            element("text", self.times[end], x=self.x(self.places[end]),
                    y=self.height - 8, class_=f"tick {side}".strip())
            for end, side in ends
        ]  # fmt: skip
        return element("g", *across, *shares, *times, aria_hidden="true")

    def change(self, one: Record) -> Markup:
        """A dashed line between the times before and after."""
        middle = (self.of[str(one["last"])] + self.of[str(one["first"])]) / 2
        said = f"Change between {one['last']} and {one['first']}"
        return element(
            "path",
            element("title", said),
            d=f"M{self.x(middle):.1f} {self.top}V{self.height - self.bottom}",
            class_="null",
        )


def _place(time: Any) -> float:
    """Where a time lies: a number as it is, a date by its days."""
    return float(
        np.datetime64(time, "D").astype(int) if isinstance(time, str) else time
    )
