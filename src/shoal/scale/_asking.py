"""Asked of data of any size: the mix of a new domain, and whether to trust a model."""

from typing import Any

import numpy as np

from shoal.analysis._adapt import Adaptation, unknown_share
from shoal.analysis._resample import (
    mixture_proportions,
    prevalence_interval,
    stretched_quantile,
)
from shoal.analysis.diagnose import judge
from shoal.analysis.diagnose._procedure import with_columns
from shoal.analysis.diagnose._result import Diagnosis
from shoal.exceptions import ModelFileError
from shoal.io._options import SourceOptions
from shoal.probability import TINY
from shoal.scale._exact import (
    RowReader,
    SumMoments,
    add_up,
    known_rule,
    next_shares,
    schema_of,
    without_gaps,
)
from shoal.scale._running import Running, Where, begin
from shoal.scale._sampling import count_domains, draw_rows
from shoal.scale._settings import SETTINGS
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]


def adapt(
    model: Any,
    data: Any,
    *,
    level: float = 0.9,
    sample: int = SETTINGS.adapt_sample,
    passes: int = SETTINGS.adapt_passes,
    seed: int = 0,
    **where: Any,
) -> Adaptation:
    """Class mix of a domain that fit has not seen, by the likelihood of all its rows.

    A sample gives the first mix, passes over all rows the final one; they end when one
    moves no share by 1e-5. The intervals come from the curvature of the likelihood of
    all rows instead of resamples, which for so many rows is the same. The share of
    rows of no known class is that of the sample. With no more
    rows than the sample, the result is that of ``model.adapt``.

    Parameters
    ----------
    model : fitted estimator
        With ``schema_``, as of :func:`shoal.scale.fit` or :func:`shoal.load`.
    data : path or list of paths
        As in :func:`shoal.scale.fit`; all rows count as one domain.
    level : float, default=0.9
        Nominal coverage of the intervals.
    sample : int, default=100000
    passes : int, default=5
    seed : int, default=0
        Of the sample.
    **where
        ``engine``, ``address``, ``workers``, ``checkpoint``, ``progress`` and
        ``part_rows`` as in :func:`shoal.scale.fit`.

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
    stretched_quantile(level)  # refuses what is no level
    if model._origin._counts_words:
        raise TypeError("adapt in parts is for models of rows, not of counts of words")
    with begin(data, Where.only(where)) as running:
        n_rows = running.data.n_rows
        schema = schema_of(model, running.data.columns)
        frame, _ = draw_rows(running, schema.needed, sample, seed)
        everything = len(frame) == n_rows
        frame, noticed = without_gaps(schema, frame)
        X = schema.encode(frame, noticed)
        running.keep(noticed)
        if everything:
            running.warn()
            return model.adapt(X, level=level, random_state=seed)
        # of the classes of the fit: a new domain may mix merged ones as it likes
        fitted, reader = model._origin, RowReader(schema, None, seed)
        X = fitted._check_rows(X)
        start = _mix_of_sample(fitted, X)
        found = _mix_of_all_rows(fitted, running, reader, start, passes)
    parts, covariance, familiar, n_rows = found
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
        unknown=unknown_share(fitted, X, fitted._class_given_x(X), parts, level),
        level=level,
        n_rows=n_rows,
        class_names=list(model.class_names_),
        estimator=model,
        parts=parts,
    )


def _mix_of_sample(model: Any, X: Any) -> Array:
    """Where the passes start from; no class is so rare that it could not come back."""
    class_given_x = model._class_given_x(X)
    shares = mixture_proportions(
        class_given_x / _prior(model), start=model.class_weight_
    )
    equal = SETTINGS.mixed / len(shares)
    return np.asarray((1 - SETTINGS.mixed) * shares + equal)


def _mix_of_all_rows(
    model: Any, running: Running, rows: RowReader, shares: Array, passes: int
) -> tuple[Array, Array, float, int]:
    """Class mix, its covariance, how familiar rows are on average, how many they are.

    A model that leaves rows with gaps out does not count them.
    """
    prior, moved, copied = _prior(model), [], model._lean()
    for number in range(1, passes + 1):
        task = SumMoments(copied, rows, (shares / prior)[:, None], number == 1)
        sums = add_up(running.run(f"adapt, pass {number}", task))
        if number == 1:
            n_rows = int(sums["count"][0])
            familiar = float(sums["familiar"][0]) / n_rows
        before = shares
        shares, covariance = next_shares(sums, shares)
        moved.append(float(np.abs(shares - before).max()))
        if moved[-1] < SETTINGS.still:
            break
    running.note_movement(moved)
    return shares, covariance, familiar, n_rows


def _prior(model: Any) -> Array:
    return np.maximum(model.class_weight_, TINY)


def diagnose(
    model: Any,
    data: Any,
    *,
    sample: int = SETTINGS.sample,
    n_permutations: int = 10,
    seed: int = 0,
    drop_missing_domain: bool = False,
    **where: Any,
) -> Diagnosis:
    """Ask whether the classes should be trusted, of a stated sample of all rows.

    Rows of each domain are counted exactly; everything else is asked of the sample.
    Rows that occur in several domains are seldom both in it: few are found.

    Parameters
    ----------
    model : fitted estimator
        With ``schema_``, as of :func:`shoal.scale.fit` or :func:`shoal.load`.
    data, **where
        As in :func:`shoal.scale.adapt`.
    sample : int, default=200000
        Rows to look at, spread evenly over the domains.
    n_permutations : int, default=10
        As in :func:`shoal.analysis.diagnose.diagnose`.
    seed : int, default=0
        Of the sample and of all chance.
    drop_missing_domain : bool, default=False

    Returns
    -------
    Diagnosis

    Warns
    -----
    ShoalWarning
        What was noticed about the rows.
    """
    check_whole(2, sample=sample, n_permutations=n_permutations)
    with begin(data, Where.only(where)) as running:
        schema = schema_of(model, running.data.columns)
        rule = known_rule(schema, running.data.columns)
        options = SourceOptions(
            domain=rule.column,
            na=schema.missing,
            na_only=True,
            drop_missing_domain=drop_missing_domain,
            seed=seed,
        )
        domains = count_domains(running, options, rule)
        columns = dict.fromkeys([*schema.needed, str(rule.column)])
        frame, _ = draw_rows(running, list(columns), sample, seed, domains)
    unseen = set(domains.names.tolist()) - set(model.domains_.tolist())
    if unseen:
        raise ModelFileError(
            "E134",
            f'the model has not seen "{min(map(str, unseen))}"',
            "`shoal adapt` first",
        )
    frame, noticed = without_gaps(schema, frame)
    told = domains.names[domains.codes(frame)]
    X = schema.encode(frame, noticed)
    running.keep([*domains.messages, *noticed])
    running.warn()
    found = model.diagnose(X, told, n_permutations=n_permutations, random_state=seed)
    found = with_columns(found, schema.feature_names)
    return with_sizes(found, domains.sizes)


def with_sizes(found: Diagnosis, sizes: Array) -> Diagnosis:
    """A diagnosis of a sample, its findings judged by the rows of all data."""
    numbers = {
        **found.numbers,
        "n_rows": int(sizes.sum()),
        "rows_per_domain": np.asarray(sizes, dtype=int),
    }
    return judge(numbers, found.domains, found.class_names)
