"""From numbers to findings: a status, a plain reason and an advice for each check.

A check is a function from a :class:`Case` to a :class:`Finding`, or to None where it
has nothing to say; those in ``CHECKS`` are asked, in the order of the list.
"""

from typing import Any

import numpy as np

from shoal.analysis.diagnose._findings_domains import (
    find_class_domains,
    find_domains_apart,
    find_instrument,
    find_lone_classes,
)
from shoal.analysis.diagnose._findings_mix import (
    find_condition,
    find_empty_classes,
    find_few_domains,
    find_low_rank,
    find_no_anchors,
    find_other_count,
    find_other_solutions,
    find_witnesses,
)
from shoal.analysis.diagnose._guess import COPIES_BY_CHANCE
from shoal.analysis.diagnose._result import (
    ALIKE,
    DIFFER,
    EXPLAIN,
    TABLE,
    Case,
    Check,
    Diagnosis,
    Finding,
    Topic,
    joined,
    level_of,
    verdict_of,
    written_column,
)
from shoal.analysis.diagnose._settings import THRESHOLDS

Array = np.ndarray[Any, Any]
Numbers = dict[str, Any]


def judge(numbers: Numbers, domains: Array, class_names: list[str]) -> Diagnosis:
    """The diagnosis that numbers give, told with these names."""
    case = Case(numbers, domains, class_names)
    answers = (check(case) for check in CHECKS)
    findings = tuple(finding for finding in answers if finding is not None)
    return Diagnosis(verdict_of(findings), findings, numbers, domains, class_names)


# ---- do domains differ, and do the classes explain it --------------------------------


def find_signal(case: Case) -> Finding:
    """Whether a guesser of domains beats what it gains on shuffled ones."""
    gain, null = case["gain"], np.asarray(case["gain_null"])
    needed, table = _needed_gain(case), case["table_signal"]
    seen = (
        f"held-out rows gain {gain:.3f} ± {case['gain_error']:.3f} nats over "
        f"guessing blindly (shuffled domains: at most {null.max():.3f})"
    )
    values = {"gain": gain, "shuffled_max": float(null.max()), "needed": needed}
    values["table_signal"] = table
    topic = Topic("E138", DIFFER, "label shift")
    if gain > needed:
        reason = f"Domains can be told apart: {seen}."
        return Finding(topic.code, topic.question, "ok", values, reason)
    few = _few_rows(case)
    if table > THRESHOLDS.table_signal:
        return topic.trouble(
            "caution",
            values,
            f"Domains differ, but too little to be confirmed: {seen}, while counts of "
            f"cells lie {table:.0f} standard deviations from those of shuffled ones.",
            few
            or "More rows of the same domains would help, or domains that differ more.",
        )
    return topic.trouble(
        "fail",
        values,
        f"Domains cannot be told apart: {seen}.",
        few
        or "There is nothing to learn classes from: the mix may be the same "
        "everywhere. Use other features, or domains that differ more.",
    )


def _few_rows(case: Case) -> str:
    """What to do about too few rows for so many columns; empty where they are not."""
    n_rows, n_columns = case["n_rows"], len(case["columns"])
    if n_rows >= THRESHOLDS.rows_per_column * n_columns:
        return ""
    return (
        f"These may be too few rows for so many columns ({n_rows} for {n_columns}): "
        "drop columns that say little, or reduce them to a few directions."
    )


def _needed_gain(case: Case) -> float:
    """Gain that a guesser of domains needs before it says anything."""
    null = np.asarray(case["gain_null"])
    beyond = null.mean() + THRESHOLDS.signal * null.std(ddof=1)
    return float(max(beyond, null.max(), 0))


