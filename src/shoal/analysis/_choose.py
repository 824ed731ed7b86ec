"""How many classes: a curve and a choice, not only a number."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.analysis._rank import RankResult, soften
from shoal.probability import HeldOut
from shoal.validation._arguments import is_whole

# ---- the rule ------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Numbers of the choice; ``results/tabular/choose.json`` shows what it gives."""

    # Without candidates, numbers of classes up to this one are tried at least.
    most_classes: int = 8
    # Standard errors of the paired difference to the best held-out likelihood, within
    # which a number of classes is as good as the best.
    near: float = 1.0
    # Those beyond which the rank, which has passed a test of its own, is refuted; and
    # those beyond chance that are asked where the rank sees nothing.
    sure: float = 2.0
    # As good as the best over more numbers of classes than this: no clear choice.
    wide: int = 3
    # Nats that are not worth a class, however small the standard error.
    tie: float = 1e-3
    # Nats below which a gain is rounding: where rows repeat, standard errors vanish.
    least_gain: float = 1e-4
    # Tables with fewer rows get five folds: the fits need the rows, and are fast.
    small_table: int = 2_000
    # The rank is looked for in so many clusters, or as many as rows can fill.
    least_clusters: int = 24
    rows_per_cell: int = 4


RULE = Rule()


@dataclass(frozen=True)
class Evidence:
    """All that a choice of the number of classes rests on."""

    scores: dict[int, HeldOut]  # by number of classes, ascending
    stability: dict[int, float]
    rank: RankResult
    baseline: HeldOut
    n_domains: int


class Decision(NamedTuple):
    """What the evidence says: a choice, and what to take without a clear one."""

    n_classes: int | None
    sentence: str
    fallback: int
    signal: bool


def decide(evidence: Evidence) -> Decision:
    """Weigh the held-out likelihood and the rank; see shoal.choose_n_classes."""
    n_domains, rank = evidence.n_domains, evidence.rank.n_classes
    scores = {k: s for k, s in evidence.scores.items() if k <= n_domains}
    if not scores:
        few = f"no candidate is identifiable: there are only {n_domains} domains"
        return Decision(None, f"No clear number of classes: {few}", 2, True)
    best = max(scores, key=lambda count: scores[count].mean)
    if not shows_signal(scores[best], evidence):
        none = "domains do not differ beyond chance, so there is nothing to learn from"
        return Decision(None, f"No clear number of classes: {none}", 2, False)
    near = _within(RULE.near, scores, best)
    if rank in _within(RULE.sure, scores, best):
        return Decision(rank, _agreement(rank, best, n_domains), rank, True)
    fewest = min(near)
    if fewest == max(scores) < n_domains:
        return Decision(
            None,
            f"No clear number of classes: held-out likelihood still rises at {best}, "
            f"the largest tried; try up to {n_domains}",
            best,
            True,
        )
    if max(near) - fewest >= RULE.wide:
        return Decision(
            None,
            f"No clear number of classes: {fewest} to {max(near)} predict held-out "
            f"rows about equally well, and the cluster-by-domain table supports {rank}",
            fewest,
            True,
        )
    return Decision(
        fewest,
        f"{fewest} classes: the fewest within one standard error of the best on "
        f"held-out rows ({best}); the cluster-by-domain table alone supports {rank}",
        fewest,
        True,
    )


def _agreement(chosen: int, best: int, n_domains: int) -> str:
    sentence = f"{chosen} classes: "
    if chosen == best:
        sentence += (
            "best on held-out rows, and supported by the cluster-by-domain table"
        )
    else:
        sentence += (
            "supported by the cluster-by-domain table, and within two standard errors "
            f"of the best on held-out rows ({best})"
        )
    if chosen == n_domains:
        sentence += f"; more could not be told apart with {n_domains} domains"
    return sentence


def _within(errors: float, scores: dict[int, HeldOut], best: int) -> list[int]:
    """Numbers of classes at most this many standard errors behind the best."""
    top = scores[best]
    return [
        count
        for count, score in scores.items()
        if top.mean - score.mean <= RULE.tie + errors * top.standard_error(score)
    ]


def shows_signal(best: HeldOut, evidence: Evidence) -> bool:
    """Whether classes predict held-out domains better than chance does."""
    gain = best.mean - evidence.baseline.mean
    rank = evidence.rank
    visible = rank.singular_values.max(initial=0) > rank.null.max()
    doubt = RULE.near if visible else RULE.sure
    return bool(gain > RULE.least_gain + doubt * best.standard_error(evidence.baseline))


def check_candidates(n_classes: Any, rank: int, n_domains: int) -> list[int]:
    """Candidates in ascending order; by default from 2 to beyond the rank."""
    if n_classes is None:
        return list(range(2, min(n_domains, max(RULE.most_classes, rank + 3)) + 1))
    candidates = [n_classes] if is_whole(n_classes) else list(n_classes)
    wrong = [count for count in candidates if not is_whole(count) or count < 2]
    if wrong or not candidates:
        got = repr(wrong[0]) if wrong else "none"
        raise ValueError(f"n_classes must be whole numbers from 2, got {got}")
    return sorted({int(count) for count in candidates})


def rank_clusters(n_rows: int, n_domains: int) -> int:
    """Clusters to look for the rank in: as many as rows can fill in every domain."""
    most = max(n_rows // (RULE.rows_per_cell * n_domains), 4)
    return min(max(RULE.least_clusters, 3 * n_domains // 2), most)


def default_folds(n_rows: int) -> int:
    """Folds that leave enough rows to fit, at a cost that large tables can bear."""
    return 5 if n_rows < RULE.small_table else 3


def smooth(score: HeldOut, n_domains: int) -> HeldOut:
    """The score after mixing the fit with one imaginary row of an unknown domain.

    A held-out row that the fit calls impossible then costs log n, not infinity.
    """
    softened = soften(np.exp(score.each), 1 / n_domains, len(score.each) - 1)
    return HeldOut(np.log(softened), score.weight)


# ---- the curve and the choice --------------------------------------------------------

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
