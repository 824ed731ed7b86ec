"""Where the time of a SimCLR step goes, and how far it is from what the GPU can do.

    python benchmarks/vision/profile_pretrain.py --limit-seconds 480 --record out.json

For every way of compiling (off, then modes of torch.compile for views, network and loss
as graphs of their own) and every batch size: the warm-up, views per second of the whole
step, and the time of its parts, each timed alone (views, forward, loss, backward,
optimizer). A variant that fails is recorded with its error, and the next one follows;
the record is written after each. Then the kernels of the best variant by torch's
profiler, grouped, and two ceilings measured here: the arithmetic (a large bf16 product)
and the memory traffic (a large copy) that the step needs at least. Images are random
bytes: their content does not change the time.
"""

import argparse
import gc
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _ceilings import ceilings, timed, wait
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from shoal.exceptions import CompileWarning
from shoal.vision._devices import autocast_to, place_module
from shoal.vision._images import ImageSet, normalize, to_float
from shoal.vision._nets import resnet
from shoal.vision._simclr import REPLAYED, Pretext, SimCLR, sgd
from shoal.vision._steps import CompileSetting, compiling, nt_xent
from shoal.vision.augment import simclr_view
from shoal_bench.meter import provenance

MODES = ("off", "default", REPLAYED, "max-autotune-no-cudagraphs")
STEPS_TO_WARM_UP = 6
GROUPS = {
    "convolution": ("conv", "cudnn", "wgrad", "dgrad", "fprop", "xmma", "implicit"),
    "matrix product": ("gemm", "matmul", "cutlass", "nvjet"),
    "norm, relu and other fused passes": ("triton", "batch_norm", "elementwise"),
    "optimizer": ("multi_tensor", "fused_sgd"),
    "gather and random": ("index", "distribution", "philox"),
    "copy": ("memcpy", "memset", "copy"),
}


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    started = time.perf_counter()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = np.random.default_rng(0)
    shape = (args.images, args.size, args.size, 3)
    images = ImageSet(rng.integers(0, 256, shape, dtype=np.uint8), device)
    torch.backends.cudnn.benchmark = True
    record: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "machine": platform.machine(),
        **provenance(),
        "ceilings": ceilings(resnet(args.depth), args.view_size or args.size, device),
        "variants": [],
    }
    for mode, batch_size, multiple in product(
        args.compile, args.batch_size, args.channels
    ):
        variant = {"compile": mode, "batch_size": batch_size, "channels": multiple}
        row: dict[str, Any] = dict(variant)
        if time.perf_counter() - started > args.limit_seconds:
            row["error"] = "not begun: --limit-seconds is over"
        else:
            survive(row, lambda: measure(args, images, **variant))  # noqa: B023
        record["variants"].append(row)
        print(json.dumps(row), flush=True)
        write(record, args.record)
    done = [row for row in record["variants"] if "error" not in row]
    if done and not args.no_kernels:
        best = max(done, key=lambda row: row["views_per_second"])
        names = ("compile", "batch_size", "channels")
        record["kernels"] = {name: best[name] for name in names}
        survive(record["kernels"], lambda: kernels(args, images, record["kernels"]))
        write(record, args.record)
    show(record)


def survive(row: dict[str, Any], measuring: Callable[[], dict[str, Any]]) -> None:
    """Add what was measured, or the error that prevented it."""
    try:
        row |= measuring()
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:600]
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def write(record: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(record, indent=2) + "\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--batch-size", type=int, nargs="+", default=[512, 1024, 2048])
    cli.add_argument("--compile", nargs="+", default=MODES, metavar="MODE")
    cli.add_argument("--images", type=int, default=50_000)
    cli.add_argument("--size", type=int, default=32)
    cli.add_argument("--view-size", type=int, help="pixels; default: --size")
    cli.add_argument("--depth", type=int, default=18)
    cli.add_argument(
        "--channels", type=int, nargs="+", default=[1], help="pad channels to multiples"
    )
    cli.add_argument("--steps", type=int, default=60, help="steps timed")
    cli.add_argument(
        "--limit-seconds", type=float, default=1e9, help="begin no variant after that"
    )
    cli.add_argument("--no-parts", action="store_true", help="time whole steps only")
    cli.add_argument("--no-kernels", action="store_true", help="no profiler table")
    cli.add_argument("--record", type=Path)
    return cli.parse_args(arguments)


