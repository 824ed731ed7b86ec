"""Names of classes: read from a file or the command line, and put on a model."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError
from shoal.cli._reading import split_names

if TYPE_CHECKING:
    from shoal.cli._output import Output
    from shoal.io import Table


#: Names by class id, for a fitted model and the table that it was fitted to.
Names = Callable[["Output", Any, "Table"], Mapping[str, str]]
AS_PAIR = "write names such as c0=Adelie; no two alike, and none the id of another"
AS_MERGE = "write two classes or more and a name, such as c2,c5=Gentoo"
AS_JSON = 'write names such as {"c0": "Adelie"}'
# Classes of two fits are the same if so much of either lies in the other.
SAME = 0.8


def names_from(path: Path) -> Names:
    """The names in a JSON file, or those of an earlier run whose classes match."""
    if path.is_dir():
        from shoal.cli._models import load_model

        loaded = load_model(path)
        return lambda output, model, table: carried_names(output, loaded, model, table)
    names = read_names(path)
    return lambda output, model, table: names


def carried_names(
    output: "Output", loaded: Any, model: Any, table: "Table"
) -> dict[str, str]:
    """Names of the earlier classes that hold almost the same rows as new ones."""
    import numpy as np

    from shoal.base import class_ids
    from shoal.io import Schema

    old, earlier = loaded.model, Schema.from_dict(loaded.schema)
    X, alike = table.X, earlier.feature_names == table.schema.feature_names
    if earlier.n_columns is not None and table.schema.n_columns is not None:
        # a matrix: by the names of its columns, where both have them
        X = earlier.encode(X, names=table.schema.names or None)
    elif not alike or old.n_features_in_ != X.shape[1]:
        raise bad_names(
            f'"{loaded.path}" was fitted to other columns than these',
            "fit the same columns, or give the names as JSON",
        )
    domains = np.asarray(table.domains)
    known = set(domains.tolist()) <= set(old.domains_.tolist())
    before = old.predict(X, domains if known else None)
    now = model.predict(table.X, domains)
    shared = np.zeros((model.n_classes_, len(old.class_names_)))
    np.add.at(shared, (now, before), 1)
    sizes = np.maximum(shared.sum(axis=1)[:, None], shared.sum(axis=0))
    same = shared >= SAME * np.maximum(sizes, 1)
    # an id is no name, and may be that of another class here
    ids = class_ids(old.n_classes_)
    named = [name not in ids for name in old.class_names_]
    for index in np.flatnonzero(~same.any(axis=1)):
        output.warn(
            "W161",
            f'c{index} matches no class of "{loaded.path}"',
            f"look at its card, then `shoal name` --set c{index}=NAME",
        )
    matches = np.argwhere(same & named)
    return {f"c{new}": old.class_names_[one] for new, one in matches}


def read_names(path: Path) -> dict[str, str]:
    """Names by class id, from a JSON file such as the report's names.json."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(
            "E101", f'no file or folder "{path}"', "check the path of the names"
        ) from error
    except (OSError, ValueError) as error:
        raise bad_names(f'"{path}" is not JSON: {error}', AS_JSON) from error
    if isinstance(content, dict) and isinstance(content.get("names"), dict):
        content = content["names"]
    if not isinstance(content, dict) or not all(
        isinstance(name, str) for name in content.values()
    ):
        raise bad_names(f'"{path}" holds no names by class', AS_JSON)
    return {key: name for key, name in content.items() if name}


def split_pairs(given: Sequence[str]) -> dict[str, str]:
    """Names given as ``c0=Adelie``."""
    names = {}
    for pair in given:
        key, equals, name = pair.partition("=")
        if not (equals and key.strip() and name.strip()):
            raise bad_names(f'"{pair}" is not CLASS=NAME', AS_PAIR)
        names[key.strip()] = name.strip()
    return names


def split_merge(given: str) -> tuple[list[str], str | None]:
    """Classes and their new name, given as ``c2,c5=Gentoo``; the name may be absent.

    Quotes protect a comma or an equals sign in the name of a class.
    """
    parts = re.fullmatch(r'((?:"[^"]*"|[^=])*)(?:=(.*))?', given, re.DOTALL)
    classes, name = parts.groups(default="") if parts else (given, "")
    keys = [key.strip() for key in split_names([classes]) if key.strip()]
    if len(keys) < 2:
        raise bad_names(f'"{given}" names fewer than two classes', AS_MERGE)
    return keys, name.strip() or None


def check_classes(model: Any, keys: Iterable[str]) -> None:
    """Raise E002 for the first that is neither id nor name of a class."""
    for key in keys:
        try:
            model._class_index(key)
        except ValueError as error:
            hint = "call a class by its id or its current name"
            raise bad_names(str(error), hint) from error


def renamed(model: Any, names: Mapping[str, str]) -> Any:
    """The model with new names; E002 where these cannot be used."""
    check_classes(model, names)
    try:
        return model.set_names(dict(names))
    except ValueError as error:
        raise bad_names(str(error), AS_PAIR) from error


def bad_names(text: str, hint: str) -> CommandError:
    """The error of names that cannot be used."""
    return CommandError("E002", text, hint)
