"""When rows are from: numbers or dates, one for each row or for each domain."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.analysis.trend._settings import NUMBERS
from shoal.exceptions import InputError

Array = np.ndarray[Any, Any]


def refused(text: str, hint: str) -> InputError:
    """The error of an order that is none."""
    return InputError("E175", text, hint)


def times_of(order: Any, domains: Any, n_rows: int) -> tuple[Array, Array, Array]:
    """The times in their order, the number of that of each row, and the gaps.

    Gaps are in units of the median one.
    """
    values, places = np.unique(_as_numbers(_each(order, domains, n_rows)),
                               return_inverse=True)  # fmt: skip
    if len(values) > NUMBERS.most_times:
        raise refused(
            f"order has {len(values)} different times, more than {NUMBERS.most_times}",
            "round them, for example days to months",
        )
    plain = values.astype("datetime64[D]") if values.dtype.kind == "M" else values
    gap = np.diff(plain.astype(float))
    return values, places.ravel(), gap / (np.median(gap) if len(gap) else 1.0)


def _each(order: Any, domains: Any, n_rows: int) -> Array:
    """Of every row, whatever was given."""
    if order is None or isinstance(order, Mapping):
        if domains is None:
            raise refused(
                "neither domains nor the time of each row were given",
                "pass domains, or order with one time per row",
            )
        values = np.broadcast_to(np.asarray(domains), n_rows)
        if order is None:
            return values
        lacking = [one for one in dict.fromkeys(values.tolist()) if one not in order]
        if lacking:
            raise refused(
                f"order has no time for the domain {lacking[0]!r}",
                "give one for each domain",
            )
        values = np.array([order[one] for one in values.tolist()])
    else:
        values = np.asarray(order)
    if values.shape != (n_rows,):
        raise refused(
            f"order has shape {values.shape}, X has {n_rows} rows",
            "pass one time per row, or a mapping from domain to time",
        )
    return values


def _as_numbers(values: Array) -> Array:
    """Numbers or dates: text is read as the one or, failing that, the other."""
    found = values
    if values.dtype.kind not in "biufM":
        try:
            found = _read([str(one).strip() for one in values.tolist()])
        except ValueError:
            odd = next(one for one in values.tolist() if not _is_time(one))
            raise refused(
                f"order must be numbers or dates such as 2016-03, got {odd!r}",
                "choose another column, or give each domain a number",
            ) from None
    elif values.dtype.kind in "bf" and (values == np.round(values)).all():
        found = values.astype(np.int64)
    gaps = np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found)
    if gaps.any():
        raise refused(
            f"order has no value for row {int(np.argmax(gaps)) + 1}",
            "fill it in, or leave the row out",
        )
    return found


def _read(texts: list[str]) -> Array:
    try:
        numbers = np.array(texts, dtype=float)
    except ValueError:
        return np.array(texts, dtype="datetime64[s]").astype("datetime64[D]")
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers


def _is_time(value: Any) -> bool:
    try:
        _read([str(value).strip()])
    except ValueError:
        return False
    return True
