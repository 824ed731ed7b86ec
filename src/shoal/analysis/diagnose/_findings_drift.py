"""Checks that need no classes: domains that measure, or look, in their own way."""

from typing import Any

import numpy as np

from shoal.analysis.diagnose._case import (
    ALIKE,
    Case,
    Numbers,
    Topic,
    level_of,
    written_column,
)
from shoal.analysis.diagnose._result import Finding
from shoal.analysis.diagnose._settings import THRESHOLDS


def find_domains_apart(case: Case) -> Finding | None:
    """Whether most domains fit no mix of the others; None where it was not asked."""
    drift = case["drift"]
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
        status = level_of(share, THRESHOLDS.apart_caution, THRESHOLDS.apart_fail)
    if status == "ok":
        return topic.fine(values, seen)
    if case["drift_fitted"]:
        return topic.trouble(
            "caution",
            values,
            f"Domains drift: {seen}; the fit takes one offset per domain out.",
            "What differs by more than one offset is still taken for classes: look at "
            "rows of a class from several domains.",
        )
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
    told = drift["instruments"]
    found = [one for one in told if one["size"] >= THRESHOLDS.unit_least]
    sure = [one for one in found if one["beyond"] > _sure_unit(one["beyond_error"])]
    # first in the list: what a class of the domain's own explains no better
    perhaps = _many_domains(drift) and any(
        one["gain"] > _sure_unit(one["error"])
        and one["gain"] >= THRESHOLDS.unit_share * (one["gain"] - one["beyond"])
        for one in found[:1]
    )
    if not sure and not perhaps:
        gain = found[0]["gain"] if found else 0.0
        return topic.fine({"gain": gain}, "no column of a domain asks for another unit")
    one = found[0] if perhaps else sure[0]
    certain = one in sure
    where = case.domains[one["domain"]]
    column = written_column(case["columns"][one["column"]])
    reads = f"{column} at {where} is {_span(one['here'])}"
    else_, doubt = _span(one["elsewhere"]), "" if certain else ", or a class of its own"
    return topic.trouble(
        "fail" if certain and not case["drift_fitted"] else "caution",
        {
            key: float(one[key])
            for key in ("gain", "beyond", "factor", "offset", "size")
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


def _sure_unit(error: float) -> float:
    return THRESHOLDS.unit_sure * error


def _span(ends: Any) -> str:
    low, high = (f"{float(end):.3g}" for end in ends)
    return f"{low} to {high}"
