"""What an update says: of the model, and of each domain with new rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal._unknown import UnknownShare

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Movement:
    """How far a share or a column has moved, with an interval or a standard error."""

    name: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class DomainUpdate:
    """What new rows of one domain say.

    Attributes
    ----------
    name : hashable
    is_new : bool
        Whether the model has not seen the domain before.
    n_rows, n_before : int
        New rows, and those that the model was fitted to.
    found : ndarray of shape (n_classes,)
        Mix of the new rows.
    before : ndarray of shape (n_classes,) or None
        Mix of the domain in the model.
    prevalence, low, high : ndarray of shape (n_classes,)
        Mix of all its rows, and its interval.
    moved : list of Movement
        Classes whose share among the new rows is another, beyond doubt.
    drifted : list of Movement
        Columns in which rows look otherwise than their classes do, beyond doubt, in
        standard deviations of the column.
    unknown : UnknownShare
        Share of the new rows that belongs to no class that the model had.
    fit_score : float
        As in :class:`shoal.analysis.Adaptation`.
    """

    name: Any
    is_new: bool
    n_rows: int
    n_before: int
    found: Array
    before: Array | None
    prevalence: Array
    low: Array
    high: Array
    moved: list[Movement]
    drifted: list[Movement]
    unknown: UnknownShare
    fit_score: float


@dataclass(frozen=True, eq=False)
class ModelUpdate:
    """A model that has learned from new rows, and what they said.

    Attributes
    ----------
    model : fitted LatentShiftEstimator
        Class ids and names are those of the model that was updated; a new class is the
        last one.
    domains : list of DomainUpdate
        Those with new rows.
    class_names : list of str
    new_class : str or None
    reason : str
        Why there is a new class, or none.
    looks_known : bool
        Whether rows of the fit were there to compare looks with.
    level : float
    """

    model: Any = field(repr=False)
    domains: list[DomainUpdate]
    class_names: list[str]
    new_class: str | None
    reason: str
    looks_known: bool
    level: float

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per domain with new rows and class."""
        return [
            {
                "domain": one.name,
                "class_id": f"c{y}",
                "class_name": name,
                "before": None if one.before is None else float(one.before[y]),
                "found": float(one.found[y]),
                "estimate": float(one.prevalence[y]),
                "low": float(one.low[y]),
                "high": float(one.high[y]),
                "level": self.level,
                "n_rows": one.n_rows,
                "n_before": one.n_before,
            }
            for one in self.domains
            for y, name in enumerate(self.class_names)
        ]

    def to_frame(self) -> Any:
        """The same as a table."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    @property
    def findings(self) -> list[str]:
        """What has changed, in sentences; none where nothing has."""
        said = [f'New class "{self.new_class}": {self.reason}'] * bool(self.new_class)
        for one in self.domains:
            if one.is_new:
                said.append(f"New domain {one.name}, with {one.n_rows:,} rows.")
            said += [
                f"{one.name}: the share of {change.name} moved by "
                f"{change.estimate:+.1%} ({change.low:+.1%} to {change.high:+.1%})."
                for change in one.moved
            ]
            said += [
                f"{one.name}: rows look otherwise in {change.name}, by "
                f"{change.estimate:+.2f} standard deviations."
                for change in one.drifted
            ]
            if one.unknown.verdict == "present" and not self.new_class:
                said.append(f"{one.name}: {one.unknown} {self.reason}")
        return said

    def __str__(self) -> str:
        return "\n".join(self.findings) or "Nothing has changed."
