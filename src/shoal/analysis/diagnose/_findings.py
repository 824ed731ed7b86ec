"""From numbers to findings: a status, a plain reason and an advice for each check."""

from typing import Any

import numpy as np

from shoal.analysis.diagnose._result import Finding
from shoal.analysis.diagnose._thresholds import THRESHOLDS

Array = np.ndarray[Any, Any]
Numbers = dict[str, Any]

DIFFER = "Do domains differ?"
EXPLAIN = "Do k classes explain it?"
ALIKE = "Does each class look alike everywhere?"
RICH = "Is the mix rich enough?"
TABLE = "Is the table sound?"


def find_all(numbers: Numbers, domains: Array, class_names: list[str]) -> list[Finding]:
    """All findings, in the order of the questions."""
    findings = [
        _signal(numbers),
        _misfit(numbers),
        _kept(numbers),
        _alike(numbers, domains, class_names),
        _enough_domains(numbers),
        _condition(numbers),
        _rank(numbers),
        _anchors(numbers, class_names),
        _single_domain(numbers, domains, class_names),
        _empty(numbers, class_names),
        _starts(numbers),
        _thin(numbers, domains),
    ]
    if numbers["naming_columns"]:
        findings.append(_leak(numbers))
    if numbers["repeated_rows"] is not None:
        findings.append(_repeats(numbers))
    return findings


def _signal(numbers: Numbers) -> Finding:
    gain, null = numbers["gain"], np.asarray(numbers["gain_null"])
    floor = _floor(numbers)
    seen = (
        f"held-out rows gain {gain:.3f} ± {numbers['gain_error']:.3f} nats over "
        f"guessing blindly (shuffled domains: at most {null.max():.3f})"
    )
    values = {"gain": gain, "shuffled_max": float(null.max()), "needed": floor}
    if gain > floor:
        return Finding(
            "E138", DIFFER, "ok", values, f"Domains can be told apart: {seen}."
        )
    return Finding(
        "E138",
        DIFFER,
        "fail",
        values,
        f"Domains cannot be told apart: {seen}.",
        "There is nothing to learn classes from: the mix may be the same everywhere. "
        "Use other features, or domains that differ more.",
        "label shift",
    )


def _floor(numbers: Numbers) -> float:
    """Gain that a guesser of domains needs before it says anything."""
    null = np.asarray(numbers["gain_null"])
    beyond = null.mean() + THRESHOLDS["signal"] * null.std(ddof=1)
    return float(max(beyond, null.max(), 0))


def _misfit(numbers: Numbers) -> Finding:
    misfit, null = numbers["misfit"], numbers["misfit_null"]
    sure = (misfit - null["mean"]) / max(null["sd"], 1e-12)
    share = numbers["unexplained"]
    values = {"misfit": misfit, "expected": null["mean"], "unexplained": share}
    seen = (
        f"misfit {misfit:.2f} (about {null['mean']:.2f} if the model were true), "
        f"{max(np.nan_to_num(share), 0):.0%} of the differences between domains "
        "unexplained"
    )
    status = "ok"
    if sure > THRESHOLDS["sure"]:
        status = _level(share, "unexplained")
    if status == "ok":
        reason = f"No sign of a problem found: {seen}."
        return Finding("misfit", EXPLAIN, "ok", values, reason, "", "label shift")
    k, rank = numbers["n_classes"], numbers["rank"]
    more = f"The table of cells supports {rank} classes: " if rank > k else ""
    return Finding(
        "misfit",
        EXPLAIN,
        status,
        values,
        f"{k} classes do not explain how domains differ: {seen}.",
        f"{more}try more classes; if that does not help, what a class looks like "
        "changes between domains.",
        "label shift",
    )


def _kept(numbers: Numbers) -> Finding:
    kept, sure = numbers["gain_kept"], numbers["gain_lost_sure"]
    values = {"kept": kept, "through": numbers["gain_through"], "lost_sure": sure}
    seen = (
        "guessing domains through the classes gains "
        f"{numbers['gain_through']:.3f} nats on held-out rows, a free guesser "
        f"({numbers['guesser']}) {numbers['gain']:.3f}"
    )
    status = "ok"
    # a share of next to nothing would say nothing
    enough = numbers["gain"] > max(_floor(numbers), numbers["gain_error"])
    if sure > THRESHOLDS["kept_sure"] and enough:
        if kept < THRESHOLDS["kept_caution"]:
            status = "fail" if kept < THRESHOLDS["kept_fail"] else "caution"
    if status == "ok":
        reason = f"No sign of a problem found: {seen}."
        return Finding("gain-kept", EXPLAIN, "ok", values, reason, "", "label shift")
    share = f"only {kept:.0%}" if kept > 0 else "none"
    return Finding(
        "gain-kept",
        EXPLAIN,
        status,
        values,
        f"The classes keep {share} of what tells domains apart: {seen}.",
        "The rest is domain signal that no class carries: look for instruments, sites "
        "or dates in the features, try more classes or richer features.",
        "label shift",
    )


