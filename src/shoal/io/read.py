"""Read data of any kind into a :class:`~shoal.io.table.Table`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from shoal.exceptions import InputError
from shoal.io.table import Column, Table

__all__ = ["read"]


def read(
    data: Any,
    *,
    domain: Any = None,
    domain_file: Any = None,
    id: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: str | None = None,
    counts: bool = False,
    layer: str | None = None,
    use_rep: str | None = None,
    format: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    na: Sequence[str] = (),
    impute: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    domain_bins: int | None = None,
    drop_missing_domain: bool = False,
    merge_small: str | None = None,
    require_domain: bool = True,
) -> Table:
    """Read a table: a path, or a pandas frame."""
    frame = _load(data)
    if domain is None and require_domain:
        raise InputError(
            "E106", "which column says where a row comes from?", "pass domain"
        )
    roles = {domain: "domain", id: "id", label: "label"}
    columns = []
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        wanted = (features is None or name in features) and name not in drop
        role = roles.get(name) or ("feature" if numeric and wanted else "set aside")
        columns.append(Column(name, role, "number" if numeric else "text"))
    names = [column.name for column in columns if column.role == "feature"]
    X = frame[names].to_numpy(float)
    return Table(
        X=X,
        domains=None if domain is None else frame[domain].to_numpy(),
        ids=None if id is None else frame[id].to_numpy(),
        labels=None if label is None else frame[label].to_numpy(),
        feature_names=names,
        schema=None,
        columns=columns,
        kind="table",
        source={"path": str(data) if isinstance(data, (str, Path)) else None,
                "fingerprint": "", "rows": len(frame), "bytes": 0},
        frame=frame[names],
    )  # fmt: skip


def _load(data: Any) -> pd.DataFrame:
    if isinstance(data, pd.DataFrame):
        return data
    path = Path(data)
    if not path.exists():
        raise InputError("E101", f'no file or folder "{path}"', "check the path")
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path)
