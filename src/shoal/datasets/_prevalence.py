"""Class mixes of domains drawn at random, as in Appendix D of the paper."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from shoal.probability import normalize_rows
from shoal.validation import check_real, check_whole

Array = NDArray[Any]

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
            return _zero_small(candidates[accepted[0]], threshold)
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


def _zero_small(matrix: Array, threshold: float) -> Array:
    return normalize_rows(np.where(matrix < threshold, 0, matrix))
