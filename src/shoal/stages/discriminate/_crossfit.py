"""Out-of-fold q(d|x): every row is judged by a model that has not seen it.

A model is always fitted on domain codes 0..r-1 and always speaks about the shares q(d)
that were asked for: through ``sample_weight`` where its ``fit`` takes one, by Bayes'
rule on its output where it does not.
"""

import warnings
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from shoal.exceptions import FoldsReducedWarning
from shoal.probability import balance_domains, check_stochastic

Array = np.ndarray[Any, Any]

# Shares of domains that differ by less are the same shares.
SAME_SHARE = 1e-12


# ---- one model -----------------------------------------------------------------------


def weight_keywords(estimator: Any) -> list[str]:
    """Names under which ``estimator.fit`` takes weights of rows; empty if it does not.

    A pipeline takes weights when its last step does; every other step that can use
    them gets them too, so that a row of weight 0 is the same as no row.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return ["sample_weight"]
    if not isinstance(estimator, Pipeline):
        return []
    able = [
        name
        for name, step in estimator.steps
        if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
    ]
    if estimator.steps[-1][0] not in able:
        return []
    return [f"{name}__sample_weight" for name in able]


def takes_sample_weight(estimator: Any) -> bool:
    """Tell whether rows can be weighted when ``estimator`` is fitted."""
    return bool(weight_keywords(estimator))


def fit_domain_model(
    estimator: Any,
    X: Any,
    codes: Array,
    n_domains: int,
    *,
    domain_weight: Array | None = None,
    sample_weight: Array | None = None,
) -> tuple[Any, Array | None]:
    """Fit a clone of ``estimator`` to tell the domains apart.

    Parameters
    ----------
    estimator : scikit-learn classifier
    X : {array, sparse matrix} of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
    n_domains : int
    domain_weight : ndarray of shape (n_domains,), default=None
        The q(d) that q(d|x) should be about; None keeps the shares of the rows.
    sample_weight : ndarray of shape (n_samples,), default=None

    Returns
    -------
    model : the fitted clone
    fitted_weight : ndarray of shape (n_domains,) or None
        The q(d) the model was fitted with, where its output still has to be moved to
        ``domain_weight`` (:func:`shoal.probability.balance_domains`); None where
        there is nothing to correct.
    """
    model = clone(estimator)
    keywords = weight_keywords(model)
    if sample_weight is not None and not keywords:
        raise ValueError(
            f"sample_weight was passed, but {type(model).__name__}.fit does not take "
            "it; drop sample_weight or choose an estimator that does"
        )
    mass = np.bincount(codes, weights=sample_weight, minlength=n_domains)
    share = mass / mass.sum()
    fitted_weight = None
    weight = sample_weight
    if domain_weight is None or np.abs(share - domain_weight).max() < SAME_SHARE:
        pass  # the rows already have the shares that are wanted
    elif keywords:
        # Scaled to the rows' own total, so that penalties keep their strength. A fold
        # may hold out the only rows of a domain that have weight: it then trains
        # without that domain.
        scale = np.divide(
            domain_weight, share, out=np.zeros_like(share), where=mass > 0
        )
        weight = scale[codes] if sample_weight is None else sample_weight * scale[codes]
    else:
        fitted_weight = share
    weights = {} if weight is None else dict.fromkeys(keywords, weight)
    # Inside, weights are handed over by name: requests of metadata routing, which
    # the caller may have switched on for other reasons, have no say here.
    with config_context(enable_metadata_routing=False):
        model.fit(X, codes, **weights)
    return model, fitted_weight


def domain_proba(
    model: Any,
    X: Any,
    classes: Array,
    *,
    fitted_weight: Array | None = None,
    domain_weight: Array | None = None,
) -> Array:
    """q(d|x) from a fitted classifier: checked, columns in the order of ``classes``.

    ``fitted_weight`` and ``domain_weight`` move it from one q(d) to another; the
    first is None when there is nothing to move. One call of ``predict_proba``.
    """
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    source = f"{type(inner).__name__}.predict_proba"
    proba = check_domain_table(model.predict_proba(X), len(classes), source)
    columns = np.asarray(getattr(model, "classes_", classes))
    if not np.array_equal(columns, classes):
        proba = proba[:, _positions(columns, classes, source)]
    if fitted_weight is None or domain_weight is None:
        return proba
    balanced = balance_domains(proba, fitted_weight, domain_weight)
    return balanced.astype(proba.dtype, copy=False)


def check_domain_table(proba: Any, n_domains: int, source: str) -> Array:
    """Rows that are distributions over the domains, or an error naming ``source``."""
    table = check_stochastic(proba, f"the result of {source}")
    if table.shape[1] != n_domains:
        raise ValueError(
            f"{source} returned {table.shape[1]} columns for {n_domains} domains; it "
            "must return one column per domain of fit"
        )
    return table


def _positions(columns: Array, classes: Array, source: str) -> list[int]:
    position = {name: index for index, name in enumerate(columns.tolist())}
    absent = [name for name in classes.tolist() if name not in position]
    if absent:
        raise ValueError(
            f"{source} has no column for domain {absent[0]!r}, it knows "
            f"{columns.tolist()[:6]}; fit it on the same domains"
        )
    return [position[name] for name in classes.tolist()]


# ---- folds ---------------------------------------------------------------------------


def usable_folds(
    codes: Array, n_domains: int, n_folds: int, names: Array | None = None
) -> int:
    """Return ``n_folds``, or fewer when a domain has fewer rows than that.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
    n_domains : int
    n_folds : int
        At least 2.
    names : ndarray of shape (n_domains,), default=None
        What to call the domains in messages; their codes when None.
    """
    counts = np.bincount(codes, minlength=n_domains)
    smallest = int(counts.argmin())
    fewest = int(counts[smallest])
    name = (np.arange(n_domains) if names is None else names).tolist()[smallest]
    if fewest < 2:
        raise ValueError(
            f"domain {name!r} has {fewest} row{'s' * (fewest != 1)}: none can be held "
            "out; drop it, merge it with another domain, or pass cross_fit=None"
        )
    if fewest < n_folds:
        warnings.warn(
            f"domain {name!r} has only {fewest} rows: {fewest} folds instead of "
            f"{n_folds}",
            FoldsReducedWarning,
            stacklevel=3,
        )
    return min(n_folds, fewest)


def assign_folds(codes: Array, n_folds: int, random_state: Any = None) -> Array:
    """Fold of each row: shuffled, and each domain spread evenly over the folds."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    folds = np.empty(len(codes), dtype=np.intp)
    for fold, (_, held_out) in enumerate(splitter.split(codes, codes)):
        folds[held_out] = fold
    return folds


