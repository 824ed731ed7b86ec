"""The class mix of a new domain of any size."""

from typing import Any

import numpy as np

from shoal.analysis._adapt import Adaptation
from shoal.analysis._draws import mixture_proportions, prevalence_interval
from shoal.scale._exact import LONGEST, SHORTEST, TINY, SumMoments
from shoal.scale._fitting import STILL, add_up, digest_of_model
from shoal.scale._parts import PART_ROWS
from shoal.scale._rows import Rows, schema_of, without_gaps
from shoal.scale._running import Progress, Result, Running, begin
from shoal.scale._sampling import draw_rows
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]

SAMPLE = 100_000


def adapt(
    model: Any,
    data: Any,
    *,
    level: float = 0.9,
    sample: int = SAMPLE,
    passes: int = 5,
    seed: int = 0,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    checkpoint: Any = None,
    progress: Progress | None = None,
    part_rows: int = PART_ROWS,
) -> Adaptation:
    """Class mix of a domain that fit has not seen, by the likelihood of all its rows.

    A sample gives the first mix, passes over all rows the final one; they end when one
    moves no share by 1e-5. The intervals come from the curvature of the likelihood of
    all rows instead of resamples, which for so many rows is the same. With no more
    rows than the sample, the result is that of ``model.adapt``.

    Parameters
    ----------
    model : fitted estimator
        With ``schema_``, as of :func:`shoal.scale.fit` or :func:`shoal.load`.
    data, engine, address, workers, checkpoint, progress, part_rows
        As in :func:`shoal.scale.fit`; all rows count as one domain.
    level : float, default=0.9
        Nominal coverage of the intervals.
    sample : int, default=100000
    passes : int, default=5
    seed : int, default=0
        Of the sample.

    Returns
    -------
    Adaptation

    Warns
    -----
    ShoalWarning
        What was noticed about the rows, and passes that ended before they converged.
    """
    check_whole(2, sample=sample)
    check_whole(1, passes=passes)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    if model._origin._counts_words:
        raise TypeError("adapt in parts is for models of rows, not of counts of words")
    where = engine, address, workers, checkpoint, progress, part_rows
    with begin(data, *where) as running:
        n_rows = running.data.n_rows
        schema = schema_of(model, running.data.columns)
        frame, _ = draw_rows(running, schema.needed, sample, seed=seed)
        everything = len(frame) == n_rows
        frame, noticed = without_gaps(schema, frame)
        X = schema.encode(frame, noticed)
        running.keep(noticed)
        if everything:
            running.warn()
            return model.adapt(X, level=level, random_state=seed)
        # of the classes of the fit: a new domain may mix merged ones as it likes
        fitted = model._origin
        parts, covariance, familiar, n_rows = _mix_of_all_rows(
            fitted,
            running,
            Rows(schema, None, seed),
            _mix_of_sample(fitted, X),
            passes,
        )
    running.warn()
    shares = model._add_up(parts)
    covariance = model._add_up(model._add_up(covariance).T)
    variance = np.maximum(np.diag(covariance), 0)
    low, high = prevalence_interval(shares, variance, n_rows, level)
    return Adaptation(
        prevalence=shares,
        low=low,
        high=high,
        fit_score=min(1.0, 2 * familiar),
        level=level,
        n_rows=n_rows,
        class_names=list(model.class_names_),
        estimator=model,
        parts=parts,
    )


def _mix_of_sample(model: Any, X: Any) -> Array:
    """Where the passes start from; no class is so rare that it could not come back."""
    class_given_x = model._class_given_x(model._check_rows(X))
    shares = mixture_proportions(
        class_given_x / _prior(model), start=model.class_weight_
    )
    return np.asarray(0.99 * shares + 0.01 / len(shares))


def _mix_of_all_rows(
    model: Any, running: Running, rows: Rows, shares: Array, passes: int
) -> tuple[Array, Array, float, int]:
    """Class mix, its covariance, how familiar rows are on average, how many they are.

    A model that leaves rows with gaps out does not count them.
    """
    known = {"model": digest_of_model(model), "schema": rows.schema.to_dict()}
    prior, moved = _prior(model), []
    for number in range(1, passes + 1):
        work = SumMoments(model._lean(), rows, (shares / prior)[:, None], number == 1)
        settings = {**known, "shares": shares.tolist()}
        sums = add_up(running.run(f"adapt, pass {number}", work, settings))
        if number == 1:
            n_rows = int(sums["count"][0])
            familiar = float(sums["familiar"][0]) / n_rows
        before = shares
        shares, covariance = next_shares(sums, shares)
        moved.append(float(np.abs(shares - before).max()))
        if moved[-1] < STILL:
            break
    running.note_movement(moved, STILL)
    return shares, covariance, familiar, n_rows


def _prior(model: Any) -> Array:
    return np.maximum(model.class_weight_, TINY)


def next_shares(sums: Result, shares: Array) -> tuple[Array, Array]:
    """One Newton step of the likelihood of a class mix, and the covariance of shares.

    As :func:`shoal.scale._exact.next_solution`, for one domain whose shares sum to 1.

    Examples
    --------
    >>> posterior = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> sums = {"first": posterior.sum(axis=0)[None], "count": np.array([4]),
    ...         "second": (posterior.T @ posterior)[None]}
    >>> shares, covariance = next_shares(sums, np.array([0.75, 0.25]))
    >>> shares, covariance.diagonal()
    (array([0.75, 0.25]), array([0.046875, 0.046875]))
    """
    count = int(sums["count"][0])
    gradient, curvature = sums["first"][0] / count, sums["second"][0] / count
    curvature = curvature + 1e-12 * np.eye(len(shares))
    free = np.ones(len(shares), dtype=bool)
    while True:
        step, tied = _step(gradient, curvature, shares, free)
        vanishing = (1 + step < SHORTEST) & free
        if not vanishing.any() or vanishing[free].all():
            break
        free &= ~vanishing
    moved = shares * np.clip(1 + step, SHORTEST, LONGEST)
    return moved / moved.sum(), tied * np.outer(shares, shares) / count


def _step(
    gradient: Array, curvature: Array, shares: Array, free: Array
) -> tuple[Array, Array]:
    """Step u - 1 that keeps the sum of p0 u, and the covariance that u has.

    Classes that are not free shrink as far as they may.
    """
    down = np.where(free, 0.0, SHORTEST - 1)
    inverse = np.zeros_like(curvature)
    inverse[np.ix_(free, free)] = np.linalg.inv(curvature[np.ix_(free, free)])
    towards = inverse @ shares
    tied = inverse - np.outer(towards, towards) / (shares @ towards)
    by_rest = inverse @ (gradient + curvature @ down) - down
    by_size = inverse @ (gradient**2 / shares)
    step = by_size * (shares @ by_rest) / (shares @ by_size) - by_rest
    return step, tied
