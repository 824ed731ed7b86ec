"""The verdict and the checks behind it, in words that follow the names of classes.

Sentences say ``{c0}`` where they mean a class; the page puts its name there. A class
that is renamed later is then renamed everywhere.
"""

from dataclasses import asdict
from typing import Any

import numpy as np

from shoal.analysis.diagnose import THRESHOLDS, Diagnosis, judge
from shoal.report._gather import ReportRows

Record = dict[str, Any]

#: The checks of the page: question, why it matters.
QUESTIONS = (
    (
        "Do domains differ?",
        "Classes are found only by what differs between domains.",
    ),
    (
        "Do k classes explain it?",
        "What the classes leave unexplained is a class too few, or a class that looks "
        "different from domain to domain.",
    ),
    (
        "Does each class look alike everywhere?",
        "Shares can be compared only if a class is the same thing in every domain.",
    ),
    (
        "Is the mix rich enough?",
        "Classes whose shares always rise and fall together cannot be told apart.",
    ),
    (
        "Is the table sound?",
        "Thin domains, tell-tale columns and copied rows mislead any method.",
    ),
)

UNPROVEN = (
    "these data alone cannot prove that the classes are the ones you have in mind"
)
SEVERITY = ("fail", "caution")


def token(index: int) -> str:
    """What stands for a class inside a sentence."""
    return f"{{c{index}}}"


def describe_checks(rows: ReportRows, diagnosis: Diagnosis | None) -> Record | None:
    """Findings and numbers of a diagnosis, with the page's own names."""
    if diagnosis is None:
        return None
    shape = len(diagnosis.domains), len(diagnosis.class_names)
    if shape != (len(rows.domains), rows.n_classes):
        raise ValueError(
            f"diagnosis has {shape[0]} domains and {shape[1]} classes, the model "
            f"{len(rows.domains)} and {rows.n_classes}; diagnose this model"
        )
    numbers = dict(diagnosis.numbers)
    numbers["naming_columns"] = _named_columns(numbers["naming_columns"], rows)
    tokens = [token(index) for index in range(rows.n_classes)]
    domains = np.array(rows.domains, dtype=object)
    plain = judge(numbers, domains, tokens).to_dict()
    return {
        "verdict": plain["verdict"],
        "findings": plain["findings"],
        "numbers": plain["numbers"],
        "limits": asdict(THRESHOLDS),
    }


def _named_columns(accuracy: dict[str, float], rows: ReportRows) -> Record:
    """Columns by the page's names: the diagnosis says a number, or the name of fit."""
    seen = getattr(rows.model, "feature_names_in_", range(len(rows.features)))
    place = {str(name): index for index, name in enumerate(seen)}
    return {
        rows.features[place[key]] if key in place else key: value
        for key, value in accuracy.items()
    }


def describe_verdict(
    rows: ReportRows, prevalence: Any, checks: Record | None
) -> Record:
    """One word and two sentences: what was found, and the weakest check."""
    found = _found(rows, np.asarray(prevalence))
    if checks is None:
        return {
            "word": "not checked",
            "sentences": [
                found,
                "No check has been run, so nothing is known about how far to trust "
                "these classes.",
            ],
            "weakest": None,
        }
    weakest = next(
        (f for s in SEVERITY for f in checks["findings"] if f["status"] == s), None
    )
    if weakest is None:
        doubt = f"No check found a sign of a problem; {UNPROVEN}."
    else:
        doubt = f"Weakest check: {weakest['reason']} {weakest['advice']}"
    return {
        "word": checks["verdict"],
        "sentences": [found, doubt],
        "weakest": weakest and weakest["code"],
    }


def _found(rows: ReportRows, prevalence: Any) -> str:
    """The size of the result, and where domains differ most."""
    spread = prevalence.max(axis=0) - prevalence.min(axis=0)
    label = int(spread.argmax())
    top, low = int(prevalence[:, label].argmax()), int(prevalence[:, label].argmin())
    return (
        f"{rows.n_classes} classes were found in {rows.n_rows:,} rows from "
        f"{len(rows.domains):,} domains. Domains differ most in {token(label)}: "
        f"{prevalence[top, label]:.0%} of the rows in {rows.domains[top]}, "
        f"{prevalence[low, label]:.0%} in {rows.domains[low]}."
    )
