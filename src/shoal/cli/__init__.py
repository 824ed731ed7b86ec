"""The command line; see :mod:`shoal.cli._app` for its commands.

Nothing here imports numpy or scikit-learn before a command needs them.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code (the console script ``shoal``)."""
    from typer.main import get_command

    from shoal.cli._app import app
    from shoal.cli._messages import COMMAND_LINE, FULL
    from shoal.exceptions import CodedError

    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        # A terminal or file of an old encoding shows "?" for what it cannot write.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    COMMAND_LINE.set(tuple(given))
    try:
        with _ended_by_signal():
            run = get_command(app).main
            code = run(given, prog_name="shoal", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the results has read enough
        _let_go()
        code = 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        _let_go()
        text = f"cannot write: {error.strerror}"
        full = CodedError("E140", text, "make room, or choose another place")
        code = _fail(full, given[0], given)
    except KeyboardInterrupt:
        code = 130
    except CodedError as error:  # before a command began, such as in its --config
        code = _fail(error, given[0], given)
    except Exception as error:
        # typer's own errors, wherever its version keeps their classes
        if not hasattr(error, "format_message"):
            raise
        code = _fail_usage(error, given)
    sys.exit(code or 0)


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Let SIGTERM, of schedulers and containers, end a command as Ctrl-C does.

    Processes forked from this one, such as those that load images, just end.
    """
    main = os.getpid()

    def end(number: int, _: Any) -> None:
        if os.getpid() != main:
            os._exit(128 + number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may ask for signals
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _let_go() -> None:
    """Write to standard output no more: what is left in it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail_usage(error: Any, arguments: Sequence[str]) -> int:
    """Tell a wrong command line in the form of every other error."""
    from shoal.cli._messages import usage_message

    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "shoal"
    name = path.removeprefix("shoal").strip()
    return _fail(usage_message(error, arguments), name, arguments)


def _fail(told: Any, command: str, arguments: Sequence[str]) -> int:
    """Tell an error that arose before a command could; its exit code."""
    from shoal.cli._messages import Notice
    from shoal.cli._options import Speech
    from shoal.cli._output import Output

    as_json, no_color = (flag in arguments for flag in ("--json", "--no-color"))
    output = Output(command, Speech(as_json=as_json, no_color=no_color))
    return output.fail(Notice(told.code, told.text, told.hint)).exit_code
