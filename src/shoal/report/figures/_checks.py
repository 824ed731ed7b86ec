"""One bar for each question of a diagnosis; how many classes, by each witness."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from shoal.report._cards import QUESTIONS
from shoal.report._view import View, fixed, percent, short
from shoal.report.figures._svg import element, percent_of, picture

# ---- one bar for each question -------------------------------------------------------


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
        band = percent_of(gauge.band)
        parts.append(element("rect", y=4, width=band, height=10, class_="chance"))
    level = percent_of(gauge.value)
    parts.append(
        element("rect", y=4, width=level, height=10, rx=5, class_=f"level {status}")
    )
    for share, text in gauge.marks:
        anchor = "start" if share < 0.15 else "end" if share > 0.85 else "centre"
        x = percent_of(share)
        parts.append(element("rect", x=x, width=2, height=18, class_="limit"))
        parts.append(element("text", text, x=x, y=29, class_=f"tick {anchor}"))
    marks = "; ".join(
        f"{text} {percent(share)} of the bar" for share, text in gauge.marks
    )
    return element(
        "svg",
        element("title", gauge.text),
        *parts,
        width="100%",
        height=30,
        role="img",
        aria_label=f"{gauge.text}. {marks}.",
        class_="gauge",
    )


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)


# ---- how many classes: each witness on its own scale ---------------------------------

# Shares of rows that lie nearer to each other must not look far apart.
STABILITY_RANGE = 0.2


def choice_panels(view: View) -> list[tuple[str, str, Markup]]:
    """Heading, how to read it, and picture of each curve."""
    choice = view.summary["choice"]
    errors = [2 * (one or 0.0) for one in choice["difference_error"]]
    panels = [
        (
            "Held-out fit",
            "Likelihood of the domains of rows not used in the fit, in nats; higher is "
            "better. Bars: two standard errors of the difference to the best.",
            _panel(view, "held_out", errors=errors),
        ),
        (
            "Stability",
            "Share of rows that keep their class when rows are drawn again. Few "
            "classes are stable even when they are wrong.",
            _panel(view, "stability", least=STABILITY_RANGE),
        ),
        (
            "Signal of the last class",
            "Singular value that the k-th class adds to the table of cells by domains. "
            "Below the dashed line chance alone reaches as far.",
            _panel(view, "singular_value", floor=choice["null"]),
        ),
    ]
    return [panel for panel in panels if panel[2]]


def _panel(
    view: View,
    key: str,
    *,
    errors: Sequence[float] | None = None,
    floor: float | None = None,
    least: float = 0.0,
) -> Markup:
    choice = view.summary["choice"]
    counts = choice["candidates"]
    reach = errors or [0.0] * len(counts)
    known = [
        (k, value, own)
        for k, value, own in zip(counts, choice[key], reach, strict=True)
        if value is not None
    ]
    if not known:
        return Markup("")
    ends = [value + side * own for _, value, own in known for side in (-1, 1)]
    ends += [] if floor is None else [floor]
    scale = _Scale(counts, [*ends, max(ends) - least])
    parts = [scale.axis()]
    if floor is not None:
        parts.append(scale.across(floor, "null"))
    line = "L".join(f"{scale.x(k):.1f} {scale.y(value):.1f}" for k, value, _ in known)
    parts.append(element("path", d=f"M{line}", class_="curve"))
    parts += [_point(scale, choice, *one) for one in known]
    said = zip(counts, choice[key], strict=True)
    return picture(
        view,
        f"choice-{key}",
        (scale.width, scale.height),
        f"{key.replace('_', ' ')} by number of classes",
        ", ".join(f"{k} classes: {short(value)}" for k, value in said),
        parts,
    )


def _point(
    scale: "_Scale", choice: dict[str, Any], k: int, value: float, reach: float
) -> Markup:
    x, y = scale.x(k), scale.y(value)
    chosen = k == choice["n_classes"]
    allowed = choice["identifiable"][choice["candidates"].index(k)]
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
    if chosen:  # the word above the point, to the side where there is room
        side, anchor = (-11, "end") if x > scale.width - 70 else (11, "start")
        marks.append(
            element("text", "chosen", x=x + side, y=y - 6, class_=f"mark {anchor}")
        )  # fmt: skip
    return element("g", *marks)


class _Scale:
    """Numbers of classes to the right, values upwards."""

    width, height = 290, 190
    left, right, top, bottom = 46, 12, 16, 34

    def __init__(self, candidates: Sequence[int], values: Sequence[float]) -> None:
        self.candidates = candidates
        low, high = min(values), max(values)
        room = 0.12 * (high - low) or 0.05
        self.low, self.high = low - room, high + room

    def x(self, k: float) -> float:
        first, last = self.candidates[0], self.candidates[-1]
        width = self.width - self.left - self.right - 24
        return self.left + 12 + width * (k - first) / max(last - first, 1)

    def y(self, value: float) -> float:
        height = self.height - self.top - self.bottom
        return self.top + height * (self.high - value) / (self.high - self.low)

    def across(self, value: float, class_: str) -> Markup:
        """A line at a value."""
        ends = f"M{self.left} {self.y(value):.1f}H{self.width - self.right}"
        return element("path", d=ends, class_=class_)

    def axis(self) -> Markup:
        inner = [self.low + f * (self.high - self.low) for f in (0.1, 0.5, 0.9)]
        digits = 2 if self.high - self.low > 0.1 else 3
        texts = [
            element("text", fixed(v, digits), x=self.left - 6, y=self.y(v) + 4,
                    class_="value small")
            for v in inner
        ]  # fmt: skip
        below = self.height - self.bottom + 16
        step = -(-len(self.candidates) // 8)
        texts += [
            element("text", str(k), x=self.x(k), y=below, class_="tick")
            for k in self.candidates[::step]
        ]
        middle = (self.left + self.width - self.right) / 2
        texts.append(
            element("text", "number of classes", x=middle, y=self.height - 3,
                    class_="tick")
        )  # fmt: skip
        lines = [self.across(v, "grid") for v in inner]
        return element("g", *lines, *texts, aria_hidden="true")
