"""Tables of a run for its classes as they are now, and classes carried to an update."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._messages import CommandError
from shoal.cli._options import NUMBERS
from shoal.io._notation import uncell, visible, write_rows

Row = dict[str, Any]
# lo, hi and level, by domain and by the classes of the fit that make up a class.
Recorded = dict[tuple[str, frozenset[int]], Row]

INTERVAL = ("lo", "hi", "level")


def current_records(
    path: Path, model: Any, *, before: Any = None, kept: str = ""
) -> list[Row]:
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
    run = _runs.folder_of(path)
    known = _records(text_of(run / _runs.PREVALENCE))
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
            # not as its cell was written
            "domain": str(model.domains_[d]),
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


def new_records(
    domain: Any,
    names: Sequence[str],
    found: Any,
    *,
    level: float,
    n_rows: int,
    flag: str,
) -> list[Row]:
    """Records of a domain whose mix, with its interval, has just been found."""
    return [
        {
            "domain": str(domain),
            "class_id": f"c{y}",
            "class_name": name,
            "estimate": float(found.prevalence[y]),
            "lo": float(found.low[y]),
            "hi": float(found.high[y]),
            "level": level,
            "n_rows": n_rows,
            "flag": flag,
        }
        for y, name in enumerate(names)
    ]


def current_counts(
    path: Path, model: Any, before: Any, *, plain: bool = False
) -> str | None:
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
    names = [visible(uncell(name)) for name in head[lead:]]
    if names != list(map(visible, before.class_names_)) or not all(columns):
        return None
    made: list[list[Any]] = [[*head[:lead], *model.class_names_]]
    for row in rows:
        sums = [sum(int(row[place]) for place in places) for places in columns]
        made.append([*map(uncell, row[:lead]), *sums])
    table = io.StringIO(newline="")
    write_rows(table, made, plain=plain)
    return table.getvalue()


def text_of(path: Path) -> str:
    """The file as it is, line ends too; empty where there is none."""
    return path.read_bytes().decode() if path.is_file() else ""


def fitted_classes(model: Any) -> list[int]:
    """Class of the model that each class of its fit has become, merges considered."""
    import numpy as np

    merged = model._add_up(np.eye(model._origin.n_classes_))
    return [int(index) for index in merged.argmax(axis=1)]


def _parts(model: Any) -> list[frozenset[int]]:
    """Classes of the fit that make up each class of the model."""
    now = list(enumerate(fitted_classes(model)))
    return [
        frozenset(fitted for fitted, whole in now if whole == y)
        for y in range(model.n_classes_)
    ]


def _records(text: str) -> list[Row]:
    """Records of a prevalence.csv; none of a table that is something else."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    needed = {"domain", "class_id", "estimate", *INTERVAL}
    return list(reader) if needed <= set(reader.fieldnames or ()) else []


def _recorded(records: list[Row], model: Any) -> Recorded:
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


def _in_order(records: list[Row]) -> list[str]:
    return list(dict.fromkeys(record["domain"] for record in records))


def _is_share(text: str, share: float) -> bool:
    try:
        return math.isclose(float(text), share, abs_tol=NUMBERS.same_share)
    except ValueError:
        return False


def drawn_intervals(run: Path, model: Any) -> Any:
    """The intervals of a run from its draws, merges considered; None where absent.

    Which rows kept their class is not in the files of a run.
    """
    import numpy as np

    from shoal.analysis import Intervals
    from shoal.analysis._resample import prevalence_interval

    records = _records(text_of(run / _runs.PREVALENCE))
    about = {record["domain"]: record for record in records}.values()
    try:
        with np.load(run / _runs.DRAWS, allow_pickle=False) as content:
            draws = content["draws"]
        level = float(records[0]["level"])
        n_rows = np.array([float(record["n_rows"]) for record in about])
    except (OSError, ValueError, KeyError, IndexError):
        return None
    expected = (len(model.domains_), model._origin.n_classes_)
    if draws.shape[1:] != expected or len(n_rows) != len(model.domains_):
        return None
    draws = model._add_up(draws)
    low, high = prevalence_interval(
        model.prevalence_, draws.var(axis=0, ddof=1), n_rows[:, None], level
    )
    return Intervals(
        prevalence=model.prevalence_,
        low=low,
        high=high,
        level=level,
        draws=draws,
        co_assignment=np.empty(0),
        domains=model.domains_,
        class_names=list(model.class_names_),
        n_rows=n_rows,
    )