def measure(
    args: argparse.Namespace,
    images: ImageSet,
    compile: str,
    batch_size: int,
    channels: int,
) -> dict[str, Any]:
    """Times of one variant."""
    torch.compiler.reset()
    device, task = images.device, make_task(args, images, channels)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with compiled_or_failed(compile):
        run = whole_step(task, batch_size)
        started = time.perf_counter()
        for _ in range(STEPS_TO_WARM_UP):
            run()
        wait(device)
        warm_up = time.perf_counter() - started
        milliseconds = timed(run, args.steps, device)
    row: dict[str, Any] = {
        "warm_up_seconds": round(warm_up - STEPS_TO_WARM_UP * milliseconds / 1000, 1),
        "step_ms": round(milliseconds, 3),
        "views_per_second": round(2 * batch_size / milliseconds * 1000),
    }
    if device.type == "cuda":
        row["peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    # Of recorded graphs, parts timed alone would be out of turn.
    if not args.no_parts and compile != REPLAYED:
        row["parts_ms"] = parts(args, task, batch_size, compile)
    return row


def make_task(args: argparse.Namespace, images: ImageSet, channels: int) -> Pretext:
    net = resnet(args.depth)
    net.conv1 = PaddedConvolution(net.conv1, -3 % channels)
    view = simclr_view(args.size, view_size=args.view_size)
    return SimCLR(images, net=net, view=view, device=images.device)


class PaddedConvolution(nn.Module):
    """A convolution with channels of zeros, to fit the GPU's matrix units."""

    def __init__(self, inner: nn.Conv2d, extra: int) -> None:
        super().__init__()
        self.inner, self.padding = inner, (0, 0, 0, 0, 0, extra)

    def forward(self, x: Tensor) -> Tensor:
        """What the inner one gives."""
        return functional.conv2d(
            functional.pad(x, self.padding),
            functional.pad(self.inner.weight, self.padding),
            stride=self.inner.stride,
            padding=self.inner.padding,
        )


@contextmanager
def compiled_or_failed(mode: str) -> Iterator[None]:
    """Compile the parts of steps; one that cannot be compiled is an error here."""
    setting: CompileSetting = {"off": False, "default": True}.get(mode, mode)
    with warnings.catch_warnings(), compiling(setting):
        warnings.simplefilter("error", CompileWarning)
        yield


def whole_step(task: Pretext, batch_size: int) -> Callable[[], None]:
    """One step as the training loop takes it."""
    device = task.images.device
    for module in task.modules.values():
        place_module(module, device).train()
    optimizer = sgd(task.modules.values(), 0.1, 1e-4, device)
    generator = torch.Generator(device).manual_seed(0)
    order = torch.randperm(len(task.images)).to(device)

    def run() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        with autocast_to(device):
            loss = task.step(order[:batch_size], generator)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


def parts(
    args: argparse.Namespace, task: Pretext, batch_size: int, mode: str
) -> dict[str, float]:
    """Milliseconds of the parts of a step, each compiled and timed alone."""
    images, device = task.images, task.images.device
    view = simclr_view(args.size, view_size=args.view_size)
    indices = torch.arange(batch_size, device=device)
    pixels = images.bytes_batch(indices)
    draws = view.draw(2 * batch_size, device)

    def make_views(pixels: Tensor, draws: Tensor) -> Tensor:
        return normalize(view.apply(to_float(pixels.repeat(2, 1, 1, 1)), draws))

    def project(x: Tensor) -> Tensor:
        return task.head(task.net.features(x))

    def contrast(z: Tensor) -> Tensor:
        first, second = z.chunk(2)
        return nt_xent(first, second, 0.1)

    make, forward, loss = (compiled(f, mode) for f in (make_views, project, contrast))
    x = make(pixels, draws).detach()
    z = torch.randn(2 * batch_size, 128, device=device, requires_grad=True)

    optimizer = sgd([task.net, task.head], 1e-9, 0.0, device)

    def gather() -> None:
        images.bytes_batch(indices)
        view.draw(2 * batch_size, device)

    def go_forward() -> None:
        with autocast_to(device):
            forward(x)

    def go_both_ways() -> None:
        optimizer.zero_grad(set_to_none=True)
        with autocast_to(device):
            total = forward(x).float().sum()
        total.backward()

    runs: dict[str, Callable[[], Any]] = {
        "gather and draw": gather,
        "views": lambda: make(pixels, draws),
        "forward": go_forward,
        "forward and backward": go_both_ways,
        "loss, both ways": lambda: loss(z).backward(),
        "optimizer": optimizer.step,
    }
    times = {name: timed(run, args.steps, device) for name, run in runs.items()}
    return {name: round(value, 3) for name, value in times.items()}


def compiled(function: Callable[..., Any], mode: str) -> Callable[..., Any]:
    if mode == "off":
        return function
    chosen = None if mode == "default" else mode
    return torch.compile(function, mode=chosen, dynamic=False)


def kernels(
    args: argparse.Namespace, images: ImageSet, variant: dict[str, Any]
) -> dict[str, Any]:
    """Device time of a step by kind of kernel, and the longest kernels."""
    torch.compiler.reset()
    device, task = images.device, make_task(args, images, variant["channels"])
    with compiled_or_failed(variant["compile"]):
        run = whole_step(task, variant["batch_size"])
        for _ in range(STEPS_TO_WARM_UP):
            run()
        return profiled(run, device)


def profiled(run: Callable[[], None], device: torch.device) -> dict[str, Any]:
    on_gpu = device.type == "cuda"
    activities = [torch.profiler.ProfilerActivity.CPU]
    if on_gpu:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    steps = 10
    wait(device)
    started = time.perf_counter()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(steps):
            run()
        wait(device)
    wall = (time.perf_counter() - started) / steps * 1000

    def milliseconds(event: Any) -> float:
        time_us = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        return float(time_us) / 1000 / steps

    wanted = [
        event
        for event in profile.key_averages()
        if not on_gpu or event.device_type == torch.autograd.DeviceType.CUDA
    ]
    by_group: dict[str, float] = {}
    for event in wanted:
        name = event.key.lower()
        group = next(
            (g for g, marks in GROUPS.items() if any(mark in name for mark in marks)),
            "other",
        )
        by_group[group] = by_group.get(group, 0.0) + milliseconds(event)
    longest = sorted(wanted, key=milliseconds, reverse=True)[:12]
    return {
        "wall_ms_under_profiler": round(wall, 2),
        "busy_ms": round(sum(by_group.values()), 2),
        "by_kind_ms": {k: round(v, 3) for k, v in sorted(by_group.items())},
        "longest": [
            {"kernel": e.key[:90], "ms": round(milliseconds(e), 3), "calls": e.count}
            for e in longest
        ],
    }


def show(record: dict[str, Any]) -> None:
    print(f"\n{record['device']}, torch {record['torch']}")
    for name, value in record["ceilings"].items():
        print(f"  {name:40s} {value:14,.1f}")
    print(
        f"{'batch':>6s} {'compile':>28s} {'pad':>3s} {'ms':>8s} {'views/s':>9s} "
        f"{'warm':>6s} parts"
    )
    for row in record["variants"]:
        head = f"{row['batch_size']:6d} {row['compile']:>28s} {row['channels']:3d}"
        if "error" in row:
            print(head, row["error"][:100])
            continue
        pieces = "  ".join(f"{k} {v}" for k, v in row.get("parts_ms", {}).items())
        speed = f"{row['step_ms']:8.2f} {row['views_per_second']:9,d}"
        print(head, speed, f"{row['warm_up_seconds']:6.1f}", pieces)
    if "busy_ms" in record.get("kernels", {}):
        table = record["kernels"]
        print(f"device busy {table['busy_ms']} ms of a step; by kind:")
        for kind, value in table["by_kind_ms"].items():
            print(f"  {kind:40s} {value:8.3f}")
        for row in table["longest"]:
            print(f"  {row['ms']:8.3f} ms {row['calls']:5d} x {row['kernel']}")


if __name__ == "__main__":
    main()
