"""What a check sees, and how it tells what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.analysis.diagnose._result import Finding

Array = np.ndarray[Any, Any]
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
