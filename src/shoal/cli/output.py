"""Where a command's words go: results to stdout, everything else to stderr."""

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from shoal.cli.messages import CATALOGUE, CommandError, Message

__all__ = ["SCHEMA", "Output", "document", "running"]

SCHEMA = "shoal/1"


@dataclass
class Output:
    """What one run of a command says, and how.

    Results are shown by :meth:`show`; with ``as_json`` they are held back and one
    document with ``data``, messages and files is printed at the end instead.
    """

    command: str
    as_json: bool = False
    quiet: bool = False
    color: bool = True
    debug: bool = False
    data: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)

    def show(self, *renderables: Any) -> None:
        """Print results, unless they are wanted as JSON or not at all."""
        if not (self.quiet or self.as_json):
            self._console(sys.stdout).print(*renderables, sep="\n")

    def warn(self, code: str, text: str, hint: str) -> None:
        """Say a coded warning and keep it for the JSON document."""
        message = Message(code, text, hint)
        self.messages.append(message)
        if not self.quiet:
            self._print_message(message)

    @contextmanager
    def stages(self, names: Sequence[str]) -> Iterator[Iterator[str]]:
        """Iterator over the stages; each is announced before its work begins.

        A bar on a terminal, plain lines elsewhere (a log, a pipe), nothing if quiet.
        """
        if self.quiet:
            yield iter(names)
        elif not sys.stderr.isatty():
            yield self._plain_stages(names)
        else:
            from rich.progress import BarColumn, Progress, TimeElapsedColumn

            columns = ("{task.description}", BarColumn(20), TimeElapsedColumn())
            console = self._console(sys.stderr)
            with Progress(*columns, console=console, transient=True) as progress:
                task = progress.add_task("", total=len(names))

                def announced() -> Iterator[str]:
                    for done, name in enumerate(names):
                        progress.update(task, completed=done, description=name)
                        yield name

                yield announced()

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
        self.messages.append(message)
        self.data, self.files = {}, []
        self._print_message(message)
        self.end("error")
        return typer.Exit(CATALOGUE[message.code].exit_code)

    def _plain_stages(self, names: Sequence[str]) -> Iterator[str]:
        for number, name in enumerate(names, start=1):
            print(f"[{number}/{len(names)}] {name}", file=sys.stderr, flush=True)
            yield name

    def _print_message(self, message: Message) -> None:
        style = "bold red" if message.level == "error" else "bold yellow"
        console = self._console(sys.stderr)
        console.print(f"{message.level}[{message.code}]", style=style, end=" ")
        console.print(message.text, soft_wrap=True)
        console.print(f"hint: {message.hint}", soft_wrap=True)

    def _console(self, file: Any) -> Any:
        from rich.console import Console

        # Rich reads NO_COLOR itself; an empty value means unset, as no-color.org says.
        plain = not self.color or bool(os.environ.get("NO_COLOR"))
        return Console(file=file, no_color=plain, highlight=False, markup=False)


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
        yield output
    except CommandError as error:
        raise output.fail(error.message) from error
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
        "messages": [
            {
                "code": message.code,
                "level": message.level,
                "text": message.text,
                "hint": message.hint,
            }
            for message in messages
        ],
        "files": [path.as_posix() for path in files],
        "seconds": seconds,
    }
    return json.dumps(content, indent=2, allow_nan=False)
