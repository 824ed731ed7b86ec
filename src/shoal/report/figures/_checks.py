"""One bar for each question of a diagnosis; how many classes, by each witness."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from shoal.report._checks import QUESTIONS
from shoal.report._view import View, fixed, percent, short
from shoal.report.figures._prevalence import percent_of
from shoal.report.figures._svg import element, picture

# ---- checks --------------------------------------------------------------------------

BAR_HEIGHT = 30


class Gauge(NamedTuple):
    """A number on a scale.

    Attributes
    ----------
    value : float
        As a share of the scale, 0 to 1.
    marks : list of (float, str)
        Where on the scale what begins.
    text : str
        The number in words.
    code : str
        The finding that judges this number.
    band : float
        Share of the scale that chance alone reaches.
    """

    value: float
    marks: list[tuple[float, str]]
    text: str
    code: str
    band: float = 0.0


def gauges(checks: dict[str, Any]) -> dict[str, Gauge]:
    """The bar of each question."""
    numbers, limits = checks["numbers"], checks["limits"]
    made = (_differ(checks), _explain(numbers, limits), _alike(numbers),
            _rich(numbers, limits), _table(numbers, limits))  # fmt: skip
    return {
        question: gauge for (question, _), gauge in zip(QUESTIONS, made, strict=True)
    }


def _differ(checks: dict[str, Any]) -> Gauge:
    numbers = checks["numbers"]
    needed = next(
        f["numbers"]["needed"] for f in checks["findings"] if f["code"] == "E138"
    )
    gain, chance = numbers["gain"], max(numbers["gain_null"])
    full = 1.15 * max(gain, chance, needed, 1e-9)
    return Gauge(
        _inside(gain / full),
        [(_inside(needed / full), "needed")],
        f"gain of {gain:.3f} nats over a blind guess; shuffled domains reach at most "
        f"{max(chance, 0):.3f}",
        "E138",
        _inside(chance / full),
    )


def _explain(numbers: dict[str, Any], limits: dict[str, float]) -> Gauge:
    kept = numbers["gain_kept"]
    text = "cannot be measured where domains do not differ"
    if kept is not None:
        more = " (more than the free guesser)" if kept > 1 else ""
        share = percent(kept) if kept > 0 else "none"
        text = f"{share} of that gain is kept by the classes{more}"
    marks = [(limits["kept_caution"], "signs below")]
    return Gauge(_inside(kept or 0.0), marks, text, "gain-kept")


def _alike(numbers: dict[str, Any]) -> Gauge:
    shift, limit = numbers["shift"], numbers["shift_limit"]
    full = max(2 * limit, 1.15 * shift, 1e-9)
    return Gauge(
        _inside(shift / full),
        [(_inside(limit / full), "signs above")],
        f"domains lie {shift:.2f} standard deviations apart within a class",
        "alike",
    )


def _rich(numbers: dict[str, Any], limits: dict[str, float]) -> Gauge:
    condition = numbers["condition"]
    strength = 0.0 if condition is None else 1 / max(condition, 1.0)
    return Gauge(
        _inside(strength),
        [(1 / limits["condition"], "signs below")],
        f"the weakest contrast between class mixes is {percent(strength)} as strong as "
        f"the strongest (smallest singular value "
        f"{short(numbers['smallest_singular_value'])})",
        "condition",
    )


def _table(numbers: dict[str, Any], limits: dict[str, float]) -> Gauge:
    smallest, wanted = min(numbers["rows_per_domain"]), numbers["rows_for_five_points"]
    full = max(1.15 * wanted, 1.0)
    return Gauge(
        _inside(smallest / full),
        [(limits["thin"] / full, "thin below"), (wanted / full, "±5 points")],
        f"{smallest:,} rows in the smallest domain; about {wanted} give a share to "
        "±5 points",
        "W111",
    )


def check_bar(gauge: Gauge, status: str) -> Markup:
    """A gauge as a picture."""
    parts = [element("rect", y=4, width="100%", height=10, rx=5, class_="trough")]
    if gauge.band:
        parts.append(
            element(
                "rect", y=4, width=percent_of(gauge.band), height=10, class_="chance"
            )
        )
    parts.append(
        element("rect", y=4, width=percent_of(gauge.value), height=10, rx=5,
                class_=f"level {status}")
    )  # fmt: skip
    for place, text in gauge.marks:
        anchor = "start" if place < 0.15 else "end" if place > 0.85 else "middle"
        parts.append(element("rect", x=percent_of(place), width=2, height=18,
                             class_="limit"))  # fmt: skip
        parts.append(element("text", text, x=percent_of(place), y=29, class_="tick",
                             style=f"text-anchor:{anchor}"))  # fmt: skip
    marks = "; ".join(
        f"{text} {percent(place)} of the bar" for place, text in gauge.marks
    )
    return element(
        "svg",
        element("title", gauge.text),
        *parts,
        width="100%",
        height=BAR_HEIGHT,
        role="img",
        aria_label=f"{gauge.text}. {marks}.",
        class_="gauge",
    )


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)


# ---- How many classes: each witness on its own scale ---------------------------------

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
