"""What training steps are made of: parts that can be compiled, views and losses.

One graph of a whole step lets the compiler put what has nothing in common into one
kernel, such as the sampling of views and the loss, and such kernels can fail to build.
Views, network and loss apart have few kernels between them, and each compiles. A part
that does not compile runs as it is.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch._functorch import config as autograd_compiler
from torch.nn import functional

from shoal.exceptions import CompileWarning
from shoal.vision._devices import (
    gather_rows,
    mean_over_processes,
    own_rows,
    rank,
    world_size,
)
from shoal.vision._images import normalize, to_float
from shoal.vision._settings import SETTINGS
from shoal.vision.augment import Augmentation

#: True, a mode of torch.compile, or its arguments; False for none of it.
CompileSetting = bool | str | Mapping[str, Any]
Function = Callable[..., Tensor]


def part(function: Function) -> Function:
    """A function of tensors that is compiled while :func:`compiling` is on.

    It must be pure: all that is random, and all that is gathered, comes as a tensor.

    Parameters
    ----------
    function : callable
        From tensors to a tensor; it may use modules.

    Returns
    -------
    callable
        The same function; compiled once, whoever calls it.
    """

    @wraps(function)
    def call(*tensors: Tensor) -> Tensor:
        compiler = _ACTIVE.get()
        return function(*tensors) if compiler is None else compiler(function, *tensors)

    return call


def random_views(view: Augmentation) -> Callable[..., Tensor]:
    """From images as bytes to random views of them, as a network takes them.

    Parameters
    ----------
    view : Augmentation

    Returns
    -------
    callable
        ``make_views(pixels, generator, n_blocks=1)``, of which the last step is a part.
        The rows of ``pixels`` (n, h, w, 3) are ``n_blocks`` blocks, such as the first
        and the second view of every image; the generator is in the same state in every
        process.
    """

    @part
    def make_views(pixels: Tensor, draws: Tensor) -> Tensor:
        return normalize(view.apply(to_float(pixels), draws))

    def draw_and_make(
        pixels: Tensor, generator: Generator, n_blocks: int = 1
    ) -> Tensor:
        # For the batch of all processes: a run draws the same however many share it.
        draws = view.draw(len(pixels) * world_size(), pixels.device, generator)
        return make_views(pixels, own_rows(draws, n_blocks))

    return draw_and_make


def network_part(net: nn.Module) -> Function:
    """The part that is a network: from views to what it puts out."""

    def run_network(views: Tensor) -> Tensor:
        return net(views)

    return part(run_network)


@contextmanager
def compiling(setting: CompileSetting) -> Iterator[None]:
    """Compile all parts that are called inside; False leaves them as they are.

    Parameters
    ----------
    setting : bool, str or mapping
        True for torch.compile's default, a string for one of its modes, a mapping for
        its arguments.

    Warns
    -----
    CompileWarning
        Once, when a part cannot be compiled; it runs as it is from then on.
    """
    if not setting:
        yield
        return
    token = _ACTIVE.set(_Compiler(setting))
    try:
        with _backward_at_once():
            yield
    finally:
        _ACTIVE.reset(token)


class _Compiler:
    """Functions and what they were compiled to, or themselves where that failed."""

    def __init__(self, setting: CompileSetting) -> None:
        self.setting = setting
        self.versions: dict[Function, Function] = {}
        self.warned = False

    def __call__(self, function: Function, *tensors: Tensor) -> Tensor:
        first_time = function not in self.versions
        if first_time:
            compiled = torch.compile(function, **_arguments(self.setting))
            self.versions[function] = compiled
        version = self.versions[function]
        if version is function:
            return function(*tensors)
        try:
            with _silence() if first_time else nullcontext():
                return version(*tensors)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            # An error of the function itself comes again here, and counts as that.
            result = function(*tensors)
            self.versions[function] = function
            self._warn(function, error)
            return result

    def _warn(self, function: Function, error: Exception) -> None:
        if self.warned:
            return
        self.warned = True
        reason = " ".join(str(error).split())[:200]
        warnings.warn(
            f"compile={self.setting!r} failed for {function.__name__} "
            f"({type(error).__name__}: {reason}); what cannot be compiled runs as it "
            "is, with the same result but slower; pass compile=False to silence this",
            CompileWarning,
            stacklevel=2,
        )


_ACTIVE: ContextVar[_Compiler | None] = ContextVar("compiler", default=None)


def _arguments(setting: CompileSetting) -> dict[str, Any]:
    """Arguments of torch.compile.

    One graph for a part, as nothing of it has then run when compiling fails; among
    several processes norms and gradients talk to each other between graphs.
    """
    arguments: dict[str, Any] = {"dynamic": False, "fullgraph": world_size() == 1}
    if isinstance(setting, Mapping):
        return arguments | dict(setting)
    return arguments | ({"mode": setting} if isinstance(setting, str) else {})


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings: those of the compiler are about its own inner working."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _backward_at_once() -> AbstractContextManager[Any]:
    """Compile the backward pass together with the forward pass, not when it is needed.

    A failure then comes while the step can still be taken uncompiled.
    """
    name = "force_non_lazy_backward_lowering"
    if not hasattr(autograd_compiler, name):
        return nullcontext()
    return autograd_compiler.patch({name: True})  # type: ignore[attr-defined]


# ---- losses on class logits, each one formula, each without a host sync --------------


def domain_likelihood(logits: Tensor, log_T: Tensor, codes: Tensor) -> Tensor:
    """Log q(d|x) of each row's own domain, through the classes; shape (n,).

    Parameters
    ----------
    logits : Tensor of shape (n, k)
    log_T : Tensor of shape (k, r)
        log q(d|y).
    codes : Tensor of shape (n,)
        Domain of each row.
    """
    log_g = functional.log_softmax(logits, dim=1)
    return torch.logsumexp(log_g + log_T.T[codes], dim=1)


def domain_loss(
    logits: Tensor, log_T: Tensor, codes: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Mean of - log q(d|x): what the mixture minimizes, rows weighted."""
    return -weighted_mean(domain_likelihood(logits, log_T, codes), weight)


