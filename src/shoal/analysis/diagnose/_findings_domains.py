"""Checks of classes against domains, and of domains that need no classes."""

from typing import Any

import numpy as np

from shoal.analysis.diagnose._result import (
    ALIKE,
    RICH,
    Case,
    Finding,
    Numbers,
    Topic,
    joined,
    level_of,
    written_column,
)
from shoal.analysis.diagnose._settings import THRESHOLDS

# ---- classes and domains: whether they are one, and who else would find them ---------


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


# ---- domains that measure, or look, in their own way ---------------------------------


def find_domains_apart(case: Case) -> Finding | None:
    """Whether most domains fit no mix of the others; None where it was not asked."""
    drift = case["drift_left"] or case["drift"]
    if drift is None:
        return None
    known = ~np.isnan(drift["apart"])
    apart = drift["apart"] > THRESHOLDS.apart_sure * drift["apart_error"]
    n_apart, n_known = int(apart.sum()), int(known.sum())
    share = n_apart / n_known
    values = {
        "share": share,
        "shift": float(drift["shift"][known].mean()),
        "apart": float(drift["apart"][known].mean()),
    }
    seen = f"{n_apart} of {n_known} domains hold rows that fit no mix of the others'"
    topic = Topic("drift", ALIKE, "label shift")
    status = "ok"
    if _many_domains(drift):
        limits = THRESHOLDS.apart_caution, THRESHOLDS.apart_fail
        status = case.left(level_of(share, *limits))
    if status == "ok" and case["drift_fitted"]:
        return topic.trouble(
            "caution",
            values,
            "Domains drift: the fit takes one offset per domain out, and all else here "
            f"is asked of what is left, where {seen}.",
            "What differs by more than one offset is still taken for classes: look at "
            "rows of a class from several domains.",
        )
    if status == "ok":
        own = f"{n_apart} of {n_known} domains may have classes of their own"
        plain = _many_domains(drift) or not n_apart
        return topic.fine(values, seen if plain else own)
    first = case.domains[int(np.nanargmax(np.where(apart, drift["apart"], -np.inf)))]
    return topic.trouble(
        status,
        values,
        f"Domains do not hold the same classes in another mix: {seen}; most: {first}.",
        "More classes would only hide it. Remove what each instrument, site or season "
        "does to the columns (center each domain, or drop columns), or use --by looks, "
        "which allows a drift.",
    )


def find_instrument(case: Case) -> Finding | None:
    """Whether one column of one domain is in another unit; None where not asked."""
    drift = case["drift"]
    if drift is None:
        return None
    topic = Topic("W124", ALIKE, "label shift", quiet=True)
    left = [] if case["drift_left"] is None else case["drift_left"]["instruments"]
    one = next(filter(_is_told, [*drift["instruments"], *left]), None)
    if one is None:
        return topic.fine({}, "no column of a domain asks for another unit")
    alone = one["beyond"] > THRESHOLDS.unit_sure * one["beyond_error"]
    if not alone and not _many_domains(drift):
        seen = "what might be another unit may be a class that one domain alone has"
        return topic.fine({"evidence": float(one["evidence"])}, seen)
    where = case.domains[one["domain"]]
    column = written_column(case["columns"][one["column"]])
    reads = f"{column} at {where} is {_span(one['here'])}"
    else_, doubt = _span(one["elsewhere"]), "" if alone else ", or a class of its own"
    large = _is_large(one) and not case["drift_fitted"]
    return topic.trouble(
        "fail" if any(map(_is_told, left)) or large else "caution",
        {
            key: float(one[key])
            for key in ("evidence", "gain", "beyond", "factor", "offset", "size")
        },
        f"{reads[0].upper()}{reads[1:]}, elsewhere {else_}: another unit or instrument"
        f"{doubt}?",
        f"Compare {column} there with the others: {one['factor']:.3g} x value "
        f"{one['offset']:+.3g} would make it like theirs. Mend the column, or leave it "
        f"or {where} out.",
    )


def _many_domains(drift: Numbers) -> bool:
    """Whether private classes cannot be why so many domains stand apart."""
    return int(np.isfinite(drift["apart"]).sum()) >= THRESHOLDS.apart_domains


def _is_told(one: Numbers) -> bool:
    """Whether an instrument is more than chance, and than a model a little off."""
    enough = max(THRESHOLDS.unit_nats, THRESHOLDS.unit_nats_a_row * one["rows"])
    return bool(one["evidence"] > enough and one["size"] >= THRESHOLDS.unit_least)


def _span(ends: Any) -> str:
    low, high = (f"{float(end):.3g}" for end in ends)
    return f"{low} to {high}"


def _is_large(one: Numbers) -> bool:
    """Whether an instrument moves rows so far that they end in other classes."""
    return bool(
        one["evidence"] > THRESHOLDS.unit_nats_fail
        and one["size"] >= THRESHOLDS.unit_large
        and one["beyond"] > -THRESHOLDS.unit_doubt * one["beyond_error"]
    )