def find_misfit(case: Case) -> Finding:
    """Whether counts of cells by domains depart from the model."""
    misfit, null = case["misfit"], case["misfit_null"]
    share = case["unexplained"]
    values = {"misfit": misfit, "expected": null["mean"], "unexplained": share}
    seen = (
        f"misfit {misfit:.2f} (about {null['mean']:.2f} if the model were true), "
        f"{max(np.nan_to_num(share), 0):.0%} of the differences between domains "
        "unexplained"
    )
    topic = Topic("misfit", EXPLAIN, "label shift")
    status = case.left(level_of_misfit(case.numbers))
    if status == "ok":
        return topic.fine(values, seen)
    helps, advice = _one_more(case)
    return topic.trouble(
        status if helps else "fail",
        values,
        f"{case['n_classes']} classes do not explain how domains differ: {seen}.",
        advice,
    )


def _one_more(case: Case) -> tuple[bool, str]:
    """Whether a further class would explain what these leave, and what to do."""
    k, r, more = case["n_classes"], case["n_domains"], case["one_more"]
    if k >= r:
        return False, "As many classes as domains, and still: do not use these classes."
    left, names = max(more["unexplained"], 0), case.domains
    homes = joined([str(names[d]) for d in more["fills"]])
    if homes:
        return False, (
            f"With {k + 1} classes, one is nearly all of {homes} and of no other: that "
            "would only hide that it cannot be compared with the others. Leave it out, "
            "or mend what is measured differently there."
        )
    if left > THRESHOLDS.one_more * case["unexplained"]:
        return False, (
            f"{k + 1} classes leave {left:.0%} unexplained as well: more classes are "
            "no help, as what a class looks like changes between domains."
        )
    return True, f"{k + 1} classes leave {left:.0%} unexplained: try more classes."


def _more(case: Case) -> str:
    """More classes as an advice, unless one more has been tried in vain."""
    return "more classes or " * (case["one_more"] is None or _one_more(case)[0])


def level_of_misfit(numbers: Numbers) -> str:
    """The status of counts that depart from the model, by themselves."""
    null = numbers["misfit_null"]
    beyond = (numbers["misfit"] - null["mean"]) / max(null["sd"], 1e-12)
    if not beyond > THRESHOLDS.sure:
        return "ok"
    limits = THRESHOLDS.unexplained_caution, THRESHOLDS.unexplained_fail
    return level_of(numbers["unexplained"], *limits)


def find_lost_gain(case: Case) -> Finding:
    """Whether a guess that passes through the classes keeps a free guesser's gain."""
    kept, sure = case["gain_kept"], case["gain_lost_sure"]
    values = {"kept": kept, "through": case["gain_through"], "lost_sure": sure}
    seen = (
        "guessing domains through the classes gains "
        f"{case['gain_through']:.3f} nats on held-out rows, a free guesser "
        f"({case['guesser']}) {case['gain']:.3f}"
    )
    topic = Topic("gain-kept", EXPLAIN, "label shift")
    # a share of next to nothing would say nothing
    enough = case["gain"] > max(_needed_gain(case), case["gain_error"])
    lost = kept < THRESHOLDS.kept_caution and sure > THRESHOLDS.kept_sure
    if not lost or not enough:
        return topic.fine(values, seen)
    share = f"only {kept:.0%}" if kept > 0 else "none"
    return topic.trouble(
        "fail" if kept < THRESHOLDS.kept_fail else case.left("caution"),
        values,
        f"The classes keep {share} of what tells domains apart: {seen}.",
        "The rest is domain signal that no class carries: look for instruments, sites "
        f"or dates in the features, try {_more(case)}richer features.",
    )


