"""Every table of the paper, and ours, as specs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from shoal_bench.problems import DATASETS
from shoal_bench.published import PAPER_ALPHAS, PAPER_DATASETS, PAPER_SEEDS
from shoal_bench.spec import Spec

Specs = tuple[Spec, ...]

WAVES = tuple(range(len(PAPER_SEEDS)))
CIFAR = ("cifar20", "cifar10")
PAPER_METHODS = (
    "scan",
    "scan_prior",
    "ddfa_ri",
    "ddfa_si",
    "ddfa_spi",
    "naive",
    "naive_pca",
    "naive_ica",
    "majority",
    "kmeans",
    "oracle",
    "ours_frozen",
    "ours_end_to_end",
)
TWIN_METHODS = (
    "majority",
    "kmeans",
    "gmm",
    "naive",
    "naive_pca",
    "naive_ica",
    "ddfa_mlp",
    "ddfa_best",
    "ours_frozen",
    "reference",
)
#: m of Appendix G; 10 is fewer than CIFAR-20 has classes.
N_CLUSTERS = (10, 20, 35, 50, 100, 150)


@dataclass(frozen=True)
class Grid:
    """A named collection of specs, in the order in which they are worth running."""

    title: str
    specs: Callable[[], Specs]


def make_specs(
    datasets: Iterable[str],
    methods: Iterable[str],
    *,
    n_domains: Iterable[int] | None = None,
    alphas: Iterable[float] = PAPER_ALPHAS,
    waves: Iterable[int] = WAVES,
    n_rows: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Specs:
    """All combinations, wave by wave, so that a grid cut short has whole waves.

    Parameters
    ----------
    datasets, methods : iterable of str
    n_domains : iterable of int, default=None
        Which r, where a data set has them; None: all.
    alphas : iterable of float, default=(0.5, 3, 10)
    waves : iterable of int, default=(0, 1, 2, 3, 4)
    n_rows : int, default=None
    settings : mapping, default=None
        Of every spec.

    Returns
    -------
    tuple of Spec
    """
    names = list(datasets)
    unknown = [name for name in names if name not in DATASETS]
    if unknown:
        raise ValueError(f"datasets must be among {list(DATASETS)}, got {unknown}")
    wanted = None if n_domains is None else set(n_domains)
    cells = [
        (dataset, r)
        for dataset in names
        for r in DATASETS[dataset].n_domains
        if wanted is None or r in wanted
    ]
    return tuple(
        Spec(dataset, r, alpha, wave, method, n_rows, settings or {})
        for wave, (dataset, r), alpha, method in product(
            list(waves), cells, list(alphas), list(methods)
        )
    )


def paper_specs(
    datasets: Iterable[str] = tuple(PAPER_DATASETS),
    methods: Iterable[str] = PAPER_METHODS,
    **which: Any,
) -> Specs:
    """Every cell of the paper with every method, ours among them.

    Parameters
    ----------
    datasets, methods : iterable of str
    **which
        ``n_domains``, ``alphas``, ``waves`` as in :func:`make_specs`.

    Returns
    -------
    tuple of Spec

    Examples
    --------
    18 pairs of data set and r, three alphas, five waves, 13 methods:

    >>> from shoal_bench.grids import paper_specs
    >>> len(paper_specs())
    3510
    """
    return make_specs(datasets, methods, **which)


def cluster_specs(waves: Iterable[int] = (0, 1, 2)) -> Specs:
    """Appendix G, the ablation over m: CIFAR-20 with 20 domains.

    Beside DDFA (SI) at every m stand SCAN and our estimators, which have no m.
    """
    problem: dict[str, Any] = {"n_domains": [20], "waves": list(waves)}
    specs = make_specs(
        ["cifar20"], ["scan", "ours_frozen", "ours_end_to_end"], **problem
    )
    for m in N_CLUSTERS:
        # m = k is the method's default: the same run as in the tables
        settings = {} if m == DATASETS["cifar20"].n_classes else {"n_clusters": m}
        specs += make_specs(["cifar20"], ["ddfa_si"], **problem, settings=settings)
    return specs


def naive_specs(waves: Iterable[int] = (0, 1, 2)) -> Specs:
    """Appendix H: what is left of DDFA without its discriminator, on CIFAR-20."""
    methods = ("scan", "ddfa_ri", "ddfa_si", "naive", "naive_ica", "naive_pca")
    return make_specs(["cifar20"], methods, waves=waves)


def pair_specs(waves: Iterable[int] = (0, 1, 2)) -> Specs:
    """FieldGuide's point on CIFAR-100: classes whose members do not look alike."""
    methods = ["scan", "ddfa_spi", "majority", "kmeans"]
    methods += ["ours_frozen", "ours_end_to_end"]
    r = [*DATASETS["pairs2"].n_domains, 28, 37]
    return make_specs(["pairs2", "pairs28"], methods, n_domains=r, waves=waves)


def twin_specs(waves: Iterable[int] = (0, 1, 2)) -> Specs:
    """The tabular twin: the paper's matrices, as many domains as classes, on a CPU."""
    chosen = list(waves)
    return tuple(
        spec
        for wave in chosen
        for dataset, r in (("gauss10", 10), ("gauss20", 20), ("fashion10", 10))
        for spec in make_specs([dataset], TWIN_METHODS, n_domains=[r], waves=[wave])
    )


