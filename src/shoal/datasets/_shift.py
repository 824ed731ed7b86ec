"""Semi-synthetic label shift (Appendix D): draw the plan first, take rows later.

A labelled data set becomes a latent label shift problem in three steps, each a pure
function of its arguments:

1. :func:`shoal.datasets.draw_prevalence` draws the class mix of every domain;
2. :func:`plan_domains` decides which rows go to which domain, reading the labels;
3. :func:`take` picks the planned rows. It never sees a label, so nothing that is
   fitted on its output can.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from shoal.probability import check_stochastic, normalize_rows
from shoal.validation import check_real, check_whole

Array = NDArray[Any]


# ---- class mixes ---------------------------------------------------------------------

# Numbers drawn per batch of candidate matrices: enough to amortize the calls, while
# a problem whose first draw is accepted pays for one matrix only.
_BATCH_NUMBERS = 2**19

# A condition number is computed to about this relative precision. It also lets
# max_condition=1 accept a permutation whose zeros are 1e-13 before they are zeroed.
_ROUNDING = 1e-12


def draw_prevalence(
    n_classes: int,
    n_domains: int,
    alpha: float,
    max_condition: float | None = None,
    *,
    random_state: Any = None,
    max_tries: int = 200_000,
    threshold: float = 1e-7,
) -> Array:
    """Draw the class mix of every domain, redrawn until it is well conditioned.

    One draw p_d ~ Dir(alpha / n_classes) per domain; the whole matrix is drawn again
    while its condition number exceeds ``max_condition``. Then entries below
    ``threshold`` are set to 0 and the rows are normalized.

    Parameters
    ----------
    n_classes, n_domains : int
        k and r of the paper.
    alpha : float
        Concentration. Small: each domain is dominated by few classes. Large: every
        domain comes close to the equal mix.
    max_condition : float, default=None
        kappa, the largest condition number allowed (2-norm). None: the first draw
        is taken, whatever its condition number.
    random_state : int, RandomState instance or None, default=None
    max_tries : int, default=200_000
        Number of matrices drawn before giving up.
    threshold : float, default=1e-7
        Entries below are set to 0, after the condition number was checked.

    Returns
    -------
    ndarray of shape (n_domains, n_classes)
        Rows sum to 1.

    Raises
    ------
    ValueError
        When no matrix out of ``max_tries`` is well enough conditioned; the message
        names the smallest condition number seen.

    References
    ----------
    Roberts et al., "Unsupervised Learning under Latent Label Shift", NeurIPS 2022,
    Appendix D. Step 2 prints "for each y" and step 3 "cond > k": one draw is made per
    domain, and the limit is kappa.

    Examples
    --------
    >>> from shoal.datasets import draw_prevalence
    >>> draw_prevalence(2, 3, alpha=3, max_condition=5, random_state=0).round(2)
    array([[0.72, 0.28],
           [0.92, 0.08],
           [0.39, 0.61]])
    """
    limit = _check_draw(n_classes, n_domains, alpha, max_condition, max_tries)
    generator = check_random_state(random_state)
    smallest, tried, batch = np.inf, 0, 1
    while tried < max_tries:
        batch = min(batch, max_tries - tried)
        candidates = _dirichlet(
            generator, alpha / n_classes, batch, n_domains, n_classes
        )
        condition = _condition_numbers(candidates, ignore_above=max(limit, smallest))
        accepted = np.flatnonzero(condition <= limit * (1 + _ROUNDING))
        if accepted.size:
            chosen = candidates[accepted[0]]
            return normalize_rows(np.where(chosen < threshold, 0, chosen))
        smallest = min(smallest, float(condition.min()))
        tried += batch
        batch = min(2 * batch, max(1, _BATCH_NUMBERS // (n_domains * n_classes)))
    raise ValueError(
        f"max_condition={max_condition:g} was not reached in {max_tries} draws of "
        f"{n_domains} domains x {n_classes} classes at alpha={alpha:g} (smallest "
        f"condition number seen: {smallest:.4g}); raise max_condition, lower alpha, "
        "add domains, or allow more tries"
    )


def _check_draw(
    n_classes: int,
    n_domains: int,
    alpha: float,
    max_condition: float | None,
    max_tries: int,
) -> float:
    """Check the arguments of :func:`draw_prevalence`; the limit as a number."""
    check_whole(1, n_classes=n_classes, n_domains=n_domains, max_tries=max_tries)
    check_real(0, above=True, alpha=alpha)
    if max_condition is None:
        return np.inf
    if not max_condition >= 1:
        raise ValueError(
            f"max_condition must be at least 1, or None for no limit, got "
            f"{max_condition!r}"
        )
    if n_domains < n_classes:
        raise ValueError(
            f"n_domains={n_domains} is less than n_classes={n_classes}, so the classes "
            "cannot be told apart; add domains, or pass max_condition=None"
        )
    return float(max_condition)


def _dirichlet(
    generator: np.random.RandomState,
    concentration: float,
    n_matrices: int,
    n_domains: int,
    n_classes: int,
) -> Array:
    """Matrices whose rows are symmetric Dirichlet draws, at any concentration."""
    drawn = generator.dirichlet(
        np.full(n_classes, concentration), size=(n_matrices, n_domains)
    )
    # Below a concentration of about .01 all the gamma variates behind a row can
    # underflow together, which leaves 0/0. The limit is one class, any of them.
    lost = ~np.isfinite(drawn).all(axis=-1)
    if lost.any():
        winners = generator.randint(n_classes, size=int(lost.sum()))
        drawn[lost] = np.eye(n_classes)[winners]
    return np.asarray(drawn)


def _condition_numbers(matrices: Array, ignore_above: float) -> Array:
    """Condition number of each matrix; inf where it is surely above a limit.

    The extreme singular values lie outside the range of the column norms, so their
    ratio is a lower bound that costs next to nothing. At small alpha it settles
    99 of 100 draws, in which some class is almost absent.
    """
    square_norms = np.einsum("nij,nij->nj", matrices, matrices)
    with np.errstate(divide="ignore"):
        bound = np.sqrt(square_norms.max(axis=1) / square_norms.min(axis=1))
    worth_it = np.flatnonzero(bound <= ignore_above * (1 + _ROUNDING))
    condition = np.full(len(matrices), np.inf)
    if worth_it.size:
        singular = np.linalg.svd(matrices[worth_it], compute_uv=False)
        with np.errstate(divide="ignore"):
            condition[worth_it] = singular[:, 0] / singular[:, -1]
    return condition


# ---- rows of domains -----------------------------------------------------------------


@dataclass(frozen=True)
class SplitPlan:
    """The rows of one split, their domains, and how many rows of each kind.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Positions in the data set, in random order (an order by class would give the
        labels away); none occurs twice in a plan.
    domains : ndarray of shape (n_rows,)
        Domain of each row, 0 to n_domains - 1.
    quota : ndarray of shape (n_domains, n_classes)
        Number of rows of each class in each domain.
    """

    rows: Array
    domains: Array
    quota: Array

    @property
    def prevalence(self) -> Array:
        """The class mix these rows have: the quota, divided by the domain's rows."""
        return normalize_rows(self.quota)