def posterior(logits: Tensor, log_T: Tensor, codes: Tensor) -> Tensor:
    """p_d(y|x), proportional to q(y|x) q(d|y); shape (n, k)."""
    log_g = functional.log_softmax(logits, dim=1)
    return torch.softmax(log_g + log_T.T[codes], dim=1)


def neighbour_consistency(
    logits: Tensor, neighbour_logits: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Mean of - log sum_y q(y|x) q(y|x'): both in one class, and sure of it."""
    log_g = functional.log_softmax(logits, dim=1)
    log_h = functional.log_softmax(neighbour_logits, dim=1)
    return -weighted_mean(torch.logsumexp(log_g + log_h, dim=1), weight)


def self_label_loss(
    proba: Tensor,
    logits: Tensor,
    *,
    threshold: float,
    temperature: float = 0.0,
    weight: Tensor | None = None,
    balance: bool = False,
) -> Tensor:
    """Cross-entropy of one view's ``logits`` to what another view is sure of.

    Parameters
    ----------
    proba : Tensor of shape (n, k)
        Of the first view; no gradient flows into it.
    logits : Tensor of shape (n, k)
        Of the second view.
    threshold : float
        Rows whose largest probability is below it do not count.
    temperature : float, default=0.0
        The target is proportional to ``proba ** (1 / temperature)``; 0 takes the most
        probable class, 1 the probabilities as they are.
    weight : Tensor of shape (n,), default=None
    balance : bool, default=False
        Give each class that has sure rows in the batch the same weight.

    Returns
    -------
    Tensor
        Sum over the sure rows, divided by the weight of all rows: few sure rows pull
        little.
    """
    proba = proba.detach()
    sure, label = proba.max(dim=1)
    mask = (sure >= threshold).to(logits.dtype)
    if temperature == 0:
        target = functional.one_hot(label, proba.shape[1]).to(logits.dtype)
    else:
        log_proba = torch.log(proba.clamp_min(SETTINGS.least_probability))
        target = torch.softmax(log_proba / temperature, dim=1)
    each = -(target * functional.log_softmax(logits, dim=1)).sum(dim=1) * mask
    if balance:
        each = each * _even_classes(label, mask, proba.shape[1])
    return weighted_mean(each, weight)


def _even_classes(label: Tensor, mask: Tensor, n_classes: int) -> Tensor:
    """Weights of rows with which every class present weighs the same; mean 1."""
    members = functional.one_hot(label, n_classes).to(mask.dtype) * mask[:, None]
    count = members.sum(dim=0)
    present = (count > 0).to(mask.dtype).sum().clamp_min(1)
    return (mask.sum() / (present * count.clamp_min(1)))[label]


def weighted_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean of ``values``; with weights, their sum divided by that of the weights.

    Among several processes, by the mean of their sums: the mean over processes is then
    that of one process with all rows.
    """
    if weight is None:
        return values.mean()
    return (values * weight).sum() / mean_over_processes(weight.sum())


# ---- losses that tell views of the same image from views of others -------------------


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Normalized temperature-scaled cross-entropy of two views of the same images.

    Every view looks for its partner among all other views of the batch, over all
    processes: the mean over rows i of ``-log(exp(s(i, p_i)) / sum over j != i of
    exp(s(i, j)))`` with s the cosine divided by the temperature.

    Parameters
    ----------
    first, second : Tensor of shape (n, width)
        Projections; row i of both comes from the same image.
    temperature : float
        Smaller values look harder at the nearest of the others.

    Returns
    -------
    Tensor
        A number.

    References
    ----------
    Chen T, Kornblith S, Norouzi M, Hinton G (2020). A simple framework for contrastive
    learning of visual representations. ICML.
    """
    # In float32 whatever the autocast: a cosine over 0.1 has two digits in bf16.
    with torch.autocast(first.device.type, enabled=False):
        first = functional.normalize(first.float())
        second = functional.normalize(second.float())
        others = torch.cat([gather_rows(first), gather_rows(second)])
        return _find_partners(torch.cat([first, second]), others, temperature)


def info_nce(views: Tensor, others: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of finding each view's partner among others.

    Parameters
    ----------
    views : Tensor of shape (2 n, width)
        First views of the n images of this process, then their second views.
    others : Tensor of shape (m, width)
        Of unit length: first views of the images of all processes, their second views,
        and whatever else is to be told from the partner. A view itself is no choice.
    temperature : float
        As in :func:`nt_xent`.

    References
    ----------
    Van den Oord A, Li Y, Vinyals O (2018). Representation learning with contrastive
    predictive coding. arXiv:1807.03748.
    """
    with torch.autocast(views.device.type, enabled=False):
        return _find_partners(
            functional.normalize(views.float()), others.float(), temperature
        )


def _find_partners(views: Tensor, others: Tensor, temperature: float) -> Tensor:
    """Loss of views of unit length; see :func:`info_nce`."""
    n = len(views) // 2
    n_all = n * world_size()
    place = torch.arange(n, device=views.device) + rank() * n
    itself = torch.cat([place, place + n_all])
    partner = torch.cat([place + n_all, place])
    logits = views @ others.T / temperature
    columns = torch.arange(len(others), device=views.device)
    # Masks instead of cross_entropy, whose gather does not compile on every GPU.
    found = torch.where(partner[:, None] == columns, logits, 0).sum(1)
    logits = logits.masked_fill(itself[:, None] == columns, -torch.inf)
    return (logits.logsumexp(1) - found).mean()
