"""``--config shoal.toml``: options from a file; the command line wins."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from shoal.cli._messages import CommandError
from shoal.exceptions import CodedError


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

    from shoal.io._limits import refuse_special

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
