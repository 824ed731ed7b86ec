"""Which device to compute on."""

from typing import TypeVar

import torch
from torch import nn

from shoal.vision.parallel import own_gpu

__all__ = ["autocast_to", "pick_device", "place_module"]

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
