"""Tables that others read out of a summary, and new names for its classes."""

import copy
from collections.abc import Mapping
from typing import Any

Record = dict[str, Any]

#: Of every summary; keys are only added within a number.
SCHEMA = "shoal-report/1"


def prevalence_records(summary: Mapping[str, Any]) -> list[Record]:
    """One record per domain and class, with the columns of ``prevalence.csv``.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`.
    """
    table = summary["prevalence"]
    return [
        {
            "domain": domain["name"],
            "class_id": group["id"],
            "class_name": group["name"],
            "estimate": table["estimate"][d][y],
            "lo": table["low"] and table["low"][d][y],
            "hi": table["high"] and table["high"][d][y],
            "level": table["level"],
            "n_rows": domain["rows"],
            "flag": "thin" if domain["thin"] else "",
        }
        for d, domain in enumerate(summary["domains"])
        for y, group in enumerate(summary["classes"])
    ]


def rename(summary: Mapping[str, Any], names: Mapping[str, str]) -> Record:
    """A copy of the summary with other class names.

    Parameters
    ----------
    summary : dict
        Of :func:`shoal.report.summarize`.
    names : mapping of str to str
        New name by id, such as ``{"c0": "Adelie"}``.

    Returns
    -------
    dict
    """
    ids = [group["id"] for group in summary["classes"]]
    unknown = [key for key in names if key not in ids]
    if unknown:
        raise ValueError(f"names has {unknown[0]!r}; classes are {', '.join(ids)}")
    renamed = copy.deepcopy(dict(summary))
    for group in renamed["classes"]:
        group["name"] = str(names.get(group["id"], group["name"]))
    return renamed