def domain_specs(waves: Iterable[int] = (0,)) -> Specs:
    """What domains are worth: told none, told them, told their mixes as well."""
    methods = ["majority", "kmeans", "gmm", "max_margin", "ours_frozen"]
    methods += ["um_ssc", "known_mixes"]
    return tuple(
        spec
        for dataset, r in (("cifar10", 10), ("cifar20", 20))
        for spec in make_specs([dataset], methods, n_domains=[r], waves=waves)
    )


def tiny_specs(waves: Iterable[int] = (0, 1)) -> Specs:
    """A grid of seconds: two classes, a few hundred rows."""
    methods = ("majority", "kmeans", "ddfa_mlp", "ours_frozen", "reference")
    return make_specs(["gauss2"], methods, n_domains=[3], waves=waves, n_rows=300)


# ---- the order in which GPU results accumulate -----------------------------------


def _ours() -> Specs:
    first = paper_specs(CIFAR, ["majority", "ours_frozen", "ours_end_to_end"],
                        waves=[0, 1, 2])  # fmt: skip
    return first + paper_specs(CIFAR, ["oracle"], waves=[0])


def _published() -> Specs:
    return paper_specs(CIFAR, ["scan", "scan_prior", "ddfa_si"], waves=[0])


def _naive() -> Specs:
    methods = ["naive", "naive_pca", "naive_ica", "kmeans"]
    return paper_specs(CIFAR, methods, waves=[0])


def _more_waves() -> Specs:
    return (
        paper_specs(CIFAR, ["scan", "scan_prior", "ddfa_si"], waves=[1, 2])
        + paper_specs(CIFAR, ["ddfa_spi"], waves=[0, 1, 2])
        + paper_specs(
            CIFAR, ["majority", "ours_frozen", "ours_end_to_end"], waves=[3, 4]
        )
    )


def _random_start() -> Specs:
    return paper_specs(CIFAR, ["ddfa_ri"], waves=[0, 1, 2])


def _smaller_views() -> Specs:
    """Ours from a backbone that was trained on views of 24 of the 32 pixels."""
    frozen = {"features": "simclr24_pca128"}
    end_to_end = {"backbone": "simclr24_resnet18"}
    which: dict[str, Any] = {"waves": [0, 1, 2]}
    return (
        paper_specs(CIFAR, ["ours_frozen"], **which, settings=frozen)
        + paper_specs(CIFAR, ["ours_end_to_end"], **which, settings=end_to_end)
    )  # fmt: skip


def _cifar() -> Specs:
    """All of them, once each, in that order."""
    parts = (_ours, _published, _naive, _more_waves, _random_start)
    return tuple(dict.fromkeys(spec for part in parts for spec in part()))


GRIDS: Mapping[str, Grid] = {
    "paper": Grid("every cell of the paper, every method, five waves", paper_specs),
    "clusters": Grid("Appendix G: the number of clusters m", cluster_specs),
    "naive": Grid("Appendix H: no discriminator", naive_specs),
    "pairs": Grid("classes that do not look alike, as FieldGuide's", pair_specs),
    "twin": Grid("the tabular twin: CPU, minutes", twin_specs),
    "domains": Grid("what domains are worth, on CIFAR's features", domain_specs),
    "tiny": Grid("two classes, 300 rows: seconds", tiny_specs),
    "cifar": Grid("CIFAR: all of cifar-a to cifar-e", _cifar),
    "cifar-a": Grid("CIFAR: ours, majority, oracle", _ours),
    "cifar-b": Grid("CIFAR: SCAN and DDFA (SI), wave 0", _published),
    "cifar-c": Grid("CIFAR: naive variants and k-means, wave 0", _naive),
    "cifar-d": Grid("CIFAR: further waves, DDFA (SPI)", _more_waves),
    "cifar-e": Grid("CIFAR: DDFA (RI)", _random_start),
    "cifar-24": Grid("CIFAR: ours, backbone trained on smaller views", _smaller_views),
}


def select(
    specs: Iterable[Spec],
    *,
    datasets: Iterable[str] = (),
    n_domains: Iterable[int] = (),
    alphas: Iterable[float] = (),
    waves: Iterable[int] = (),
    methods: Iterable[str] = (),
) -> Specs:
    """Specs with the given values; nothing given for a field means all of it.

    A value that no spec of the grid has is refused: it would select nothing, silently.
    """
    left = list(specs)
    wanted: dict[str, set[Any]] = {
        "dataset": set(datasets),
        "n_domains": set(n_domains),
        "alpha": {float(alpha) for alpha in alphas},
        "wave": set(waves),
        "method": set(methods),
    }
    for name, values in wanted.items():
        known = sorted({getattr(spec, name) for spec in left})
        strange = sorted(values - set(known))
        if strange:
            raise ValueError(f"{name} must be among {known}, got {strange}")
    for name, values in wanted.items():
        left = [spec for spec in left if not values or getattr(spec, name) in values]
    return tuple(left)
