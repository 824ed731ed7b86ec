"""From numbers to findings: a status, a plain reason and an advice for each check.

A check is a function from a :class:`Case` to a :class:`Finding`, or to None where it
has nothing to say; those in ``CHECKS`` are asked, in the order of the list.
"""

from typing import Any

import numpy as np

from shoal.analysis.diagnose._case import (
    ALIKE,
    DIFFER,
    EXPLAIN,
    RICH,
    TABLE,
    Case,
    Check,
    Topic,
    level_of,
    written_column,
)
from shoal.analysis.diagnose._findings_drift import find_domains_apart, find_instrument
from shoal.analysis.diagnose._guess import COPIES_BY_CHANCE
from shoal.analysis.diagnose._result import Diagnosis, Finding, verdict_of
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
    needed = _needed_gain(case)
    seen = (
        f"held-out rows gain {gain:.3f} ± {case['gain_error']:.3f} nats over "
        f"guessing blindly (shuffled domains: at most {null.max():.3f})"
    )
    values = {"gain": gain, "shuffled_max": float(null.max()), "needed": needed}
    topic = Topic("E138", DIFFER, "label shift")
    if gain > needed:
        reason = f"Domains can be told apart: {seen}."
        return Finding(topic.code, topic.question, "ok", values, reason)
    return topic.trouble(
        "fail",
        values,
        f"Domains cannot be told apart: {seen}.",
        "There is nothing to learn classes from: the mix may be the same everywhere. "
        "Use other features, or domains that differ more.",
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
    sure = (misfit - null["mean"]) / max(null["sd"], 1e-12) > THRESHOLDS.sure
    limits = THRESHOLDS.unexplained_caution, THRESHOLDS.unexplained_fail
    status = level_of(share, *limits) if sure else "ok"
    if status == "ok":
        return topic.fine(values, seen)
    k, rank = case["n_classes"], case["rank"]
    more = f"The table of cells supports {rank} classes: " if rank > k else ""
    return topic.trouble(
        status,
        values,
        f"{k} classes do not explain how domains differ: {seen}.",
        f"{more}try more classes; if that does not help, what a class looks like "
        "changes between domains.",
    )


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
        "fail" if kept < THRESHOLDS.kept_fail else "caution",
        values,
        f"The classes keep {share} of what tells domains apart: {seen}.",
        "The rest is domain signal that no class carries: look for instruments, sites "
        "or dates in the features, try more classes or richer features.",
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
        "remove what the instrument or site does to the features, or use more classes.",
    )


# ---- is the mix rich enough ----------------------------------------------------------


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
    none = _join(case.classes(share < THRESHOLDS.anchor))
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


def find_lone_classes(case: Case) -> Finding:
    """Whether a class occurs in one domain only."""
    share = np.asarray(case["largest_domain_share"])
    alone = np.flatnonzero(share > THRESHOLDS.single_domain)
    values = {"n_classes": float(len(alone)), "largest": float(share.max())}
    topic = Topic("W139", RICH, "label shift", quiet=True)
    home, names = case["largest_domain"], case.class_names
    where = _join([f"{names[i]} only in {case.domains[home[i]]}" for i in alone])
    return topic.tell(
        not len(alone),
        values,
        "every class lives in several domains",
        f"Some classes occur in one domain: {where}.",
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
        f"Some classes hold almost no rows: {_join(empty)}.",
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
        "Refit with several seeds (DomainMixture: with search=True) and compare; if "
        "they disagree, use fewer classes.",
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


def _join(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown + f" and {len(names) - most} more" * (len(names) > most)


#: All checks, in the order of the questions. A further one is appended here.
CHECKS: list[Check] = [
    find_signal,
    find_misfit,
    find_lost_gain,
    find_shift,
    find_domains_apart,
    find_instrument,
    find_few_domains,
    find_condition,
    find_low_rank,
    find_no_anchors,
    find_lone_classes,
    find_empty_classes,
    find_other_solutions,
    find_thin_domains,
    find_leak,
    find_copies,
]
