"""Where a training runs, in one process or several, and how it shows its progress."""

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

# ---- Which device to compute on ------------------------------------------------------

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def pick_device(device: str | torch.device | None = None) -> torch.device:
    """Device asked for, or the GPU when there is one.

    Parameters
    ----------
    device : str, torch.device or None, default=None
        None or ``"auto"``: CUDA when present, else the CPU. Among several processes
        every one has a GPU of its own.

    Returns
    -------
    torch.device

    Examples
    --------
    >>> pick_device("cpu")
    device(type='cpu')
    """
    if device is None or device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a device; use 'cpu', 'cuda' or 'cuda:0'"
        ) from error
    if chosen.type == "cuda":
        _check_cuda(chosen)
        if chosen.index is None and (number := own_gpu()) is not None:
            chosen = torch.device("cuda", number)
            _check_cuda(chosen)
    return chosen


def autocast_to(
    device: torch.device, dtype: torch.dtype | None = None
) -> torch.autocast:
    """Context of mixed precision: bf16 on CUDA, off elsewhere, unless told otherwise.

    Parameters
    ----------
    device : torch.device
        Where the computation runs.
    dtype : torch.dtype or None, default=None
        ``torch.float32`` switches it off; None chooses by device.
    """
    if dtype is None:
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    enabled = dtype != torch.float32
    return torch.autocast(device.type, dtype if enabled else None, enabled=enabled)


@contextmanager
def fitting_into_memory(batch_size: int, device: torch.device) -> Iterator[None]:
    """A GPU that is full becomes a MemoryError with a batch size to try next."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise MemoryError(
            f"batch_size={batch_size} does not fit into the memory of {device}; try "
            f"batch_size={max(batch_size // 2, 1)}"
        ) from error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers of a seed; what was drawn from before goes on afterwards."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        yield


def place_module(module: ModuleT, device: torch.device) -> ModuleT:
    """Move a module to a device, its convolutions laid out with channels last."""
    # torch's types do not know that a device and a memory format go together.
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def _check_cuda(device: torch.device) -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) >= count:
        raise ValueError(
            f"device='{device}' is not here: torch {torch.__version__} sees {count} "
            "CUDA devices; use device='cpu' or 'auto'"
        )


# ---- processes that train together ---------------------------------------------------


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
        See :func:`shoal.vision.fit`.
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


# ---- batch norms of all processes ----------------------------------------------------


class SharedNorm(_BatchNorm):
    """Batch norm over all processes, on any device; alone, the usual one.

    torch's own, ``nn.SyncBatchNorm``, is faster but knows no CPU.
    """

    @classmethod
    def of(cls, norm: _BatchNorm) -> "SharedNorm":
        """A norm with the very parameters and statistics of another."""
        shared = cls(
            norm.num_features,
            norm.eps,
            norm.momentum,
            norm.affine,
            norm.track_running_stats,
        )
        shared._parameters.update(norm._parameters)
        shared._buffers.update(norm._buffers)
        return shared.train(norm.training)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize; in training mode by the batch of all processes."""
        if world_size() == 1 or not self.training:
            return super().forward(input)
        axes = [axis for axis in range(input.ndim) if axis != 1]
        shape = [1, -1] + [1] * (input.ndim - 2)
        mean = mean_over_processes(input.mean(axes))
        centred = input - mean.view(shape)
        variance = mean_over_processes(centred.square().mean(axes))
        n_values = world_size() * input.numel() // input.shape[1]
        self._follow(mean.detach(), variance.detach() * n_values / (n_values - 1))
        scaled = centred * torch.rsqrt(variance + self.eps).view(shape)
        if self.weight is None:
            return scaled
        return scaled * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Move the running statistics as torch's batch norms do."""
        if self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of axes after the second."""


def share_norms(module: nn.Module, device: torch.device) -> None:
    """Let the batch norms inside a module see all processes; alone, nothing happens.

    Names, parameters and statistics stay as they are, so that optimizers and weight
    files do not notice.
    """
    if world_size() == 1:
        return
    if device.type == "cuda":
        nn.SyncBatchNorm.convert_sync_batchnorm(module)
        return
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, SharedNorm):
                setattr(parent, name, SharedNorm.of(child))


# ---- progress ------------------------------------------------------------------------

LEFT_OUT = ("epoch", "seconds")


class Progress:
    """Shows the record of each epoch.

    Parameters
    ----------
    epochs : int
        Number of epochs in all.
    shown : bool, default=True
        False for silence.
    """

    def __init__(self, epochs: int, shown: bool = True) -> None:
        self.epochs, self.shown = epochs, shown
        self._bar: Any = None

    def __enter__(self) -> "Progress":
        if self.shown and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._bar.add_task("training", total=self.epochs)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, record: dict[str, Any]) -> None:
        """Say what an epoch brought."""
        if not self.shown:
            return
        text = ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
            if name not in LEFT_OUT and isinstance(value, int | float)
        )
        if self._bar is None:
            print(f"epoch {record['epoch']}/{self.epochs}: {text}", file=sys.stderr)
            return
        (task,) = self._bar.task_ids
        self._bar.update(task, completed=record["epoch"], description=text)
