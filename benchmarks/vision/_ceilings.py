"""A device's own limits: how fast it multiplies and copies, and what a view asks of it.

``timed`` is the clock of all measurements of a training step: the device is waited for
before and after each block of calls, because a GPU works on after they return.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def timed(run: Callable[[], Any], steps: int, device: torch.device) -> float:
    """Median over five blocks of the milliseconds of one call."""
    for _ in range(3):
        run()
    blocks = []
    for _ in range(5):
        wait(device)
        started = time.perf_counter()
        for _ in range(max(steps // 5, 1)):
            run()
        wait(device)
        blocks.append((time.perf_counter() - started) / max(steps // 5, 1))
    return 1000 * float(np.median(blocks))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def ceilings(net: nn.Module, size: int, device: torch.device) -> dict[str, float]:
    """What a step must compute and move at least, and how fast this device is."""
    n = 8192 if device.type == "cuda" else 512
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    multiply = timed(lambda: a @ b, 50, device) / 1000
    source = torch.empty(2**30 if device.type == "cuda" else 2**24, device=device)
    target = torch.empty_like(source)
    copy = timed(lambda: target.copy_(source), 20, device) / 1000
    flops, activations = cost_of_a_view(net, size)
    rate = 2 * n**3 / multiply
    bandwidth = 2 * source.numel() * source.element_size() / copy
    # Training: backward costs twice the forward. Every activation of a convolution is
    # written, read for statistics, read and written by the norm and read by the next
    # convolution; backward passes over it about twice as often. In bf16.
    n_bytes = 15 * 2 * activations
    return {
        "matrix_tflops": rate / 1e12,
        "copy_tb_per_second": bandwidth / 1e12,
        "gflop_per_view": 3 * flops / 1e9,
        "mb_per_view": n_bytes / 1e6,
        "views_per_second_by_arithmetic": rate / (3 * flops),
        "views_per_second_by_memory": bandwidth / n_bytes,
        "views_per_second_one_after_the_other": 1
        / (3 * flops / rate + n_bytes / bandwidth),
    }


def cost_of_a_view(net: nn.Module, size: int) -> tuple[float, float]:
    """Operations of a forward pass, and numbers that its convolutions put out."""
    flops, activations = 0.0, 0.0

    def count(module: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal flops, activations
        weight: Tensor = module.weight  # type: ignore[assignment]
        flops += 2.0 * output[0].numel() * weight[0].numel()
        activations += output[0].numel()

    hooks = [
        module.register_forward_hook(count)
        for module in net.modules()
        if isinstance(module, nn.Conv2d)
    ]
    with torch.no_grad():
        net.eval()(torch.zeros(1, 3, size, size))
    for hook in hooks:
        hook.remove()
    return flops, activations
