"""Write docs/cli.md and docs/messages.md from the command line itself.

python scripts/cli_pages.py
"""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.main import get_command

from shoal.cli._app import EXAMPLES, app
from shoal.cli._messages import EXIT_CODES, sections
from shoal.cli._models import PlaceOptions
from shoal.cli._options import Speech, Work
from shoal.io._options import ReadOptions

#: Options that many commands take, by the names of their parameters.
SHARED = {
    "Options for reading": {field.name for field in fields(ReadOptions)},
    "Options for working": {field.name for field in fields(Work)},
    "Options for data larger than memory": {
        field.name for field in fields(PlaceOptions)
    },
    "Options for all commands": {field.name for field in fields(Speech)},
}
DOCS = Path(__file__).parents[1] / "docs"

CLI_INTRODUCTION = """\
# The command line

From a table of your own to a report in one command, to classes for a new file in a
second, to the mix of a new site in a third:

    shoal fit penguins.csv --domain island --out fitted
    shoal predict fitted more.csv
    shoal adapt fitted new-island.csv --domain-name Anvers

`shoal demo` shows all of it on data that come with the package, offline, in seconds.

**Streams.** Results go to stdout; progress, warnings and errors to stderr. With
`--json`, stdout is exactly one document, also after an error: `{"schema": "shoal/1",
"command", "status": "ok" | "warning" | "error", "data", "messages": [{"code", "level",
"text", "hint"}], "files", "seconds"}`; floats are not rounded, and keys are only added
within a schema number. `--quiet` leaves nothing but errors.

**Files.** Nothing is overwritten without `--force`. Files are written under a temporary
name and renamed when they are whole and on the disk; a run takes the place of another
in one step. So Ctrl-C, SIGTERM, a kill or a full disk leaves the one or the other, and
what a dead command left goes with the next one. A second command that writes to the
same `--out` is told. Nothing is fetched from or sent to a network.

**Messages** have a code that never changes its meaning; `shoal explain CODE` says more
([all of them](messages.md)). With `--strict`, anything that warned ends a command with
exit code 7.

**Configuration.** `--config shoal.toml` reads options from a file; what is said on the
command line wins. Keys are the long names of options, at the top for every command or
in a table for one:

    domain = "island"
    label = "species"

    [fit]
    k = 3

**Columns** are given as `a,b`; quotes protect a comma in a name, and an option given
twice adds up. What becomes of categories, dates, ids and missing values is said by
`shoal check`, column by column.

**The run folder** that `fit` writes: `model/` (JSON and plain arrays, no code),
`prevalence.csv` (domain, class_id, class_name, estimate, lo, hi, level, n_rows, flag),
`assignments.parquet` or `.csv` (row_id, domain, class, p_NAME for each class, margin,
fit_score, unsure), `class_counts.csv` (rows of each domain by class), `classes.h5ad`
(of an h5ad file), `diagnostics.json`, `draws.npz` (the resampled prevalences),
`summary.json` (all that the report says), `report.html` and `run.json` (how it was
made, and the digest of each file; commands refuse a model or summary that is not of
that run). Wherever a command takes MODEL, the run folder and its `model/` both work.

**Models from others.** A model cannot run code, start processes or take much more
memory than its size, whoever made it. Damage is found; that somebody changed it on
purpose is not, unless you sign it with a key that they do not have: `shoal sign`.

**Privacy.** `--redact` leaves rows, ids, pictures, words and values that fewer than ten
rows share, names of domains among them, out of everything that is written and said.
Names of columns and of other domains stay: a model cannot be used without them. What
may be told is on a list; a field or message that is not on it is left empty. Data read
in parts must have no such small domain (E114), and keep no checkpoint.
"""

MESSAGES_INTRODUCTION = """\
# Messages

Every message of the command line has a code, one line of text and a hint. `E` stops a
command, `W` lets it go on (exit code 7 with `--strict`), a word names a check of
`shoal diagnose`. `shoal explain CODE` prints the same text offline. Made by
`python scripts/cli_pages.py`.
"""


def cli_page() -> str:
    """The exit codes, all commands, and the options that they share."""
    group: Any = get_command(app)
    codes = [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]
    commands = [
        _command_section(group.commands[function.__name__], example)
        for function, example in EXAMPLES.items()
    ]
    fit = group.commands["fit"]
    shared = [
        f"## {title}\n\n" + _table([one for one in _options(fit) if one.name in names])
        for title, names in SHARED.items()
    ]
    head = ["| exit code | meaning |", "| --- | --- |"]
    return "\n".join([CLI_INTRODUCTION, *head, *codes, "", *commands, *shared])


def _command_section(command: Any, example: str) -> str:
    arguments = " ".join(
        _argument(one) for one in command.params if one.param_type_name == "argument"
    )
    options = _options(command)
    taken = {one.name for one in options}
    groups = [title for title, names in SHARED.items() if names <= taken]
    own = [one for one in options if not any(one.name in SHARED[t] for t in groups)]
    links = ", ".join(
        f"[{title.lower()}](#{title.lower().replace(' ', '-')})" for title in groups
    )
    lines = [
        f"## shoal {command.name}",
        "",
        f"    shoal {command.name} {arguments}".rstrip() + " [OPTIONS]",
        "",
        command.help,
        "",
        f"Example: `{example}`",
        "",
        *([_table(own)] if own else []),
        f"Also: {links}.",
        "",
    ]
    return "\n".join(lines)


def _options(command: Any) -> list[Any]:
    return [
        one
        for one in command.params
        if one.param_type_name == "option" and one.name != "help"
    ]


def _table(options: list[Any]) -> str:
    rows = [f"| {_spelling(one)} | {_meaning(one)} |" for one in options]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows, ""])


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "..." if argument.nargs == -1 else ""
    return name if argument.required else f"[{name}]"


def _spelling(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    return names if option.is_flag else f"{names} {_code(option.metavar or 'VALUE')}"


def _meaning(option: Any) -> str:
    default = option.default
    shown = default is not None and not option.is_flag and default != ()
    text = option.help.replace("|", "\\|")
    return text + (f" Default: {default}." if shown else "")


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def messages_page() -> str:
    """One entry per code, by part of the catalogue."""
    lines = [MESSAGES_INTRODUCTION]
    for title, section in sections().items():
        lines.append(f"## {title}\n")
        for code, explanation in section.items():
            exit_code = explanation.exit
            ends = f" *Exit code {exit_code}.*" if exit_code else ""
            lines.append(f"### {code}: {explanation.title}\n")
            lines.append(f"{explanation.text}{ends}\n")
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"cli.md": cli_page, "messages.md": messages_page}


def main() -> None:
    """Write both pages."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    main()
