"""Columns of labels, classes and domains as codes."""

from typing import Any

import numpy as np

from shoal.validation import encode_column

__all__ = ["as_rows", "check_same_rows", "encode_pair", "encode_rows"]

Array = np.ndarray[Any, Any]


def encode_rows(values: Any, name: str) -> tuple[Array, list[Any]]:
    """Codes and sorted distinct values; an empty column is an error."""
    codes, names = encode_column(values, name=name)
    if not len(codes):
        raise ValueError(f"{name} is empty: there is nothing to score")
    return codes, names.tolist()


def encode_pair(labels: Any, other: Any, name: str = "classes") -> tuple[Array, Array]:
    """Codes of the labels and of the column that stands beside them."""
    label_codes, _ = encode_rows(labels, "labels")
    other_codes, _ = encode_rows(other, name)
    check_same_rows(label_codes, other_codes, name)
    return label_codes, other_codes


def as_rows(values: Any, name: str) -> Array:
    """Array to take rows from; values of mixed kinds stay what they are."""
    codes, names = encode_column(values, name=name)
    return names[codes]


def check_same_rows(labels: Array, other: Array, name: str) -> None:
    """Refuse columns of different lengths."""
    if len(labels) != len(other):
        raise ValueError(f"labels has {len(labels)} rows, {name} has {len(other)}")
