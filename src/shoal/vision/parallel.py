"""One process or several: the same text runs plainly and under ``torchrun``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["gather_rows", "process_group", "rank", "world_size"]


def world_size() -> int:
    """Number of processes that train together."""
    return dist.get_world_size() if _is_parallel() else 1


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if _is_parallel() else 0


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that ``torchrun`` started; alone, nothing happens.

    Yields the device of this process (``cuda:<local rank>`` under torchrun). A group
    that the caller has made is used and left as it is.
    """
    under_torchrun = "WORLD_SIZE" in os.environ and int(os.environ["WORLD_SIZE"]) > 1
    if device.type == "cuda" and under_torchrun and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if not under_torchrun or _is_parallel():
        yield device
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield device
    finally:
        dist.destroy_process_group()


def gather_rows(x: Tensor) -> Tensor:
    """Rows of all processes in order of rank; gradients flow back to every one."""
    if world_size() == 1:
        return x
    return torch.cat(_Gather.apply(x))


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


def _is_parallel() -> bool:
    return dist.is_available() and dist.is_initialized()
