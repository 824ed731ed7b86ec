"""Options that commands share, spelled once, grouped, and read from --config."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from shoal.cli._messages import CommandError
from shoal.cli._output import COMMAND_LINE

# ---- groups --------------------------------------------------------------------------


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Spread the dataclasses that a command takes into options of their own."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if is_dataclass(hint)
    }

    @functools.wraps(command)
    def spread(**given: Any) -> None:
        for name, group in groups.items():
            own = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**own)
        command(**given)

    parameters = [
        parameter
        for name, original in inspect.signature(command).parameters.items()
        for parameter in (_fields_of(groups[name]) if name in groups else [original])
    ]
    _set_signature(spread, parameters)
    return spread


def _fields_of(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=(
                inspect.Parameter.empty if field.default is MISSING else field.default
            ),
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _set_signature(function: Any, parameters: list[inspect.Parameter]) -> None:
    # All by keyword: an option without a default may then follow one with.
    by_keyword = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in parameters
    ]
    function.__signature__ = inspect.Signature(by_keyword)
    function.__annotations__ = {one.name: one.annotation for one in by_keyword}
    del function.__wrapped__  # or typer would look behind it


# ---- Options that would be overlooked in silence are refused instead -----------------

# What is computed without a network is computed there anyway.
HONOURED = ("auto", "cpu")


def is_typed(option: str) -> bool:
    """Whether an option stands on the command line.

    One in a file of options (``--config``) may be meant for other commands.
    """
    words = COMMAND_LINE.get()
    return any(word == option or word.startswith(f"{option}=") for word in words)


def refuse_no_encoder(encoder: Any) -> None:
    """Raise E002 for options of a network where --encoder names none."""
    if encoder.given:
        return
    given = {
        "--fine-tune": getattr(encoder, "fine_tune", False),
        "--size": encoder.size is not None,
        "--device": encoder.device not in HONOURED,
    }
    hint = "leave it out, or name a network with --encoder"
    refuse_idle(given, "is for the network that --encoder names", hint)


def refuse_device(device: str) -> None:
    """Raise E002 for the device of a model that has no network."""
    given = {"--device": device not in HONOURED}
    refuse_idle(given, "is for images, and this model takes none")


def refuse_idle(
    given: Mapping[str, bool], why: str, hint: str = "leave it out"
) -> None:
    """Raise E002 for the first option that was typed."""
    for option, is_given in given.items():
        if is_given and is_typed(option):
            raise CommandError("E002", f"{option} {why}", hint)


# ---- ``--config shoal.toml``: options from a file; the command line wins -------------


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in a TOML file the defaults of the command at hand."""
    if path is None:
        return None
    content = _read(path)
    commands = getattr(context.parent and context.parent.command, "commands", {})
    shared = {key: value for key, value in content.items() if key not in commands}
    _refuse_unknown(path, shared, commands.values())
    own = _check_table(
        path, context.command, content.get(str(context.command.name), {})
    )
    names = _option_names(context.command)
    context.default_map = {
        names[_spelled(key)].name: _check_value(path, key, value, names[_spelled(key)])
        for key, value in (shared | own).items()
        if _spelled(key) in names
    }
    return path


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise _unusable(path, f"cannot be read: {reason}", "check --config") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise _unusable(
            path, f"is not TOML: {error}", "see `shoal explain E002`"
        ) from error


def _option_names(command: Any) -> dict[str, Any]:
    """Options of a command by their long names without dashes."""
    return {
        name.removeprefix("--"): option
        for option in command.params
        for name in option.opts
        if name.startswith("--") and name != "--config"
    }


def _refuse_unknown(path: Path, keys: Iterable[str], commands: Iterable[Any]) -> None:
    known = {name for command in commands for name in _option_names(command)}
    for key in keys:
        if _spelled(key) not in known:
            raise _unknown(path, key, known)


def _check_table(path: Path, command: Any, table: Any) -> dict[str, Any]:
    known = _option_names(command)
    if not isinstance(table, dict):
        raise _unusable(
            path,
            f"has {command.name} = {table!r}",
            f"make it a table, [{command.name}]",
        )
    for key in table:
        if _spelled(key) not in known:
            raise _unknown(path, f"{command.name}.{key}", known)
    return table


def _check_value(path: Path, key: str, value: Any, option: Any) -> Any:
    """The value, if it is of the option's kind; typer looks at the rest."""
    flag, many = getattr(option, "is_flag", False), getattr(option, "multiple", False)
    if flag != isinstance(value, bool):
        kind = "true or false" if flag else "a value, not true or false"
        raise _unusable(path, f"has {key} = {value!r}", f"{key} takes {kind}")
    if isinstance(value, (dict, list)) and not (many and isinstance(value, list)):
        raise _unusable(path, f"has {key} = {value!r}", f"{key} takes one value")
    if many:
        return [str(one) for one in (value if isinstance(value, list) else [value])]
    return value if flag else str(value)


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _unknown(path: Path, key: str, known: Iterable[str]) -> CommandError:
    near = get_close_matches(_spelled(key.rpartition(".")[2]), known, n=1, cutoff=0)
    hint = f'nearest: "{near[0]}"' if near else "see `shoal --help`"
    return _unusable(path, f'has an unknown option "{key}"', hint)


def _unusable(path: Path, text: str, hint: str) -> CommandError:
    return CommandError("E002", f'"{path}" {text}', hint)


# ---- Options that commands share, spelled once ---------------------------------------

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
        """As :func:`shoal.cli._output.running` takes them."""
        return {
            "as_json": self.as_json,
            "quiet": self.quiet,
            "verbose": self.verbose,
            "color": not self.no_color,
            "strict": self.strict,
            "debug": self.debug,
        }
