"""Names of classes: read from a file or the command line, and put on a model."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.cli.messages import CommandError

__all__ = ["bad_names", "read_names", "renamed", "split_merge", "split_pairs"]


def read_names(path: Path) -> dict[str, str]:
    """Names by class id, from a JSON file such as the report's names.json."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            "E101", f'no file or folder "{path}"', "check the path of the names"
        ) from error
    except (OSError, ValueError) as error:
        raise bad_names(f'"{path}" is not JSON: {error}') from error
    if isinstance(content, dict) and isinstance(content.get("names"), dict):
        content = content["names"]
    if not isinstance(content, dict) or not all(
        isinstance(name, str) for name in content.values()
    ):
        raise bad_names(f'"{path}" holds no names by class', '{"c0": "Adelie"}')
    return {key: name for key, name in content.items() if name}


def split_pairs(given: Sequence[str]) -> dict[str, str]:
    """Names given as ``c0=Adelie``."""
    names = {}
    for pair in given:
        key, equals, name = pair.partition("=")
        if not (equals and key.strip() and name.strip()):
            raise bad_names(f'"{pair}" is not CLASS=NAME', "c0=Adelie")
        names[key.strip()] = name.strip()
    return names


def split_merge(given: str) -> tuple[list[str], str | None]:
    """Classes and their new name, given as ``c2,c5=Gentoo``; the name may be absent."""
    classes, _, name = given.partition("=")
    keys = [key.strip() for key in classes.split(",") if key.strip()]
    if len(keys) < 2:
        raise bad_names(f'"{given}" names fewer than two classes', "c2,c5=Gentoo")
    return keys, name.strip() or None


def renamed(model: Any, names: Mapping[str, str]) -> Any:
    """The model with new names; E161 where these cannot be used."""
    try:
        return model.set_names(dict(names))
    except ValueError as error:
        raise bad_names(str(error)) from error


def bad_names(text: str, example: str = "c0=Adelie") -> CommandError:
    """The error of names that cannot be used."""
    return CommandError("E161", text, f"write names such as {example}; no two alike")
