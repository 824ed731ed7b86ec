"""How many classes: a curve and a choice, not only a number."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.analysis._decide import Evidence, decide

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class NClassesChoice:
    """Outcome of :func:`shoal.choose_n_classes`.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,)
        Numbers of classes tried, ascending.
    held_out : ndarray of shape (n_candidates,)
        Mean log-likelihood of the domains on held-out rows, in nats; higher is better.
    standard_error : ndarray of shape (n_candidates,)
        Of ``held_out``. Mostly common to all candidates; compare them by the next.
    difference_error : ndarray of shape (n_candidates,)
        Standard error of the paired difference to the best candidate.
    stability : ndarray of shape (n_candidates,)
        Mean share of rows that keep their class when rows are drawn again; NaN
        without resamples. Small numbers of classes are stable even when wrong.
    identifiable : ndarray of shape (n_candidates,)
        False for more classes than domains: drawn, never chosen.
    singular_values : ndarray
        Of the cluster-by-domain table, largest first: the first belongs to the second
        class, the next to the third, and so on.
    null : ndarray of shape (n_null,)
        Largest singular value under permuted domains.
    rank : int
        Number of classes the singular values support.
    baseline : float
        ``held_out`` of knowing nothing but the weights of the domains.
    n_classes : int or None
        The choice; None when there is no clear one.
    sentence : str
        The choice and its reason in plain words.
    signal : bool
        False where domains do not differ beyond chance: nothing to learn from.
    """

    candidates: Array
    held_out: Array
    standard_error: Array
    difference_error: Array
    stability: Array
    identifiable: Array
    singular_values: Array = field(repr=False)
    null: Array = field(repr=False)
    rank: int
    baseline: float
    n_classes: int | None
    sentence: str
    signal: bool = True

    def to_pandas(self) -> Any:
        """Table with one row per candidate."""
        import pandas as pd

        padded = np.full(max(self.candidates.max(), len(self.singular_values) + 1), 0.0)
        padded[: len(self.singular_values)] = self.singular_values
        return pd.DataFrame(
            {
                "n_classes": self.candidates,
                "held_out": self.held_out,
                "standard_error": self.standard_error,
                "difference_error": self.difference_error,
                "stability": self.stability,
                "singular_value": padded[self.candidates - 2],
                "null": self.null.max(),
                "identifiable": self.identifiable,
                "chosen": self.candidates == (self.n_classes or 0),
            }
        )

    def __str__(self) -> str:
        lines = ["classes  held-out  behind best  stability"]
        best = self.held_out.max()
        for index, count in enumerate(self.candidates):
            mark = " <" if count == self.n_classes else ""
            mark = mark if self.identifiable[index] else " (not identifiable)"
            lines.append(
                f"{count:7d}  {self.held_out[index]:8.4f}  "
                f"{best - self.held_out[index]:.4f}+-{self.difference_error[index]:.4f}"
                f"  {self.stability[index]:.3f}{mark}"
            )
        return "\n".join([*lines, self.sentence])


def conclude(evidence: Evidence) -> NClassesChoice:
    """The curve behind the evidence, and what it decides."""
    scores = evidence.scores
    candidates = np.array(list(scores))
    identifiable = candidates <= evidence.n_domains
    mean = np.array([score.mean for score in scores.values()])
    possible = mean if not identifiable.any() else np.where(identifiable, mean, -np.inf)
    top = scores[int(candidates[possible.argmax()])]
    decision = decide(evidence)
    return NClassesChoice(
        candidates=candidates,
        held_out=mean,
        standard_error=np.array([one.standard_error() for one in scores.values()]),
        difference_error=np.array([top.standard_error(s) for s in scores.values()]),
        stability=np.array([evidence.stability[count] for count in scores]),
        identifiable=identifiable,
        singular_values=evidence.rank.singular_values,
        null=evidence.rank.null,
        rank=evidence.rank.n_classes,
        baseline=evidence.baseline.mean,
        n_classes=decision.n_classes,
        sentence=decision.sentence,
        signal=decision.signal,
    )
