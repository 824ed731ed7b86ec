"""Processes that are killed at a chosen step of what they write.

Every call of Python that opens, renames, links, makes or removes something is a step
(``sys.addaudithook``); so is the search for the system's call that exchanges folders.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal.io import _swap

STEPS = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir",
         "os.scandir", "os.chmod", "ctypes.dlsym")  # fmt: skip
DONE, FAILED = 0, 3


def in_child(body: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> int:
    """Run something in a fork of this process; how it ended, -9 if it was killed."""
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            before()
            body()
            code = DONE
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, below: Path) -> Callable[[], None]:
    """Let this process die at a step that writes, or looks, below a folder."""
    left = number

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in STEPS:
            return
        where = os.path.abspath(str(arguments[0]))
        if event == "ctypes.dlsym" or str(below) in where:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.addaudithook(hook)


def all_kills(
    body: Callable[[], Any],
    below: Path,
    prepare: Callable[[], Any],
    check: Callable[[int], Any],
    every: int = 1,
) -> int:
    """Kill ``body`` at every step, each time from the start; how many there were.

    ``check`` is called after each, with the number of the step.
    """
    number = 0
    while True:
        prepare()
        code = in_child(body, killed_at(number, below))
        if code == DONE:
            return number // every
        assert code == -signal.SIGKILL, (number, code)
        check(number)
        number += every


def without_exchange() -> None:
    """As on a system that knows no such call."""
    _swap.exchange = lambda one, other: False
