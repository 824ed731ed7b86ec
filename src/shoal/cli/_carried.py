"""Classes of rows carried over from a run to its update, or to another run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._messages import CommandError


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

    from shoal.cli._current import fitted_classes

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
