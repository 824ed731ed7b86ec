"""Fit a model to a data set of any size."""

import time
import warnings
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from shoal.exceptions import CodedError
from shoal.io._options import SourceOptions
from shoal.io.model._models import load, save
from shoal.io.table._table import Message
from shoal.probability import canonical_order, domain_given_class
from shoal.scale._exact import (
    CountClusters,
    SumMoments,
    add_up,
    next_solution,
)
from shoal.scale._running import Running, Where, begin, log
from shoal.scale._sampling import Drawn, draw_table
from shoal.scale._settings import SETTINGS
from shoal.validation import check_whole
from shoal.validation._arguments import is_whole

Array = np.ndarray[Any, Any]


def fit(
    estimator: Any,
    data: Any,
    *,
    domain: str,
    sample: int = SETTINGS.sample,
    passes: int = SETTINGS.passes,
    **options: Any,
) -> Any:
    """Fit an estimator to Parquet files of any size, in bounded memory.

    A stratified sample teaches the model: the discriminator and the clusters of a
    :class:`~shoal.DDFA`, q(y|x) of a :class:`~shoal.DomainMixture`, and its number of
    classes where that is to be chosen. What is counted is then counted over all rows:
    a DDFA factorizes the exact cluster-by-domain table, a DomainMixture gets the
    prevalences that maximize the likelihood of all rows, in a few passes.

    Parameters
    ----------
    estimator : DomainMixture or DDFA
        Not changed. Give it a ``random_state``.
    data : path or list of paths
        Parquet files: one, several, a folder (also with folders such as ``site=A``
        inside), or a pattern such as ``"rows/*.parquet"``. On a cluster, a path that
        every node can read.
    domain : str
        Column, or key of folders, that says where a row comes from.
    sample : int, default=200000
        Rows to learn from, spread as evenly over the domains as they allow. With no
        more rows than that, the result is that of ``estimator.fit``.
    passes : int, default=3
        At most so many passes over all rows for the prevalences of a DomainMixture;
        they end when one moves none by 1e-5. 0 keeps those of the sample. Counting for
        a DDFA takes one pass.
    engine : {"local", "ray"}, default="local"
        Processes of this machine, or a Ray cluster.
    address : str, default=None
        Of the Ray cluster; None: that of ``RAY_ADDRESS``, else a new one on this
        machine.
    workers : int, default=None
        Parts worked on at the same time; None: as many as there are cores, or one
        where rows are few.
    checkpoint : path, default=None
        Folder for finished results. A second call with the same data and settings goes
        on from them. The caller removes it.
    progress : callable, default=None
        Called with the name of a stage and the share of it that is done.
    part_rows : int, default=500000
        Rows of a part, the unit of work that is kept.
    **options
        ``features``, ``id``, ``label``, ``group``, ``drop``, ``na``, ``na_only``,
        ``decimal``, ``impute``, ``merge_small``, ``drop_missing_domain`` and ``seed``
        (of the sample, default 0) as in :func:`shoal.io.read`.

    Returns
    -------
    fitted estimator
        Like any other: it predicts, is saved and loaded. ``labels_`` are those of the
        sample, which :func:`shoal.scale.draw` gives again. ``scale_`` says how many
        rows were counted and sampled, whether the passes converged, what was noticed
        about the rows (``messages``), and what every stage has cost; ``schema_`` how
        columns become numbers.

    Notes
    -----
    The same data, seed and ``part_rows`` give the same numbers, bit for bit, with any
    engine and number of workers, if the estimator itself has a fixed ``random_state``.
    Another ``part_rows`` changes the order of sums: prevalences agree within 1e-9.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from shoal import DomainMixture, scale
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     6000, n_classes=3, n_domains=4, separation=2.0, random_state=0)
    >>> table = pd.DataFrame(X).add_prefix("x").assign(site=domains)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/rows.parquet", row_group_size=1000)
    ...     model = scale.fit(
    ...         DomainMixture(3, search=False, random_state=0),
    ...         folder, domain="site", sample=2000, workers=1)
    >>> model.scale_["rows"], model.scale_["sampled"], model.prevalence_.shape
    (6000, 2000, (4, 3))
    """
    where, reading = Where.split(options)
    check_settings(estimator, sample, passes)
    with begin(data, where) as running:
        drawn = draw_table(running, sample, SourceOptions(domain=domain, **reading))
        return fit_drawn(estimator, drawn, running, passes)


