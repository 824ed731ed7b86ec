"""A few words of SVG, and bars inside the cells of tables."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from shoal.report._view import View, points


def number(value: float) -> str:
    """A coordinate with two digits at most."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent_of(share: float) -> str:
    """A share as a width."""
    return f"{100 * share:.3f}%"


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """One element; ``class_`` and ``data_name`` become ``class`` and ``data-name``.

    Examples
    --------
    >>> element("text", "a < b", x=1.5, class_="label")
    Markup('<text x="1.5" class="label">a &lt; b</text>')
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def _attribute(value: Any) -> Any:
    return number(value) if isinstance(value, float) else escape(value)


def tip(view: View, text: str) -> Markup:
    """Words that a pointer or a screen reader finds; they follow renamed classes."""
    plain = view.named(text)
    return element("title", plain, data_text=text if plain != text else None)


def picture(
    view: View,
    key: str,
    size: tuple[float, float],
    title: str,
    description: str,
    children: Iterable[Any],
    *,
    class_: str = "",
) -> Markup:
    """An SVG with a title and a description made of its numbers.

    Parameters
    ----------
    view : View
    key : str
        Unique on the page.
    size : tuple of float
        Width and height; the picture shrinks with the page, never grows.
    title, description : str
        ``{c0}`` stands for the name of a class.
    children : iterable of Markup
    class_ : str, default=""
    """
    width, height = (number(float(side)) for side in size)
    plain = view.named(title), view.named(description)
    labels = [
        element(tag, text, id=f"{key}-{tag}", data_text=raw if raw != text else None)
        for tag, text, raw in zip(
            ("title", "desc"), plain, (title, description), strict=True
        )
    ]
    return element(
        "svg",
        *labels,
        *children,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        class_=f"picture {class_}".strip(),
    )


# ---- bars inside the cells of tables; they are silent, their number stands beside ----

HEIGHT = 14


def _cell(*children: Markup, class_: str = "cellbar") -> Markup:
    return element("svg", *children, width="100%", height=HEIGHT, aria_hidden="true",
                   class_=class_)  # fmt: skip


def plain_bar(share: float, class_: str = "") -> Markup:
    """A bar from the left, as long as a share of the cell."""
    share = min(max(share, 0.0), 1.0)
    return _cell(
        element("rect", width="100%", height=HEIGHT, class_="trough", rx=2),
        element("rect", width=percent_of(share), height=HEIGHT, class_="fill", rx=2),
        class_=f"cellbar {class_}".strip(),
    )


def feature_bar(difference: float, largest: float) -> Markup:
    """A bar from the middle: to the right where the class has more."""
    half = 0.5 * min(abs(difference) / max(largest, 1e-9), 1.0)
    start = 0.5 if difference > 0 else 0.5 - half
    return _cell(
        element("rect", x=percent_of(start), y=2, width=percent_of(half), height=10,
                class_="fill"),
        element("rect", x="50%", width=1, height=HEIGHT, class_="zero"),
    )  # fmt: skip


def word_bar(share: float, rest: float, largest: float) -> Markup:
    """A bar for the class and a mark for the rest."""
    scale = 1 / max(largest, 1e-12)
    return _cell(
        element("rect", y=2, width=percent_of(share * scale), height=10, class_="fill"),
        element("rect", x=percent_of(min(rest * scale, 0.99)), width=2, height=HEIGHT,
                class_="zero"),
    )  # fmt: skip


class DifferenceScale:
    """Points from zero, or from where intervals begin below it, to the largest.

    Parameters
    ----------
    records : sequence of dict
        Of the summary's ``differences``.
    """

    steps = (0.05, 0.1, 0.25, 0.5)  # between ticks: the first that gives four at most
    room = 0.03  # at both ends, for the other half of a dot

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        ends = [
            record[end] for record in records for end in ("low", "high", "estimate")
        ]
        known = [0.0, *(end for end in ends if end is not None)]
        width = max(known) - min(known)
        step = next((s for s in self.steps if width <= 4 * s), self.steps[-1])
        self.low = step * math.floor(round(min(known) / step, 9))
        self.high = step * math.ceil(round(max(known) / step, 9))
        count = round((self.high - self.low) / step)
        self.ticks = [self.low + step * place for place in range(count + 1)]

    def place(self, value: float) -> str:
        """Where a difference lies in its cell."""
        share = (value - self.low) / max(self.high - self.low, 1e-9)
        return percent_of(self.room + (1 - 2 * self.room) * share)

    def axis(self) -> Markup:
        """The numbers above the bars."""
        texts = [
            element("text", points(tick), x=self.place(tick), y=11,
                    class_=f"tick {self._anchor(tick)}".strip())
            for tick in self.ticks
        ]  # fmt: skip
        return _cell(*texts)

    def _anchor(self, tick: float) -> str:
        return {self.ticks[0]: "start", self.ticks[-1]: "end"}.get(tick, "")

    def bar(self, estimate: float, low: float | None, high: float | None) -> Markup:
        """A dot and its interval."""
        marks = [
            element("rect", x=self.place(tick), width=1, height=HEIGHT,
                    class_="gridline" if abs(tick) > 1e-9 else "zero")
            for tick in self.ticks
        ]  # fmt: skip
        if low is not None and high is not None:
            marks.append(
                element("line", x1=self.place(low), x2=self.place(high), y1=7, y2=7,
                        class_="wide")
            )  # fmt: skip
        marks.append(
            element("circle", cx=self.place(estimate), cy=7, r=4, class_="dot")
        )
        return _cell(*marks)


def histogram(counts: Sequence[int], title: str) -> Markup:
    """How sure the rows of a class are: ten bars from 0 to 100%."""
    most = max([*counts, 1])
    bars = [
        element(
            "rect",
            x=place * 22 + 1,
            y=60 - 56 * count / most,
            width=20,
            height=56 * count / most,
            class_="fill",
        )
        for place, count in enumerate(counts)
    ]
    ticks = [
        element("text", text, x=x, y=76, class_="tick")
        for text, x in (("0", 4), ("50", 110), ("100%", 206))
    ]
    return element(
        "svg",
        element("title", title),
        element("path", d="M0 60.5H220", class_="axis"),
        *bars,
        *ticks,
        viewBox="0 0 222 80",
        width=222,
        height=80,
        role="img",
        class_="picture",
    )
