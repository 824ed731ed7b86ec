"""How many classes: each witness on its own scale."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from shoal.report.figures.svg import element, picture
from shoal.report.view import View, fixed, short

__all__ = ["choice_panels"]

WIDTH, HEIGHT = 290, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 16, 34
# Shares of rows that lie nearer to each other must not look far apart.
STABILITY_RANGE = 0.2


def choice_panels(view: View) -> list[tuple[str, str, Markup]]:
    """Heading, how to read it, and picture of each curve."""
    choice = view.summary["choice"]
    panels = [
        (
            "Held-out fit",
            "Likelihood of the domains of rows not used in the fit, in nats; higher is "
            "better. Bars: two standard errors of the difference to the best.",
            _panel(view, "held_out", 2, choice["difference_error"]),
        ),
        (
            "Stability",
            "Share of rows that keep their class when rows are drawn again. Few "
            "classes are stable even when they are wrong.",
            _panel(view, "stability", 0, None, least=STABILITY_RANGE),
        ),
        (
            "Signal of the last class",
            "Singular value that the k-th class adds to the table of cells by domains. "
            "Below the dashed line chance alone reaches as far.",
            _panel(view, "singular_value", 0, None, floor=choice["null"]),
        ),
    ]
    return [panel for panel in panels if panel[2]]


def _panel(
    view: View,
    key: str,
    errors: float,
    error: Any,
    *,
    floor: float | None = None,
    least: float = 0.0,
) -> Markup:
    choice = view.summary["choice"]
    values: Sequence[float | None] = choice[key]
    if all(value is None for value in values):
        return Markup("")
    reach = [errors * (one or 0.0) for one in error] if error else [0.0] * len(values)
    ends = [v + s * r for v, r in zip(values, reach, strict=True)
            if v is not None for s in (-1, 1)]  # fmt: skip
    ends += [] if floor is None else [floor]
    scale = _Scale(choice["candidates"], [*ends, max(ends) - least])
    parts = [scale.axis()]
    if floor is not None:
        y = scale.y(floor)
        parts.append(
            element("path", d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}", class_="null")
        )
    line = [
        (scale.x(k), scale.y(value))
        for k, value in zip(choice["candidates"], values, strict=True)
        if value is not None
    ]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in line)
    parts.append(element("path", d=path, class_="curve"))
    for place, value in enumerate(values):
        if value is not None:
            parts.append(_point(scale, choice, place, value, reach[place]))
    return picture(
        view,
        f"choice-{key}",
        (WIDTH, HEIGHT),
        f"{key.replace('_', ' ')} by number of classes",
        ", ".join(
            f"{k} classes: {short(value)}"
            for k, value in zip(choice["candidates"], values, strict=True)
        ),
        parts,
    )


def _point(
    scale: "_Scale", choice: dict[str, Any], place: int, value: float, reach: float
) -> Markup:
    k = choice["candidates"][place]
    x, y = scale.x(k), scale.y(value)
    chosen = k == choice["n_classes"]
    allowed = choice["identifiable"][place]
    marks = [element("title", f"{k} classes: {short(value)}")]
    if reach:
        low, high = scale.y(value - reach), scale.y(value + reach)
        marks.append(
            element("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", class_="whisker")
        )
    marks.append(
        element("circle", cx=x, cy=y, r=6.5 if chosen else 4.5, data_value=repr(value),
                class_="dot" if allowed else "dot hollow")
    )  # fmt: skip
    if chosen:
        marks.append(_chosen(x, y))
    return element("g", *marks)


def _chosen(x: float, y: float) -> Markup:
    """The word above the chosen point, to the side where there is room."""
    side, anchor = (-11, "end") if x > WIDTH - 70 else (11, "start")
    return element("text", "chosen", x=x + side, y=y - 6, class_="mark",
                   style=f"text-anchor:{anchor}")  # fmt: skip


class _Scale:
    """Numbers of classes to the right, values upwards."""

    def __init__(self, candidates: Sequence[int], values: Sequence[float]) -> None:
        self.candidates = candidates
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or 0.05
        self.low, self.high = low - room, high + room

    def x(self, k: float) -> float:
        first, last = self.candidates[0], self.candidates[-1]
        width = WIDTH - LEFT - RIGHT - 24
        return LEFT + 12 + width * (k - first) / max(last - first, 1)

    def y(self, value: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        return TOP + height * (self.high - value) / (self.high - self.low)

    def axis(self) -> Markup:
        bottom = HEIGHT - BOTTOM
        inner = [self.low + f * (self.high - self.low) for f in (0.1, 0.5, 0.9)]
        lines = [
            element("path", d=f"M{LEFT} {self.y(v):.1f}H{WIDTH - RIGHT}", class_="grid")
            for v in inner
        ]
        digits = 2 if self.high - self.low > 0.1 else 3
        texts = [
            element("text", fixed(v, digits), x=LEFT - 6, y=self.y(v) + 4,
                    class_="value small")
            for v in inner
        ]  # fmt: skip
        step = -(-len(self.candidates) // 8)
        texts += [
            element("text", str(k), x=self.x(k), y=bottom + 16, class_="tick")
            for k in self.candidates[::step]
        ]
        texts.append(
            element("text", "number of classes", x=(LEFT + WIDTH - RIGHT) / 2,
                    y=HEIGHT - 3, class_="tick")
        )  # fmt: skip
        return element("g", *lines, *texts, aria_hidden="true")
