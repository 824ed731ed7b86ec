"""How a command begins and ends: signals, its errors, --config, a second process."""

import atexit
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.main import get_command

from shoal.cli._messages import COMMAND_LINE, FULL, CommandError, Notice, usage_message
from shoal.exceptions import CodedError


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code (the console script ``shoal``)."""
    from shoal.cli._app import app

    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    _open_closed()
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
        _let_go(sys.stdout)
        code = 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        _let_go(sys.stdout)
        code = _fail_full(error, given)
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


def _open_closed() -> None:
    """Let words go nowhere where a standard stream was closed (``shoal fit >&-``).

    The next file that is opened would be taken for it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))


def _let_go(stream: Any) -> None:
    """Write to a standard stream no more: what is left in it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail_full(error: OSError, arguments: Sequence[str]) -> int:
    """Tell a full disk; the exit code alone does where its words do not fit either."""
    text = f"cannot write: {error.strerror}"
    full = CodedError("E140", text, "make room, or choose another place")
    try:
        return _fail(full, arguments[0], arguments)
    except OSError:
        _let_go(sys.stderr)
        return _fail(full, arguments[0], arguments)


def _fail_usage(error: Any, arguments: Sequence[str]) -> int:
    """Tell a wrong command line in the form of every other error."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "shoal"
    name = path.removeprefix("shoal").strip()
    return _fail(usage_message(error, arguments), name, arguments)


def _fail(told: Any, command: str, arguments: Sequence[str]) -> int:
    """Tell an error that arose before a command could; its exit code."""
    from shoal.cli._options import Speech
    from shoal.cli._output import Output

    as_json, no_color = (flag in arguments for flag in ("--json", "--no-color"))
    output = Output(command, Speech(as_json=as_json, no_color=no_color))
    return output.fail(Notice(told.code, told.text, told.hint)).exit_code


# ---- --config shoal.toml: options from a file; the command line wins -----------------


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in a TOML file the defaults of the command at hand."""
    if path is None:
        return None
    content = _read(path)
    commands = getattr(context.parent and context.parent.command, "commands", {})
    shared = {key: value for key, value in content.items() if key not in commands}
    known = {name for command in commands.values() for name in _option_names(command)}
    _refuse_unknown(path, shared, known)
    own = content.get(str(context.command.name), {})
    _check_table(path, context.command, own)
    names = _option_names(context.command)
    context.default_map = {
        names[_spelled(key)].name: _check_value(path, key, value, names[_spelled(key)])
        for key, value in (shared | own).items()
        if _spelled(key) in names
    }
    return path


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    from shoal.io._files import refuse_special

    try:
        refuse_special(path)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise _unusable(path, f"cannot be read: {reason}", "check --config") from error
    except CodedError:
        raise
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or endless
        hint = "see `shoal explain E002`"
        raise _unusable(path, f"is not TOML: {error}", hint) from error


def _option_names(command: Any) -> dict[str, Any]:
    """Options of a command by their long names without dashes."""
    return {
        name.removeprefix("--"): option
        for option in command.params
        for name in option.opts
        if name.startswith("--") and name != "--config"
    }


def _check_table(path: Path, command: Any, table: Any) -> None:
    if not isinstance(table, dict):
        hint = f"make it a table, [{command.name}]"
        raise _unusable(path, f"has {command.name} = {table!r}", hint)
    _refuse_unknown(path, table, _option_names(command), f"{command.name}.")


def _refuse_unknown(
    path: Path, keys: Iterable[str], known: Iterable[str], table: str = ""
) -> None:
    for key in keys:
        if _spelled(key) not in known:
            near = get_close_matches(_spelled(key), known, n=1, cutoff=0)
            hint = f'nearest: "{near[0]}"' if near else "see `shoal --help`"
            raise _unusable(path, f'has an unknown option "{table}{key}"', hint)


def _check_value(path: Path, key: str, value: Any, option: Any) -> Any:
    """The value, if it is of the option's kind; typer looks at the rest."""
    flag, many = getattr(option, "is_flag", False), getattr(option, "multiple", False)
    takes = ""
    if flag != isinstance(value, bool):
        takes = "true or false" if flag else "a value, not true or false"
    elif isinstance(value, (dict, list)) and not (many and isinstance(value, list)):
        takes = "one value"
    if takes:
        raise _unusable(path, f"has {key} = {value!r}", f"{key} takes {takes}")
    if many:
        return [str(one) for one in (value if isinstance(value, list) else [value])]
    return value if flag else str(value)


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _unusable(path: Path, text: str, hint: str) -> CommandError:
    return CommandError("E002", f'"{path}" {text}', hint)


# ---- a command that Ray may end, in a second process ---------------------------------
# Where the node is lost that a process is connected to (its raylet, or an agent of it,
# is killed), Ray ends that process at once, whatever it was doing: nobody is left to
# say what happened. So the command runs in a second process, and the first one waits
# for it.

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
