"""The verdict and its checks in words, and one card per class: what tells it apart."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from shoal.analysis import _profile as profile
from shoal.analysis._explain import TOGETHER, explain_checked
from shoal.analysis.diagnose import THRESHOLDS, judge
from shoal.analysis.diagnose._result import Diagnosis
from shoal.report._gather import ReportRows, RowViewer
from shoal.report._settings import SETTINGS
from shoal.validation._rows import is_sparse

# ---- the verdict and the checks behind it --------------------------------------------

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
    if len(numbers["columns"]) == len(rows.features):
        numbers["columns"] = list(rows.features)
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
    rows: ReportRows, prevalence: Any, checks: Record | None, among: Sequence[int]
) -> Record:
    """One word and three sentences: what was found, by what, and the weakest check."""
    found = _found(rows, np.asarray(prevalence), list(among))
    evidence = rows.model._told_apart()
    if checks is None:
        return {
            "word": "not checked",
            "sentences": [
                found,
                evidence,
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
        "sentences": [found, evidence, doubt],
        "weakest": weakest and weakest["code"],
    }


def _found(rows: ReportRows, prevalence: Any, among: list[int]) -> str:
    """The size of the result, and where domains differ most (``among`` these)."""
    size = (
        f"{rows.n_classes} classes were found in {rows.n_rows:,} rows from "
        f"{len(rows.domains):,} domains."
    )
    if len(among) < 2:
        return f"{size} None of these has rows enough to be read alone."
    part = prevalence[among]
    label = int((part.max(axis=0) - part.min(axis=0)).argmax())
    top, low = (
        among[int(end)] for end in (part[:, label].argmax(), part[:, label].argmin())
    )
    return (
        f"{size} Domains differ most in {token(label)}: "
        f"{prevalence[top, label]:.0%} of the rows in {rows.domains[top]}, "
        f"{prevalence[low, label]:.0%} in {rows.domains[low]}."
    )


# ---- one card per class --------------------------------------------------------------

Array = np.ndarray[Any, Any]


def make_cards(rows: ReportRows, kept: Array | None) -> tuple[list[Record], list[str]]:
    """Cards of all classes, and the columns that their example rows show.

    Parameters
    ----------
    rows : ReportRows
    kept : ndarray of shape (n_samples,) or None
        Share of resamples in which each row keeps its class.
    """
    telling, contrast = _telling(rows)
    viewer = RowViewer(rows, _column_order(rows, contrast), telling)
    other = _other_classes(rows)
    cards = []
    for index in range(rows.n_classes):
        card = {**_size(rows, index, kept), **telling[index]}
        if rows.show_rows:
            distance = _distance_to(rows, contrast, index)
            card["exemplars"] = [
                {"domain": domain, "rows": [viewer.show(row, index) for row in own]}
                for domain, own in _exemplars(rows, index, distance)
            ]
            card["borderline"] = [
                viewer.show(row, index)
                | {"other": _second(rows.proba[row], index), "why": _why(rows, row)}
                for row in _borderline(rows, index)
            ]
            card["disputed"] = [
                viewer.show(row, index) | {"other": _as(rows.proba[row], other[row])}
                for row in _disputed(rows, index, other)
            ]
        cards.append(card)
    return cards, [str(name) for name in viewer.columns] if rows.show_rows else []


def _telling(rows: ReportRows) -> tuple[list[Record], profile.Contrast | None]:
    """Features or words of each class; nothing where a row is an image."""
    found: list[Record] = [
        {"features": [], "words": [], "nearest": None} for _ in range(rows.n_classes)
    ]
    contrast = None
    if rows.has_words and rows.has_features:
        if rows.show_rows:
            bags, names = rows.bags
            counts = profile.contrast_words(rows.model, bags, rows.proba)
            for index, one in enumerate(found):
                one["words"] = profile.top_words(counts, names, index)
                one["nearest"] = _nearest(counts, names, index)
    elif rows.has_features:
        columns, names = rows.known_by
        contrast = rows.contrast
        for index, one in enumerate(found):
            one["features"] = profile.top_features(
                columns, rows.proba, names, index, contrast
            )
    return found, contrast


def _nearest(counts: Array, words: Sequence[str], index: int) -> Record:
    """The class most like one, and the words that set the two apart."""
    other = profile.nearest_class(counts, index)
    pair = counts[[index, other]]
    ours, theirs = (profile.top_words(pair, words, one) for one in (0, 1))
    return {
        "class_id": f"c{other}",
        "words": [entry["word"] for entry in ours],
        "theirs": [entry["word"] for entry in theirs],
    }


def _column_order(rows: ReportRows, contrast: profile.Contrast | None) -> Sequence[str]:
    """Names of the features, the most telling first."""
    if contrast is None or contrast.difference.shape[1] != len(rows.features):
        return rows.features
    order = np.argsort(-np.abs(contrast.difference).max(axis=0), kind="stable")
    return [rows.features[index] for index in order]


def _size(rows: ReportRows, index: int, kept: Array | None) -> Record:
    own = rows.classes == index
    top = rows.proba[own, index]
    n_bins = SETTINGS.probability_bins
    bins = np.minimum((top * n_bins).astype(int), n_bins - 1)
    by_domain = np.bincount(rows.codes[own], minlength=len(rows.domains))
    some = len(top) > 0
    return {
        "class_id": f"c{index}",
        "rows": int(own.sum()),
        "rows_by_domain": by_domain.tolist(),
        "histogram": np.bincount(bins, minlength=n_bins).tolist(),
        "sure": float((top >= SETTINGS.sure).mean()) if some else None,
        "unsure": float((top < SETTINGS.unsure).mean()) if some else None,
        "kept": float(kept[own].mean()) if some and kept is not None else None,
        "exemplars": [],
        "borderline": [],
        "disputed": [],
    }


# ---- rows to look at ---------------------------------------------------------------


def _distance_to(
    rows: ReportRows, contrast: profile.Contrast | None, index: int
) -> Callable[[Array], Array]:
    """How far rows lie from the centre of a class, in spreads of each column."""
    if contrast is None or rows.described is not None:
        return lambda numbers: np.zeros(len(numbers))
    if is_sparse(rows.X) or rows.X.dtype.kind not in "biuf":
        return lambda numbers: np.zeros(len(numbers))
    X = rows.filled
    centre, spread = contrast.mean[index], np.maximum(X.std(axis=0), 1e-300)
    return lambda numbers: (((X[numbers] - centre) / spread) ** 2).sum(axis=1)


def _exemplars(
    rows: ReportRows, index: int, distance: Callable[[Array], Array]
) -> list[tuple[int, Array]]:
    """The surest rows of the domains where the class has most rows.

    Among rows that are equally sure to three digits, those nearest to the centre of the
    class come first: the surest of all tend to be freaks.
    """
    own = rows.classes == index
    count = np.bincount(rows.codes[own], minlength=len(rows.domains))
    most = SETTINGS.homes_of_exemplars
    homes = np.sort(np.argsort(-count, kind="stable")[:most])
    if len(count) > most:  # of few domains, also those that lack the class
        homes = homes[count[homes] > 0]
    found = []
    for domain in homes:
        sure = own & (rows.proba[:, index] >= SETTINGS.least_probable)
        numbers = np.flatnonzero(sure & (rows.codes == domain))
        p = np.round(rows.proba[numbers, index], 3)
        few = np.argsort(-p, kind="stable")[: SETTINGS.candidates]
        numbers, p = numbers[few], p[few]
        order = np.lexsort([numbers, distance(numbers), -p])
        found.append((int(domain), numbers[order[: SETTINGS.exemplars]]))
    return found


def _borderline(rows: ReportRows, index: int) -> Array:
    """The rows of a class that another class nearly won."""
    numbers = np.flatnonzero(rows.classes == index)
    ranked = np.partition(rows.proba[numbers], -2, axis=1)
    margin = ranked[:, -1] - ranked[:, -2]
    closest = np.argsort(margin, kind="stable")[: SETTINGS.borderline]
    return np.asarray(numbers[closest])


def _second(proba: Array, index: int) -> Record:
    others = proba.copy()
    others[index] = -1
    return _as(proba, int(others.argmax()))


def _as(proba: Array, index: int) -> Record:
    return {"class_id": f"c{index}", "p": float(proba[index])}


def _other_classes(rows: ReportRows) -> Array:
    """Classes by whichever of looks and shift did not speak; else those of the fit."""
    route = getattr(rows.model, "route_", None)
    if route is None or len(route.other_labels) != rows.n_rows:
        return rows.classes
    # the rows may be others than those of fit, as many by chance
    same = np.array_equal(rows.model.labels_, rows.classes)
    return np.asarray(route.other_labels) if same else rows.classes


def _disputed(rows: ReportRows, index: int, other: Array) -> Array:
    """The surest rows of a class that the other of looks and shift puts elsewhere."""
    numbers = np.flatnonzero((rows.classes == index) & (other != index))
    surest = np.argsort(-rows.proba[numbers, index], kind="stable")
    return np.asarray(numbers[surest[: SETTINGS.borderline]])


def _why(rows: ReportRows, row: int) -> list[dict[str, Any]]:
    """Why a row is of its class: the weightiest parts of the evidence, in nats.

    None where a row has no columns.
    """
    if not rows.has_features or rows.model._origin._takes_images:
        return []
    domain = rows.model.domains_[rows.codes[row]]
    found = explain_checked(rows.model, rows.X[[row]], domain)
    if found.columns == [TOGETHER] or len(found.columns) != len(rows.features):
        return []
    # columns have the names of the fit, and the page has its own
    shown = dict(zip(found.columns, rows.features, strict=True))
    parts = [
        {"part": shown.get(one["part"], one["part"]), "nats": one["nats"]}
        for one in found.to_records()
    ]
    return sorted(parts, key=lambda one: -abs(one["nats"]))[: SETTINGS.reasons]
