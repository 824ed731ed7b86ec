"""The mix in the order of time: a line with its interval for each class."""

from typing import Any

import numpy as np
from markupsafe import Markup

from shoal.report._view import View, percent
from shoal.report.figures._svg import element, picture

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
