"""What a diagnosis says: findings, one verdict, the numbers behind them."""

import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MARKS = {"ok": "ok     ", "caution": "CAUTION", "fail": "FAIL   "}


@dataclass(frozen=True)
class Finding:
    """One check: what was asked, what was seen, what to do about it.

    Attributes
    ----------
    code : str
        Short name of the check; one of shoal's message codes where there is one.
    question : str
        The question that this check helps to answer.
    status : {"ok", "caution", "fail"}
        "ok" only means that no sign of a problem was found.
    numbers : mapping of str to float
        What the status rests on.
    reason : str
        One plain sentence.
    advice : str
        What to do; empty when there is nothing to do.
    assumption : {"A.1", "A.2", "A.3", "A.4", "label shift"} or None
        The assumption of the method that the check is about.
    """

    code: str
    question: str
    status: str
    numbers: Mapping[str, float]
    reason: str
    advice: str = ""
    assumption: str | None = None


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Whether the data show signs that the classes found should not be trusted.

    Data alone cannot prove that the classes are the ones the user has in mind: a
    verdict of "clear" says that no sign of a problem was found.

    Attributes
    ----------
    verdict : {"clear", "caution", "do not use"}
    findings : tuple of Finding
        In the order of the questions.
    numbers : dict
        Every number computed, also those without a threshold; arrays by class and
        domain follow ``class_names`` and ``domains``.
    domains : ndarray of shape (n_domains,)
    class_names : list of str
    """

    verdict: str
    findings: tuple[Finding, ...]
    numbers: dict[str, Any] = field(repr=False)
    domains: Any = field(repr=False)
    class_names: list[str] = field(repr=False)

    def __getitem__(self, code: str) -> Finding:
        """The finding called ``code``."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        known = ", ".join(finding.code for finding in self.findings)
        raise KeyError(f"no finding {code!r}; there are {known}")

    def __str__(self) -> str:
        lines = [f"verdict: {self.verdict}", self._rows_used()]
        question = None
        for finding in self.findings:
            if finding.question != question:
                question = finding.question
                lines += ["", question]
            lines += _paragraph(finding)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and strings, ready for JSON.

        What is not a finite number becomes None.
        """
        return _plain(
            {
                "verdict": self.verdict,
                "findings": [asdict(finding) for finding in self.findings],
                "numbers": self.numbers,
                "domains": self.domains,
                "class_names": self.class_names,
            }
        )

    def to_pandas(self) -> Any:
        """One row per finding."""
        import pandas as pd

        names = ("code", "question", "status", "assumption", "reason", "advice")
        rows = [{n: getattr(f, n) for n in names} for f in self.findings]
        return pd.DataFrame(rows, columns=list(names))

    def _rows_used(self) -> str:
        given, used = self.numbers["n_rows"], self.numbers["n_rows_used"]
        sample = "" if given == used else f", judged on a sample of {used}"
        return (
            f"{given} rows{sample}, {len(self.domains)} domains, "
            f"{len(self.class_names)} classes"
        )


def verdict_of(findings: tuple[Finding, ...]) -> str:
    """The worst status decides."""
    statuses = {finding.status for finding in findings}
    if "fail" in statuses:
        return "do not use"
    return "caution" if "caution" in statuses else "clear"


def _paragraph(finding: Finding) -> list[str]:
    """A finding as wrapped lines, its advice on lines of their own."""
    about = f" ({finding.assumption})" if finding.assumption else ""
    code = f" [{finding.code}]" * (finding.status != "ok")  # nothing to look up
    lines = textwrap.wrap(
        f"{finding.reason}{code}{about}",
        width=88,
        initial_indent=f"  {MARKS[finding.status]} ",
        subsequent_indent=" " * 10,
    )
    if finding.advice:
        indent = " " * 10
        lines += textwrap.wrap(
            f"-> {finding.advice}",
            width=88,
            initial_indent=indent,
            subsequent_indent=indent + "   ",
        )
    return lines


def _plain(value: Any) -> Any:
    """Arrays and numpy scalars as what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str)) else _text(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# ---- what a check sees, and how it tells what it found -------------------------------

Numbers = dict[str, Any]

DIFFER = "Do domains differ?"
EXPLAIN = "Do k classes explain it?"
ALIKE = "Does each class look alike everywhere?"
RICH = "Is the mix rich enough?"
TABLE = "Is the table sound?"


@dataclass(frozen=True)
class Case:
    """What checks judge: the numbers of a diagnosis, and the names to tell them with.

    Attributes
    ----------
    numbers : dict
        As in :class:`shoal.analysis.Diagnosis`.
    domains : ndarray of shape (n_domains,)
    class_names : list of str
    """

    numbers: Numbers
    domains: Array
    class_names: list[str]

    def __getitem__(self, name: str) -> Any:
        """The number called ``name``."""
        return self.numbers[name]

    def left(self, status: str) -> str:
        """The status of what a fit leaves: one that takes drift out has no excuse."""
        strict = status == "caution" and self.numbers["drift_fitted"]
        return "fail" if strict else status

    def classes(self, where: Array) -> list[str]:
        """Names of the classes where a mask is true."""
        return [self.class_names[index] for index in np.flatnonzero(where)]


@dataclass(frozen=True)
class Topic:
    """What the findings of one check share.

    ``assumption`` is named with a problem, and unless ``quiet`` without one as well.
    """

    code: str
    question: str
    assumption: str | None = None
    quiet: bool = False

    def tell(
        self, fine: bool, numbers: Numbers, seen: str, reason: str, advice: str
    ) -> Finding:
        """A caution, unless all is fine."""
        if fine:
            return self.fine(numbers, seen)
        return self.trouble("caution", numbers, reason, advice)

    def fine(self, numbers: Numbers, seen: str) -> Finding:
        """Nothing speaks against the classes."""
        reason = f"No sign of a problem found: {seen}."
        about = None if self.quiet else self.assumption
        return Finding(self.code, self.question, "ok", numbers, reason, "", about)

    def trouble(
        self, status: str, numbers: Numbers, reason: str, advice: str
    ) -> Finding:
        """Something does."""
        rest = status, numbers, reason, advice, self.assumption
        return Finding(self.code, self.question, *rest)


Check = Callable[[Case], Finding | None]


def level_of(value: float, caution: float, fail: float) -> str:
    """The status of a number that is better small."""
    if value >= fail:
        return "fail"
    return "caution" if value >= caution else "ok"


def written_column(name: str) -> str:
    """A column in a sentence: by name, or of an array by number."""
    return f"column {name}" if name.isdigit() else f'"{name}"'


def joined(names: list[str], most: int = 5) -> str:
    """Names in a sentence, the first few of many."""
    shown = ", ".join(names[:most])
    return shown + f" and {len(names) - most} more" * (len(names) > most)
