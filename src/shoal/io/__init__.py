"""Files in and out: tables of any kind in, assignments and models out.

Names are loaded on first use: reading a model needs no pandas, and reading a CSV file
no scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.io.read import read
    from shoal.io.table import Column, Message, Table

__all__ = ["Column", "Message", "Table", "read"]

_HOMES = {
    "Column": "shoal.io.table",
    "Message": "shoal.io.table",
    "Table": "shoal.io.table",
    "read": "shoal.io.read",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shoal.io' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