def find_shift(case: Case) -> Finding:
    """Whether a class looks different from domain to domain."""
    shift, worst = case["shift"], case["worst_class_shift"]
    values = {"shift": shift, "worst_class": worst}
    limits = THRESHOLDS.shift_caution, THRESHOLDS.shift_fail
    sure = case["shift_sure"] > THRESHOLDS.sure
    status = level_of(shift, *limits) if sure else "ok"
    one = worst >= THRESHOLDS.class_shift_caution
    if status == "ok" and one and case["worst_class_sure"] > THRESHOLDS.sure:
        status = "caution"
    status = case.left(status)
    seen = (
        f"within a class, domains lie {shift:.2f} standard deviations apart (signs "
        f"start at {case['shift_limit']:.2f})"
    )
    topic = Topic("alike", ALIKE, "label shift")
    if status == "ok":
        return topic.fine(values, seen)
    label, domain, size = case["worst_cells"][0]
    where = f"{case.class_names[label]} in {case.domains[domain]} by {size:.1f}"
    return topic.trouble(
        status,
        values,
        f"Classes look different from domain to domain: {seen}; most: {where}.",
        "Compare the surest rows of that class in that domain with those elsewhere; "
        f"try {_more(case)}to remove what the instrument or site does to the features.",
    )


# ---- the table -----------------------------------------------------------------------


def find_thin_domains(case: Case) -> Finding:
    """Whether a domain has too few rows for percentages."""
    sizes = np.asarray(case["rows_per_domain"])
    thin = np.flatnonzero(sizes < THRESHOLDS.thin)
    values = {"smallest": float(sizes.min()), "largest": float(sizes.max())}
    equal = "domains do not count alike (domain_weight, or too few rows)"
    if case["equal_weights"]:
        equal = "all domains count alike"
    topic = Topic("W111", TABLE, "A.3")
    if not len(thin):
        count = f"{sizes.min()} to {sizes.max()} rows per domain; {equal}"
        return topic.fine(values, count)
    first = thin[np.argmin(sizes[thin])]
    return topic.trouble(
        "caution",
        values,
        f"Domains with few rows: {len(thin)} of {len(sizes)}; {case.domains[first]} "
        f"has {sizes[first]}, about {case['rows_for_five_points']} would give ±5 "
        f"points; {equal}.",
        "Do not read single percentages of thin domains; merge them or collect more.",
    )


def find_leak(case: Case) -> Finding | None:
    """Whether a column alone names the domain; None where no column was asked."""
    accuracy = case["naming_columns"]
    if not accuracy:
        return None
    name = max(accuracy, key=accuracy.__getitem__)
    share, values = accuracy[name], {"accuracy": accuracy[name]}
    topic = Topic("W121", TABLE, "label shift", quiet=True)
    best = written_column(name)
    column = best[0].upper() + best[1:]
    return topic.tell(
        share < THRESHOLDS.leak,
        values,
        f"no column names the domain by itself (best: {best}, {share:.0%} of rows)",
        f"{column} alone names the domain in {share:.0%} of rows.",
        "Drop it unless it is a property of the class.",
    )


def find_copies(case: Case) -> Finding | None:
    """Whether rows repeat across domains; None where rows repeat by nature."""
    count, excess = case["repeated_rows"], case["repeated_excess"]
    if count is None:
        return None
    share, values = count / case["n_rows"], {"rows": float(count), "excess": excess}
    topic = Topic("W122", TABLE, "label shift", quiet=True)
    by_chance = excess <= COPIES_BY_CHANCE
    as_expected = ", as many as chance gives in coarse data" * (count > 0 and by_chance)
    return topic.tell(
        share <= THRESHOLDS.repeats or by_chance,
        values,
        f"{count} rows have a copy in another domain{as_expected}",
        f"{count} rows occur in more than one domain.",
        "Remove copies; they pull the domains together.",
    )


#: All checks, in the order of the questions. A further one is appended here.
CHECKS: list[Check] = [
    find_signal,
    find_misfit,
    find_lost_gain,
    find_shift,
    find_domains_apart,
    find_instrument,
    find_class_domains,
    find_few_domains,
    find_condition,
    find_low_rank,
    find_no_anchors,
    find_lone_classes,
    find_empty_classes,
    find_other_count,
    find_other_solutions,
    find_witnesses,
    find_thin_domains,
    find_leak,
    find_copies,
]
