"""A command that Ray may end, in a process of its own beside the one that was called.

Where the node is lost that a process is connected to (its raylet, or an agent of it, is
killed), Ray ends that process at once, whatever it was doing: nobody is left to say
what happened. So the command runs in a second process, and the first one waits for it.
"""

import atexit
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import typer

from shoal.cli._messages import COMMAND_LINE, CommandError

#: Tells the second process of a folder that is the first one's to remove.
VARIABLE = "SHOAL_APART"
ENDED, SAID = "ended", "said"


def run_apart(*, debug: bool) -> None:
    """Return in the second process; the first one ends here as that one did."""
    told = os.environ.pop(VARIABLE, None)
    if told is not None:
        _begin(Path(told), debug=debug)
        return
    with tempfile.TemporaryDirectory(prefix="shoal-") as name:
        code = _wait({**os.environ, VARIABLE: name})
        if not (Path(name) / ENDED).exists():
            raise _lost(code)
    raise typer.Exit(code)


def _wait(environment: dict[str, str]) -> int:
    """The exit code of this very command in another process.

    That one is of another group, so that Ctrl-C reaches it once, from here: it is told
    by the end of its standard input, which comes however this process ends.
    """
    # -P: no module is taken from the folder that we are in
    command = [sys.executable, "-P", "-m", "shoal", *COMMAND_LINE.get()]
    how: dict[str, Any] = {"stdin": subprocess.PIPE, "env": environment}
    if sys.platform != "win32":
        how["process_group"] = 0
    with subprocess.Popen(command, **how) as child:
        try:
            return child.wait()
        except KeyboardInterrupt:
            child.communicate()  # no more to come, and wait
            return child.returncode


def _begin(folder: Path, *, debug: bool) -> None:
    """Be the second process: say that it ended by itself, and end with the first.

    What Ray says of processes that were lost, to either stream, is kept from both
    unless ``debug``. Our own words go where they went before.
    """
    atexit.register((folder / ENDED).touch)
    tempfile.tempdir = str(folder)  # what is left there goes with it
    threading.Thread(target=_end_with_first, daemon=True).start()
    if debug:
        return
    sys.stdout, sys.stderr = OurWords(1), OurWords(2)
    with (folder / SAID).open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    logging.disable(logging.CRITICAL)
    threading.excepthook = _say_nothing


class OurWords(io.TextIOWrapper):
    """A standard stream as it was, on which the threads of Ray say nothing.

    Parameters
    ----------
    number : int
        1 for standard output, 2 for standard error.
    """

    def __init__(self, number: int) -> None:
        file = os.fdopen(os.dup(number), "wb")
        super().__init__(file, errors="replace", line_buffering=True)

    def write(self, text: str) -> int:
        """Write it, unless it is Ray's."""
        theirs = threading.current_thread().name.startswith("ray_")
        return len(text) if theirs else super().write(text)


def _end_with_first() -> None:
    """Interrupt this process when the first one has ended, or was interrupted."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGINT)


def _say_nothing(_: threading.ExceptHookArgs) -> None:
    """Instead of the traceback of a thread that is not ours."""


def _lost(code: int) -> CommandError:
    """The error of a second process that did not end by itself."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return CommandError(
        "E145",
        f"Ray ended the command ({how}): its node, or the cluster, was lost",
        "run it again; with --checkpoint (or --resume) it goes on from finished parts",
    )
