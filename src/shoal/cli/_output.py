"""Where a command's words go: results to stdout, everything else to stderr."""

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import typer

from shoal._work import listening
from shoal.cli._messages import (
    COMMAND_LINE,
    FULL,
    CommandError,
    Notice,
    allowed,
    catalogue,
    plain,
)
from shoal.cli._options import NUMBERS, Results, Speech
from shoal.cli._stages import Stages, stages_on
from shoal.exceptions import CodedError, CodedWarning, CompileWarning, ShoalWarning
from shoal.io._notation import visible

SCHEMA = "shoal/1"
STRICT_EXIT = 7


@dataclass
class Output:
    """What one run of a command says, and how.

    Results are shown by :meth:`show`; with ``--json`` they are held back and one
    document with ``data``, messages and files is printed at the end instead. With
    ``redact``, data and messages hold only what is allowed.
    """

    command: str
    speech: Speech = Speech()
    redact: bool = False
    plain_csv: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    messages: list[Notice] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    arguments: tuple[str, ...] = field(default_factory=COMMAND_LINE.get)
    begun: float = field(default_factory=time.perf_counter)
    piped: bool = False
    at: Stages = field(init=False)

    def allowed(self, content: dict[str, Any]) -> dict[str, Any]:
        """A document for a file or for the reader, as far as it may be told."""
        return allowed(content) if self.redact else content

    def found(self, data: dict[str, Any]) -> None:
        """Keep what was found, to be shown or printed as JSON."""
        self.data = self.allowed(data)

    def show(self, *renderables: Any) -> None:
        """Print results, unless they are wanted as JSON, as a file or not at all."""
        if not (self.speech.quiet or self.speech.as_json or self.piped):
            console = self._console(sys.stdout)
            try:
                for one in renderables:
                    # lines to copy must not be broken; tables know how to fit
                    console.print(one, soft_wrap=isinstance(one, str))
            except SystemExit as error:  # rich's answer to a reader who left
                raise BrokenPipeError from error

    def show_files(self) -> None:
        """Tell what was written."""
        if self.files:
            self.show("Written: " + ", ".join(map(str, self.files)))

    def warn(self, code: str, text: str, hint: str) -> None:
        """Say a coded warning, once, and keep it for the JSON document."""
        message = self._safe(Notice(code, text, hint, "warning"))
        if message in self.messages:
            return
        self.messages.append(message)
        if not self.speech.quiet:
            self._print_message(message)

    def warn_all(self, messages: Iterable[Any]) -> None:
        """Say what reading noticed."""
        for message in messages:
            self.warn(message.code, message.text, message.hint)

    @contextmanager
    def stages(self, plan: Mapping[str, str]) -> Iterator[Stages]:
        """Stages of the work; each is announced before it begins, unless quiet."""
        if self.speech.quiet:
            self.at = Stages(plan, lambda stages: None)
            yield self.at
            return
        console, verbose = self._console(sys.stderr), self.speech.verbose
        with stages_on(console, plan, verbose=verbose) as self.at:
            with listening(self.at.advance):
                yield self.at

    def begin(self, stage: str) -> None:
        """Announce a stage of the work before it begins."""
        self.at.begin(stage)

    def progress(self, part: str, share: float) -> None:
        """How much of a stage is done, as :mod:`shoal.scale` tells it."""
        self.at.advance(share, part)

    def end(self, status: str) -> None:
        """Print the one JSON document of a run, if that is what was asked for."""
        if not self.speech.as_json:
            return
        content = {
            "schema": SCHEMA,
            "command": self.command,
            "status": status,
            "data": self.data,
            "messages": [asdict(message) for message in self.messages],
            "files": [path.as_posix() for path in self.files],
            "seconds": time.perf_counter() - self.begun,
        }
        text = json.dumps(plain(content), indent=2, allow_nan=False)
        print(visible(text, lines=True))  # JSON itself leaves only DEL as it is

    def fail(self, message: Notice) -> typer.Exit:
        """Report an error; the caller raises what comes back."""
        message = self._safe(message)
        self.messages.append(message)
        self.data, self.files = {}, []
        self._print_message(message)
        self.end("error")
        return typer.Exit(message.exit_code)

    def _safe(self, message: Notice) -> Notice:
        """The message, without what it may quote where that is to be left out."""
        told = catalogue()[message.code]
        if not self.redact or told.safe:
            return message
        hint = f"`shoal explain {message.code}`; without --redact it is said in full"
        return replace(message, text=told.title, hint=hint)

    def _print_message(self, message: Notice) -> None:
        style = "bold red" if message.level == "error" else "bold yellow"
        console = self._console(sys.stderr)
        console.print(f"{message.level}[{message.code}]", style=style, end=" ")
        console.print(visible(message.text.strip()), soft_wrap=True)
        console.print(f"hint: {visible(message.hint.strip())}", soft_wrap=True)

    def _console(self, file: Any) -> Any:
        # Rich reads NO_COLOR itself; an empty value means unset, as no-color.org says.
        plain = self.speech.no_color or bool(os.environ.get("NO_COLOR"))
        has_edge = file.isatty() or "COLUMNS" in os.environ
        width = None if has_edge else NUMBERS.wide
        return _safe_console()(
            file=file, no_color=plain, highlight=False, markup=False, width=width
        )