def rows_per_domain(
    codes: Array, quota: Array, random_state: np.random.RandomState
) -> Array:
    """Mask of random rows, ``quota[d]`` of them from domain d."""
    shuffled = random_state.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    starts = np.cumsum(counts) - counts
    position = np.arange(len(codes)) - starts[codes[order]]
    chosen = np.zeros(len(codes), dtype=bool)
    chosen[order] = position < quota[codes[order]]
    return chosen


def cross_fit_proba(
    estimator: Any,
    X: Any,
    codes: Array,
    n_domains: int,
    n_folds: int = 5,
    *,
    sample_weight: Array | None = None,
    domain_weight: Array | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Array:
    """Out-of-fold q(d|x) of every row.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Cloned for each fold, never changed.
    X : {array, sparse matrix} of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Domain of each row, 0..n_domains-1.
    n_domains : int
    n_folds : int, default=5
        Reduced, with a :class:`~shoal.exceptions.FoldsReducedWarning`, when a domain
        has fewer rows.
    sample_weight : ndarray of shape (n_samples,), default=None
    domain_weight : ndarray of shape (n_domains,), default=None
        The q(d) that q(d|x) should be about; None keeps the shares of the rows.
    random_state : int, RandomState instance or None, default=None
        Deals the rows into folds.
    n_jobs : int, default=None
        Folds fitted at the same time. Each uses one thread whatever ``n_jobs`` is:
        the last bits of a sum depend on the number of threads.

    Returns
    -------
    ndarray of shape (n_samples, n_domains)
        Rows sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = np.arange(8.0)[:, None]
    >>> codes = np.array([0, 1] * 4)  # neighbours always come from the other domain
    >>> nearest = KNeighborsClassifier(1)
    >>> nearest.fit(X, codes).score(X, codes)
    1.0
    >>> q = cross_fit_proba(nearest, X, codes, 2, 4, random_state=0)
    >>> bool((q.argmax(axis=1) == codes).all())
    False
    """
    n_folds = usable_folds(codes, n_domains, n_folds)
    folds = assign_folds(codes, n_folds, random_state)
    blocks = Parallel(n_jobs=n_jobs)(
        delayed(_held_out_proba)(
            estimator, X, codes, n_domains, folds == fold, domain_weight, sample_weight
        )
        for fold in range(n_folds)
    )
    result = np.empty((len(codes), n_domains), dtype=blocks[0].dtype)
    for fold, block in enumerate(blocks):
        result[folds == fold] = block
    return result


def _held_out_proba(
    estimator: Any,
    X: Any,
    codes: Array,
    n_domains: int,
    held_out: Array,
    domain_weight: Array | None,
    sample_weight: Array | None,
) -> Array:
    """q(d|x) of the held-out rows from a model of the others."""
    train = ~held_out
    with threadpool_limits(limits=1):
        model, fitted_weight = fit_domain_model(
            estimator,
            X[train],
            codes[train],
            n_domains,
            domain_weight=domain_weight,
            sample_weight=None if sample_weight is None else sample_weight[train],
        )
        return domain_proba(
            model,
            X[held_out],
            np.arange(n_domains),
            fitted_weight=fitted_weight,
            domain_weight=domain_weight,
        )
