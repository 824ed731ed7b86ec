"""How inputs look given their class: densities that can be sampled and evaluated.

A world answers two questions: :meth:`sample` a row for each (class, domain), and the
:meth:`log_density` of rows. The density has shape (n_samples, 1 or n_domains,
n_classes): one slice when p(x|y) is the same in every domain, as latent label shift
assumes, one slice per domain where a generated problem breaks that assumption.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp

__all__ = [
    "GaussianWorld",
    "World",
    "WordWorld",
    "gaussian_world",
    "multimodal_world",
    "word_world",
    "xor_world",
]

Array = np.ndarray[Any, Any]

# Sites of a multi-modal world lie at least this many standard deviations apart.
SITE_DISTANCE = 12.0


class World(Protocol):
    """What a generated problem needs to know about its inputs."""

    def log_density(self, X: Array) -> Array:
        """Log p(x|y), or log p(x|y,d) with one slice per domain."""

    def sample(
        self, labels: Array, domains: Array, generator: np.random.Generator
    ) -> Array:
        """Draw one row for each pair of class and domain."""

    def truth(self, prevalence: Array) -> dict[str, Array | None]:
        """Name the arrays that describe this world."""


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

    def with_drift(
        self, size: float, n_domains: int, generator: np.random.Generator
    ) -> "GaussianWorld":
        """Move each class in each domain, by ``size`` on average in every column."""
        n_classes, _, n_columns = self.centres.shape
        moves = generator.standard_normal((n_domains, n_classes, n_columns))
        return replace(self, drift=size * moves)

    def with_leak(
        self, size: float, n_domains: int, generator: np.random.Generator
    ) -> "GaussianWorld":
        """Add a column whose mean steps by ``size`` from one domain to another."""
        steps = generator.permutation(n_domains) - (n_domains - 1) / 2
        return replace(self, leak=size * steps)


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


def gaussian_world(
    n_classes: int, n_features: int, separation: float, generator: np.random.Generator
) -> GaussianWorld:
    """One cloud per class, its mean drawn with ``separation`` as standard deviation."""
    means = separation * generator.standard_normal((n_classes, 1, n_features))
    return GaussianWorld(means)


def multimodal_world(
    n_classes: int,
    n_features: int,
    separation: float,
    generator: np.random.Generator,
    n_components: int = 2,
) -> GaussianWorld:
    """Classes in several far-apart pieces, each beside a piece of another class.

    There are as many sites as classes. Class y has one cloud at site y and one at
    site y + 1 (the caterpillar and the butterfly), so that each site hosts clouds of
    different classes, ``separation`` apart. What clusters well are the sites.
    """
    sites = generator.standard_normal((n_classes, n_features))
    gap = np.linalg.norm(sites[:, None] - sites[None], axis=2)
    sites *= (SITE_DISTANCE + separation) / gap[np.triu_indices(n_classes, 1)].min()
    centres = np.empty((n_classes, n_components, n_features))
    for site in range(n_classes):
        # Orthogonal steps of equal length end at equal distances from each other.
        frame = np.linalg.qr(generator.standard_normal((n_features, n_features)))[0]
        steps = separation / np.sqrt(2) * frame[:n_components]
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
