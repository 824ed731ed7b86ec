"""Whether what a file holds would fit into memory, asked before it is read."""

from pathlib import Path

from shoal.exceptions import InputError

__all__ = ["available_memory", "check_memory", "fits"]

GIB = 2**30
# Reading keeps the columns, their encoding and the copies of a fit at the same time.
COPIES = 4
# The share of free memory that reading may count on.
ROOM = 0.8


def fits(cells: float) -> bool:
    """Whether so many numbers, and the copies of a fit, fit into the free memory."""
    free = available_memory()
    return free is None or COPIES * 8 * cells <= ROOM * free


def check_memory(cells: float, what: str) -> None:
    """Raise E137 if so many numbers would not fit into the free memory."""
    if not fits(cells):
        need, free = COPIES * 8 * cells, available_memory() or 0.0
        raise InputError(
            "E137",
            f"{what} needs about {need / GIB:.3g} GiB, {free / GIB:.3g} GiB free",
            "--sample 200000, fewer columns (--features), or, for Parquet, --engine "
            "local",
        )


def available_memory() -> float | None:
    """Free memory in bytes, the limit of a container counted; None if unknown."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = dict(line.split(":") for line in lines)
        found.append(float(sizes["MemAvailable"].split()[0]) * 1024)
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        found.append(float(limit) - float(used))
    except (OSError, ValueError, KeyError):  # another system, or no limit ("max")
        pass
    return min(found) if found else None