def fit_drawn(
    estimator: Any, drawn: Drawn, running: Running, passes: int = SETTINGS.passes
) -> Any:
    """The fitted estimator: taught by a sample, exact over all rows."""
    table = drawn.table
    log.info("%s of %s rows sampled", f"{len(table.X):,}", f"{running.data.n_rows:,}")
    model = learn(estimator, drawn, running)
    how = "the sample is all of the data"
    moved: list[float] = []
    if not drawn.is_everything:
        how, moved = _make_exact(model, drawn, running, passes)
        model.labels_ = model.predict(table.X, table.domains)
    model.schema_ = table.schema.to_dict()
    model.scale_ = {
        "rows": int(drawn.domains.sizes.sum()),
        "sampled": len(table.X),
        "parts": len(running.data.parts),
        "engine": running.where.engine,
        "exact": how,
        "moved": moved,
        "rows_per_domain": drawn.domains.sizes.tolist(),
        "stages": list(running.stages),
        "messages": [asdict(one) for one in all_messages(drawn, running)],
    }
    return model


def all_messages(drawn: Drawn, running: Running) -> list[Message]:
    """Of the sample, then of all rows; of each code, those of one of them."""
    known = {one.code for one in drawn.table.messages}
    more = [one for one in running.messages.values() if one.code not in known]
    return [*drawn.table.messages, *more]


def check_settings(estimator: Any, sample: Any, passes: Any) -> None:
    """Refuse what makes no sense before any file is read."""
    if not getattr(estimator, "_fits_in_parts", False):
        raise TypeError(
            "estimator must be a DomainMixture or a DDFA for data read in parts, got "
            f"{type(estimator).__name__}"
        )
    check_whole(2, sample=sample)
    check_whole(0, passes=passes)


# ---- learning from the sample --------------------------------------------------------


def learn(estimator: Any, drawn: Drawn, running: Running) -> Any:
    """The estimator fitted to the sample, or as an earlier call has stored it."""
    table, begun = drawn.table, time.perf_counter()
    running.tell("learn", 0.0)
    shelf = running.shelf("learn", {
        "estimator": joblib.hash(estimator), "sample": joblib.hash(table.X),
        "domains": joblib.hash(np.asarray(table.domains).astype(str)),
    })  # fmt: skip
    stored = shelf.folder / "model"
    if (stored / "manifest.json").is_file():
        model = load(stored)
        running.note("learn", begun, len(table.X), resumed=len(running.data.parts))
        return model
    model = clone(estimator)._for_parts()
    weight = model.domain_weight
    if isinstance(weight, str) and weight == "size":
        # the sample is even: the shares of all rows are those of the domains
        sizes = drawn.domains.sizes.tolist()
        shares = dict(zip(drawn.domains.names.tolist(), sizes, strict=True))
        model.set_params(domain_weight=shares)
    model.fit(table.X, table.domains)
    model.set_params(domain_weight=weight)
    with suppress(CodedError, TypeError, ValueError), warnings.catch_warnings():
        # a part that cannot be stored is learned again by a second call
        warnings.simplefilter("ignore")
        save(model, stored)
    running.note("learn", begun, len(table.X))
    running.tell("learn", 1.0)
    return model


# ---- all rows ------------------------------------------------------------------------


def _make_exact(
    model: Any, drawn: Drawn, running: Running, passes: int
) -> tuple[str, list[float]]:
    """Count all rows; says what is exact, and how far each pass moved prevalences."""
    codes = np.searchsorted(drawn.domains.names, np.asarray(drawn.table.domains))
    counts = model._cluster_counts(codes)
    if counts is not None:
        task = CountClusters(model._lean(), drawn.rows, drawn.cut, counts.shape)
        counts += add_up(running.run("count clusters", task))["counts"]
        seed = model.random_state if is_whole(model.random_state) else 0
        model._factorize_counts(counts, seed)
        return "cluster-by-domain counts of all rows", []
    moved = _improve_prevalence(model, drawn, running, passes)
    how = f"prevalences by maximum likelihood of all rows, {len(moved)} passes"
    said = running.note_movement(moved)
    return f"{how}; {said}" if said else how, moved


def _improve_prevalence(
    model: Any, drawn: Drawn, running: Running, passes: int
) -> list[float]:
    """Newton steps over all rows; the largest change of a prevalence by each."""
    imaginary = model._pseudo_counts(len(drawn.table.X))
    moved: list[float] = []
    prevalence, copied = model.prevalence_, model._lean()
    equal = SETTINGS.mixed / model.n_classes_
    start = (1 - SETTINGS.mixed) * prevalence + equal
    T = domain_given_class(start, model.domain_weight_)
    for number in range(1, passes + 1):
        task = SumMoments(copied, drawn.rows, T)
        sums = add_up(running.run(f"prevalences, pass {number}", task))
        before = prevalence
        T, prevalence = next_solution(sums, T, model.domain_weight_, imaginary)
        moved.append(float(np.abs(prevalence - before).max()))
        log.info("pass %d moved prevalences by at most %.2g", number, moved[-1])
        if moved[-1] < SETTINGS.still:
            break
    model._store(prevalence, model.domains_, model.domain_weight_)
    # in decreasing mean prevalence again, which may have changed their order
    model._reorder_classes(canonical_order(prevalence))
    return moved
