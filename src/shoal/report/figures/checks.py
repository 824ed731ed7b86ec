"""One bar for each question of a diagnosis, with the mark where signs begin."""

from typing import Any, NamedTuple

from markupsafe import Markup

from shoal.report.checks import QUESTIONS
from shoal.report.figures.prevalence import percent_of
from shoal.report.figures.svg import element
from shoal.report.view import percent, short

__all__ = ["Gauge", "check_bar", "gauges"]

HEIGHT = 30


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
        height=HEIGHT,
        role="img",
        aria_label=f"{gauge.text}. {marks}.",
        class_="gauge",
    )


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
