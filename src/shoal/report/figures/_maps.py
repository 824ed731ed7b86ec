"""Rows as points: each point is written once and drawn wherever it is wanted."""

from collections import defaultdict
from typing import Any

from markupsafe import Markup

from shoal.report._view import View, percent
from shoal.report.figures._svg import element, number, picture, tip

# Domains with a picture of their own.
MOST_PANELS = 12
GOLDEN = 0.6180339887498949
# Width of a letter of a label and height of a line of them, in steps of the picture.
LETTER, LINE = 9.0, 19.0
Label = tuple[float, float, float]  # middle, height, half the width


class Map:
    """One view of the rows.

    Parameters
    ----------
    view : View
    record : dict
        Of the summary's ``maps``.
    keep : float, default=1.0
        Share of the points to draw.

    Attributes
    ----------
    panels : list of int
        Domains that have a panel of their own.
    points : dict
        Places of the points by domain and class; -1 stands for all domains without a
        panel.
    """

    side, margin, small = 430, 30, 170
    strip = 160  # where all points lie on one line, they are spread upwards to be seen

    def __init__(self, view: View, record: dict[str, Any], keep: float = 1.0) -> None:
        self.view, self.record = view, record
        large = sorted(view.shown, key=lambda d: (-view.domains[d]["rows"], d))
        self.panels = sorted(large[:MOST_PANELS])
        self.key = f"map-{record['view']}"
        self.flat = record["height"] == 0
        tall = self.strip if self.flat else record["height"]
        scale = (self.side - 2 * self.margin) / max(record["width"], tall, 1)
        self.scale = 1.0 if self.flat else scale
        self.x_scale = scale
        self.size = (
            record["width"] * scale + 2 * self.margin,
            (self.strip if self.flat else tall * scale) + 2 * self.margin,
        )
        self.step = max(round(1 / keep), 1)
        self.points = self._by_domain_and_class()

    @property
    def n_points(self) -> int:
        """Number of points drawn."""
        return sum(map(len, self.points.values()))

    def _by_domain_and_class(self) -> dict[tuple[int, int], list[tuple[float, float]]]:
        record, own = self.record, set(self.panels)
        found = defaultdict(list)
        for place in range(0, len(record["x"]), self.step):
            domain = record["domain"][place]
            key = domain if domain in own else -1, record["class"][place]
            y = self.strip * (place * GOLDEN % 1) if self.flat else record["y"][place]
            found[key].append(self._place(record["x"][place], y))
        return dict(sorted(found.items()))

    def _place(self, x: float, y: float) -> tuple[float, float]:
        return self.margin + x * self.x_scale, self.size[
            1
        ] - self.margin - y * self.scale

    def whole(self) -> Markup:
        """All points, with the name of each class beside them."""
        paths = [
            element("path", id=f"{self.key}-{d}-{y}", d=_dots(points))
            for (d, y), points in self.points.items()
        ]
        drawn = [self._use(d, y) for d, y in self.points]
        return picture(
            self.view,
            self.key,
            self.size,
            self._title(),
            self._description(),
            [
                element("defs", element("g", *paths, id=f"{self.key}-all")),
                self._edges(),
                *drawn,
                *self.labels(),
            ],
            class_="map",
        )

    def by_domain(self) -> list[tuple[str, Markup]]:
        """Small panels: the points of one domain before all others in grey."""
        return [(self.view.domain(d), self._panel(d)) for d in self.panels]

    def _panel(self, d: int) -> Markup:
        own = [y for domain, y in self.points if domain == d]
        count = sum(len(self.points[d, y]) for y in own)
        width, height = (number(side) for side in self.size)
        return element(
            "svg",
            element("title", f"{count} rows of {self.view.domain(d)} among all rows"),
            element("use", href=f"#{self.key}-all", class_="backdrop"),
            *(self._use(d, y) for y in own),
            viewBox=f"0 0 {width} {height}",
            width=self.small,
            height=number(self.size[1] * self.small / self.size[0]),
            role="img",
            class_="picture map small",
        )

    def _use(self, d: int, y: int) -> Markup:
        place = "other domains" if d < 0 else self.view.domain(d)
        said = f"{place}: {len(self.points[d, y]):,} rows of {{c{y}}}"
        return element(
            "use",
            tip(self.view, said),
            href=f"#{self.key}-{d}-{y}",
            class_=f"row {self.view.hue(y)}",
            data_class=f"c{y}",
        )

    def labels(self) -> list[Markup]:
        """Names at the corners of the classes, or in the middle of their points."""
        places = [self._place(*corner) for corner in self.record["corners"]]
        if not places:
            places = [self._middle(index) for index in range(len(self.view.classes))]
        labels: list[Markup] = []
        taken: list[Label] = []
        for index, (x, y) in enumerate(places):
            if x != x or (self.view.many_classes and not self.record["corners"]):
                continue
            name = self.view.names[f"c{index}"]
            reach = min(LETTER * len(name) / 2, self.size[0] / 2)
            side = min(max(x, reach), self.size[0] - reach)
            below = bool(self.record["corners"]) and y > self.size[1] / 2
            height = self._free(side, y + 22 if below else y - 10, reach, taken)
            taken.append((side, height, reach))
            text = self.view.name_html(f"c{index}", "tspan")
            labels.append(element("text", text, x=side, y=height, class_="name"))
        return labels

    def _free(self, x: float, y: float, reach: float, taken: list[Label]) -> float:
        """The height nearest to ``y`` at which a label covers no other."""
        lowest, highest = LINE * 0.8, self.size[1] - 4
        steps = range(int(self.size[1] / LINE) + 1)
        tried = [y + side * step * LINE for step in steps for side in (1, -1)]
        inside = [one for one in tried if lowest <= one <= highest]
        return next(
            (
                one
                for one in inside
                if all(
                    abs(one - other) >= LINE or abs(x - middle) >= reach + wide
                    for middle, other, wide in taken
                )
            ),
            min(max(y, lowest), highest),
        )

    def _middle(self, index: int) -> tuple[float, float]:
        own = [
            p for (_, y), points in self.points.items() if y == index for p in points
        ]
        if not own:
            return float("nan"), float("nan")
        xs, ys = (sorted(axis) for axis in zip(*own, strict=True))
        return xs[len(xs) // 2], ys[len(ys) // 2]

    def _edges(self) -> Markup:
        """Lines between the corners, where there are few."""
        corners = [self._place(*corner) for corner in self.record["corners"]]
        if not 2 <= len(corners) <= 4:
            return Markup("")
        pairs = [
            f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}"
            for index, a in enumerate(corners)
            for b in corners[index + 1 :]
        ]
        return element("path", d="".join(pairs), class_="edge")

    def _title(self) -> str:
        if self.record["view"] == "domains":
            return "Rows between the classes"
        return "Rows by their features"

    def _description(self) -> str:
        first, second = self.record["explained"]
        kept = percent(first + second)
        drawn = f"{self.n_points:,} of {self.record['n_rows']:,} rows are drawn."
        if self.record["view"] == "domains":
            return (
                "Each point is what a row says about its domain; each corner is a "
                f"class. The plane keeps {kept} of the distances between corners. "
                f"{drawn}"
            )
        return (
            f"The two main directions of the features hold {kept} of their spread. "
            f"{drawn}"
        )


def _dots(points: list[tuple[float, float]]) -> str:
    # Browsers draw the round ends of a line, but not of one without length.
    return "".join(f"M{number(x)} {number(y)}h.01" for x, y in points)
