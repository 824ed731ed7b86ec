"""Generated latent label shift problems whose truth is known exactly.

Every assumption of the paper can be kept or broken by name, and the Bayes-optimal
posterior comes with the rows, so that any estimate has something exact to meet.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from shoal.datasets._shift import draw_prevalence
from shoal.datasets._worlds import (
    LatentShiftProblem,
    World,
    draw_seeds,
    gaussian_world,
    multimodal_world,
    word_world,
    xor_world,
)
from shoal.probability import check_stochastic, domain_given_class, normalize_rows
from shoal.validation import check_real, check_whole

Array = np.ndarray[Any, Any]

KINDS = ("gaussian", "anchored", "multimodal", "xor")
VIOLATIONS = (
    "drift",
    "leak",
    "no_shift",
    "rank_deficient",
    "few_domains",
    "overlap",
    "thin",
)


def make_latent_shift(
    n_samples: int = 6000,
    *,
    kind: str = "gaussian",
    n_classes: int | None = None,
    n_domains: int | None = None,
    n_features: int | None = None,
    n_words: int | None = None,
    separation: float | None = None,
    alpha: float = 3.0,
    max_condition: float | None = 20.0,
    prevalence: ArrayLike | None = None,
    rank: int | None = None,
    domain_sizes: ArrayLike | str | None = None,
    counts: str = "multinomial",
    drift: float | None = None,
    leakage: float | None = None,
    random_state: Any = None,
    return_bunch: bool = False,
) -> Any:
    """Generate unlabeled rows of several domains between which class mixes differ.

    All that is random is drawn first, each part from a stream of its own: with one
    ``random_state``, problems that differ in ``alpha`` have the same clouds, and
    problems that differ in ``drift`` the same labels.

    Parameters
    ----------
    n_samples : int, default=6000
    kind : str, default="gaussian"
        What the inputs look like:

        - ``"gaussian"``: one round cloud per class, random means;
        - ``"anchored"``: words of a finite vocabulary, X has one integer column, and
          each class has words that no other class uses;
        - ``"multimodal"``: every class in two far-apart pieces, each beside a piece
          of another class (caterpillar and butterfly);
        - ``"xor"``: two opposite clouds per class on a circle: nothing linear works.

        or, on Gaussian clouds, which assumption is broken:

        - ``"drift"``: p(x|y) differs between domains (``drift=0.5``);
        - ``"leak"``: a further column tells the domain (``leakage=5``);
        - ``"no_shift"``: all domains have the same, equal mix (``rank=1``);
        - ``"rank_deficient"``: the prevalences have rank .6 k (``rank``): domains mix
          that many profiles;
        - ``"few_domains"``: there are .6 k domains;
        - ``"overlap"``: clouds overlap so much that no class has anchors
          (``separation=0.4``);
        - ``"thin"``: the largest domain has 100 times the rows of the smallest
          (``domain_sizes="geometric"``).

        The arguments named here override what a kind sets.
    n_classes : int, default=None
        None: that of ``prevalence``, else 4 for ``"xor"`` and 10 otherwise.
    n_domains : int, default=None
        None: that of ``prevalence``, else twice the number of classes.
    n_features : int, default=None
        Number of columns. None: 2 for ``"xor"``, else ``max(10, n_classes)``.
    n_words : int, default=None
        Size of the vocabulary of ``"anchored"``. None: ten times the classes.
    separation : float, default=None
        ``"gaussian"``: standard deviation of the class means around 0, default .8.
        ``"multimodal"``, ``"xor"``: distance between neighbouring clouds, default 4
        and 4.4. All in standard deviations of a cloud. ``"anchored"``: probability
        of a row to be an anchor word, default .3.
    alpha : float, default=3.0
        Concentration of the prevalences, see :func:`draw_prevalence`.
    max_condition : float, default=20.0
        Largest condition number of the prevalences; None: no limit. Of no effect
        when ``prevalence`` or ``rank`` is given or domains are fewer than classes.
    prevalence : array-like of shape (n_domains, n_classes), default=None
        Class mix of each domain instead of a drawn one.
    rank : int, default=None
        Rank of the drawn prevalences where less than full is wanted; 1: all domains
        have the equal mix.
    domain_sizes : array-like of shape (n_domains,) or "geometric", default=None
        Rows per domain, scaled to ``n_samples``. None: equal. ``"geometric"``: from
        1 to 100 in equal ratios.
    counts : {"multinomial", "exact"}, default="multinomial"
        ``"exact"``: class counts in a domain are its prevalence, rounded.
    drift : float, default=None
        Each class mean is moved in each domain, in every column by a normal variate
        of this size, in standard deviations of a cloud.
    leakage : float, default=None
        Step, in standard deviations, between the domains' means of a further column
        that does not depend on the class.
    random_state : int, RandomState instance or None, default=None
    return_bunch : bool, default=False

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    domains : ndarray of shape (n_samples,)
        0 to n_domains - 1.
    labels : ndarray of shape (n_samples,)
        True classes, for scoring only.

        With ``return_bunch``, a Bunch of these and ``prevalence``,
        ``domain_given_class``, the Bayes-optimal ``class_given_x`` (q(y|x)),
        ``domain_given_x`` (q(d|x)) and ``posterior`` (p_d(y|x)) of the rows, the
        functions ``bayes_posterior(X, domains=None)`` and ``bayes_discriminator(X)``,
        the ``problem`` (:class:`LatentShiftProblem`, whose ``sample`` draws further
        rows), and the ``means`` of the clouds (with ``centres``, ``drift`` and
        ``leak``) or ``word_given_class`` and ``word_given_domain``.

    Notes
    -----
    The default separations give problems of realistic difficulty. Accuracy of a
    logistic regression fitted with labels, plus the true prevalences, on held-out
    rows (7,000 to fit for 10 classes, 10,000 for 20; the paper's CIFAR matrices with
    as many domains as classes, waves 0-2; mean over 30 problems; rerun by
    ``pytest -m slow tests/datasets``):

    ==========  =========  =========  =========
    n_classes   alpha=.5   alpha=3    alpha=10
    ==========  =========  =========  =========
    10          .954       .877       .806
    20          .988       .955       .923
    ==========  =========  =========  =========

    ``"xor"`` with 8 domains: .977 with quadratic features, .544 with linear ones.

    Examples
    --------
    >>> from shoal.datasets import make_latent_shift
    >>> data = make_latent_shift(600, n_classes=3, n_domains=4, random_state=0,
    ...                          return_bunch=True)
    >>> data.X.shape, data.prevalence.shape
    ((600, 10), (4, 3))
    >>> data.bayes_posterior(data.X, data.domains).shape
    (600, 3)
    """
    prevalence_seed, world_seed, violation_seed, sample_seed = draw_seeds(
        random_state, 4
    )
    given = {
        "n_domains": n_domains,
        "n_features": n_features,
        "n_words": n_words,
        "separation": separation,
        "rank": rank,
        "domain_sizes": domain_sizes,
        "drift": drift,
        "leakage": leakage,
    }
    options = _settle(kind, n_classes, prevalence, given)
    matrix = _prevalence(prevalence, options, alpha, max_condition, prevalence_seed)
    world = _world(options, world_seed, violation_seed)
    sizes = _check_sizes(options.get("domain_sizes"), len(matrix))
    problem = LatentShiftProblem(world, matrix, sizes)
    X, domains, labels = problem.sample(
        n_samples, counts=counts, random_state=sample_seed
    )
    if not return_bunch:
        return X, domains, labels
    return _as_bunch(problem, X, domains, labels)


def _settle(
    kind: str,
    n_classes: int | None,
    prevalence: ArrayLike | None,
    given: dict[str, Any],
) -> dict[str, Any]:
    """Every choice made: defaults, then what the kind sets, then what was given."""
    if kind not in (*KINDS, *VIOLATIONS):
        raise ValueError(f"kind must be one of {[*KINDS, *VIOLATIONS]}, got {kind!r}")
    family = kind if kind in KINDS else "gaussian"
    given = {name: value for name, value in given.items() if value is not None}
    if prevalence is not None:
        n_classes = _fit_prevalence(kind, prevalence, n_classes, given)
    elif n_classes is None:
        n_classes = 4 if family == "xor" else 10
    check_whole(2, n_classes=n_classes)
    options = {
        "family": family,
        "n_classes": n_classes,
        **_defaults(family, n_classes),
        **_violation(kind, n_classes),
        **given,
    }
    _check_options(options)
    return options


def _defaults(family: str, n_classes: int) -> dict[str, Any]:
    separation = {"gaussian": 0.8, "multimodal": 4.0, "xor": 4.4, "anchored": 0.3}
    return {
        "n_domains": 2 * n_classes,
        "n_features": 2 if family == "xor" else max(10, n_classes),
        "n_words": 10 * n_classes,
        "separation": separation[family],
    }


def _violation(kind: str, n_classes: int) -> dict[str, Any]:
    """List what a kind named after a broken assumption sets."""
    too_few = max(1, min(round(0.6 * n_classes), n_classes - 1))
    settings: dict[str, dict[str, Any]] = {
        "drift": {"drift": 0.5},
        "leak": {"leakage": 5.0},
        "no_shift": {"rank": 1},
        "rank_deficient": {"rank": too_few},
        "few_domains": {"n_domains": too_few},
        "overlap": {"separation": 0.4},
        "thin": {"domain_sizes": "geometric"},
    }
    return settings.get(kind, {})


def _fit_prevalence(
    kind: str, prevalence: ArrayLike, n_classes: int | None, given: dict[str, Any]
) -> int:
    """Read the number of classes off a prevalence; check it against what was given."""
    shape = check_stochastic(prevalence, "prevalence").shape
    if kind in ("no_shift", "rank_deficient", "few_domains") or "rank" in given:
        raise ValueError(
            f"prevalence cannot be given together with kind={kind!r} or rank, which "
            "draw their own; leave one of them out"
        )
    wanted = (given.setdefault("n_domains", shape[0]), n_classes or shape[1])
    if wanted != shape:
        raise ValueError(
            f"prevalence has shape {shape}, but (n_domains, n_classes) is {wanted}; "
            "leave these two out"
        )
    return int(shape[1])


def _check_options(options: dict[str, Any]) -> None:
    family, n_classes = options["family"], options["n_classes"]
    check_whole(2, n_domains=options["n_domains"])
    check_whole(1 if family == "gaussian" else 2, n_features=options["n_features"])
    amounts = {
        name: options.get(name, 0) for name in ("separation", "drift", "leakage")
    }
    check_real(0, **amounts)
    if "rank" in options:
        check_whole(1, rank=options["rank"])
        largest = min(n_classes, options["n_domains"])
        if options["rank"] > largest:
            raise ValueError(
                f"rank must be at most {largest}, the smaller of n_classes and "
                f"n_domains, got {options['rank']}"
            )
    if family != "anchored":
        return
    check_whole(n_classes, n_words=options["n_words"])
    if options["separation"] > 1:
        raise ValueError(
            "separation is the probability of anchor words when kind='anchored', at "
            f"most 1, got {options['separation']!r}"
        )
    if options.get("drift") or options.get("leakage"):
        raise ValueError("drift and leakage need clouds; kind='anchored' has words")


def _prevalence(
    given: ArrayLike | None,
    options: dict[str, Any],
    alpha: float,
    max_condition: float | None,
    seed: int,
) -> Array:
    """p_d(y): given, of low rank, or well conditioned."""
    if given is not None:
        return normalize_rows(np.clip(np.asarray(given, dtype=float), 0, None))
    n_classes, n_domains = options["n_classes"], options["n_domains"]
    rank = options.get("rank", n_classes)
    if rank == 1:
        return np.full((n_domains, n_classes), 1 / n_classes)
    generator = np.random.RandomState(seed)
    if rank < n_classes:
        profiles = draw_prevalence(n_classes, rank, alpha, random_state=generator)
        shares = draw_prevalence(rank, n_domains, alpha, random_state=generator)
        # Mostly one profile each, all of them used: the rank cannot be less.
        main = np.eye(rank)[np.arange(n_domains) % rank]
        return normalize_rows((0.7 * main + 0.3 * shares) @ profiles)
    limit = max_condition if n_domains >= n_classes else None
    return draw_prevalence(
        n_classes, n_domains, alpha, limit, random_state=generator, max_tries=20_000
    )


def _world(options: dict[str, Any], world_seed: int, violation_seed: int) -> World:
    """p(x|y) of the family, with the asked for violations."""
    generator = np.random.default_rng(world_seed)
    n_classes, n_domains = options["n_classes"], options["n_domains"]
    separation = options["separation"]
    if options["family"] == "anchored":
        return word_world(n_classes, options["n_words"], separation, generator)
    make = {
        "gaussian": gaussian_world,
        "multimodal": multimodal_world,
        "xor": xor_world,
    }
    world = make[options["family"]](
        n_classes, options["n_features"], separation, generator
    )
    generator = np.random.default_rng(violation_seed)
    if options.get("drift"):
        moves = generator.standard_normal((n_domains, *world.centres[:, 0].shape))
        world = replace(world, drift=options["drift"] * moves)
    if options.get("leakage"):
        steps = generator.permutation(n_domains) - (n_domains - 1) / 2
        world = replace(world, leak=options["leakage"] * steps)
    return world


def _check_sizes(domain_sizes: Any, n_domains: int) -> Array:
    """Share of the rows in each domain."""
    if domain_sizes is None:
        return np.full(n_domains, 1 / n_domains)
    if isinstance(domain_sizes, str) and domain_sizes == "geometric":
        sizes = np.geomspace(1, 100, n_domains)
    else:
        sizes = np.asarray(domain_sizes)
    if (
        sizes.dtype.kind not in "iuf"
        or sizes.shape != (n_domains,)
        or not (np.isfinite(sizes) & (sizes > 0)).all()
    ):
        raise ValueError(
            f"domain_sizes must be {n_domains} positive numbers, one per domain, or "
            f"'geometric', got {domain_sizes!r}"
        )
    return np.asarray(sizes / sizes.sum())


def _as_bunch(
    problem: LatentShiftProblem, X: Array, domains: Array, labels: Array
) -> Bunch:
    return Bunch(
        X=X,
        domains=domains,
        labels=labels,
        prevalence=problem.prevalence,
        domain_given_class=domain_given_class(problem.prevalence),
        class_given_x=problem.class_given_x(X),
        domain_given_x=problem.domain_given_x(X),
        posterior=problem.posterior(X, domains),
        bayes_posterior=problem.posterior,
        bayes_discriminator=problem.domain_given_x,
        problem=problem,
        **problem.world.truth(problem.prevalence),
    )
