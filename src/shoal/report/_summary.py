"""Everything a report says, as one dict that JSON can hold."""

import datetime
import platform
import shlex
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np

from shoal import __version__
from shoal._palette import class_color
from shoal.analysis import _profile as profile
from shoal.analysis.diagnose import THRESHOLDS
from shoal.report._cards import describe_checks, describe_verdict, make_cards
from shoal.report._described import (
    describe_choice,
    describe_differences,
    describe_groups,
    describe_looks,
    describe_marks,
    describe_neighbours,
    describe_prevalence,
    describe_reruns,
    describe_score,
    describe_tree,
    describe_trend,
)
from shoal.report._gather import ReportRows, gather, redacted
from shoal.report._settings import SETTINGS
from shoal.report._view import SCHEMA, looked_at
from shoal.validation._rows import is_sparse

Record = dict[str, Any]


def summarize(
    model: Any,
    X: Any,
    domains: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    frame: Any = None,
    ids: Any = None,
    labels: Any = None,
    intervals: Any = None,
    diagnosis: Any = None,
    choice: Any = None,
    refits: Sequence[Any] = (),
    groups: Mapping[Any, Any] | None = None,
    kind: str = "table",
    columns: Sequence[Any] | None = None,
    source: Mapping[str, Any] | None = None,
    command: str | None = None,
    model_path: Any = None,
    title: str | None = None,
    seconds: float | None = None,
    redact: bool = False,
    seed: int = 0,
    images: Callable[[int], Any] | None = None,
    gaps: Mapping[str, int] | None = None,
    described: tuple[Any, Sequence[str]] | None = None,
    order: Any = None,
) -> Record:
    """Put everything a report says into one dict.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Best the rows of fit.
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    feature_names : sequence of str, default=None
        Of the columns of X; those of fit when None.
    frame : DataFrame, default=None
        What people are shown of a row; columns of X when None.
    ids : array-like of shape (n_samples,), default=None
        Names of the rows; their numbers when None.
    labels : array-like of shape (n_samples,), default=None
        True classes, only to score.
    intervals : Intervals, default=None
        Of ``model.bootstrap(X, domains)``.
    diagnosis : Diagnosis, default=None
        Of ``model.diagnose(X, domains)``.
    choice : NClassesChoice, default=None
        Of :func:`shoal.choose_n_classes`.
    refits : sequence of fitted LatentShiftEstimator, default=()
        Other fits of the same rows. Those with as many classes show how far a re-run
        moves the prevalences, those with more or fewer what would split or merge.
    groups : mapping of domain to group, default=None
        To compare groups of domains.
    kind : {"table", "counts", "text", "embedding", "images"}, default="table"
    columns : sequence, default=None
        How each column of the input was used: ``name``, ``role`` and ``reason``.
    source : mapping, default=None
        The input: paths, fingerprint, rows.
    command : str, default=None
        The command that made the fit.
    model_path : path-like, default=None
        Where the model is stored, for the line that names its classes; the ``--out`` of
        the command when None.
    title : str, default=None
    seconds : float, default=None
        Time of the fit.
    redact : bool, default=False
        Leave out rows, images, words and rare values.
    seed : int, default=0
        Of the fit; it also draws the points of the map.
    images : callable, default=None
        Gives the image of a row, given its number: bytes of a PNG, JPEG or WebP file,
        or an array of uint8.
    gaps : mapping of str to int, default=None
        Missing values that were filled in before the fit, by column.
    described : pair of matrix and sequence of str, default=None
        What people know rows by, where X says them nothing: rows by genes, and their
        names, beside an embedding of cells.
    order : array-like of shape (n_samples,), default=None
        When each row is from, as a number or a date, for a trend; none of redacted
        rows.

    Returns
    -------
    dict
        Lists, numbers and strings only; ``json`` can write and read it. Holds no rows
        beyond the examples it shows.

    Examples
    --------
    >>> from shoal import DomainMixture
    >>> from shoal.datasets import load_penguins
    >>> from shoal.report import render, summarize
    >>> penguins = load_penguins()
    >>> model = DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(penguins.X, penguins.domains)
    >>> summary = summarize(model, penguins.X, penguins.domains,
    ...                     feature_names=penguins.feature_names)
    >>> [domain["name"] for domain in summary["domains"]]
    ['Biscoe', 'Dream', 'Torgersen']
    >>> render(summary).startswith("<!doctype html>")
    True
    """
    rows = gather(
        model,
        X,
        domains,
        feature_names=feature_names,
        frame=frame,
        ids=ids,
        labels=labels,
        kind=kind,
        images=images,
        described=described and (described[0], list(described[1])),
    )
    rows = redacted(rows) if redact else rows
    about = {
        "schema": SCHEMA,
        "title": title or _title(source, redact),
        "kind": kind,
        "redacted": bool(redact),
        "made": _made(model, command, model_path, seconds, seed, redact),
        "source": _source(source, redact),
        "columns": _columns(columns, rows),
        "gaps": _gaps(rows, gaps),
        "choice": describe_choice(choice),
        "groups": describe_groups(rows, groups),
        "trend": describe_trend(rows, order, seed),
    }
    return about | _found(rows, intervals, diagnosis, refits, seed)


