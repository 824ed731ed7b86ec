"""prevalence.csv of a run, for the classes as they are called and merged now."""

import csv
from pathlib import Path
from typing import Any

from shoal.cli.runs import DRAWS, PREVALENCE, folder_of

__all__ = ["current_records", "fitted_classes"]

Record = dict[str, Any]


def current_records(path: Path, model: Any) -> list[Record]:
    """One record per domain and class of the model.

    Parameters
    ----------
    path : Path
        Of the run or its model. Numbers of rows come from its prevalence.csv, intervals
        from its draws, which add up where classes were merged; where a file is missing,
        its cells stay empty.
    model : fitted LatentShiftEstimator
    """
    run = folder_of(path)
    known = _read(run / PREVALENCE)
    about = {record["domain"]: record for record in known}
    if len(about) != len(model.domains_):
        about = {str(domain): {} for domain in model.domains_}
    low, high = _intervals(run, model, list(about.values()))
    return [
        {
            "domain": domain,
            "class_id": f"c{y}",
            "class_name": str(name),
            "estimate": float(model.prevalence_[d, y]),
            "lo": "" if low is None else float(low[d, y]),
            "hi": "" if high is None else float(high[d, y]),
            "level": record.get("level", ""),
            "n_rows": record.get("n_rows", ""),
            "flag": record.get("flag", ""),
        }
        for d, (domain, record) in enumerate(about.items())
        for y, name in enumerate(model.class_names_)
    ]


def fitted_classes(model: Any) -> list[int]:
    """Class of the model that each class of its fit has become, merges considered."""
    if not hasattr(model, "groups"):
        return list(range(model.n_classes_))
    place = {part: index for index, group in enumerate(model.groups) for part in group}
    return [place[inner] for inner in fitted_classes(model.estimator)]


def _read(path: Path) -> list[Record]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _intervals(run: Path, model: Any, about: list[Record]) -> tuple[Any, Any]:
    """Interval of each share from the draws of the run; None where these are absent."""
    import numpy as np

    from shoal.analysis.proportions import prevalence_interval

    now = fitted_classes(model)
    try:
        with np.load(run / DRAWS, allow_pickle=False) as content:
            draws = content["draws"]
        level = float(about[0]["level"])
        n_rows = np.array([float(record["n_rows"]) for record in about])
    except (OSError, ValueError, KeyError):
        return None, None
    if draws.shape[1:] != (len(n_rows), len(now)):
        return None, None
    merged = np.stack(
        [draws[:, :, np.equal(now, y)].sum(axis=2) for y in range(model.n_classes_)],
        axis=2,
    )
    variance = merged.var(axis=0, ddof=1)
    return prevalence_interval(model.prevalence_, variance, n_rows[:, None], level)
