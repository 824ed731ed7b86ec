"""What a summary says of mixes, re-runs and scores, and of what tells classes apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import shoal.metrics as metrics
from shoal.analysis._bootstrap import Intervals
from shoal.analysis._choose import NClassesChoice
from shoal.analysis._profile import contrast_words, dense, sample_rows
from shoal.analysis._resample import match_by_rows
from shoal.analysis._tree import class_tree
from shoal.analysis._trend import trend
from shoal.report._gather import ReportRows
from shoal.report._settings import SETTINGS

Array = np.ndarray[Any, Any]
Record = dict[str, Any]


def describe_prevalence(model: Any, intervals: Intervals | None) -> Record:
    """Estimates and intervals, one row per domain and one column per class."""
    estimate = np.asarray(model.prevalence_)
    none = dict.fromkeys(("level", "low", "high", "low50", "high50", "n_resamples"))
    if intervals is None:
        return {"estimate": estimate.tolist(), **none}
    if intervals.prevalence.shape != estimate.shape:
        raise ValueError(
            f"intervals are for {intervals.prevalence.shape} domains and classes, the "
            f"model has {estimate.shape}; bootstrap this model"
        )
    low50, high50 = intervals.middle_half()
    return {
        "estimate": estimate.tolist(),
        "level": float(intervals.level),
        "low": intervals.low.tolist(),
        "high": intervals.high.tolist(),
        "low50": low50.tolist(),
        "high50": high50.tolist(),
        "n_resamples": len(intervals.draws),
    }


def describe_differences(
    model: Any, intervals: Intervals | None, among: Sequence[int]
) -> list[Record]:
    """Pairs of domains with the largest differences of a class, largest first.

    With two classes, one is the mirror of the other and left out. Domains that are not
    ``among`` those to be looked at one by one are in no pair.
    """
    prevalence, most = np.asarray(model.prevalence_), SETTINGS.differences
    n_classes, own = prevalence.shape[1], np.asarray(among, dtype=int)
    pairs = []
    for index in range(1 if n_classes == 2 else n_classes):
        share = prevalence[:, index]
        order = own[np.argsort(share[own], kind="stable")]
        low, high = order[:most], order[::-1][:most]
        pairs += [
            (share[a] - share[b], index, a, b)
            for a in high
            for b in low
            if share[a] - share[b] >= SETTINGS.least_difference
        ]
    pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
    return [
        _difference(model, intervals, *pair[1:]) | {"estimate": float(pair[0])}
        for pair in pairs[:most]
    ]


def _difference(
    model: Any, intervals: Intervals | None, index: int, a: int, b: int
) -> Record:
    low = high = None
    if intervals is not None:
        between = intervals.difference(model.domains_[a], model.domains_[b])
        low, high = float(between.low[index]), float(between.high[index])
    return {
        "class_id": f"c{index}",
        "domain_a": int(a),
        "domain_b": int(b),
        "low": low,
        "high": high,
    }


def describe_trend(rows: ReportRows, order: Any, seed: int) -> Record | None:
    """The mix in the order of time; few rows of one time could point at somebody."""
    if order is None or not rows.show_rows:
        return None
    found = trend(rows.model, rows.X, order=order, random_state=seed)
    return found.to_dict()


def describe_groups(rows: ReportRows, groups: Mapping[Any, Any] | None) -> list[Record]:
    """Domains of each group, and the mean of their prevalences."""
    if groups is None:
        return []
    model = rows.model
    domains = model.domains_.tolist()
    missing = [name for name in domains if name not in groups]
    if missing:
        raise ValueError(f"groups has no group for domain {missing[0]!r}")
    names = sorted({str(groups[name]) for name in domains})
    members = {
        group: [i for i, name in enumerate(domains) if str(groups[name]) == group]
        for group in names
    }
    return [
        {
            "group": rows.group_name(group, own),
            "domains": own,
            "mean": model.prevalence_[own].mean(axis=0).tolist(),
        }
        for group, own in members.items()
    ]


# ---- other fits --------------------------------------------------------------------


def describe_reruns(rows: ReportRows, refits: Sequence[Any]) -> Record | None:
    """Range of every prevalence over fits with the same number of classes."""
    same = [other for other in refits if other.n_classes_ == rows.n_classes]
    if not same:
        return None
    tables = [np.asarray(rows.model.prevalence_)]
    for other in same:
        renamed = match_by_rows(rows.classes, _classes(other, rows), rows.n_classes)
        matched = np.empty_like(tables[0])
        matched[:, renamed] = other.prevalence_
        tables.append(matched)
    return {
        "n_fits": len(tables),
        "low": np.min(tables, axis=0).tolist(),
        "high": np.max(tables, axis=0).tolist(),
    }


def describe_neighbours(rows: ReportRows, refits: Sequence[Any]) -> list[Record]:
    """What would split or merge with another number of classes."""
    others = [other for other in refits if other.n_classes_ != rows.n_classes]
    return [
        _neighbour(rows.classes, _classes(other, rows), rows.n_classes, other)
        for other in sorted(others, key=lambda other: other.n_classes_)
    ]


def describe_tree(rows: ReportRows, refits: Sequence[Any]) -> Record | None:
    """From two classes to all, where there are fits with every number between."""
    fits = {other.n_classes_: other for other in reversed(refits)}
    if rows.n_classes < 3 or not set(range(2, rows.n_classes)) <= set(fits):
        return None
    domains = rows.model.domains_[rows.codes]
    found = class_tree(
        rows.model, rows.X, domains, fits=fits.values(), feature_names=rows.features
    )
    # seconds are the machine's, and the same rows give the same summary
    return {name: one for name, one in found.to_dict().items() if name != "seconds"}


def _neighbour(ours: Array, theirs: Array, n_classes: int, other: Any) -> Record:
    n_theirs = other.n_classes_
    flat = np.bincount(ours * n_theirs + theirs, minlength=n_classes * n_theirs)
    shared = flat.reshape(n_classes, n_theirs)
    home, away = shared.argmax(axis=0), shared.argmax(axis=1)
    used = shared.sum(axis=0) > 0
    splits = [np.flatnonzero((home == index) & used) for index in range(n_classes)]
    merges = [np.flatnonzero(away == index) for index in range(n_theirs)]
    return {
        "n_classes": n_theirs,
        "shared": shared.tolist(),
        "splits": [
            {"class_id": f"c{index}", "rows": _descending(shared[index, parts])}
            for index, parts in enumerate(splits)
            if len(parts) > 1
        ],
        "merges": [
            {"class_ids": [f"c{part}" for part in parts],
             "rows": int(shared[parts, index].sum())}
            for index, parts in enumerate(merges)
            if len(parts) > 1
        ],
    }  # fmt: skip


def _descending(counts: Array) -> list[int]:
    return sorted(counts.tolist(), reverse=True)


def _classes(other: Any, rows: ReportRows) -> Array:
    return np.asarray(other._posterior(rows.X, rows.codes, None).argmax(axis=1))


# ---- the choice of k ---------------------------------------------------------------


def describe_choice(choice: NClassesChoice | None) -> Record | None:
    """The curves of a choice; numbers that are not finite become None."""
    if choice is None:
        return None
    table = choice.to_pandas()
    return {
        "candidates": choice.candidates.tolist(),
        "held_out": _finite(choice.held_out),
        "difference_error": _finite(choice.difference_error),
        "stability": _finite(choice.stability),
        "singular_value": _finite(table["singular_value"].to_numpy()),
        "null": float(np.max(choice.null)),
        "identifiable": choice.identifiable.tolist(),
        "baseline": float(choice.baseline),
        "rank": int(choice.rank),
        "n_classes": choice.n_classes,
        "sentence": choice.sentence,
    }


def _finite(values: Array) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


# ---- scoring -------------------------------------------------------------------------


def describe_score(rows: ReportRows) -> dict[str, Any] | None:
    """Accuracy, prevalence error by domain and confusion table, after matching.

    Rows without a label (None or NaN) do not count.
    """
    if rows.labels is None:
        return None
    given = np.array([label is not None and label == label for label in rows.labels])
    if not given.any():
        return None
    labels = np.array([str(label) for label in rows.labels[given]], dtype=object)
    classes, codes = rows.classes[given], rows.codes[given]
    matching = metrics.match_classes(labels, classes)
    truth, names, present = metrics.true_prevalence(labels, codes)
    estimate = np.asarray(rows.model.prevalence_)[present]
    errors = [
        metrics.prevalence_error(t[None], e[None], matching=matching, label_names=names)
        for t, e in zip(truth, estimate, strict=True)
    ]
    column = {name: index for index, name in enumerate(names)}
    confusion = np.zeros((rows.n_classes, len(names)), dtype=int)
    np.add.at(confusion, (classes, [column[label] for label in labels]), 1)
    commonest = np.argsort(-confusion.sum(axis=0), kind="stable")
    shown = np.sort(commonest[: SETTINGS.labels])
    return {
        "n_rows": int(given.sum()),
        "accuracy": metrics.matched_accuracy(labels, classes, matching=matching),
        "majority": metrics.majority_accuracy(labels, codes),
        "adjusted_rand": metrics.adjusted_rand(labels, classes),
        "prevalence_error": metrics.prevalence_error(
            truth, estimate, matching=matching, label_names=names
        ),
        "by_domain": [
            {"domain": int(domain), "prevalence_error": error}
            for domain, error in zip(present, errors, strict=True)
        ],
        # a pair without a row in common fills up the matching; it is no name of a class
        "matching": {
            f"c{index}": str(name)
            for index, name in matching.items()
            if confusion[index, column[name]]
        },
        "n_labels": len(names),
        "labels": [str(names[index]) for index in shown],
        "confusion": confusion[:, shown].tolist(),
    }


# ---- marks: the columns that tell each class from the rest, in all classes -----------


def describe_marks(rows: ReportRows, cards: Sequence[Record]) -> Record | None:
    """How common the first words or features of every class are in each of them.

    None where there are few columns, which are drawn one by one, or none to name.
    """
    if not rows.has_features or not rows.show_rows:
        return None
    if len(rows.known_names) < SETTINGS.least_columns_to_mark:
        return None
    marks = _first_marks(rows, cards)
    if not marks:
        return None
    place = {str(name): index for index, name in enumerate(rows.known_names)}
    columns = [place[name] for name, _ in marks]
    levels = _levels(rows)[:, columns]
    return {
        "unit": "share" if rows.has_words else "mean",
        "marks": [{"name": name, "of": f"c{index}"} for name, index in marks],
        "levels": levels.tolist(),
    }


def _first_marks(rows: ReportRows, cards: Sequence[Record]) -> list[tuple[str, int]]:
    """Names of the first marks of each class, and whose they are; each but once."""
    found: dict[str, int] = {}
    for index, card in enumerate(cards):
        names = [entry["word"] for entry in card["words"]]
        names += [
            entry["feature"] for entry in card["features"] if entry["difference"] > 0
        ]
        new = [str(name) for name in names if str(name) not in found]
        found |= dict.fromkeys(new[: SETTINGS.marks], index)
    return list(found.items())


def _levels(rows: ReportRows) -> Array:
    """Share of each word, or mean of each column, in every class."""
    if not rows.has_words:
        return np.asarray(rows.contrast.mean)
    counts = contrast_words(rows.model, rows.bags[0], rows.proba)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)


# ---- how the most telling features are spread within each class, domain by domain ----


# A freak far away must not press all other rows into one step of a curve.
ENDS = (0.005, 0.995)
QUARTERS = (0.25, 0.5, 0.75)


def describe_looks(rows: ReportRows, seed: int) -> Record | None:
    """Counts of the values of the most telling features, by domain and class.

    None where features mean nothing to people, are words, or rows must not be shown:
    the ends of a curve are values of single rows.
    """
    if not rows.has_features or rows.has_words or not rows.show_rows:
        return None
    columns, names = rows.known_by
    telling = np.abs(rows.contrast.difference).max(axis=0)
    order = np.argsort(-telling, kind="stable")[: SETTINGS.looks]
    chosen = sample_rows(rows.codes, SETTINGS.look_rows, seed)
    largest = np.argsort(-rows.rows_per_domain, kind="stable")
    domains = np.sort(largest[: SETTINGS.look_domains])
    inside = [np.ones(len(chosen), dtype=bool)]
    inside += [rows.codes[chosen] == domain for domain in domains]
    weight = rows.proba[chosen]
    values = dense(columns[chosen][:, order])
    return {
        "domains": domains.tolist(),
        "n_features": len(names),
        "features": [
            {"feature": names[column], **_spread(values[:, place], weight, inside)}
            for place, column in enumerate(order)
        ],
    }


def _spread(values: Array, weight: Array, inside: list[Array]) -> Record:
    """One feature: for all domains, then each shown one, a curve for every class."""
    edges = bin_edges(values)
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    slots = [
        [
            _curve(values[own], cell[own], weight[own, index], len(edges) - 1)
            for index in range(weight.shape[1])
        ]
        for own in inside
    ]
    indicator = bool(np.isin(values, (0, 1)).all())
    ends = [float(edges[0]), float(edges[-1])]
    return {"indicator": indicator, "ends": ends, "slots": slots}


def bin_edges(values: Array) -> Array:
    """Ends of equal steps over the values; whole numbers stand in their middle.

    Examples
    --------
    >>> bin_edges(np.array([1.0, 2.0, 4.0]))
    array([0.5, 1.5, 2.5, 3.5, 4.5])
    """
    low, high = np.quantile(values, ENDS)
    whole = bool((values == np.rint(values)).all())
    if whole and values.max() - values.min() < SETTINGS.look_bins:
        return np.arange(values.min() - 0.5, values.max() + 1)
    if low == high:
        low, high = values.min(), max(values.max(), values.min() + 1e-9)
    return np.linspace(low, high, SETTINGS.look_bins + 1)


def _curve(values: Array, cell: Array, weight: Array, n_bins: int) -> Record:
    """Rows of a class in every step, and its middle half; None where it is too few."""
    rows = float(weight.sum())
    if rows < SETTINGS.rows_to_compare:
        return {"rows": rows, "counts": None, "quarters": None, "mean": None}
    counts = np.bincount(cell, weight, minlength=n_bins)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / rows
    places = np.minimum(np.searchsorted(reached, QUARTERS), len(values) - 1)
    return {
        "rows": rows,
        "counts": np.round(counts, 2).tolist(),
        "quarters": values[order][places].tolist(),
        "mean": float(values @ weight / rows),
    }