def _found(
    rows: ReportRows, intervals: Any, diagnosis: Any, refits: Sequence[Any], seed: int
) -> Record:
    """What the rows and the model say together."""
    model = rows.model
    checks = describe_checks(rows, diagnosis)
    kept = None if intervals is None else intervals.co_assignment
    domains = _domains(rows, intervals)
    among = looked_at([domain["thin"] for domain in domains])
    cards, shown = make_cards(rows, kept if _same_rows(kept, rows) else None)
    return {
        "size": _size(rows),
        "domains": domains,
        "classes": _classes(rows, cards),
        "verdict": describe_verdict(rows, model.prevalence_, checks, among),
        "prevalence": describe_prevalence(model, intervals),
        "differences": describe_differences(model, intervals, among),
        "cards": cards,
        "shown_columns": shown,
        "marks": describe_marks(rows, cards),
        "looks": describe_looks(rows, seed),
        "maps": _maps(rows, seed),
        "checks": checks,
        "reruns": describe_reruns(rows, refits),
        "tree": describe_tree(rows, refits),
        "neighbours": describe_neighbours(rows, refits),
        "score": describe_score(rows),
    }


# ---- the parts that need no module of their own --------------------------------------


def _size(rows: ReportRows) -> Record:
    # where every domain is a single bag, its size is its number of words
    bags = rows.model._origin._counts_words
    words = bags and rows.n_rows == len(rows.domains)
    whole = getattr(rows.model, "scale_", {}).get("rows", rows.n_rows)
    return {
        "rows": whole,
        "sampled": rows.n_rows if whole > rows.n_rows else None,
        "features": len(rows.known_names) if rows.has_features else None,
        "domains": len(rows.domains),
        "classes": rows.n_classes,
        "unit": "words" if words else "rows",
    }


def _domains(rows: ReportRows, intervals: Any) -> list[Record]:
    sizes = rows.rows_per_domain if intervals is None else intervals.n_rows
    return [
        {"name": name, "rows": int(size), "thin": bool(size < THRESHOLDS.thin)}
        for name, size in zip(rows.domains, sizes, strict=True)
    ]


def _classes(rows: ReportRows, cards: list[Record]) -> list[Record]:
    share = np.asarray(rows.model.class_weight_)
    return [
        {
            "id": f"c{index}",
            "name": str(rows.model.class_names_[index]),
            "color": class_color(index, rows.n_classes),
            "share": float(share[index]),
            "rows": card["rows"],
            "suggestion": _suggestion(card),
        }
        for index, card in enumerate(cards)
    ]


def _suggestion(card: Record) -> str | None:
    """A first name for a class, from what tells it apart."""
    if card["words"]:
        return ", ".join(entry["word"] for entry in card["words"][:3])
    if card["features"]:
        first = card["features"][0]
        return f"{'high' if first['difference'] > 0 else 'low'} {first['feature']}"
    return None


def _maps(rows: ReportRows, seed: int) -> list[Record]:
    """Rows in the plane of their features, and between the corners of the classes."""
    if not rows.show_rows:
        return []
    chosen = profile.sample_rows(rows.codes, SETTINGS.map_rows, seed)
    some = rows.X[chosen]
    found = []
    if rows.has_columns:
        numbers = rows.numbers[0]
        kept = profile.plane_columns(numbers)
        plane = profile.feature_plane(numbers[chosen][:, kept], seed)
        found.append(("features", plane, int((~kept).sum())))
    model = rows.model
    guess = model._class_given_x(some) @ model.domain_given_class_
    plane = profile.domain_plane(guess, model.domain_given_class_)
    found.append(("domains", plane, 0))
    return [
        {
            "view": view,
            "columns_left_out": left_out,
            **_on_grid(plane),
            "explained": [float(share) for share in plane.explained],
            "domain": rows.codes[chosen].tolist(),
            "class": rows.classes[chosen].tolist(),
            "n_rows": rows.n_rows,
        }
        for view, plane, left_out in found
    ]


