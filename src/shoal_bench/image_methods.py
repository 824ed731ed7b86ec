"""Methods of the benchmark that fit on pixels; needs the extra ``[vision]``.

Importing this module registers them. Weights are read from ``weights`` in the folder of
the data; see :mod:`shoal_bench.image_kept` for what is trained once.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.ddfa import DDFA
from shoal.mixture import DomainMixture
from shoal.validation import check_choice
from shoal.vision import FineTuning, ImageDiscriminator, ImageMixture
from shoal_bench import paper
from shoal_bench.image_kept import (
    about_network,
    kept_discriminator,
    problem_digest,
    trained_scan,
)
from shoal_bench.image_problems import (
    FOLDERS,
    ImageProblem,
    in_window,
    open_weights,
    random_weights,
)
from shoal_bench.methods import Answer, register, supervised_classes
from shoal_bench.scan import SCAN

Array = NDArray[Any]

USUAL_WEIGHTS = "simclr_resnet18"
PLAIN = SCAN()
STAGES = ("published", "anchored", "best")
CLUSTERED = ("clean", "published")
RANDOM_WEIGHTS = ("he", "torch")
# From a random start the paper drops half of the activations and makes three clusters
# a class; from trained weights it drops none and makes as many clusters as classes.
PUBLISHED_DROPOUT = 0.5
RANDOM_CLUSTERS = 3


# ---- ours ------------------------------------------------------------------------


@register(
    "ours_end_to_end",
    backbone=USUAL_WEIGHTS,
    n_components=128,
    search=False,
    n_starts=1,
    doubt=1.0,
    refit=False,
    compile=False,
    **asdict(FineTuning()),
)
def _ours_end_to_end(
    problem: ImageProblem,
    seed: int,
    backbone: str,
    n_components: int | None,
    search: bool,
    n_starts: int,
    doubt: float,
    refit: bool,
    compile: bool,
    **tuned: Any,
) -> Answer:
    """ImageMixture; ``epochs=0`` is its frozen solution."""
    tuning = FineTuning(**tuned)
    frozen = _frozen_mixture(problem, seed, backbone, n_components, search, n_starts)
    model = frozen.set_params(doubt=doubt, refit=refit, compile=compile)
    if tuning.epochs:
        model = frozen.tune(problem.X, problem.domains, tuning)
    best = max(
        model.history_, key=lambda record: record["held_out"], default={"epoch": 0}
    )
    notes = {
        "settings": asdict(tuning) if tuning.epochs else None,
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


SCAN_SETTINGS = {
    name: getattr(PLAIN, name)
    for name in (
        "epochs",
        "head_epochs",
        "self_label_epochs",
        "learning_rate",
        "entropy_weight",
        "batch_size",
    )
}


@register("scan", backbone=USUAL_WEIGHTS, **SCAN_SETTINGS)
def _scan(problem: ImageProblem, seed: int, **settings: Any) -> Answer:
    """SCAN's arg max; class shares among each domain's rows as prevalences."""
    model = trained_scan(problem, seed, **settings)
    prevalence = np.zeros((problem.n_domains, problem.n_classes))
    np.add.at(prevalence, (problem.domains, model.predict(problem.X)), 1)
    prevalence /= prevalence.sum(axis=1, keepdims=True)
    return Answer(model.predict(problem.X_test), prevalence, {"loss": model.loss_})


@register("scan_prior", backbone=USUAL_WEIGHTS, **SCAN_SETTINGS)
def _scan_prior(problem: ImageProblem, seed: int, **settings: Any) -> Answer:
    """SCAN that is told the domain, as our methods are."""
    scan = trained_scan(problem, seed, **settings)
    model = scan.with_domain_prior(problem.X, problem.domains)
    classes = model.predict(problem.X_test, problem.domains_test)
    score = model.score(problem.X_test, problem.domains_test)
    return Answer(classes, model.prevalence_, {"score": score, "loss": scan.loss_})


#: Of the network, then of the stages after it; from trained weights.
DDFA_SETTINGS: dict[str, Any] = {
    "epochs": 25,
    "learning_rates": "1e-4,3e-4",
    "batch_size": 512,
    "view": "crop",
    "compile": False,
    "n_clusters": None,
    "clustered": "clean",
    "stages": "published",
    "stage_seed": None,
}


@register(
    "ddfa_si",
    backbone=USUAL_WEIGHTS,
    scan_epochs=PLAIN.epochs,
    scan_learning_rate=PLAIN.learning_rate,
    **DDFA_SETTINGS,
)
def _ddfa_si(
    problem: ImageProblem,
    seed: int,
    backbone: str,
    scan_epochs: int,
    scan_learning_rate: float,
    **settings: Any,
) -> Answer:
    """DDFA whose discriminator starts from SCAN."""

    def start() -> Any:
        rates = {"epochs": scan_epochs, "learning_rate": scan_learning_rate}
        return trained_scan(problem, seed, backbone, **rates).backbone_

    origin = f"scan of {backbone}, {scan_epochs} epochs at {scan_learning_rate:g}"
    return _ddfa(problem, seed, origin, start=start, **settings)


@register("ddfa_spi", backbone=USUAL_WEIGHTS, **DDFA_SETTINGS)
def _ddfa_spi(
    problem: ImageProblem, seed: int, backbone: str, **settings: Any
) -> Answer:
    """DDFA whose discriminator starts from self-supervised weights."""
    weights = open_weights(problem, backbone)
    return _ddfa(problem, seed, backbone, backbone=weights, **settings)


@register(
    "ddfa_ri",
    depth=34,
    start="he",
    dropout=PUBLISHED_DROPOUT,
    norms="anew",
    **{
        **DDFA_SETTINGS,
        "epochs": 100,
        "learning_rates": "1e-3",
        "batch_size": 64,
        "view": "weak",
    },
)
def _ddfa_ri(
    problem: ImageProblem, seed: int, depth: int, start: str, **settings: Any
) -> Answer:
    """DDFA whose discriminator starts at random, with dropout.

    ``start`` says how: as ours do (He), or as torch draws weights, which is published.
    """
    check_choice(RANDOM_WEIGHTS, start=start)
    origin = f"random, {depth} layers" + (", torch" if start == "torch" else "")

    def weights() -> Any:
        return in_window(problem, random_weights(depth, seed, start))

    # by its name the training's own seed draws the weights, as in all records
    named = start == "he" and problem.dataset not in FOLDERS
    return _ddfa(
        problem,
        seed,
        origin,
        backbone=f"resnet{depth}-cifar",
        start=None if named else weights,
        clusters_per_class=RANDOM_CLUSTERS,
        **settings,
    )


@register(
    "oracle",
    backbone=USUAL_WEIGHTS,
    epochs=20,
    learning_rates="3e-4,1e-3",
    decay=0.85,
    head_factor=10.0,
    batch_size=512,
    view="weak",
    compile=False,
)
def _oracle(
    problem: ImageProblem,
    seed: int,
    backbone: str,
    learning_rates: str,
    **settings: Any,
) -> Answer:
    """The same network taught with labels, told the true class mixes."""
    network = ImageDiscriminator(
        open_weights(problem, backbone),
        learning_rate=read_rates(learning_rates),
        random_state=seed,
        **settings,
    )
    classes = supervised_classes(network, problem)
    return Answer(classes, problem.truth.prevalence, about_network(network))


# ---- their parts -----------------------------------------------------------------


def _ddfa(
    problem: ImageProblem,
    seed: int,
    origin: str,
    *,
    learning_rates: str,
    n_clusters: int | None,
    clustered: str,
    stages: str,
    stage_seed: int | None,
    start: Callable[[], Any] | None = None,
    clusters_per_class: int = 1,
    **settings: Any,
) -> Answer:
    """A network of q(d|x), and the stages after it.

    ``"published"``: k-means, one random NMF and the pseudo-inverse; ``"anchored"``: the
    same with anchors by SPA in NMF's place (with as many clusters as classes, every
    cluster is one); ``"best"``: our defaults (SPA, maximum likelihood). ``clustered``
    says of which training images: ``"clean"``, or as published: one random view of
    each that was fitted, and clean ones of those held out. With ``stage_seed`` they
    start elsewhere, on the very network of ``seed``.
    """
    check_choice(STAGES, stages=stages)
    check_choice(CLUSTERED, clustered=clustered)
    if n_clusters is None:
        n_clusters = clusters_per_class * problem.n_classes
    elif stages == "best":
        raise ValueError(f"stages='best' chooses n_clusters itself, got {n_clusters}")
    network = ImageDiscriminator(
        learning_rate=read_rates(learning_rates), random_state=seed, **settings
    )
    found = kept_discriminator(problem, network, origin, start)
    seed = seed if stage_seed is None else stage_seed
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


def _identity(domain_given_x: Array) -> Array:
    """A discriminator whose rows are q(d|x) already."""
    return domain_given_x


def read_rates(text: str) -> list[float]:
    """Learning rates to try, as a spec writes them."""
    return [float(rate) for rate in text.split(",")]
