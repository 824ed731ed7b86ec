"""Settings of vision: numbers that decide something, and those of a fine-tuning."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.validation import check_choice, check_real, check_whole
from shoal.vision.augment import (
    Augmentation,
    Flip,
    Identity,
    RandomResizedCrop,
    Strong,
    simclr_view,
    weak_view,
)


@dataclass(frozen=True)
class VisionSettings:
    """Numbers that decide something, each with its reason.

    Attributes
    ----------
    image_memory : float
        Share of a GPU's free memory that the images may take: the network, its
        gradients and the views of a batch need the rest.
    evaluation_rows : int
        Images that a network is asked about at a time: enough to fill a GPU.
    settling_rows : int
        Images that norms take their statistics from: plenty for means and variances,
        and a small share of an epoch's time.
    usual_size : int
        Side of the images of a network that does not tell: that of CIFAR.
    large_side : int
        Images with a longer side need first layers that leave pixels out.
    pixel_rounding : float
        Pixels that a table has kept as floats are whole to within this.
    least_probability : float
        What is smaller counts as this where a logarithm is taken.
    checkpoints_kept : int
        The last one, and the one before it until the last is whole.
    timed_images : int
        Images of a step that is timed for a plan: a second's work of a ResNet-18.
    """

    image_memory: float = 0.4
    evaluation_rows: int = 2048
    settling_rows: int = 8192
    usual_size: int = 32
    large_side: int = 96
    pixel_rounding: float = 1e-3
    least_probability: float = 1e-8
    checkpoints_kept: int = 2
    timed_images: int = 32


SETTINGS = VisionSettings()


# ---- fine-tuning ---------------------------------------------------------------------

#: Views by their names, for images of some size; a crop shows at least half of one.
VIEWS: dict[str, Callable[[int], Augmentation]] = {
    "crop": lambda size: RandomResizedCrop((0.5, 1.0), flip=0.5),
    "shift": weak_view,
    "flip": lambda size: Flip(),
    "none": lambda size: Identity(),
}
SECOND_VIEWS = {"contrast": simclr_view, "strong": lambda size: Strong(), "same": None}
# Settings that may be any number from 0.
AMOUNTS = (
    "warmup",
    "backbone_rate",
    "head_rate",
    "domain_rate",
    "weight_decay",
    "self_label",
    "temperature",
    "consistency",
)


@dataclass(frozen=True)
class FineTuning:
    """Settings with which ImageMixture trains its network end to end.

    The defaults are those that 21 cells of CIFAR were measured with
    (``results/bench/cifar``), chosen by the held-out likelihood of one cell.

    Attributes
    ----------
    epochs : int
        Passes over the rows; learning rates fall to zero along half a cosine.
    warmup : float
        Epochs over which they rise first, at most half of all.
    batch_size : int
    backbone_rate, head_rate, domain_rate : float
        Learning rates (AdamW) of the backbone, of the softmax and of log q(d|y).
    weight_decay : float
        Of the backbone.
    self_label : float
        Weight of the cross-entropy of a second view to the first view's p_d(y|x).
    threshold : float
        Largest probability from which on a row gives a self-label.
    temperature : float
        0 takes the most probable class as self-label, 1 all of p_d(y|x).
    told : bool
        Self-labels are learned as p_d(y|x), the second view being told the domain too:
        what the domain alone makes sure then teaches nothing. False: as q(y|x).
    view : {"crop", "shift", "flip", "none"}
        The first view: a part of at least half the image, stretched and mirrored (what
        contrastive features are used to); a shift by an eighth and mirrored; mirrored
        only, for things that fill the image in one way; clean.
    second_view : {"contrast", "strong", "same"}
        The view that learns self-labels: as in contrastive pretraining, stronger still
        (:class:`~shoal.vision.augment.Strong`), or another one like the first.
    consistency : float
        Weight of the agreement with a neighbour, seen in the second view.
    n_neighbours : int
        Nearest rows, by frozen features, among which one is drawn at every step.
    average : float
        Decay of the moving average of the weights that is evaluated and kept; 0 keeps
        the weights themselves.
    batch_norm : {"frozen", "train"}
        Keep the statistics of the backbone, or those of the batches.
    """

    epochs: int = 12
    warmup: float = 0.5
    batch_size: int = 512
    backbone_rate: float = 1e-4
    head_rate: float = 1e-3
    domain_rate: float = 3e-3
    weight_decay: float = 1e-4
    self_label: float = 1.0
    threshold: float = 0.8
    temperature: float = 0.0
    told: bool = False
    view: str = "crop"
    second_view: str = "strong"
    consistency: float = 0.0
    n_neighbours: int = 20
    average: float = 0.99
    batch_norm: str = "frozen"

    def __post_init__(self) -> None:
        check_whole(0, epochs=self.epochs)
        check_whole(1, batch_size=self.batch_size, n_neighbours=self.n_neighbours)
        check_real(0, **{name: getattr(self, name) for name in AMOUNTS})
        check_real(0, 1, threshold=self.threshold, average=self.average)
        check_choice(("frozen", "train"), batch_norm=self.batch_norm)
        check_choice(VIEWS, view=self.view)
        check_choice(SECOND_VIEWS, second_view=self.second_view)
        if self.average == 1:
            raise ValueError(f"average must lie in [0, 1), got {self.average!r}")


def as_settings(given: Any) -> list[FineTuning]:
    """The settings to try, from one, several or none."""
    if given is None:
        return []
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(one, FineTuning) for one in listed):
        raise TypeError(
            "fine_tuning must be a FineTuning, a sequence of them or None, got "
            f"{given!r}"
        )
    if not all(one.epochs for one in listed):
        raise ValueError(
            "fine_tuning has epochs=0, which trains nothing; pass 1 or more, or "
            "fine_tuning=None to stay frozen"
        )
    return listed
