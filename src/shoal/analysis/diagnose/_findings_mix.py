"""Checks of the mixes: whether they are rich enough, and who else finds the classes."""

import numpy as np

from shoal.analysis.diagnose._result import RICH, Case, Finding, Topic, joined
from shoal.analysis.diagnose._settings import THRESHOLDS


def find_few_domains(case: Case) -> Finding:
    """Whether there are as many domains as classes."""
    k, r = case["n_classes"], case["n_domains"]
    values = {"n_classes": k, "n_domains": r}
    topic = Topic("E112", RICH, "A.1")
    if r >= k:
        return topic.fine(values, f"{r} domains for {k} classes")
    if case["looks"]:
        return topic.trouble(
            "caution",
            values,
            f"{k} classes are told apart by looks alone: {r} domains are too few.",
            "Look at rows of every class: nothing else says that they are classes.",
        )
    return topic.trouble(
        "fail",
        values,
        f"{k} classes cannot be told apart with {r} domains.",
        f"Use {r} classes or fewer, or finer domains.",
    )


def find_condition(case: Case) -> Finding:
    """Whether class mixes are nearly combinations of others."""
    condition, smallest = case["condition"], case["smallest_singular_value"]
    values = {"condition": condition, "smallest_singular_value": smallest}
    seen = f"condition number {condition:.3g} of the class mixes"
    topic = Topic("condition", RICH, "A.2")
    return topic.tell(
        condition <= THRESHOLDS.condition,
        values,
        seen,
        f"Some class mixes are nearly combinations of others: {seen}.",
        "Some classes cannot be kept apart: use fewer, or domains with other mixes.",
    )


def find_low_rank(case: Case) -> Finding:
    """Whether the differences between domains support so many classes."""
    rank, k = case["rank"], case["n_classes"]
    values = {"rank": rank, "n_classes": k}
    seen = f"differences between domains support {rank} classes, {k} were fitted"
    topic = Topic("rank", RICH, "A.2")
    return topic.tell(
        rank >= THRESHOLDS.rank * k,
        values,
        seen,
        f"The mix may not be rich enough: {seen}.",
        "Expect some classes to be arbitrary: use fewer, more rows, or more domains.",
    )


def find_no_anchors(case: Case) -> Finding:
    """Whether classes have rows that belong almost surely to them."""
    share = np.asarray(case["anchor_share"])
    none = joined(case.classes(share < THRESHOLDS.anchor))
    values = {"median": float(np.median(share)), "smallest": float(share.min())}
    topic = Topic("anchors", RICH, "A.4")
    but = f" (none seen for {none})" if none else ""
    return topic.tell(
        values["median"] >= THRESHOLDS.anchor,
        values,
        f"{values['median']:.0%} of the median class's rows belong almost surely to it"
        f"{but}",
        f"Most classes have no rows that belong almost surely to them: {none}.",
        "Classes overlap in these features, so the classes found may be mixtures of "
        "the true ones: add features that separate them.",
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
    """Whether looks and shift find the same classes; None where one was heard alone.

    Mixes too poor to tell so many classes leave it to looks to confirm them.
    """
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
    if share >= THRESHOLDS.witnesses_caution:
        return topic.fine(values, seen)
    rich = all(check(case).status == "ok" for check in (find_condition, find_low_rank))
    against = share < THRESHOLDS.witnesses_fail or not rich
    status = "fail" if both["heard"] and against else "caution"
    return topic.trouble(
        status,
        values,
        f"How rows look and how they shift tell two stories: {seen}.",
        f"Look at some of the {differ} rows on which they differ before any share is "
        "believed; fewer classes may be told by both.",
    )
