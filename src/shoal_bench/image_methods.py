"""Methods of the benchmark that fit on pixels; needs the extra ``[vision]``.

Importing this module registers them. Weights are read from ``weights`` in the folder of
the data; see :mod:`shoal_bench.image_kept` for what is trained once.
"""

from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.ddfa import DDFA
from shoal.mixture import DomainMixture
from shoal.vision import FineTuning, ImageDiscriminator, ImageMixture
from shoal_bench import paper
from shoal_bench.image_kept import (
    SupervisedOracle,
    about_network,
    kept_discriminator,
    problem_digest,
    trained_scan,
)
from shoal_bench.image_problems import ImageProblem, open_weights, random_weights
from shoal_bench.methods import Answer, register
from shoal_bench.scan import SCAN

Array = NDArray[Any]

TUNED, PLAIN = FineTuning(), SCAN()
STAGES = ("published", "anchored", "best")
CLUSTERED = ("clean", "published")
RANDOM_WEIGHTS = ("he", "torch")
# From a random start the paper drops half of the activations and makes three clusters
# a class; from trained weights it drops none and makes as many clusters as classes.
PUBLISHED_DROPOUT = 0.5
RANDOM_CLUSTERS = 3


# ---- ours ------------------------------------------------------------------------


@register("ours_end_to_end")
def _ours_end_to_end(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    n_components: int | None = 128,
    search: bool = False,
    n_starts: int = 1,
    doubt: float = 1.0,
    refit: bool = False,
    epochs: int = TUNED.epochs,
    warmup: float = TUNED.warmup,
    batch_size: int = TUNED.batch_size,
    backbone_rate: float = TUNED.backbone_rate,
    head_rate: float = TUNED.head_rate,
    domain_rate: float = TUNED.domain_rate,
    weight_decay: float = TUNED.weight_decay,
    self_label: float = TUNED.self_label,
    threshold: float = TUNED.threshold,
    temperature: float = TUNED.temperature,
    view: str = TUNED.view,
    told: bool = TUNED.told,
    second_view: str = TUNED.second_view,
    consistency: float = TUNED.consistency,
    n_neighbours: int = TUNED.n_neighbours,
    average: float = TUNED.average,
    batch_norm: str = TUNED.batch_norm,
    compile: bool = False,
) -> Answer:
    """ImageMixture; ``epochs=0`` is its frozen solution."""
    given = locals()
    tuning = FineTuning(**{field.name: given[field.name] for field in fields(TUNED)})
    frozen = _frozen_mixture(problem, seed, backbone, n_components, search, n_starts)
    model = frozen.set_params(doubt=doubt, refit=refit, compile=compile)
    if epochs:
        model = frozen.tune(problem.X, problem.domains, tuning)
    best = max(
        model.history_, key=lambda record: record["held_out"], default={"epoch": 0}
    )
    notes = {
        "settings": asdict(tuning) if epochs else None,
        "score": model.score(problem.X_test, problem.domains_test),
        "fine_tuned": model.fine_tuned_,
        "gain": model.gain_[0],
        "gain_error": model.gain_[1],
        "best_epoch": best["epoch"],
        "held_out": dict(model.held_out_),
        "curve": [record["held_out"] for record in model.history_],
        "rows_per_second": best.get("rows_per_second"),
    }
    classes = model.predict(problem.X_test, problem.domains_test)
    return Answer(classes, model.prevalence_, notes)


_last_frozen: dict[Any, ImageMixture] = {}


def _frozen_mixture(
    problem: ImageProblem,
    seed: int,
    backbone: str,
    n_components: int | None,
    search: bool,
    n_starts: int,
) -> ImageMixture:
    """The frozen solution, kept for the next settings of fine-tuning."""
    chosen = (seed, backbone, n_components, search, n_starts)
    key = (problem.folder, problem_digest(problem), *chosen)
    if key not in _last_frozen:
        _last_frozen.clear()
        _last_frozen[key] = ImageMixture(
            problem.n_classes,
            backbone=open_weights(problem, backbone),
            mixture=DomainMixture(search=search, scale="global", expansion="linear"),
            n_components=n_components,
            fine_tuning=None,
            n_starts=n_starts,
            random_state=seed,
        ).fit(problem.X, problem.domains)
    return _last_frozen[key]


