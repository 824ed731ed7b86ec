"""Tables of a run, for the classes as they are called and merged now."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.cli.runs import DRAWS, PREVALENCE, folder_of

__all__ = ["current_counts", "current_records", "fitted_classes", "text_of"]

Record = dict[str, Any]
# lo, hi and level, by domain and by the classes of the fit that make up a class.
Intervals = dict[tuple[str, frozenset[int]], Record]

INTERVAL = ("lo", "hi", "level")
# Shares that differ by less are the same: a model may be kept in single precision.
SAME = 1e-6


def current_records(
    path: Path, model: Any, *, before: Any = None, kept: str = ""
) -> list[Record]:
    """One record per domain and class of the model.

    Parameters
    ----------
    path : Path
        Of the run or its model. Numbers of rows come from its prevalence.csv; intervals
        from its draws, which add up where classes were merged, or else from
        prevalence.csv, which cannot tell those of merged classes. What is not known
        stays empty.
    model : fitted LatentShiftEstimator
    before : fitted LatentShiftEstimator, default=None
        The model that prevalence.csv was written for; ``model`` when None.
    kept : str, default=""
        An earlier prevalence.csv that was written for ``model``.
    """
    run = folder_of(path)
    known = _records(text_of(run / PREVALENCE))
    about = {record["domain"]: record for record in known}
    if len(about) != len(model.domains_):
        known, about = [], {str(domain): {} for domain in model.domains_}
    intervals = _drawn(run, model, about) or {
        **_recorded(_records(kept), model),
        **_recorded(known, before or model),
    }
    unknown = dict.fromkeys(INTERVAL, "")
    return [
        {
            "domain": domain,
            "class_id": f"c{y}",
            "class_name": str(model.class_names_[y]),
            "estimate": float(model.prevalence_[d, y]),
            **intervals.get((domain, parts), unknown),
            "n_rows": record.get("n_rows", ""),
            "flag": record.get("flag", ""),
        }
        for d, (domain, record) in enumerate(about.items())
        for y, parts in enumerate(_parts(model))
    ]


def current_counts(path: Path, model: Any, before: Any) -> str | None:
    """Text of a class_counts.csv, for ``model`` instead of ``before``.

    Columns get their names, and those of merged classes add up. None where the file is
    not of the model before, or would have to be taken apart.
    """
    head, *rows = csv.reader(io.StringIO(text_of(path), newline=""))
    lead = len(head) - before.n_classes_  # the domain, and perhaps its group
    columns = [
        [lead + old for old, parts in enumerate(_parts(before)) if parts <= whole]
        for whole in _parts(model)
    ]
    if head[lead:] != list(before.class_names_) or not all(columns):
        return None
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow([*head[:lead], *model.class_names_])
    for row in rows:
        sums = [sum(int(row[place]) for place in places) for places in columns]
        writer.writerow([*row[:lead], *sums])
    return table.getvalue()


def text_of(path: Path) -> str:
    """The file as it is, line ends too; empty where there is none."""
    return path.read_bytes().decode() if path.is_file() else ""


def fitted_classes(model: Any) -> list[int]:
    """Class of the model that each class of its fit has become, merges considered."""
    if not hasattr(model, "groups"):
        return list(range(model.n_classes_))
    place = {part: index for index, group in enumerate(model.groups) for part in group}
    return [place[inner] for inner in fitted_classes(model.estimator)]


def _parts(model: Any) -> list[frozenset[int]]:
    """Classes of the fit that make up each class of the model."""
    now = list(enumerate(fitted_classes(model)))
    return [
        frozenset(fitted for fitted, whole in now if whole == y)
        for y in range(model.n_classes_)
    ]


def _records(text: str) -> list[Record]:
    """Records of a prevalence.csv; none of a table that is something else."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    needed = {"domain", "class_id", "estimate", *INTERVAL}
    return list(reader) if needed <= set(reader.fieldnames or ()) else []


def _recorded(records: list[Record], model: Any) -> Intervals:
    """Intervals that stand in records which were written for the model."""
    parts = {f"c{y}": (y, one) for y, one in enumerate(_parts(model))}
    domains = {domain: d for d, domain in enumerate(_in_order(records))}
    found = {}
    for record in records:
        y, own = parts.get(record["class_id"], (0, frozenset()))
        share = model.prevalence_[domains[record["domain"]], y]
        # a table that somebody edited, or that lags behind, is not of this model
        if record["lo"] and _is_share(record["estimate"], share):
            found[record["domain"], own] = {key: record[key] for key in INTERVAL}
    return found


def _in_order(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(record["domain"] for record in records))


def _is_share(text: str, share: float) -> bool:
    try:
        return math.isclose(float(text), share, abs_tol=SAME)
    except ValueError:
        return False


def _drawn(run: Path, model: Any, about: Mapping[str, Record]) -> Intervals:
    """Interval of each share from the draws of the run; none where these are absent."""
    import numpy as np

    from shoal.analysis.proportions import prevalence_interval

    now, records = fitted_classes(model), list(about.values())
    try:
        with np.load(run / DRAWS, allow_pickle=False) as content:
            draws = content["draws"]
        level = records[0]["level"]
        n_rows = np.array([float(record["n_rows"]) for record in records])
        nominal = float(level)
    except (OSError, ValueError, KeyError):
        return {}
    if draws.shape[1:] != (len(n_rows), len(now)):
        return {}
    merged = np.stack(
        [draws[:, :, np.equal(now, y)].sum(axis=2) for y in range(model.n_classes_)],
        axis=2,
    )
    variance = merged.var(axis=0, ddof=1)
    low, high = prevalence_interval(
        model.prevalence_, variance, n_rows[:, None], nominal
    )
    return {
        (domain, parts): {
            "lo": float(low[d, y]), "hi": float(high[d, y]), "level": level
        }
        for d, domain in enumerate(about)
        for y, parts in enumerate(_parts(model))
    }  # fmt: skip
