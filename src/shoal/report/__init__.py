"""One offline HTML page about a fitted estimator.

:func:`summarize` turns a fitted estimator and its rows into a plain dict,
:func:`render` turns that dict into HTML, :func:`write` puts it into a file. The dict is
all that the page needs, so that it can be stored as JSON and rendered again without the
data.
"""

from typing import TYPE_CHECKING

from shoal.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.report.html import SECTIONS, render, write
    from shoal.report.summary import summarize
    from shoal.report.tables import SCHEMA, prevalence_records, rename

__all__ = [
    "SCHEMA",
    "SECTIONS",
    "prevalence_records",
    "rename",
    "render",
    "summarize",
    "write",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "SCHEMA": "shoal.report.tables",
        "SECTIONS": "shoal.report.html",
        "prevalence_records": "shoal.report.tables",
        "rename": "shoal.report.tables",
        "render": "shoal.report.html",
        "summarize": "shoal.report.summary",
        "write": "shoal.report.html",
    },
)