# ---- the paper's -----------------------------------------------------------------


@register("scan")
def _scan(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    epochs: int = PLAIN.epochs,
    head_epochs: int = PLAIN.head_epochs,
    self_label_epochs: int = PLAIN.self_label_epochs,
    learning_rate: float = PLAIN.learning_rate,
    entropy_weight: float = PLAIN.entropy_weight,
    batch_size: int = PLAIN.batch_size,
) -> Answer:
    """SCAN's arg max; class shares among each domain's rows as prevalences."""
    model = trained_scan(**locals())
    prevalence = np.zeros((problem.n_domains, problem.n_classes))
    np.add.at(prevalence, (problem.domains, model.predict(problem.X)), 1)
    prevalence /= prevalence.sum(axis=1, keepdims=True)
    return Answer(model.predict(problem.X_test), prevalence, {"loss": model.loss_})


@register("scan_prior")
def _scan_prior(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    epochs: int = PLAIN.epochs,
    head_epochs: int = PLAIN.head_epochs,
    self_label_epochs: int = PLAIN.self_label_epochs,
    learning_rate: float = PLAIN.learning_rate,
    entropy_weight: float = PLAIN.entropy_weight,
    batch_size: int = PLAIN.batch_size,
) -> Answer:
    """SCAN that is told the domain, as our methods are."""
    scan = trained_scan(**locals())
    model = scan.with_domain_prior(problem.X, problem.domains)
    classes = model.predict(problem.X_test, problem.domains_test)
    score = model.score(problem.X_test, problem.domains_test)
    return Answer(classes, model.prevalence_, {"score": score, "loss": scan.loss_})


@register("ddfa_si")
def _ddfa_si(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    scan_epochs: int = PLAIN.epochs,
    scan_learning_rate: float = PLAIN.learning_rate,
    epochs: int = 25,
    learning_rates: str = "1e-4,3e-4",
    batch_size: int = 512,
    view: str = "crop",
    n_clusters: int | None = None,
    clustered: str = "clean",
    stages: str = "published",
    stage_seed: int | None = None,
    compile: bool = False,
) -> Answer:
    """DDFA whose discriminator starts from SCAN."""

    def start() -> Any:
        scan = trained_scan(
            problem,
            seed,
            backbone,
            epochs=scan_epochs,
            learning_rate=scan_learning_rate,
        )
        return scan.backbone_

    network = ImageDiscriminator(
        epochs=epochs,
        learning_rate=read_rates(learning_rates),
        batch_size=batch_size,
        view=view,
        compile=compile,
        random_state=seed,
    )
    origin = f"scan of {backbone}, {scan_epochs} epochs at {scan_learning_rate:g}"
    n_clusters = _n_clusters(n_clusters, problem.n_classes, stages)
    return _ddfa(
        problem, seed, network, origin, n_clusters, clustered, stages, stage_seed, start
    )


@register("ddfa_spi")
def _ddfa_spi(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    epochs: int = 25,
    learning_rates: str = "1e-4,3e-4",
    batch_size: int = 512,
    view: str = "crop",
    n_clusters: int | None = None,
    clustered: str = "clean",
    stages: str = "published",
    stage_seed: int | None = None,
    compile: bool = False,
) -> Answer:
    """DDFA whose discriminator starts from self-supervised weights."""
    network = ImageDiscriminator(
        open_weights(problem, backbone),
        epochs=epochs,
        learning_rate=read_rates(learning_rates),
        batch_size=batch_size,
        view=view,
        compile=compile,
        random_state=seed,
    )
    n_clusters = _n_clusters(n_clusters, problem.n_classes, stages)
    return _ddfa(
        problem, seed, network, backbone, n_clusters, clustered, stages, stage_seed
    )


