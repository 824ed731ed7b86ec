"""``--config shoal.toml``: options from a file; the command line wins.

Keys are the long names of options, at the top for every command that has them, or in
a table such as ``[fit]`` for one command.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from shoal.cli.messages import CommandError

__all__ = ["read_config"]


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
            path, f"is not TOML: {error}", "see `shoal explain E160`"
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
    return CommandError("E160", f'"{path}" {text}', hint)
