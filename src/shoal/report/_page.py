"""What the templates ask for, section by section."""

import shlex
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from shoal.report._cards import QUESTIONS, UNPROVEN
from shoal.report._settings import SETTINGS
from shoal.report._view import (
    Detail,
    View,
)
from shoal.report.figures import _svg
from shoal.report.figures._checks import check_bar, choice_panels, gauges
from shoal.report.figures._flows import neighbours_picture
from shoal.report.figures._looks import look_panels, marks_picture
from shoal.report.figures._maps import MOST_PANELS, Map
from shoal.report.figures._prevalence import trend_panels

Record = dict[str, Any]

#: Results that a program may want, kept in the page.
RESULTS = (
    "schema",
    "title",
    "kind",
    "redacted",
    "size",
    "made",
    "source",
    "columns",
    "domains",
    "classes",
    "verdict",
    "prevalence",
    "differences",
    "groups",
    "checks",
    "reruns",
    "choice",
    "neighbours",
    "score",
)
STATUS = {
    "ok": "no sign of a problem found",
    "caution": "caution",
    "fail": "problem",
}
VERDICTS = {
    "clear": ("ok", "Clear"),
    "caution": ("caution", "Use with caution"),
    "do not use": ("fail", "Do not use"),
    "not checked": ("unknown", "Not checked"),
}


class PageContent:
    """A summary, cut to size, as the templates see it."""

    status = STATUS
    unproven = UNPROVEN
    most_panels = MOST_PANELS

    def __init__(
        self, summary: Mapping[str, Any], detail: Detail, sections: list[str]
    ) -> None:
        self.summary = summary
        self.view = View(summary)
        self.detail = detail
        self.sections = [name for name in sections if self._has(name)]

    def _has(self, section: str) -> bool:
        """Whether there is anything to say."""
        content = {
            "differences": self.summary["differences"] or self.summary["groups"],
            "trend": self.summary.get("trend"),
            "features": self.summary.get("looks"),
            "map": self.summary["maps"],
            "trust": self.summary["checks"],
            "uncertainty": self.summary["prevalence"]["low"] or self.summary["reruns"],
            "choice": self.summary["choice"] or self.summary["neighbours"],
            "score": self.summary["score"],
        }
        return bool(content.get(section, True))

    def results(self) -> Record:
        """What a program may want of the page."""
        keys = RESULTS if self.detail.data else ("schema", "classes")
        return {key: self.summary[key] for key in keys}

    @property
    def table_domains(self) -> list[int]:
        """Domains in the table of shares: all, or the largest, in their order."""
        sizes = [domain["rows"] for domain in self.summary["domains"]]
        order = sorted(range(len(sizes)), key=lambda d: (-sizes[d], d))
        return sorted(order[: self.detail.table_rows])

    # ---- verdict and names --------------------------------------------------------

    @property
    def verdict(self) -> tuple[str, str]:
        """Status and words of the verdict."""
        return VERDICTS[self.summary["verdict"]["word"]]

    @property
    def set_aside(self) -> list[Record]:
        """Columns that the fit did not use."""
        used = ("feature", "domain")
        return [entry for entry in self.summary["columns"] if entry["role"] not in used]

    @property
    def name_command(self) -> str:
        """The command that puts the names into the model."""
        path = self.summary["made"]["model_path"]
        return f"shoal name {shlex.quote(path) if path else 'MODEL'} --from names.json"

    def homes(self, card: Record) -> list[int]:
        """Domains with most rows of a class, in the order of all domains."""
        rows = card["rows_by_domain"]
        most = sorted(range(len(rows)), key=lambda d: -rows[d])[: SETTINGS.homes]
        cut = len(most) < len(rows)  # where some are left out, empty ones are first
        return sorted(d for d in most if rows[d] or not cut)

    # ---- pictures -----------------------------------------------------------------

    def maps(self) -> list[Map]:
        """Views of the rows as points."""
        return [
            Map(self.view, record, self.detail.map_share)
            for record in self.summary["maps"]
        ]

    def trend_panels(self) -> list[Markup]:
        """The mix in the order of time, class by class."""
        return trend_panels(self.view)

    def marks(self) -> Markup | None:
        """The heat map of what tells classes apart; None of a few columns."""
        return marks_picture(self.view) if self.summary.get("marks") else None

    def look_panels(self) -> list[tuple[str, Markup]]:
        """How the most telling features are spread, class by class."""
        return look_panels(self.view)

    def look_places(self) -> list[str]:
        """Where they can be looked at."""
        looks = self.summary["looks"]
        return ["All domains", *(self.view.domain(d) for d in looks["domains"])]

    def neighbours(self) -> Markup:
        """Fits with one class fewer and more beside this one."""
        return neighbours_picture(self.view)

    def difference_scale(self) -> _svg.DifferenceScale:
        """The axis of the largest differences."""
        return _svg.DifferenceScale(self.summary["differences"])

    def choice_panels(self) -> list[tuple[str, str, Markup]]:
        """Curves over the number of classes."""
        return choice_panels(self.view) if self.summary["choice"] else []

    # ---- checks -------------------------------------------------------------------

    def questions(self) -> list[Record]:
        """Each question with its worst status, its bar and its findings."""
        checks = self.summary["checks"]
        bars = gauges(checks)
        found = []
        for question, why in QUESTIONS:
            own = [f for f in checks["findings"] if f["question"] == question]
            status = {finding["code"]: finding["status"] for finding in own}
            gauge = bars[question]
            found.append(
                {
                    "question": question,
                    "why": why,
                    "status": _worst(list(status.values())),
                    "gauge": gauge,
                    "bar": check_bar(gauge, status[gauge.code]),
                    "findings": own,
                }
            )
        return found

    def heat(self) -> list[tuple[int, list[float | None]]]:
        """How far each class lies from its mean in each shown domain.

        None where the class has too few rows there to say.
        """
        table = self.summary["checks"]["numbers"]["class_domain_shift"]
        found = []
        for d in self.view.shown:
            rows = self.view.domains[d]["rows"]
            seen = [
                share * rows >= SETTINGS.rows_to_compare
                for share in self.view.estimate[d]
            ]
            shifts = [table[y][d] if enough else None for y, enough in enumerate(seen)]
            found.append((d, shifts))
        return found

    # ---- uncertainty --------------------------------------------------------------

    def spread(self, d: int, y: int) -> tuple[float | None, float | None]:
        """Half the width of an estimate's interval, and of its range over re-runs."""
        between, reruns = self.view.interval(d, y), self.summary["reruns"]
        sampling = None if between is None else (between[1] - between[0]) / 2
        rerun = None
        if reruns is not None:
            rerun = (reruns["high"][d][y] - reruns["low"][d][y]) / 2
        return sampling, rerun

    def rows_wanted(self, d: int) -> int | None:
        """Rows that would bring every share of a domain to within five points."""
        if self.view.prevalence["low"] is None:
            return None
        widest = max(self.spread(d, y)[0] or 0.0 for y in range(len(self.view.classes)))
        excess = widest / SETTINGS.half_width
        rows = self.view.domains[d]["rows"]
        return round(rows * excess**2) if widest > SETTINGS.half_width else None


def _worst(statuses: list[str]) -> str:
    return next((s for s in ("fail", "caution") if s in statuses), "ok")
