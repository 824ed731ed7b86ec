"""Small problems of eight shapes, sound or violated in one of eleven ways.

A problem is a pure function of its :class:`Spec`. ``labels`` are for scoring only.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray

SHAPES = (
    "round", "unequal", "heavy tails", "two pieces", "curved", "counts", "skewed",
    "correlated",
)  # fmt: skip
# Strengths from weak to strong; what they mean is said where they are used.
VIOLATIONS: dict[str, tuple[float, float, float]] = {
    "offset": (0.5, 1.0, 2.0),  # of one column in one domain, in its deviations
    "gain": (1.3, 1.6, 2.5),  # of one column in one domain, around its mean
    "unit": (1.2, 1.8, 4.0),  # factor of one column in one domain, far from zero
    "batch": (0.25, 0.5, 1.0),  # every domain moves all columns, in deviations
    "class drift": (0.25, 0.5, 1.0),  # every domain moves every class
    "no shift": (8.0, 25.0, 200.0),  # concentration of the mixes
    "low rank": (1, 1, 2),  # classes whose mixes follow from those of others
    "overlap": (0.6, 0.4, 0.2),  # factor of the distances between classes
    "too few classes": (1, 1, 2),  # fitted fewer than there are
    "leak": (0.5, 1.5, 5.0),  # step between domains of a further column
    "noise columns": (10, 30, 90),  # further columns that say nothing
}
INSTRUMENTS = ("offset", "gain", "unit")


@dataclass(frozen=True)
class Spec:
    """What a problem is; ``strength`` 0 of a sound one, else 1 to 3."""

    shape: str
    violation: str
    strength: int
    seed: int


class Problem(NamedTuple):
    """Rows, and the truth about them."""

    X: Array
    domains: Array
    labels: Array
    prevalence: Array
    n_classes: int  # to be fitted
    culprit: tuple[int, int] | None  # domain and column that measure otherwise


@dataclass(frozen=True)
class World:
    """Sizes and places, drawn before anything else."""

    n_rows: int
    n_classes: int
    n_domains: int
    n_columns: int
    alpha: float
    distance: float


def make_problem(spec: Spec) -> Problem:
    """The rows of a problem."""
    rng = np.random.default_rng(
        [SHAPES.index(spec.shape), sum(map(ord, spec.violation)), spec.strength,
         spec.seed]
    )  # fmt: skip
    size = _strength(spec)
    world = _draw_world(rng)
    if spec.violation == "overlap":
        world = replace(world, distance=world.distance * size)
    prevalence = _draw_mixes(world, spec, size, rng)
    sizes = rng.multinomial(
        world.n_rows - 20 * world.n_domains, rng.dirichlet(np.full(world.n_domains, 4))
    )
    domains = np.repeat(np.arange(world.n_domains), sizes + 20)
    labels = np.array([rng.choice(world.n_classes, p=prevalence[d]) for d in domains])
    X = _draw_rows(spec.shape, world, labels, rng)
    X, culprit = _violate(X, domains, labels, spec, size, rng)
    fewer = int(size) if spec.violation == "too few classes" else 0
    k = max(world.n_classes - fewer, 2)
    order = rng.permutation(len(X))
    return Problem(X[order], domains[order], labels[order], prevalence, k, culprit)


def _strength(spec: Spec) -> float:
    return VIOLATIONS[spec.violation][spec.strength - 1] if spec.strength else 0.0


def _draw_world(rng: np.random.Generator) -> World:
    n_classes = int(rng.integers(3, 6))
    n_domains = int(rng.integers(n_classes + 2, 2 * n_classes + 4))
    return World(
        n_rows=int(rng.integers(500, 1300)),
        n_classes=n_classes,
        n_domains=n_domains,
        n_columns=int(rng.integers(3, 8)),
        alpha=float(rng.choice([0.7, 1.5, 3.0])),
        distance=float(rng.uniform(1.2, 2.2)),
    )


def _draw_mixes(
    world: World, spec: Spec, size: float, rng: np.random.Generator
) -> Array:
    k, r, alpha = world.n_classes, world.n_domains, world.alpha
    if spec.violation == "no shift":
        alpha = size * k
    mixes = rng.dirichlet(np.full(k, alpha / k), size=r)
    mixes = 0.98 * mixes + 0.02 / k
    if spec.violation == "low rank":
        for copy in range(min(int(size), k - 2)):  # shares of another, halved
            both = mixes[:, copy] + mixes[:, k - 1 - copy]
            mixes[:, copy], mixes[:, k - 1 - copy] = 0.6 * both, 0.4 * both
        if spec.strength == 2:  # of the two commonest
            first, second = np.argsort(-mixes.mean(axis=0))[:2]
            both = mixes[:, first] + mixes[:, second]
            mixes[:, first], mixes[:, second] = 0.5 * both, 0.5 * both
    return mixes / mixes.sum(axis=1, keepdims=True)


def _draw_rows(
    shape: str, world: World, labels: Array, rng: np.random.Generator
) -> Array:
    k, p, n = world.n_classes, world.n_columns, len(labels)
    means = world.distance * rng.normal(size=(k, p))
    noise = rng.normal(size=(n, p))
    if shape == "unequal":
        noise = noise * rng.uniform(0.4, 1.8, size=(k, p))[labels]
    elif shape == "heavy tails":
        noise = noise / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)
    elif shape == "two pieces":
        other = world.distance * rng.normal(size=(k, p))
        means = np.where((rng.random(n) < 0.5)[:, None], means[labels], other[labels])
        return means + noise
    elif shape == "curved":
        noise[:, 1] += 0.7 * (noise[:, 0] ** 2 - 1)
        noise[:, 0] *= 1.5
    elif shape == "counts":
        rate = np.exp(0.8 + 0.45 * means)
        return rng.poisson(rate[labels]).astype(float)
    elif shape == "skewed":
        return np.exp(0.35 * (means[labels] + noise))
    elif shape == "correlated":
        turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
        noise = (noise * rng.uniform(0.3, 1.7, size=p)) @ turn
    return means[labels] + noise


def _violate(
    X: Array,
    domains: Array,
    labels: Array,
    spec: Spec,
    size: float,
    rng: np.random.Generator,
) -> tuple[Array, tuple[int, int] | None]:
    """The rows with what is wrong, and who is to blame where one is."""
    n, p = X.shape
    r, k = domains.max() + 1, labels.max() + 1
    spread = X.std(axis=0)
    kind = spec.violation if spec.strength else "none"
    if kind in INSTRUMENTS:
        culprit = int(rng.integers(r)), int(rng.integers(p))
        return _other_instrument(X, domains == culprit[0], culprit[1], kind, size), (
            culprit
        )
    if kind == "batch":
        return X + (size * spread * rng.normal(size=(r, p)))[domains], None
    if kind == "class drift":
        move = size * spread * rng.normal(size=(r, k, p))
        return X + move[domains, labels], None
    if kind == "leak":
        step = size * np.arange(r)[domains] + rng.normal(size=n)
        return np.column_stack([X, step]), None
    if kind == "noise columns":
        return np.column_stack([X, rng.normal(size=(n, int(size)))]), None
    return X, None


def _other_instrument(
    X: Array, where: Array, column: int, kind: str, size: float
) -> Array:
    X = X.copy()
    x, mean, spread = X[where, column], X[:, column].mean(), X[:, column].std()
    if kind == "offset":
        X[where, column] = x + size * spread
    elif kind == "gain":
        X[where, column] = mean + size * (x - mean)
    else:  # zero lies five deviations below, as with lengths or temperatures
        zero = mean - 5 * spread
        X[where, column] = zero + size * (x - zero)
    return X


def design(seeds: range) -> list[Spec]:
    """Every shape: sound, and with every violation at every strength, in turn."""
    specs: list[Spec] = []
    for seed in seeds:
        for shape in SHAPES:
            # sound ones are the rule, and carry the intervals
            for sound in range(4):
                specs.append(Spec(shape, "none", 0, 10 * seed + sound))
            for violation in VIOLATIONS:
                place = list(VIOLATIONS).index(violation) + SHAPES.index(shape) + seed
                specs.append(Spec(shape, violation, 1 + place % 3, seed))
    return specs


def as_dict(spec: Spec) -> dict[str, Any]:
    """As a record holds it."""
    return dict(vars(spec))
