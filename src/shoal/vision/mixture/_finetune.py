"""A network fine-tuned by the likelihood of the domains, from a frozen solution.

The frozen solution is a linear softmax on the features of a backbone and a table
q(d|y). Both become layers, so that before the first step the network IS that solution;
then backbone, softmax and table move together. Every choice (epoch, setting, whether to
move at all) is by the likelihood of the domains on held-out rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from shoal.likelihood._held_out import HeldOut
from shoal.validation import check_real, check_whole
from shoal.vision._devices import place_module
from shoal.vision._loop import Step, cosine, fit
from shoal.vision._rows import BestEpoch, SplitRows, draw_column, outputs
from shoal.vision._steps import (
    domain_likelihood,
    domain_loss,
    neighbour_consistency,
    network_part,
    posterior,
    random_views,
    self_label_loss,
)
from shoal.vision.augment import (
    Augmentation,
    Flip,
    Identity,
    RandomResizedCrop,
    Strong,
    simclr_view,
    weak_view,
)
from shoal.vision.mixture._net import MixtureNet

Array = np.ndarray[Any, Any]

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
    """Settings of :func:`fine_tune`.

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
        for name in AMOUNTS:
            check_real(0, **{name: getattr(self, name)})
        check_real(0, 1, threshold=self.threshold, average=self.average)
        if self.batch_norm not in ("frozen", "train"):
            raise ValueError(
                f"batch_norm must be 'frozen' or 'train', got {self.batch_norm!r}"
            )
        for name, known in (("view", VIEWS), ("second_view", SECOND_VIEWS)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {value!r}"
                )
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


@dataclass(frozen=True)
class FineTuned:
    """The best of all epochs, the one before the first included.

    Attributes
    ----------
    net : MixtureNet
        On the CPU, in evaluation mode.
    start, best : HeldOut
        Held-out rows before the first epoch, and at the best.
    epoch : int
        Of the best; 0 is before the first.
    records : list of dict
        One per epoch.
    """

    net: MixtureNet
    start: HeldOut
    best: HeldOut
    epoch: int
    records: list[dict[str, Any]]


def fine_tune(
    net: MixtureNet,
    rows: SplitRows,
    settings: FineTuning,
    *,
    until: int | None = None,
    seed: int = 0,
    compile: bool | str = False,
    progress: bool = False,
) -> FineTuned:
    """Fit backbone, softmax and q(d|y) together; keep the best epoch held out.

    Parameters
    ----------
    net : MixtureNet
        The frozen solution; it is changed.
    rows : SplitRows
    settings : FineTuning
    until : int, default=None
        Stop after this epoch and keep it, whatever the held-out rows say.
    seed : int, default=0
    compile : bool or str, default=False
        Compile views and network; worth it from minutes of training on.
    progress : bool, default=False

    Returns
    -------
    FineTuned
        With the start itself where no epoch was better, or where the loss diverged.
    """
    device = rows.images.device
    place_module(net, device)
    optimizer = _optimizer(net, settings, device)
    judged = _averaged(net, optimizer, settings)
    start = likelihood(net, rows)
    best = BestEpoch()
    best.offer(net, start.mean if until is None else 0.0, 0, start)
    records: list[dict[str, Any]] = []

    def on_epoch(record: dict[str, Any]) -> dict[str, Any]:
        records.append(record)
        now = likelihood(judged, rows)
        score = now.mean if until is None else float(record["epoch"])
        best.offer(judged, score, record["epoch"], now)
        if record["epoch"] == until:
            record["held_out"] = now.mean
            raise _Enough
        return {"held_out": now.mean}

    try:
        fit(
            _make_step(net, rows, settings),
            {"net": net},
            optimizer,
            cosine(settings.epochs, warmup=min(settings.warmup, settings.epochs / 2)),
            len(rows.train),
            batch_size=settings.batch_size,
            epochs=settings.epochs,
            seed=seed,
            device=device,
            compile=compile,
            on_epoch=on_epoch,
            progress=progress,
        )
    except (FloatingPointError, _Enough):
        pass  # diverged, or told to stop: the best epoch so far stands
    best.restore(net)
    return FineTuned(net.cpu().eval(), start, best.found, best.epoch, records)


class _Enough(Exception):  # noqa: N818
    """The epoch asked for is done."""