def _on_grid(plane: profile.Plane) -> Record:
    """Whole-number coordinates; both axes keep the same scale."""
    parts = [plane.points] if plane.corners is None else [plane.points, plane.corners]
    together = np.concatenate(parts)
    low = together.min(axis=0)
    width = together.max(axis=0) - low
    scale = SETTINGS.map_steps / max(width.max(), 1e-300)
    grid = np.rint((together - low) * scale).astype(int)
    n_points = len(plane.points)
    return {
        "x": grid[:n_points, 0].tolist(),
        "y": grid[:n_points, 1].tolist(),
        "corners": grid[n_points:].tolist(),
        "width": int(np.rint(width[0] * scale)),
        "height": int(np.rint(width[1] * scale)),
    }


def _made(
    model: Any,
    command: str | None,
    model_path: Any,
    seconds: float | None,
    seed: int,
    redact: bool,
) -> Record:
    path = str(model_path) if model_path is not None else _out_folder(command)
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "date": datetime.date.today().isoformat(),
        "seconds": None if seconds is None else float(seconds),
        "seed": int(seed),
        "command": None if redact else command,
        "model_path": None if redact else path,
        "estimator": type(model).__name__,
        "scale": getattr(model, "scale_", None),
        "parameters": {
            name: _plain(value)
            for name, value in model.get_params(deep=False).items()
            if not redact or _harmless(value)
        },
        "versions": {
            "shoal": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }


def _out_folder(command: str | None) -> str | None:
    """The folder that ``--out`` named."""
    try:
        words = shlex.split(command or "")
    except ValueError:
        return None
    for index, word in enumerate(words):
        if word == "--out" and index + 1 < len(words):
            return words[index + 1]
        if word.startswith("--out="):
            return word.removeprefix("--out=")
    return None


def _source(source: Mapping[str, Any] | None, redact: bool) -> Record | None:
    if source is None:
        return None
    safe = ("fingerprint", "rows", "bytes", "encoder")
    return {
        str(key): _plain(value)
        for key, value in source.items()
        if not redact or key in safe
    }


def _title(source: Mapping[str, Any] | None, redact: bool) -> str:
    path = None if source is None or redact else source.get("path")
    return PurePath(str(path)).name if isinstance(path, (str, PurePath)) else "Classes"


def _columns(columns: Sequence[Any] | None, rows: ReportRows) -> list[Record]:
    """How columns were used; a reason may quote values, so redaction drops it."""
    if columns is None:
        return []
    records = [
        dict(column) if isinstance(column, Mapping) else vars(column)
        for column in columns
    ]
    return [
        {
            "name": str(record["name"]),
            "role": str(record["role"]),
            "reason": str(record.get("reason") or "") if rows.show_rows else "",
        }
        for record in records
    ]


def _gaps(rows: ReportRows, filled: Mapping[str, int] | None) -> Record:
    """Missing values by column: those filled in, and those that the fit has kept."""
    kept: dict[str, int] = {}
    named = rows.has_columns and rows.X.shape[1] == len(rows.features)
    if named and not is_sparse(rows.X) and rows.X.dtype.kind == "f":
        counts = np.isnan(rows.X).sum(axis=0)
        kept = dict(zip(rows.features, counts.tolist(), strict=True))
    return {"filled": _most_first(filled or {}), "kept": _most_first(kept)}


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    some = [(str(name), int(count)) for name, count in counts.items() if count]
    return dict(sorted(some, key=lambda entry: -entry[1]))


def _same_rows(values: Any, rows: ReportRows) -> bool:
    return values is not None and len(values) == rows.n_rows


def _harmless(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if _harmless(value) and value == value or isinstance(value, str):
        return value
    text = str(value) if isinstance(value, PurePath) else repr(value)
    return " ".join(text.split())[: SETTINGS.parameter_letters]