def _drawn(run: Path, model: Any, about: Mapping[str, Row]) -> Recorded:
    """Interval of each share from the draws of the run; none where these are absent."""
    found = drawn_intervals(run, model)
    if found is None or len(about) != len(found.domains):
        return {}
    return {
        (domain, parts): {
            "lo": float(found.low[d, y]), "hi": float(found.high[d, y]),
            "level": record["level"],
        }
        for d, (domain, record) in enumerate(about.items())
        for y, parts in enumerate(_parts(model))
    }  # fmt: skip


# ---- classes of rows carried over from a run to its update, or to another run --------


def read_assignments(run: Path) -> Any:
    """The classes of the rows of a run, as a table; None where it has none."""
    import pandas as pd

    for name in _runs.ASSIGNMENTS:
        if (run / name).is_file():
            try:
                path = run / name
                if path.suffix == ".parquet":
                    return pd.read_parquet(path)
                return pd.read_csv(path, dtype={"row_id": str, "domain": str})
            except (OSError, ValueError, ImportError) as error:
                text = f'"{run / name}" cannot be read: {error}'
                raise CommandError("E135", text, "fit again") from error
    return None


def probability_columns(frame: Any) -> list[str]:
    """Columns of the probabilities, in the order of the classes."""
    return [name for name in frame.columns if name.startswith("p_")]


def classes_of(frame: Any, model: Any) -> Any:
    """Class of each row, whatever classes were called, or merged, since; or None."""
    import numpy as np

    names = [name.removeprefix("p_") for name in probability_columns(frame)]
    now = list(range(model.n_classes_))
    if len(names) == model._origin.n_classes_:
        now = fitted_classes(model)
    if len(names) != len(now):
        return None
    place = dict(zip(names, now, strict=True))
    return np.array([place[name] for name in frame["class"]], dtype=int)


def assignments_after(
    loaded: Any, table: Any, known: Any, model: Any, *, redact: bool
) -> Iterator[Any]:
    """Classes of the rows of then and now, under an updated model.

    Those of then from their probabilities and the mixes of both models, by Bayes' rule;
    from the rows themselves where a class has joined.
    """
    from dataclasses import replace

    from shoal.io import assign
    from shoal.io._assignments import marked

    if redact:
        return
    before = read_assignments(_runs.folder_of(loaded.path))
    new = next(iter(marked(assign(model, [table]))))
    if before is None:
        yield new
        return
    fitted = len(model.class_names_) == len(loaded.model.class_names_)
    if fitted:
        old = reweighted(before, loaded.model, model)
    else:
        X, domains = known.before
        ids = before["row_id"].to_numpy() if len(before) == len(domains) else None
        again = replace(table, X=X, domains=domains, ids=ids, places=None, frame=None)
        old = next(iter(marked(assign(model, [again]))))
    yield old[list(new.columns)].astype(new.dtypes.to_dict(), errors="ignore")
    yield new


def reweighted(frame: Any, before: Any, after: Any) -> Any:
    """The classes of rows under other mixes of their domains."""
    import numpy as np

    from shoal.io._settings import READING
    from shoal.probability import normalize_rows

    place = [{str(d): i for i, d in enumerate(one.domains_)} for one in (before, after)]
    names = list(after.class_names_)
    columns = probability_columns(frame)
    proba = frame[columns].to_numpy(dtype=float, copy=True)
    if proba.shape[1] == before._origin.n_classes_:  # merged since they were written
        proba = before._add_up(proba)
    for domain in frame["domain"].dropna().unique():
        rows = (frame["domain"] == domain).to_numpy()
        was = before.prevalence_[place[0][str(domain)]]
        now = after.prevalence_[place[1][str(domain)]]
        ratio = np.divide(now, was, out=np.zeros_like(now), where=was > 0)
        proba[rows] = normalize_rows(proba[rows] * ratio)
    two = np.partition(proba, -2, axis=1)[:, -2:]
    kept = frame.drop(columns=columns)
    kept["class"] = np.array(names, dtype=object)[proba.argmax(axis=1)]
    for y, name in enumerate(names):
        kept[f"p_{name}"] = proba[:, y]
    kept["margin"] = two[:, 1] - two[:, 0]
    kept["unsure"] = proba.max(axis=1) < READING.unsure
    return kept