@dataclass(frozen=True)
class ShiftPlan:
    """Which rows of a labelled data set go to which domain; see :func:`plan_domains`.

    The labels themselves are not kept.

    Attributes
    ----------
    prevalence : ndarray of shape (n_domains, n_classes)
        The class mix asked for. That of the rows of one split differs by rounding:
        ``plan.splits["train"].prevalence``.
    classes : ndarray of shape (n_classes,)
        Label of each column of ``prevalence``.
    splits : mapping of str to SplitPlan
        ``"train"``, ``"valid"`` and, when it was given, ``"test"``.
    n_samples : int
        Number of rows of the data set that was planned for.
    """

    prevalence: Array
    classes: Array
    splits: Mapping[str, SplitPlan]
    n_samples: int

    def labels(self, labels: ArrayLike, split: str = "train") -> Array:
        """Return the true classes of a split's rows, as codes 0..k-1, to score with.

        ``labels`` are those of the whole data set, as given to :func:`plan_domains`.
        """
        values = np.asarray(labels)
        self._check_length(len(values), "labels")
        return np.searchsorted(self.classes, values[self._split(split).rows])

    def _split(self, name: str) -> SplitPlan:
        if name not in self.splits:
            raise ValueError(
                f"split={name!r} is not in this plan; it has {', '.join(self.splits)}"
            )
        return self.splits[name]

    def _check_length(self, length: int, name: str) -> None:
        if length != self.n_samples:
            raise ValueError(
                f"{name} has {length} rows, the plan was made for {self.n_samples}; "
                "pass the whole data set, in the same order"
            )


def plan_domains(
    labels: ArrayLike,
    prevalence: ArrayLike,
    *,
    splits: Mapping[str, ArrayLike] | None = None,
    valid_share: float = 0.1,
    random_state: Any = None,
) -> ShiftPlan:
    """Distribute the rows of a labelled data set over domains, without replacement.

    In each split, the number of rows of class y in domain d is ::

        floor(p_d(y) / r * smallest class count / max_y mean_d p_d(y))

    so that domains are equally large up to rounding and no class runs out of rows;
    the surplus is left out. Rows are drawn at random within a class.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        True classes. The i-th smallest distinct label is column i of ``prevalence``.
    prevalence : array-like of shape (n_domains, n_classes)
        Class mix of each domain, e.g. from :func:`shoal.datasets.draw_prevalence`.
    splits : mapping of str to array-like of int, default=None
        Row positions of ``"train"`` and, if wanted, ``"valid"`` and ``"test"``;
        they must not overlap. None: all rows are ``"train"``. Without a ``"valid"``
        entry, a random ``valid_share`` of the training rows becomes it.
    valid_share : float, default=0.1
        0 makes no validation split.
    random_state : int, RandomState instance or None, default=None
        The plan is a function of this and the other arguments.

    Returns
    -------
    ShiftPlan

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.datasets import plan_domains, take
    >>> X, labels = np.arange(100).reshape(50, 2), np.repeat(["ant", "bee"], 25)
    >>> plan = plan_domains(labels, [[0.8, 0.2], [0.4, 0.6]], valid_share=0,
    ...                     random_state=0)
    >>> plan.splits["train"].quota
    array([[16,  4],
           [ 8, 12]])
    >>> X_train, domains = take(plan, X)
    >>> X_train.shape, np.bincount(domains)
    ((40, 2), array([20, 20]))
    """
    label_array = np.asarray(labels)
    matrix = normalize_rows(check_stochastic(prevalence, "prevalence").clip(min=0))
    classes, codes = np.unique(label_array, return_inverse=True)
    if len(classes) != matrix.shape[1]:
        raise ValueError(
            f"prevalence has {matrix.shape[1]} columns, labels has {len(classes)} "
            "distinct values; give one column per class"
        )
    generator = check_random_state(random_state)
    parts = _check_splits(splits, len(label_array))
    parts = _add_valid(parts, valid_share, generator)
    planned = {
        name: _plan_split(rows, codes, matrix, name, generator)
        for name, rows in parts.items()
    }
    return ShiftPlan(matrix, classes, planned, len(label_array))


