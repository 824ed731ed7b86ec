"""Checks of the classes: whether they are domains, and who else would find them."""

import numpy as np

from shoal.analysis.diagnose._case import ALIKE, RICH, Case, Topic, joined
from shoal.analysis.diagnose._result import Finding
from shoal.analysis.diagnose._settings import THRESHOLDS


def find_class_domains(case: Case) -> Finding:
    """Whether classes are domains, or groups of them, by another name."""
    largest = np.asarray(case["largest_class_share"])
    pure = int((largest > THRESHOLDS.pure).sum())
    values = {"pure": pure / len(largest), "largest_share": float(largest.max())}
    topic = Topic("groups", ALIKE, "label shift", quiet=True)
    return topic.tell(
        pure < THRESHOLDS.pure_domains * len(largest),
        values,
        f"in {pure} of {len(largest)} domains one class has nearly all rows",
        f"Classes are groups of domains: in {pure} of {len(largest)} domains one class "
        f"has over {THRESHOLDS.pure:.0%} of the rows.",
        "More classes would only name more domains. Remove what sets whole domains "
        "apart (center each domain, or drop columns), or use finer domains.",
    )


def find_lone_classes(case: Case) -> Finding:
    """Whether a class occurs in one domain only, and is that domain."""
    share = np.asarray(case["largest_domain_share"])
    alone = np.flatnonzero(share > THRESHOLDS.single_domain)
    fills = alone[np.asarray(case["share_at_home"])[alone] > THRESHOLDS.fills]
    values = {
        "n_classes": float(len(alone)),
        "largest": float(share.max()),
        "n_domains_filled": float(len(fills)),
    }
    topic = Topic("W139", RICH, "label shift", quiet=True)
    home, names = case["largest_domain"], case.class_names

    def told(some: np.ndarray) -> str:
        return joined([f"{names[i]} only in {case.domains[home[i]]}" for i in some])

    if len(fills):
        homes = joined([str(case.domains[home[i]]) for i in fills])
        return topic.trouble(
            "fail",
            values,
            f"A class is nearly all of one domain and of no other: {told(fills)}.",
            f"{homes} cannot be compared with the others: leave it out, or mend what "
            "is measured differently there. More classes would only hide it.",
        )
    return topic.tell(
        not len(alone),
        values,
        "every class lives in several domains",
        f"Some classes occur in one domain: {told(alone)}.",
        "That could be a real class or that domain's instrument: look at its rows.",
    )


def find_empty_classes(case: Case) -> Finding:
    """Whether a class holds almost no rows."""
    share = np.asarray(case["class_weight"])
    empty = case.classes(share < THRESHOLDS.empty)
    values, topic = {"smallest": float(share.min())}, Topic("empty", RICH)
    return topic.tell(
        not empty,
        values,
        f"the rarest class has {share.min():.1%} of the average domain",
        f"Some classes hold almost no rows: {joined(empty)}.",
        "Use fewer classes.",
    )


def find_other_solutions(case: Case) -> Finding:
    """Whether other starts lead to other classes that fit as well."""
    excess = np.asarray(case["restart_excess"])
    agreement = np.asarray(case["restart_agreement"])
    n_rows = case["n_rows_used"]
    as_good = max(THRESHOLDS.near, THRESHOLDS.near_total / n_rows)
    better = max(THRESHOLDS.better, THRESHOLDS.better_total / n_rows)
    lowest = float(agreement[excess < as_good].min(initial=1.0))
    own, best = case["own_agreement"], float(-excess.min(initial=0.0))
    values = {"agreement": lowest, "own_agreement": own, "better_by": max(best, 0.0)}
    topic = Topic("starts", RICH)
    if best > better:
        problem = f"Another start fits better by {best:.3f} nats"
    elif lowest < THRESHOLDS.agreement:
        problem = f"Equally good starts agree on only {lowest:.0%} of the rows"
    elif own < THRESHOLDS.own_agreement:
        problem = f"Likelihood alone would class only {own:.0%} of the rows alike"
    else:
        return topic.fine(values, f"starts agree on {lowest:.0%} of the rows")
    return topic.trouble(
        "caution",
        values,
        f"{problem}: the classes are not pinned down.",
        "Refit with several seeds and compare; if they disagree, use fewer classes.",
    )


def find_witnesses(case: Case) -> Finding | None:
    """Whether looks and shift find the same classes; None where one was heard alone."""
    both = case["witnesses"]
    if both is None:
        return None
    share, by_class = both["agreement"], np.asarray(both["by_class"])
    lowest = int(np.nanargmin(by_class))
    differ = round((1 - share) * both["n_rows"])
    values = {"agreement": share, "lowest": float(by_class[lowest])}
    seen = (
        f"classes by looks and classes by shift agree on {share:.0%} of rows (least in "
        f"{case.class_names[lowest]}: {by_class[lowest]:.0%})"
    )
    topic = Topic("witnesses", RICH)
    status = "ok"
    # who has nothing to say, or is overruled beyond doubt, cannot contradict
    heard = not both["silent"] and not both["overruled"]
    if share < THRESHOLDS.witnesses_fail and heard:
        status = "fail"
    elif share < THRESHOLDS.witnesses_caution:
        status = "caution"
    if status == "ok":
        return topic.fine(values, seen)
    return topic.trouble(
        status,
        values,
        f"How rows look and how they shift tell two stories: {seen}.",
        f"Look at some of the {differ} rows on which they differ before any share is "
        "believed; fewer classes may be told by both.",
    )


def find_other_count(case: Case) -> Finding | None:
    """Whether the curve of numbers of classes prefers another; None without one."""
    choice, k = case["choice"], case["n_classes"]
    if choice is None:
        return None
    wanted = choice["n_classes"]
    values = {"n_classes": float(k), "chosen": float(wanted or 0)}
    return Topic("curve", RICH).tell(
        wanted == k,
        values,
        f"the curve of held-out fits agrees on {k} classes",
        f"The curve of held-out fits does not say {k}: {choice['sentence']}.",
        "Look at the curve, and at the classes with one fewer and one more.",
    )
