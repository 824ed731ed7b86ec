"""Bars inside the cells of tables; they are silent, their number stands beside."""

from collections.abc import Sequence

from markupsafe import Markup

from shoal.report.figures._svg import element, percent_of

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


def difference_bar(estimate: float, low: float | None, high: float | None) -> Markup:
    """A dot and its interval on a scale from -100 to 100 points."""
    ends = (low or 0, estimate, high or 0)
    # the dot of a difference of 100 points needs room for its other half
    place = [percent_of(0.5 + 0.47 * value) for value in ends]
    marks = [element("rect", x="50%", width=1, height=HEIGHT, class_="zero")]
    if low is not None:
        marks.append(
            element("line", x1=place[0], x2=place[2], y1=7, y2=7, class_="wide")
        )
    marks.append(element("circle", cx=place[1], cy=7, r=4, class_="dot"))
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