@register("ddfa_ri")
def _ddfa_ri(
    problem: ImageProblem,
    seed: int,
    *,
    depth: int = 34,
    dropout: float = PUBLISHED_DROPOUT,
    start: str = "he",
    norms: str = "anew",
    epochs: int = 100,
    learning_rates: str = "1e-3",
    batch_size: int = 64,
    view: str = "weak",
    n_clusters: int | None = None,
    clustered: str = "clean",
    stages: str = "published",
    stage_seed: int | None = None,
    compile: bool = False,
) -> Answer:
    """DDFA whose discriminator starts at random, with dropout.

    ``start`` says how: as ours do (He), or as torch draws weights, which is published.
    """
    if start not in RANDOM_WEIGHTS:
        raise ValueError(f"start must be one of {RANDOM_WEIGHTS}, got {start!r}")
    network = ImageDiscriminator(
        f"resnet{depth}-cifar",
        dropout=dropout,
        norms=norms,
        epochs=epochs,
        learning_rate=read_rates(learning_rates),
        batch_size=batch_size,
        view=view,
        compile=compile,
        random_state=seed,
    )
    origin, weights = f"random, {depth} layers", None
    if start == "torch":
        origin, weights = f"{origin}, torch", partial(random_weights, depth, seed)
    published = RANDOM_CLUSTERS * problem.n_classes
    n_clusters = _n_clusters(n_clusters, published, stages)
    return _ddfa(
        problem,
        seed,
        network,
        origin,
        n_clusters,
        clustered,
        stages,
        stage_seed,
        weights,
    )


@register("oracle")
def _oracle(
    problem: ImageProblem,
    seed: int,
    *,
    backbone: str = "simclr_resnet18",
    epochs: int = 20,
    learning_rates: str = "3e-4,1e-3",
    decay: float = 0.85,
    head_factor: float = 10.0,
    batch_size: int = 512,
    view: str = "weak",
    compile: bool = False,
) -> Answer:
    """The same network taught with labels, told the true class mixes."""
    truth = problem.truth
    network = ImageDiscriminator(
        open_weights(problem, backbone),
        epochs=epochs,
        learning_rate=read_rates(learning_rates),
        decay=decay,
        head_factor=head_factor,
        batch_size=batch_size,
        view=view,
        compile=compile,
        random_state=seed,
    )
    model = SupervisedOracle(network).fit(problem.X, truth.labels)
    classes = model.predict(problem.X_test, problem.domains_test, truth.prevalence)
    return Answer(classes, truth.prevalence, about_network(model.network_))


# ---- their parts -----------------------------------------------------------------


def _ddfa(
    problem: ImageProblem,
    seed: int,
    network: ImageDiscriminator,
    origin: str,
    n_clusters: int,
    clustered: str,
    stages: str,
    stage_seed: int | None,
    start: Callable[[], Any] | None = None,
) -> Answer:
    """The stages after discrimination, on the q(d|x) of a network.

    ``"published"``: k-means, one random NMF and the pseudo-inverse; ``"anchored"``: the
    same with anchors by SPA in NMF's place (with as many clusters as classes, every
    cluster is one); ``"best"``: our defaults (SPA, maximum likelihood). ``clustered``
    says of which training images: ``"clean"``, or as published: one random view of
    each that was fitted, and clean ones of those held out. With ``stage_seed`` they
    start elsewhere, on the very network of ``seed``.
    """
    seed = seed if stage_seed is None else stage_seed
    if stages not in STAGES:
        raise ValueError(f"stages must be one of {STAGES}, got {stages!r}")
    if clustered not in CLUSTERED:
        raise ValueError(f"clustered must be one of {CLUSTERED}, got {clustered!r}")
    found = kept_discriminator(problem, network, origin, start)
    if stages == "best":
        model = DDFA(problem.n_classes, discriminator=_identity, random_state=seed)
    else:
        model = paper.ddfa(
            problem.n_classes,
            n_clusters=n_clusters,
            discriminator=_identity,
            random_state=seed,
        )
    if stages == "anchored":
        model.set_params(factorizer="spa")
    model.fit(found.q if clustered == "clean" else found.as_seen(), problem.domains)
    classes = model.predict(found.q_test, problem.domains_test)
    score = model.score(found.q_test, problem.domains_test)
    return Answer(classes, model.prevalence_, {"score": score, **found.about})


def _n_clusters(given: int | None, published: int, stages: str) -> int:
    """The m of published stages; ours choose it themselves."""
    if given is not None and stages == "best":
        raise ValueError(f"stages='best' chooses n_clusters itself, got {given}")
    return published if given is None else given


def _identity(domain_given_x: Array) -> Array:
    """A discriminator whose rows are q(d|x) already."""
    return domain_given_x


def read_rates(text: str) -> list[float]:
    """Learning rates to try, as a spec writes them."""
    return [float(rate) for rate in text.split(",")]
