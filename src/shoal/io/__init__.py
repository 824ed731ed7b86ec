"""Files in and out: tables of any kind in, assignments and models out.

Names are loaded on first use: reading a model needs no pandas, and reading a CSV file
no scikit-learn.
"""

from typing import TYPE_CHECKING

from shoal.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.io.annotation import annotate, annotate_h5ad
    from shoal.io.assignments import assign, write_assignments
    from shoal.io.batching import batches
    from shoal.io.images import list_images, read_pixels
    from shoal.io.models import load, read_manifest, save
    from shoal.io.reading import read
    from shoal.io.schema import Schema
    from shoal.io.table import Column, Message, Table

__all__ = [
    "Column",
    "Message",
    "Schema",
    "Table",
    "annotate",
    "annotate_h5ad",
    "assign",
    "batches",
    "list_images",
    "load",
    "read",
    "read_manifest",
    "read_pixels",
    "save",
    "write_assignments",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "Column": "shoal.io.table",
        "Message": "shoal.io.table",
        "Schema": "shoal.io.schema",
        "Table": "shoal.io.table",
        "annotate": "shoal.io.annotation",
        "annotate_h5ad": "shoal.io.annotation",
        "assign": "shoal.io.assignments",
        "batches": "shoal.io.batching",
        "list_images": "shoal.io.images",
        "load": "shoal.io.models",
        "read": "shoal.io.reading",
        "read_manifest": "shoal.io.models",
        "read_pixels": "shoal.io.images",
        "save": "shoal.io.models",
        "write_assignments": "shoal.io.assignments",
    },
)
