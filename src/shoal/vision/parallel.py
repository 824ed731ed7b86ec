"""One process or several: the same text runs plainly and under ``torchrun``."""

import atexit
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = [
    "StepModule",
    "gather_rows",
    "join_processes",
    "mean_over_processes",
    "own_gpu",
    "own_rows",
    "rank",
    "world_size",
]


def world_size() -> int:
    """Number of processes that train together."""
    return dist.get_world_size() if _is_parallel() else 1


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if _is_parallel() else 0


def join_processes(device: torch.device) -> None:
    """Join the processes that ``torchrun`` started; alone, nothing happens.

    They are joined once and stay so until the process ends. A group that the caller has
    made is used as it is.
    """
    if _is_parallel() or not _under_torchrun():
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    # Not left before the end: to join again, or to leave while something that used the
    # group is still being freed, can block for ever.
    atexit.register(dist.destroy_process_group)


def own_gpu() -> int | None:
    """Number of the GPU of this process among several; None when it is alone."""
    if _is_parallel():
        return torch.cuda.current_device()
    return int(os.environ.get("LOCAL_RANK", 0)) if _under_torchrun() else None


class StepModule(nn.Module):
    """A training step as a module, so that DistributedDataParallel sees its parameters.

    Parameters
    ----------
    step : callable
        See :mod:`shoal.vision.loop`.
    modules : mapping of str to Module
        All that the step uses.
    """

    def __init__(
        self, step: Callable[..., Any], modules: Mapping[str, nn.Module]
    ) -> None:
        super().__init__()
        self.step = step
        self.parts = nn.ModuleList(modules.values())

    def forward(self, indices: Tensor, generator: torch.Generator) -> Any:
        """The loss of a batch, with its numbers if it has any."""
        return self.step(indices, generator)


def gather_rows(x: Tensor) -> Tensor:
    """Rows of all processes in order of rank; gradients flow back to every one."""
    if world_size() == 1:
        return x
    return torch.cat(_Gather.apply(x))


def mean_over_processes(x: Tensor) -> Tensor:
    """Mean of a tensor that every process has; gradients flow back to every one."""
    if world_size() == 1:
        return x
    mean: Tensor = _Mean.apply(x)
    return mean


def own_rows(drawn: Tensor, n_blocks: int = 1) -> Tensor:
    """Rows of this process among those drawn for the batch of all processes.

    Parameters
    ----------
    drawn : Tensor
        The same in every process; its rows are ``n_blocks`` blocks, such as the first
        and the second view of every image, and each block is shared evenly.
    n_blocks : int, default=1
    """
    if world_size() == 1:
        return drawn
    blocks = drawn.unflatten(0, (n_blocks, world_size(), -1))
    return blocks[:, rank()].flatten(0, 1)


class _Gather(torch.autograd.Function):
    """All-gather whose backward sums what every process wants of a row."""

    @staticmethod
    def forward(ctx, x: Tensor) -> tuple[Tensor, ...]:  # type: ignore[no-untyped-def]
        parts = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(parts, x.contiguous())
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        stacked = torch.stack(gradients)
        dist.all_reduce(stacked)
        return stacked[rank()]


class _Mean(torch.autograd.Function):
    """All-reduce whose backward is one, too."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        return _all_mean(x)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        return _all_mean(gradient)


def _all_mean(x: Tensor) -> Tensor:
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total / world_size()


def _under_torchrun() -> bool:
    return int(os.environ.get("WORLD_SIZE", 1)) > 1


def _is_parallel() -> bool:
    return dist.is_available() and dist.is_initialized()