def _alike(numbers: Numbers, domains: Array, class_names: list[str]) -> Finding:
    shift, worst = numbers["shift"], numbers["worst_class_shift"]
    values = {"shift": shift, "worst_class": worst}
    status = "ok"
    if numbers["shift_sure"] > THRESHOLDS["sure"]:
        status = _level(shift, "shift")
    one = (
        worst >= THRESHOLDS["class_shift_caution"]
        and numbers["worst_class_sure"] > THRESHOLDS["sure"]
    )
    if one and status == "ok":
        status = "caution"
    seen = (
        f"within a class, domains lie {shift:.2f} standard deviations apart (signs "
        f"start at {numbers['shift_limit']:.2f})"
    )
    if status == "ok":
        reason = f"No sign of a problem found: {seen}."
        return Finding("alike", ALIKE, "ok", values, reason, "", "label shift")
    label, domain, size = numbers["worst_cells"][0]
    where = f"{class_names[label]} in {domains[domain]} by {size:.1f}"
    return Finding(
        "alike",
        ALIKE,
        status,
        values,
        f"Classes look different from domain to domain: {seen}; most: {where}.",
        "Compare the surest rows of that class in that domain with those elsewhere; "
        "remove what the instrument or site does to the features, or use more classes.",
        "label shift",
    )


def _level(value: float, name: str) -> str:
    if value >= THRESHOLDS[f"{name}_fail"]:
        return "fail"
    return "caution" if value >= THRESHOLDS[f"{name}_caution"] else "ok"


# ---- is the mix rich enough --------------------------------------------------------


def _enough_domains(numbers: Numbers) -> Finding:
    k, r = numbers["n_classes"], numbers["n_domains"]
    values = {"n_classes": k, "n_domains": r}
    if r >= k:
        reason = f"No sign of a problem found: {r} domains for {k} classes."
        return Finding("E112", RICH, "ok", values, reason, "", "A.1")
    return Finding(
        "E112",
        RICH,
        "fail",
        values,
        f"{k} classes cannot be told apart with {r} domains.",
        f"Use {r} classes or fewer, or finer domains.",
        "A.1",
    )


def _condition(numbers: Numbers) -> Finding:
    condition, smallest = numbers["condition"], numbers["smallest_singular_value"]
    values = {"condition": condition, "smallest_singular_value": smallest}
    seen = f"condition number {condition:.3g} of the class mixes"
    if condition <= THRESHOLDS["condition"]:
        reason = f"No sign of a problem found: {seen}."
        return Finding("condition", RICH, "ok", values, reason, "", "A.2")
    return Finding(
        "condition",
        RICH,
        "caution",
        values,
        f"Some class mixes are nearly combinations of others: {seen}.",
        "Some classes cannot be kept apart: use fewer, or domains with other mixes.",
        "A.2",
    )


def _rank(numbers: Numbers) -> Finding:
    rank, k = numbers["rank"], numbers["n_classes"]
    values = {"rank": rank, "n_classes": k}
    seen = f"differences between domains support {rank} classes, {k} were fitted"
    if rank >= THRESHOLDS["rank"] * k:
        reason = f"No sign of a problem found: {seen}."
        return Finding("rank", RICH, "ok", values, reason, "", "A.2")
    return Finding(
        "rank",
        RICH,
        "caution",
        values,
        f"The mix may not be rich enough: {seen}.",
        "Expect some classes to be arbitrary: use fewer, more rows, or more domains.",
        "A.2",
    )


def _anchors(numbers: Numbers, class_names: list[str]) -> Finding:
    share = np.asarray(numbers["anchor_share"])
    none = [class_names[i] for i in np.flatnonzero(share < THRESHOLDS["anchor"])]
    values = {"median": float(np.median(share)), "smallest": float(share.min())}
    if values["median"] >= THRESHOLDS["anchor"]:
        but = f" (none seen for {_join(none)})" if none else ""
        reason = (
            f"No sign of a problem found: {values['median']:.0%} of the median class's "
            f"rows belong almost surely to it{but}."
        )
        return Finding("anchors", RICH, "ok", values, reason, "", "A.4")
    return Finding(
        "anchors",
        RICH,
        "caution",
        values,
        f"Most classes have no rows that belong almost surely to them: {_join(none)}.",
        "Classes overlap in these features, so the classes found may be mixtures of "
        "the true ones: add features that separate them.",
        "A.4",
    )


def _single_domain(numbers: Numbers, domains: Array, class_names: list[str]) -> Finding:
    share = np.asarray(numbers["largest_domain_share"])
    alone = np.flatnonzero(share > THRESHOLDS["single_domain"])
    values = {"n_classes": float(len(alone)), "largest": float(share.max())}
    if not len(alone):
        reason = "No sign of a problem found: every class lives in several domains."
        return Finding("W139", RICH, "ok", values, reason)
    home = numbers["largest_domain"]
    where = _join([f"{class_names[i]} only in {domains[home[i]]}" for i in alone])
    return Finding(
        "W139",
        RICH,
        "caution",
        values,
        f"Some classes occur in one domain: {where}.",
        "That could be a real class or that domain's instrument: look at its rows.",
        "label shift",
    )


