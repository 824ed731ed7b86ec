"""One offline HTML page about a fitted estimator.

:func:`summarize` turns a fitted estimator and its rows into a plain dict,
:func:`render` turns that dict into HTML, :func:`write` puts it into a file;
:func:`report` does all three. The dict is all that the page needs, so that it can be
stored as JSON and rendered again without the data.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.report._html import render, report, write
    from shoal.report._summary import summarize

__all__ = [
    "render",
    "report",
    "summarize",
    "write",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "render": "shoal.report._html",
        "report": "shoal.report._html",
        "summarize": "shoal.report._summary",
        "write": "shoal.report._html",
    },
)
