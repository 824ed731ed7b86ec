"""Parts of a training step, each of which can be compiled as a graph of its own.

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

from shoal.exceptions import CompileWarning
from shoal.vision._data import normalize, to_float
from shoal.vision._devices import own_rows, world_size
from shoal.vision.augment import Augmentation

#: True, a mode of torch.compile, or its arguments; False for none of it.
CompileSetting = bool | str | Mapping[str, Any]
Function = Callable[..., Tensor]

REASON_LENGTH = 200


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
        reason = " ".join(str(error).split())[:REASON_LENGTH]
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