def _empty(numbers: Numbers, class_names: list[str]) -> Finding:
    share = np.asarray(numbers["class_weight"])
    empty = [class_names[i] for i in np.flatnonzero(share < THRESHOLDS["empty"])]
    values = {"smallest": float(share.min())}
    if not empty:
        reason = (
            "No sign of a problem found: the rarest class has "
            f"{share.min():.1%} of the average domain."
        )
        return Finding("empty", RICH, "ok", values, reason)
    return Finding(
        "empty",
        RICH,
        "caution",
        values,
        f"Some classes hold almost no rows: {_join(empty)}.",
        "Use fewer classes.",
    )


def _starts(numbers: Numbers) -> Finding:
    excess = np.asarray(numbers["restart_excess"])
    agreement = np.asarray(numbers["restart_agreement"])
    n_rows = numbers["n_rows_used"]
    as_good = max(THRESHOLDS["near"], THRESHOLDS["near_total"] / n_rows)
    better = max(THRESHOLDS["better"], THRESHOLDS["better_total"] / n_rows)
    near = agreement[excess < as_good]
    lowest = float(near.min(initial=1.0))
    own, best = numbers["own_agreement"], float(-excess.min(initial=0.0))
    values = {"agreement": lowest, "own_agreement": own, "better_by": max(best, 0.0)}
    if best > better:
        problem = f"Another start fits better by {best:.3f} nats"
    elif lowest < THRESHOLDS["agreement"]:
        problem = f"Equally good starts agree on only {lowest:.0%} of the rows"
    elif own < THRESHOLDS["own_agreement"]:
        problem = f"Likelihood alone would class only {own:.0%} of the rows alike"
    else:
        reason = (
            f"No sign of a problem found: starts agree on {lowest:.0%} of the rows."
        )
        return Finding("starts", RICH, "ok", values, reason)
    return Finding(
        "starts",
        RICH,
        "caution",
        values,
        f"{problem}: the classes are not pinned down.",
        "Refit with several seeds (DomainMixture: with search=True) and compare; if "
        "they disagree, use fewer classes.",
    )


# ---- the table ---------------------------------------------------------------------


def _thin(numbers: Numbers, domains: Array) -> Finding:
    sizes = np.asarray(numbers["rows_per_domain"])
    thin = np.flatnonzero(sizes < THRESHOLDS["thin"])
    values = {"smallest": float(sizes.min()), "largest": float(sizes.max())}
    equal = "all domains count alike" if numbers["equal_weights"] else (
        "domains do not count alike (domain_weight, or too few rows)"
    )  # fmt: skip
    if not len(thin):
        reason = (
            f"No sign of a problem found: {sizes.min()} to {sizes.max()} rows per "
            f"domain; {equal}."
        )
        return Finding("W111", TABLE, "ok", values, reason, "", "A.3")
    first = thin[np.argmin(sizes[thin])]
    return Finding(
        "W111",
        TABLE,
        "caution",
        values,
        f"Domains with few rows: {len(thin)} of {len(sizes)}; {domains[first]} has "
        f"{sizes[first]}, about {numbers['rows_for_five_points']} would give ±5 "
        f"points; {equal}.",
        "Do not read single percentages of thin domains; merge them or collect more.",
        "A.3",
    )


def _leak(numbers: Numbers) -> Finding:
    accuracy = numbers["naming_columns"]
    name = max(accuracy, key=accuracy.__getitem__)
    values = {"accuracy": accuracy[name]}
    of_array = name.isdigit()
    if accuracy[name] < THRESHOLDS["leak"]:
        reason = (
            "No sign of a problem found: no column names the domain by itself (best: "
            + (f"column {name}" if of_array else f'"{name}"')
            + f", {accuracy[name]:.0%} of rows)."
        )
        return Finding("W121", TABLE, "ok", values, reason)
    return Finding(
        "W121",
        TABLE,
        "caution",
        values,
        (f"Column {name}" if of_array else f'"{name}"')
        + f" alone names the domain in {accuracy[name]:.0%} of rows.",
        "Drop it unless it is a property of the class.",
        "label shift",
    )


def _repeats(numbers: Numbers) -> Finding:
    count, excess = numbers["repeated_rows"], numbers["repeated_excess"]
    share = count / numbers["n_rows"]
    values = {"rows": float(count), "excess": excess}
    if share <= THRESHOLDS["repeats"] or excess <= 2:
        chance = ", as many as chance gives in coarse data" if excess <= 2 else ""
        reason = (
            f"No sign of a problem found: {count} rows have a copy in another domain"
            f"{chance * (count > 0)}."
        )
        return Finding("W122", TABLE, "ok", values, reason)
    return Finding(
        "W122",
        TABLE,
        "caution",
        values,
        f"{count} rows occur in more than one domain.",
        "Remove copies; they pull the domains together.",
        "label shift",
    )


def _join(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown + f" and {len(names) - most} more" * (len(names) > most)