#: Names of standard output, for --out.
PIPES = ("-", "/dev/stdout")


@contextmanager
def destination(
    output: Output, out: Path | None, default: Path, printed: str = ""
) -> Iterator[Path]:
    """Where to write: as told, by default, or a file to print then (``--out -``).

    It is printed when it is whole, so that a reader at the other end of a pipe never
    gets half of it; nothing else goes to standard output then.

    Parameters
    ----------
    output : Output
    out : Path or None
        As told.
    default : Path
        Where nothing was told.
    printed : str
        Of a folder, the entry to print.
    """
    if out is None or str(out) not in PIPES:
        yield default if out is None else out
        return
    if output.speech.as_json:
        text = "--json and --out - both want standard output"
        raise CommandError("E002", text, "leave one of them out")
    output.piped = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "out" if printed else "out.csv")
        yield path
        with (path / printed if printed else path).open("rb") as file:
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
    output.files = []


@cache
def _safe_console() -> Any:
    """A rich console whose texts cannot speak to the terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """Spells out control characters in whatever is printed."""

        def render(self, renderable: Any, options: Any = None) -> Any:
            for one in super().render(renderable, options):
                text = one.text if one.control else visible(one.text, lines=True)
                yield one if text == one.text else Segment(text, one.style)

    return SafeConsole


@contextmanager
def running(
    command: str, speech: Speech, results: Results | None = None
) -> Iterator[Output]:
    """Run the body of a command; whatever ends it becomes a message and an exit code.

    Parameters
    ----------
    command : str
        Its name.
    speech : Speech
        How it speaks.
    results : Results, default=None
        Whether only what is allowed may be said and written, and whether cells of CSV
        files are written as they are.
    """
    told = results or Results()
    output = Output(command, speech, told.redact, told.plain_csv)
    try:
        with _coded_warnings(output):
            yield output
    except CodedError as error:
        # a code without an entry would be a bug in shoal
        code = error.code if error.code in catalogue() else "E001"
        raise output.fail(Notice(code, error.text, error.hint)) from error
    except KeyboardInterrupt as error:
        text = "interrupted; no file is half-written"
        hint = "run the command again"
        raise output.fail(Notice("E003", text, hint)) from error
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise  # where it is told, standard output can be let go of
        if speech.debug:
            traceback.print_exc()
        text = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
        hint = "run again with --debug and report it with the output of `shoal version`"
        raise output.fail(Notice("E001", text, hint)) from error
    output.end("warning" if output.messages else "ok")
    if speech.strict and output.messages:
        raise typer.Exit(STRICT_EXIT)


@contextmanager
def _coded_warnings(output: Output) -> Iterator[None]:
    """Warnings of estimators as coded messages; those of libraries with --debug."""

    def say(message: Any, category: type[Warning], *place: Any) -> None:
        if issubclass(category, CompileWarning):
            text = str(message).partition("; ")[0]
            output.warn("W161", text, "nothing: the results are the same, only later")
        elif isinstance(message, CodedWarning) and message.code in catalogue():
            output.warn_all([message])
        elif issubclass(category, ShoalWarning):
            output.warn("W161", str(message), "see `shoal diagnose` for all checks")
        elif output.speech.debug:
            print(visible(f"{category.__name__}: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = say  # type: ignore[assignment]
        yield
