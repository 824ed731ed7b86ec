"""Files in and out: tables of any kind in, assignments and models out.

Names are loaded on first use: reading a model needs no pandas, and reading a CSV file
no scikit-learn.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.io._annotation import annotate, annotate_h5ad
    from shoal.io._assignments import assign, write_assignments
    from shoal.io._batches import batches
    from shoal.io._images import read_pixels
    from shoal.io._read import read
    from shoal.io.model._folder import sign
    from shoal.io.table._schema import Schema
    from shoal.io.table._table import Table

__all__ = [
    "Schema",
    "Table",
    "annotate",
    "annotate_h5ad",
    "assign",
    "batches",
    "read",
    "read_pixels",
    "sign",
    "write_assignments",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "Schema": "shoal.io.table._schema",
        "Table": "shoal.io.table._table",
        "annotate": "shoal.io._annotation",
        "annotate_h5ad": "shoal.io._annotation",
        "assign": "shoal.io._assignments",
        "batches": "shoal.io._batches",
        "read": "shoal.io._read",
        "read_pixels": "shoal.io._images",
        "sign": "shoal.io.model._folder",
        "write_assignments": "shoal.io._assignments",
    },
)
