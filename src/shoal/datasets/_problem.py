"""The truth behind generated rows, with every posterior in closed form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from shoal.datasets._worlds import World
from shoal.probability import domain_given_class
from shoal.validation import check_whole

__all__ = ["LatentShiftProblem", "apportion", "draw_seeds"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LatentShiftProblem:
    """The truth behind generated rows: p(x|y), p_d(y), and all that follows.

    The mixing distribution Q weights domains equally.

    Attributes
    ----------
    world : World
        p(x|y): how rows of a class look.
    prevalence : ndarray of shape (n_domains, n_classes)
        p_d(y).
    size_share : ndarray of shape (n_domains,)
        Share of the rows in each domain.
    """

    world: World
    prevalence: Array
    size_share: Array

    def sample(
        self, n_samples: int, *, counts: str = "multinomial", random_state: Any = None
    ) -> tuple[Array, Array, Array]:
        """Draw rows, their domains and their labels, in random order.

        Parameters
        ----------
        n_samples : int
        counts : {"multinomial", "exact"}, default="multinomial"
            ``"exact"``: class counts in a domain are its prevalence, rounded.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        domains, labels : ndarray of shape (n_samples,)
        """
        label_seed, row_seed = draw_seeds(random_state, 2)
        domains, labels = self._draw_labels(
            n_samples, counts, np.random.default_rng(label_seed)
        )
        rows = self.world.sample(labels, domains, np.random.default_rng(row_seed))
        return rows, domains, labels

    def class_given_x(self, X: ArrayLike) -> Array:
        """Bayes-optimal q(y|x) of shape (n_samples, n_classes): domain not known."""
        density = self.world.log_density(np.asarray(X))
        if density.shape[1] == 1:
            mean = self.prevalence.mean(axis=0)
            return _normalize_logs(density[:, 0] + _log(mean), empty=mean)
        return _joint(density, self.prevalence).sum(axis=1)

    def domain_given_x(self, X: ArrayLike) -> Array:
        """Bayes-optimal discriminator q(d|x) of shape (n_samples, n_domains)."""
        density = self.world.log_density(np.asarray(X))
        if density.shape[1] == 1:
            return self.class_given_x(X) @ domain_given_class(self.prevalence)
        return _joint(density, self.prevalence).sum(axis=2)

    def posterior(self, X: ArrayLike, domains: ArrayLike | int | None = None) -> Array:
        """Bayes-optimal p_d(y|x); q(y|x) when ``domains`` is None.

        ``domains``: one code per row, or one for all rows.
        """
        if domains is None:
            return self.class_given_x(X)
        density = self.world.log_density(np.asarray(X))
        codes = self._check_codes(domains, len(density))
        by_row = np.arange(len(density))
        density = density[by_row, 0 if density.shape[1] == 1 else codes]
        prior = self.prevalence[codes]
        return _normalize_logs(density + _log(prior), empty=prior)

    def _check_codes(self, domains: ArrayLike, n_samples: int) -> Array:
        codes = np.asarray(domains)
        n_domains = len(self.prevalence)
        if codes.dtype.kind not in "iu" or codes.shape not in ((), (n_samples,)):
            raise ValueError(
                f"domains must be one code or {n_samples}, one per row of X, got shape "
                f"{codes.shape} of {codes.dtype}"
            )
        if codes.size and not 0 <= codes.min() <= codes.max() < n_domains:
            raise ValueError(f"domains has codes outside 0..{n_domains - 1}")
        return np.broadcast_to(codes, n_samples)

    def _draw_labels(
        self, n_samples: int, counts: str, generator: np.random.Generator
    ) -> tuple[Array, Array]:
        if counts not in ("multinomial", "exact"):
            raise ValueError(f"counts must be 'multinomial' or 'exact', got {counts!r}")
        check_whole(1, n_samples=n_samples)
        sizes = apportion(self.size_share, n_samples)
        if (sizes == 0).any():
            raise ValueError(
                f"n_samples={n_samples} leaves domain {int(sizes.argmin())} without "
                "rows; use more rows or more even domain_sizes"
            )
        per_class = np.array([
            generator.multinomial(size, share)
            if counts == "multinomial"
            else apportion(share, size)
            for size, share in zip(sizes, self.prevalence, strict=True)
        ])  # fmt: skip
        n_domains, n_classes = self.prevalence.shape
        cells = np.repeat(np.arange(n_domains * n_classes), per_class.ravel())
        return np.divmod(generator.permutation(cells), n_classes)


def draw_seeds(random_state: Any, n_seeds: int) -> list[int]:
    """One seed per part of a problem, so that parts do not disturb each other."""
    generator = check_random_state(random_state)
    return [int(seed) for seed in generator.randint(2**31 - 1, size=n_seeds)]


def apportion(share: ArrayLike, total: int) -> Array:
    """Whole numbers proportional to ``share`` that sum to ``total``.

    Rounded down, and what is missing goes to the largest remainders.

    >>> apportion([0.5, 0.3, 0.2], 9)
    array([4, 3, 2])
    """
    ideal = np.asarray(share, dtype=float) / np.sum(share) * total
    # The guard keeps .3 * 10 whole; see the rounding of 2.9999999999999996.
    whole = np.floor(ideal + 1e-9).astype(np.intp)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - ideal, kind="stable")[:missing]] += 1
    return whole


def _joint(log_density: Array, prevalence: Array) -> Array:
    """q(d, y|x) of shape (n_samples, n_domains, n_classes), equal domain weights."""
    log_joint = log_density + _log(prevalence)
    flat = log_joint.reshape(len(log_joint), -1)
    empty = (prevalence / len(prevalence)).ravel()
    return _normalize_logs(flat, empty=empty).reshape(log_joint.shape)


def _normalize_logs(logs: Array, *, empty: Array) -> Array:
    """Rows proportional to exp(logs); ``empty`` where all of a row is impossible."""
    top = logs.max(axis=1, keepdims=True)
    impossible = np.isneginf(top)
    weight = np.where(impossible, empty, np.exp(logs - np.where(impossible, 0, top)))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _log(probability: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
