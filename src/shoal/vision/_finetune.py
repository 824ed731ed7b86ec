"""Networks fine-tuned by the likelihood of the domains, from frozen solutions.

The frozen solution is a linear softmax on the features of a backbone and a table
q(d|y). Both become layers, so that before the first step the network IS that solution;
then backbone, softmax and table move together. Every choice (epoch, setting, whether to
move at all) is by the likelihood of the domains on held-out rows.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from shoal.likelihood._problem import Fit
from shoal.mixture import DomainMixture
from shoal.probability import HeldOut
from shoal.validation import row_weights
from shoal.vision._devices import place_module
from shoal.vision._encode import nearest
from shoal.vision._images import ImageSet
from shoal.vision._loop import Step, cosine, fit
from shoal.vision._mixture_net import MixtureNet, as_linear, refit_part
from shoal.vision._nets import Backbone
from shoal.vision._rows import BestEpoch, SplitRows, draw_column, outputs
from shoal.vision._settings import SECOND_VIEWS, VIEWS, FineTuning
from shoal.vision._steps import (
    domain_likelihood,
    domain_loss,
    neighbour_consistency,
    network_part,
    posterior,
    random_views,
    self_label_loss,
)

Array = np.ndarray[Any, Any]


# ---- every start with every setting --------------------------------------------------


class Try(NamedTuple):
    """A fine-tuning, and the frozen solution and the setting that it came from."""

    start: int
    frozen: DomainMixture
    setting: FineTuning
    tuned: "FineTuned"


@dataclass
class Tuner:
    """Fine-tunes frozen solutions of one set of rows.

    Attributes
    ----------
    images : ImageSet
    features : ndarray of shape (n, n_columns)
        What the frozen mixtures saw.
    codes : ndarray of shape (n,)
    train, valid : ndarray
        Row numbers to fit and to judge by.
    backbone : Backbone
        Copied for every fine-tuning.
    projection : fitted PCA or None
        From features of unit length to ``features``.
    options : dict
        ``seed``, ``compile`` and ``progress`` of :func:`fine_tune`.
    parts : dict of int to Fit
        Frozen solutions refitted without the held-out rows, by number of the start;
        filled as they are needed.
    """

    images: ImageSet
    features: Array
    codes: Array
    train: Array
    valid: Array
    backbone: Backbone
    projection: Any
    options: dict[str, Any]
    parts: dict[int, Fit] = field(default_factory=dict)

    def try_all(
        self, starts: Sequence[DomainMixture], settings: Sequence[FineTuning]
    ) -> list[Try]:
        """Fine-tune every start with every setting, without the held-out rows."""
        rows = self._rows(starts[0], self.train, settings)
        found = []
        for number, frozen in enumerate(starts):
            if number not in self.parts:
                self.parts[number] = refit_part(
                    frozen, self.features, self.codes, self.train
                )
            part = self.parts[number]
            for setting in settings:
                net = self._make_net(
                    frozen, part.weights, part.domain_given_class, setting
                )
                tuned = fine_tune(net, rows, setting, **self.options)
                found.append(Try(number, frozen, setting, tuned))
        return found

    def repeat(self, chosen: Try) -> "FineTuned":
        """Fine-tune once more on all rows, from the frozen solution of all rows."""
        frozen, setting = chosen.frozen, chosen.setting
        rows = self._rows(frozen, np.arange(len(self.codes)), [setting])
        net = self._make_net(
            frozen, frozen.weights_, frozen.domain_given_class_, setting
        )
        until = max(chosen.tuned.epoch, 1)
        return fine_tune(net, rows, setting, until=until, **self.options)

    def _rows(
        self, frozen: DomainMixture, train: Array, settings: Sequence[FineTuning]
    ) -> SplitRows:
        weight = row_weights(self.codes, frozen.domain_weight_) * len(self.codes)
        wanted = max((s.n_neighbours for s in settings if s.consistency), default=0)
        wanted = min(wanted, len(train) - 1)
        near = None
        if wanted:
            found = nearest(self.features[train], wanted, device=self.images.device)
            near = train[found[0]]
        return SplitRows.of(self.images, self.codes, weight, train, self.valid, near)

    def _make_net(
        self,
        frozen: DomainMixture,
        weights: Array,
        domain_given_class: Array,
        setting: FineTuning,
    ) -> MixtureNet:
        return MixtureNet(
            copy.deepcopy(self.backbone),
            as_linear(frozen, weights, self.projection),
            domain_given_class,
            freeze_statistics=setting.batch_norm == "frozen",
        )


# ---- one fine-tuning -----------------------------------------------------------------


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
