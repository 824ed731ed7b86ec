"""Options that commands share, spelled once."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.config import read_config

__all__ = [
    "Force",
    "Level",
    "Out",
    "Redact",
    "Speech",
    "Work",
    "speaking",
    "working",
]

working = partial(typer.Option, rich_help_panel="How it works")
speaking = partial(typer.Option, rich_help_panel="What it says and writes")

Out = Annotated[
    Path | None, speaking("--out", metavar="DIR", help="Folder for the results.")
]
Force = Annotated[bool, speaking("--force", help="Overwrite what is in the way.")]
Redact = Annotated[
    bool,
    speaking("--redact", help="No rows, ids, words or rare values in what is written."),
]
Level = Annotated[
    float,
    working("--level", min=0.01, max=0.999, help="Coverage of the intervals."),
]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What all computing commands share."""

    seed: Annotated[int, working("--seed", min=0, help="Seed of all chance.")] = 0
    threads: Annotated[
        int | None,
        working("--threads", min=1, help="All cores if not given; changes no result."),
    ] = None

    @property
    def n_jobs(self) -> int:
        """As estimators take it."""
        return -1 if self.threads is None else self.threads


@dataclass(frozen=True, kw_only=True)
class Speech:
    """How a command speaks."""

    as_json: Annotated[
        bool, speaking("--json", help="Print one JSON document instead of tables.")
    ] = False
    quiet: Annotated[
        bool, speaking("--quiet", "-q", help="Print nothing but errors (and --json).")
    ] = False
    verbose: Annotated[
        bool, speaking("--verbose", "-v", help="Lines instead of a bar, with memory.")
    ] = False
    no_color: Annotated[
        bool, speaking("--no-color", help="No colour; NO_COLOR does the same.")
    ] = False
    strict: Annotated[
        bool, speaking("--strict", help="End with exit code 7 if anything warned.")
    ] = False
    debug: Annotated[
        bool, speaking("--debug", help="Show tracebacks and libraries' warnings.")
    ] = False
    config: Annotated[
        Path | None,
        speaking(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=read_config,
            help="TOML file with options; the command line wins.",
        ),
    ] = None

    @property
    def options(self) -> dict[str, Any]:
        """As :func:`shoal.cli.output.running` takes them."""
        return {
            "as_json": self.as_json,
            "quiet": self.quiet,
            "verbose": self.verbose,
            "color": not self.no_color,
            "strict": self.strict,
            "debug": self.debug,
        }
