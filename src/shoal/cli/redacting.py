"""``--redact``: no value that could point at somebody in anything that is written.

The report leaves out rows, ids, pictures, words and rare values by itself. What remains
is the model, which must know its categories and words to class new rows: those that few
rows share are not even used.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.cli.messages import CommandError

if TYPE_CHECKING:
    from shoal.io import Table

__all__ = ["without_rare_values"]


def without_rare_values(table: "Table") -> "Table":
    """The table without columns that are named after a value of fewer than ten rows."""
    import numpy as np

    from shoal.report.gather import RARE

    if table.X is None or table.schema.n_columns is not None:
        return table  # columns of numbers are named after no value
    common = np.asarray((table.X != 0).sum(axis=0)).ravel() >= RARE
    schema, kept = _without_rare(table.schema, common)
    if not kept.any():
        raise CommandError(
            "E114",
            f"every value of the columns is shared by fewer than {RARE} rows",
            "fit without --redact, or group the values",
        )
    return replace(
        table, X=table.X[:, kept], schema=schema, feature_names=schema.feature_names
    )


def _without_rare(schema: Any, common: Any) -> tuple[Any, Any]:
    """The schema without rare words and categories, and which columns of X stay."""
    import numpy as np

    if schema.text is not None:
        words = zip(schema.vocabulary, common, strict=True)
        vocabulary = tuple(word for word, stays in words if stays)
        return replace(schema, vocabulary=vocabulary), common
    features, kept, start = [], np.ones(len(common), dtype=bool), 0
    for feature in schema.features:
        columns = slice(start, start + feature.width)
        start += feature.width
        if feature.kind == "category":
            kept[columns] = common[columns]
            levels = zip(feature.levels, common[columns], strict=True)
            left = tuple(level for level, stays in levels if stays)
            feature = replace(feature, levels=left)
        if feature.width:
            features.append(feature)
    return replace(schema, features=tuple(features)), kept
