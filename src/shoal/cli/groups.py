"""Groups of options: a command takes a dataclass, typer sees each of its fields."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

__all__ = ["with_groups"]


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
