"""What a run cost and where it ran: seconds, memory, device, versions."""

import os
import platform
import subprocess
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import shoal

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "faiss-cpu")
MIB = 2**20


class Meter:
    """Context manager that measures the seconds and the peak memory of its body.

    Parameters
    ----------
    gpu : bool, default=False
        Whether the body computes on a GPU, if there is one.

    Attributes
    ----------
    seconds : float
    peak_mib : float or None
        Most memory that the process held, what was there before included; None where
        the system does not tell.
    gpu_mib : float or None
        Most memory allocated on the GPU; None without one.
    device : str
    """

    def __init__(self, *, gpu: bool = False) -> None:
        self._gpu = _find_gpu() if gpu else None

    def __enter__(self) -> Self:
        _reset_peak()
        if self._gpu is not None:
            self._gpu.reset_peak_memory_stats()
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        gpu = self._gpu
        if gpu is not None:
            gpu.synchronize()
        self.seconds = time.perf_counter() - self._begun
        self.peak_mib = _peak_mib()
        self.gpu_mib = None if gpu is None else gpu.max_memory_allocated() / MIB
        self.device = _cpu_name() if gpu is None else gpu.get_device_name()


def provenance() -> dict[str, Any]:
    """Versions of what computes, and the revision of a source checkout (or None)."""
    found = {name: _installed(name) for name in PACKAGES}
    return {
        "versions": {
            "shoal": shoal.__version__,
            "python": platform.python_version(),
            **{name: known for name, known in found.items() if known},
        },
        "revision": _revision(),
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _revision() -> str | None:
    """Commit of the checkout that shoal runs from, with ``+`` if files differ.

    Files of ``results`` do not count: a store that is being filled always differs.
    Machines without git are told by the variable ``SHOAL_REVISION``.
    """
    try:
        commit = _git("describe", "--always", "--abbrev=12", "--exclude=*")
        changed = _git(
            "diff", "--name-only", "HEAD", "--", ":/", ":(top,exclude)results"
        )
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("SHOAL_REVISION")
    return commit + "+" * bool(changed) or None


def _git(*arguments: str) -> str:
    """What git says of the checkout that shoal runs from."""
    found = subprocess.run(
        ["git", *arguments],
        cwd=Path(shoal.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return found.stdout.strip()


def _find_gpu() -> Any:
    """``torch.cuda`` if there is one; torch itself is never imported here."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return torch.cuda


def _reset_peak() -> None:
    """Let the kernel forget the peak so far (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak_mib() -> float | None:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0].split()[1]) / 1024 if lines else None


@cache
def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    model = names[0] if names else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores"
