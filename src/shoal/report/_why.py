"""Why a row that another class nearly won is of its class: the weightiest parts."""

from typing import Any

from shoal.analysis._explain import TOGETHER, explain_checked
from shoal.report._gather import ReportRows
from shoal.report._settings import SETTINGS


def why(rows: ReportRows, row: int) -> list[dict[str, Any]]:
    """Parts of the evidence for one row, in nats; none where a row has no columns."""
    if not rows.has_features or rows.model._origin._takes_images:
        return []
    domain = rows.model.domains_[rows.codes[row]]
    found = explain_checked(rows.model, rows.X[[row]], domain)
    if found.columns == [TOGETHER] or len(found.columns) != len(rows.features):
        return []
    # columns have the names of the fit, and the page has its own
    shown = dict(zip(found.columns, rows.features, strict=True))
    parts = [
        {"part": shown.get(one["part"], one["part"]), "nats": one["nats"]}
        for one in found.to_records()
    ]
    return sorted(parts, key=lambda one: -abs(one["nats"]))[: SETTINGS.reasons]