@torch.no_grad()
def likelihood(net: MixtureNet, rows: SplitRows) -> HeldOut:
    """Log q(d|x) of the held-out rows: clean images, evaluation mode."""
    logits = outputs(net, rows.images, rows.valid)
    each = domain_likelihood(logits, net.log_T, rows.codes[rows.valid])
    weight = rows.weight[rows.valid].double()
    share = weight / weight.sum()
    return HeldOut(each.double().cpu().numpy(), share.cpu().numpy())


# ---- one step --------------------------------------------------------------------


def _make_step(net: MixtureNet, rows: SplitRows, settings: FineTuning) -> Step:
    """Gathers, random draws, and parts that can be compiled: views and network."""
    size = max(rows.images.size)
    first = VIEWS[settings.view](size)
    another = SECOND_VIEWS[settings.second_view]
    second = first if another is None else another(size)
    kinds = [first] + [second] * bool(settings.self_label)
    kinds += [second] * bool(settings.consistency)
    make_views = [random_views(kind) for kind in kinds]
    classify = network_part(net)

    def step(indices: Tensor, generator: Generator) -> tuple[Tensor, dict[str, Tensor]]:
        numbers = rows.train[indices]
        pixels = [rows.images.bytes_batch(numbers)] * (1 + bool(settings.self_label))
        if settings.consistency:
            assert rows.neighbours is not None
            near = draw_column(rows.neighbours[indices], generator)
            pixels.append(rows.images.bytes_batch(near))
        views = [
            make(image, generator)
            for make, image in zip(make_views, pixels, strict=True)
        ]
        logits = classify(torch.cat(views)).split(len(indices))
        codes, weight = rows.codes[numbers], rows.weight[numbers]
        return _sum_of_losses(logits, net.log_T, codes, weight, settings)

    return step


def _sum_of_losses(
    logits: Sequence[Tensor],
    log_T: Tensor,
    codes: Tensor,
    weight: Tensor,
    settings: FineTuning,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and its parts, from the logits of the first, second and neighbour's view."""
    first = logits[0]
    loss = domain_loss(first, log_T, codes, weight)
    parts = {"domain_loss": loss}
    if settings.self_label:
        proba = posterior(first, log_T, codes).detach()
        second = logits[1]
        if settings.told:
            second = second + log_T.detach().T[codes]
        part = self_label_loss(
            proba,
            second,
            threshold=settings.threshold,
            temperature=settings.temperature,
            weight=weight,
        )
        loss = loss + settings.self_label * part
        sure = (proba.amax(dim=1) >= settings.threshold).float().mean()
        parts |= {"self_label_loss": part, "sure": sure}
    if settings.consistency:
        part = neighbour_consistency(first, logits[-1], weight)
        loss = loss + settings.consistency * part
        parts["consistency_loss"] = part
    return loss, parts


# ---- around the steps ------------------------------------------------------------


def _optimizer(
    net: MixtureNet, settings: FineTuning, device: torch.device
) -> torch.optim.Optimizer:
    groups = [
        {
            "params": list(net.backbone.parameters()),
            "lr": settings.backbone_rate,
            "weight_decay": settings.weight_decay,
        },
        {"params": [net.weight, net.intercept], "lr": settings.head_rate},
        {"params": [net.domain_logits], "lr": settings.domain_rate},
    ]
    return torch.optim.AdamW(groups, weight_decay=0.0, fused=device.type == "cuda")


def _averaged(
    net: MixtureNet, optimizer: torch.optim.Optimizer, settings: FineTuning
) -> MixtureNet:
    """The network that is judged: a moving average that follows every step."""
    if not settings.average:
        return net
    average = AveragedModel(
        net, multi_avg_fn=get_ema_multi_avg_fn(settings.average), use_buffers=False
    )
    # The first update copies: before any step, average and network are the same.
    average.update_parameters(net)
    frozen = settings.batch_norm == "frozen"

    def follow(*_: Any) -> None:
        average.update_parameters(net)
        if not frozen:
            _copy_statistics(net, average.module)

    optimizer.register_step_post_hook(follow)
    return cast(MixtureNet, average.module)


@torch.no_grad()
def _copy_statistics(source: nn.Module, target: nn.Module) -> None:
    for new, old in zip(source.buffers(), target.buffers(), strict=True):
        old.copy_(new)
