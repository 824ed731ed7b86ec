"""How generated inputs look given their class, and the truth behind them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from shoal.probability import domain_given_class
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]

# Sites of a multi-modal world lie at least this many standard deviations apart.
SITE_DISTANCE = 12.0


@dataclass(frozen=True)
class GaussianWorld:
    """Each class an equal mixture of round clouds of standard deviation 1.

    Attributes
    ----------
    centres : ndarray of shape (n_classes, n_components, n_columns)
    drift : ndarray of shape (n_domains, n_classes, n_columns) or None
        How far the clouds of a class are moved in a domain.
    leak : ndarray of shape (n_domains,) or None
        Mean, by domain, of one further column that does not depend on the class.
    """

    centres: Array
    drift: Array | None = None
    leak: Array | None = None

    def log_density(self, X: Array) -> Array:
        """Log density of rows, (n_samples, 1 or n_domains, n_classes)."""
        X = np.asarray(X, dtype=float)
        n_columns = self.centres.shape[2] + (self.leak is not None)
        if X.ndim != 2 or X.shape[1] != n_columns:
            raise ValueError(
                f"X must have {n_columns} columns like the generated rows, got shape "
                f"{X.shape}"
            )
        shared = X[:, : self.centres.shape[2]]
        if self.drift is None:
            density = _mixture_log_density(shared, self.centres)[:, None, :]
        else:
            moved = [self.centres + move[:, None, :] for move in self.drift]
            density = np.stack([_mixture_log_density(shared, at) for at in moved], 1)
        if self.leak is not None:
            distance = X[:, -1, None] - self.leak
            density = density + _log_normal(distance**2, 1)[:, :, None]
        return density

    def sample(
        self, labels: Array, domains: Array, generator: np.random.Generator
    ) -> Array:
        """Draw one row for each pair of class and domain."""
        _, n_components, n_columns = self.centres.shape
        component = generator.integers(n_components, size=len(labels))
        X = self.centres[labels, component]
        X += generator.standard_normal((len(labels), n_columns))
        if self.drift is not None:
            X += self.drift[domains, labels]
        if self.leak is None:
            return X
        leaking = self.leak[domains] + generator.standard_normal(len(labels))
        return np.column_stack([X, leaking])

    def truth(self, prevalence: Array) -> dict[str, Array | None]:
        """Name the arrays that describe this world."""
        return {
            "means": self.centres.mean(axis=1),
            "centres": self.centres,
            "drift": self.drift,
            "leak": self.leak,
        }


@dataclass(frozen=True)
class WordWorld:
    """A finite input space: a row is one word, an integer in its only column.

    Attributes
    ----------
    word_given_class : ndarray of shape (n_classes, n_words)
    """

    word_given_class: Array

    def log_density(self, X: Array) -> Array:
        """Log probability of words, (n_samples, 1, n_classes)."""
        n_words = self.word_given_class.shape[1]
        words = np.asarray(X)
        if words.ndim != 2 or words.shape[1] != 1 or words.dtype.kind not in "iu":
            raise ValueError("X must have one column of word numbers (integers)")
        if words.size and not 0 <= words.min() <= words.max() < n_words:
            raise ValueError(f"X has words outside 0..{n_words - 1}")
        with np.errstate(divide="ignore"):
            return np.log(self.word_given_class.T[words[:, 0]])[:, None, :]

    def sample(
        self, labels: Array, domains: Array, generator: np.random.Generator
    ) -> Array:
        """Draw one word for each class; domains make no difference."""
        words = np.empty(len(labels), dtype=np.intp)
        for label, probability in enumerate(self.word_given_class):
            here = labels == label
            words[here] = generator.choice(
                len(probability), size=here.sum(), p=probability
            )
        return words[:, None]

    def truth(self, prevalence: Array) -> dict[str, Array | None]:
        """Name the arrays that describe this world."""
        return {
            "word_given_class": self.word_given_class,
            "word_given_domain": prevalence @ self.word_given_class,
        }


#: What a generated problem needs to know about its inputs.
World = GaussianWorld | WordWorld


def gaussian_world(
    n_classes: int, n_features: int, separation: float, generator: np.random.Generator
) -> GaussianWorld:
    """One cloud per class, its mean drawn with ``separation`` as standard deviation."""
    means = separation * generator.standard_normal((n_classes, 1, n_features))
    return GaussianWorld(means)


def multimodal_world(
    n_classes: int, n_features: int, separation: float, generator: np.random.Generator
) -> GaussianWorld:
    """Classes in two far-apart pieces, each beside a piece of another class.

    There are as many sites as classes. Class y has one cloud at site y and one at
    site y + 1 (the caterpillar and the butterfly), so that each site hosts clouds of
    different classes, ``separation`` apart. What clusters well are the sites.
    """
    sites = generator.standard_normal((n_classes, n_features))
    gap = np.linalg.norm(sites[:, None] - sites[None], axis=2)
    sites *= (SITE_DISTANCE + separation) / gap[np.triu_indices(n_classes, 1)].min()
    centres = np.empty((n_classes, 2, n_features))
    for site in range(n_classes):
        # Orthogonal steps of equal length end at equal distances from each other.
        frame = np.linalg.qr(generator.standard_normal((n_features, n_features)))[0]
        steps = separation / np.sqrt(2) * frame[:2]
        for piece, step in enumerate(steps - steps.mean(axis=0)):
            centres[(site - piece) % n_classes, piece] = sites[site] + step
    return GaussianWorld(centres)


def xor_world(
    n_classes: int, n_features: int, separation: float, generator: np.random.Generator
) -> GaussianWorld:
    """Two opposite clouds per class, on a circle in the first two columns.

    Neighbouring clouds are ``separation`` apart and belong to different classes; all
    class means coincide, so no linear function of x tells classes apart. Two classes
    make the XOR pattern. Further columns are noise.
    """
    start = generator.uniform(0, 2 * np.pi)
    angle = start + np.pi * (np.arange(n_classes)[:, None] / n_classes + [[0, 1]])
    radius = separation / (2 * np.sin(np.pi / (2 * n_classes)))
    centres = np.zeros((n_classes, 2, n_features))
    centres[..., 0], centres[..., 1] = radius * np.cos(angle), radius * np.sin(angle)
    return GaussianWorld(centres)


def word_world(
    n_classes: int, n_words: int, separation: float, generator: np.random.Generator
) -> WordWorld:
    """Words of which a part are anchors: only one class uses them.

    A share ``separation`` of each class's probability lies on its anchor words. A
    third of the words are anchors, at least one per class; no order betrays which.
    """
    n_anchors = max(1, n_words // (3 * n_classes))
    n_shared = n_words - n_anchors * n_classes
    word_given_class = np.zeros((n_classes, n_words))
    for label in range(n_classes):
        own = slice(label * n_anchors, (label + 1) * n_anchors)
        share = generator.dirichlet(np.full(n_anchors, 5.0))
        word_given_class[label, own] = share * (separation if n_shared else 1)
        if n_shared:
            rest = generator.dirichlet(np.ones(n_shared))
            word_given_class[label, -n_shared:] = (1 - separation) * rest
    return WordWorld(word_given_class[:, generator.permutation(n_words)])


def _mixture_log_density(X: Array, centres: Array) -> Array:
    """Log density of equal mixtures of unit clouds, (n_samples, n_classes)."""
    n_classes, n_components, n_columns = centres.shape
    flat = centres.reshape(-1, n_columns)
    square = (X**2).sum(1)[:, None] + (flat**2).sum(1) - 2 * X @ flat.T
    by_component = _log_normal(square.reshape(-1, n_classes, n_components), n_columns)
    return np.asarray(logsumexp(by_component, axis=2) - np.log(n_components))


def _log_normal(square_distance: Array, n_columns: int) -> Array:
    return -square_distance / 2 - n_columns / 2 * np.log(2 * np.pi)


# ---- The truth behind generated rows, with every posterior in closed form ------------


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
