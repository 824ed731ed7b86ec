"""Where a command's words go: results to stdout, everything else to stderr."""

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from shoal.cli.messages import CATALOGUE, Message
from shoal.cli.plain import plain
from shoal.cli.progress import Stage, Stages, stages_on
from shoal.cli.redacting import QUOTING
from shoal.exceptions import CodedError, CodedWarning, CompileWarning, ShoalWarning

__all__ = ["COMMAND_LINE", "SCHEMA", "STRICT_EXIT", "Output", "document", "running"]

SCHEMA = "shoal/1"
STRICT_EXIT = 7
WIDE = 200
#: The words after ``shoal``, for the record of a run.
COMMAND_LINE: ContextVar[tuple[str, ...]] = ContextVar("COMMAND_LINE", default=())


@dataclass
class Output:
    """What one run of a command says, and how.

    Results are shown by :meth:`show`; with ``as_json`` they are held back and one
    document with ``data``, messages and files is printed at the end instead. With
    ``redact``, messages that may quote a cell say only what they are about.
    """

    command: str
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: bool = True
    debug: bool = False
    strict: bool = False
    redact: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    arguments: tuple[str, ...] = field(default_factory=COMMAND_LINE.get)
    begun: float = field(default_factory=time.perf_counter)

    def show(self, *renderables: Any) -> None:
        """Print results, unless they are wanted as JSON or not at all."""
        if not (self.quiet or self.as_json):
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
        message = self._safe(Message(code, text, hint, "warning"))
        if message in self.messages:
            return
        self.messages.append(message)
        if not self.quiet:
            self._print_message(message)

    def stages(self, plan: Mapping[str, Stage]) -> AbstractContextManager[Stages]:
        """Stages of the work; each is announced before it begins, unless quiet."""
        if self.quiet:
            return nullcontext(Stages(plan, lambda stages: None))
        return stages_on(self._console(sys.stderr), plan, verbose=self.verbose)

    def end(self, status: str) -> None:
        """Print the JSON document if that is what was asked for."""
        if self.as_json:
            seconds = time.perf_counter() - self.begun
            print(
                document(
                    self.command, status, self.data, self.messages, self.files, seconds
                )
            )

    def fail(self, message: Message) -> typer.Exit:
        """Report an error; the caller raises what comes back."""
        message = self._safe(message)
        self.messages.append(message)
        self.data, self.files = {}, []
        self._print_message(message)
        self.end("error")
        return typer.Exit(message.exit_code)

    def _safe(self, message: Message) -> Message:
        """The message, without what it may quote where that is to be left out."""
        if not self.redact or message.code not in QUOTING:
            return message
        text = CATALOGUE[message.code].title
        hint = f"`shoal explain {message.code}`; without --redact it is said in full"
        return replace(message, text=text, hint=hint)

    def _print_message(self, message: Message) -> None:
        style = "bold red" if message.level == "error" else "bold yellow"
        console = self._console(sys.stderr)
        console.print(f"{message.level}[{message.code}]", style=style, end=" ")
        console.print(one_line(message.text), soft_wrap=True)
        console.print(f"hint: {one_line(message.hint)}", soft_wrap=True)

    def _console(self, file: Any) -> Any:
        from rich.console import Console

        # Rich reads NO_COLOR itself; an empty value means unset, as no-color.org says.
        plain = not self.color or bool(os.environ.get("NO_COLOR"))
        # A file has no edge at which a table would have to break its cells.
        width = None if file.isatty() or "COLUMNS" in os.environ else WIDE
        return Console(
            file=file, no_color=plain, highlight=False, markup=False, width=width
        )


def one_line(text: str) -> str:
    """Text without line breaks: names of columns and files may hold them."""
    return " ".join(text.split())


@contextmanager
def running(command: str, **options: Any) -> Iterator[Output]:
    """Run the body of a command; whatever ends it becomes a message and an exit code.

    Parameters
    ----------
    command : str
        Its name.
    **options
        Of :class:`Output`.
    """
    output = Output(command, **options)
    try:
        with _coded_warnings(output):
            yield output
    except CodedError as error:
        raise output.fail(_message_of(error)) from error
    except KeyboardInterrupt as error:
        text = "interrupted; no file is half-written"
        hint = "run the command again"
        raise output.fail(Message("E003", text, hint)) from error
    except (typer.Exit, BrokenPipeError):
        raise
    except Exception as error:
        if output.debug:
            traceback.print_exc()
        text = f"unexpected {type(error).__name__}: {error}"
        hint = "run again with --debug and report it with the output of `shoal version`"
        raise output.fail(Message("E001", text, hint)) from error
    output.end("warning" if output.messages else "ok")
    if output.strict and output.messages:
        raise typer.Exit(STRICT_EXIT)


def _message_of(error: CodedError) -> Message:
    """The message of an error; a code without an entry would be a bug in shoal."""
    code = error.code if error.code in CATALOGUE else "E001"
    return Message(code, error.text, error.hint)


@contextmanager
def _coded_warnings(output: Output) -> Iterator[None]:
    """Warnings of estimators as coded messages; those of libraries with --debug."""

    def say(message: Any, category: type[Warning], *place: Any) -> None:
        if issubclass(category, CompileWarning):
            text = str(message).partition("; ")[0]
            output.warn("W165", text, "nothing: the results are the same, only later")
        elif isinstance(message, CodedWarning) and message.code in CATALOGUE:
            output.warn(message.code, message.text, message.hint)
        elif issubclass(category, ShoalWarning):
            output.warn("W161", str(message), "see `shoal diagnose` for all checks")
        elif output.debug:
            print(f"{category.__name__}: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = say  # type: ignore[assignment]
        yield


def document(
    command: str,
    status: str,
    data: Mapping[str, Any],
    messages: Sequence[Message],
    files: Sequence[Path],
    seconds: float,
) -> str:
    """The one JSON document of a run; floats are not rounded."""
    content = {
        "schema": SCHEMA,
        "command": command,
        "status": status,
        "data": data,
        "messages": [message.to_dict() for message in messages],
        "files": [path.as_posix() for path in files],
        "seconds": seconds,
    }
    return json.dumps(plain(content), indent=2, allow_nan=False)