def take(plan: ShiftPlan, X: Any, split: str = "train") -> tuple[Any, Array]:
    """Rows of one split and the domain each belongs to; no label is involved.

    Parameters
    ----------
    plan : ShiftPlan
    X : array, sparse matrix, DataFrame or sequence of length plan.n_samples
        The whole data set that was planned for.
    split : str, default="train"

    Returns
    -------
    X : same kind as given
    domains : ndarray of shape (n_rows,)
    """
    length = X.shape[0] if hasattr(X, "shape") else len(X)
    plan._check_length(length, "X")
    part = plan._split(split)
    if hasattr(X, "iloc"):
        return X.iloc[part.rows], part.domains.copy()
    if hasattr(X, "shape"):
        return X[part.rows], part.domains.copy()
    return [X[row] for row in part.rows], part.domains.copy()


def _check_splits(
    splits: Mapping[str, ArrayLike] | None, n_samples: int
) -> dict[str, Array]:
    if splits is None:
        return {"train": np.arange(n_samples)}
    unknown = set(splits) - {"train", "valid", "test"}
    if unknown or "train" not in splits:
        raise ValueError(
            "splits must map 'train' and, if wanted, 'valid' and 'test' to row "
            f"positions, got {list(splits)}"
        )
    parts = {
        name: np.asarray(splits[name])
        for name in ("train", "valid", "test")
        if name in splits
    }
    for name, rows in parts.items():
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"splits[{name!r}] must be a 1-D array of row positions")
        if rows.size and not 0 <= rows.min() <= rows.max() < n_samples:
            raise ValueError(
                f"splits[{name!r}] has positions outside 0..{n_samples - 1}, the rows "
                "of labels"
            )
    together = np.concatenate(list(parts.values()))
    if len(np.unique(together)) != len(together):
        raise ValueError(
            "splits repeats rows; every row may be in one split only, once"
        )
    return parts


def _add_valid(
    parts: dict[str, Array], valid_share: float, generator: np.random.RandomState
) -> dict[str, Array]:
    """Set aside part of the training rows for validation unless there are such rows."""
    if not 0 <= valid_share < 1:
        raise ValueError(
            f"valid_share must be at least 0 and below 1, got {valid_share!r}"
        )
    n_valid = round(valid_share * len(parts["train"]))
    if "valid" in parts or not n_valid:
        return parts
    shuffled = generator.permutation(parts["train"])
    return {**parts, "train": shuffled[n_valid:], "valid": shuffled[:n_valid]}


def _plan_split(
    rows: Array,
    codes: Array,
    prevalence: Array,
    name: str,
    generator: np.random.RandomState,
) -> SplitPlan:
    n_domains, n_classes = prevalence.shape
    counts = np.bincount(codes[rows], minlength=n_classes)
    quota = _quota(prevalence, int(counts.min()))
    filled = quota.any(axis=1)
    if not filled.all():
        raise ValueError(
            f"splits: {name} has too few rows, domain {int(filled.argmin())} would be "
            f"empty (rarest class: {int(counts.min())} rows, {n_domains} domains); use "
            "more rows or fewer domains"
        )
    chosen, domains = [], []
    for label in range(n_classes):
        candidates = generator.permutation(rows[codes[rows] == label])
        chosen.append(candidates[: quota[:, label].sum()])
        domains.append(np.repeat(np.arange(n_domains), quota[:, label]))
    order = generator.permutation(int(quota.sum()))
    return SplitPlan(
        np.concatenate(chosen)[order], np.concatenate(domains)[order], quota
    )


def _quota(prevalence: Array, smallest_count: int) -> Array:
    """Rows per domain and class, the most that keep domains equal (ERRATA 13)."""
    n_domains = len(prevalence)
    share = prevalence / n_domains * smallest_count / prevalence.mean(axis=0).max()
    # Without the guard .3 / 3 * 30 / .1 is one row short. It cannot overdraw a class:
    # shares add up to smallest_count at most, and whole numbers just above do too.
    return np.asarray(np.floor(share + 1e-9), dtype=np.intp)
