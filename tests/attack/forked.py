"""Run a command in a copy of this process, with its time, memory and words watched."""

import os
import re
import resource
import signal
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What no attack may exceed: seconds of a processor, and those on the wall, which
#: run on while others compute.
MOST_SECONDS = 60
MOST_WAITING = 300
MOST_BYTES = 2 * 2**30
# Hit only by what would exceed it anyway, so that the machine survives the attack.
CEILING = 6 * 2**30

#: Modules that nearly every command needs, imported once before the copies are made.
HEAVY = ("numpy", "pandas", "scipy.sparse", "pyarrow.parquet", "PIL.Image", "sklearn",
         "shoal.cli._app", "shoal.io._read", "shoal.io.model._models",
         "shoal.report._page")  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes
    ----------
    code : int or None
        Its exit status; None where it had to be stopped, negative by a signal.
    said : bytes
        Everything on stdout and stderr.
    seconds, peak : float
        Seconds of a processor that it took, and the most memory it held.
    """

    code: int | None
    said: bytes
    seconds: float
    peak: float

    @property
    def error(self) -> str:
        """The code of the error it ended with; empty where it ended well."""
        found = re.search(rb"error\[([A-Z]\d+)\]", self.said)
        return found[1].decode() if found else ""

    def faults(self) -> list[str]:
        """What must not be, in words; empty for an end as it should be."""
        text = self.said.decode("utf-8", "surrogateescape")
        found = {
            "ran too long": self.code is None or self.seconds > MOST_SECONDS,
            f"ended by signal {self.code}": (self.code or 0) < 0,
            "over 2 GiB": self.peak > MOST_BYTES,
            "a foreign exception": "Traceback (most recent" in text,
            "a bug (E001)": self.error == "E001",
            f"exit code {self.code}": self.code in (1,) or (self.code or 0) > 7,
            "failed without a code": self.code in range(2, 7) and not self.error,
            "several lines": len(re.findall(r"^error\[", text, re.M)) > 1,
            "bytes that are not printable": not is_printable(text),
        }
        return [what for what, is_so in found.items() if is_so]


def is_printable(text: str) -> bool:
    """Whether text does nothing to a terminal but show characters and new lines."""
    kinds = {unicodedata.category(one) for one in set(text) - {"\n"}}
    return not kinds & {"Cc", "Cs", "Zl", "Zp"}


def warm() -> None:
    """Import what the copies would import, each for itself."""
    from importlib import import_module

    for name in HEAVY:
        import_module(name)


def forked(
    work: Callable[[], Any],
    folder: Path,
    *,
    stdout: Path | None = None,
    said_to: Path | None = None,
) -> Outcome:
    """Call ``work`` in a copy of this process, inside ``folder``."""
    said = said_to or folder / ".said"
    if said_to is None:
        said.unlink(missing_ok=True)
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        _work(work, folder, said, stdout)
    code: int | None = None
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() - begun > MOST_WAITING:
            os.killpg(child, signal.SIGKILL)
            _, _, usage = os.wait4(child, 0)
            break
        time.sleep(0.005)
    peak = usage.ru_maxrss * 1024
    text = b"" if said_to else said.read_bytes()
    return Outcome(code, text, usage.ru_utime + usage.ru_stime, peak)


def _work(
    work: Callable[[], Any], folder: Path, said: Path, stdout: Path | None
) -> None:
    """The part of the copy; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_DATA, (CEILING, CEILING))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
        file = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        out = file if stdout is None else os.open(stdout, os.O_WRONLY)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(file, 2)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", closefd=False, buffering=1)
            for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
        finally:
            os._exit(code)


def shoal(
    arguments: Sequence[str], folder: Path, *, stdout: Path | None = None
) -> Outcome:
    """Run the command line in a copy of this process."""
    from shoal.cli import main

    return forked(lambda: main(list(arguments)), folder, stdout=stdout)
