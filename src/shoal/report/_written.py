"""The page about a fit in one call: intervals, checks, summary, file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.report._page import write
from shoal.report._summary import summarize


def report(
    model: Any,
    X: Any,
    domains: Any = None,
    path: Any = "report.html",
    *,
    n_resamples: int = 200,
    random_state: int = 0,
    max_mb: float = 5,
    sections: Sequence[str] | None = None,
    **options: Any,
) -> Path:
    """Resample, diagnose and describe a fit, and write the page about it.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows of fit.
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    path : path-like, default="report.html"
        Replaced when it exists.
    n_resamples : int, default=200
        Behind the intervals; 0 for none.
    random_state : int, default=0
        Of the resamples, the checks and the points of the map.
    max_mb : float, default=5
    sections : sequence of str, default=None
        As in :func:`shoal.report.render`.
    **options
        Those of :func:`shoal.report.summarize`; ``intervals`` and ``diagnosis`` are
        computed unless they are given.

    Returns
    -------
    pathlib.Path
        Of the page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from shoal import DomainMixture
    >>> from shoal.datasets import load_penguins
    >>> data = load_penguins(as_frame=True)
    >>> model = DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(data.X, data.domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model.report(data.X, data.domains, Path(folder) / "birds.html",
    ...                         n_resamples=20, title="Penguins")
    ...     page.name, "Penguins" in page.read_text(encoding="utf-8")
    ('birds.html', True)
    """
    seed = {"random_state": random_state}
    if "diagnosis" not in options:
        options["diagnosis"] = model.diagnose(X, domains, **seed)
    if "intervals" not in options and n_resamples:
        drawn = model.bootstrap(X, domains, n_resamples=n_resamples, **seed)
        options["intervals"] = drawn
    if hasattr(X, "columns"):
        options = {"frame": X} | options
    summary = summarize(model, X, domains, seed=random_state, **options)
    return Path(write(summary, path, max_mb=max_mb, sections=sections)["path"])
