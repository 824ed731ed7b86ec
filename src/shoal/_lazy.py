"""Public names of a package that are loaded on first use."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that imports little by itself.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict of str to str
        The module that each name is from.

    Examples
    --------
    >>> import shoal.io
    >>> shoal.io.read.__module__, "read" in dir(shoal.io)
    ('shoal.io._read', True)
    >>> shoal.io.rot
    Traceback (most recent call last):
    AttributeError: module 'shoal.io' has no attribute 'rot'
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # found at once the next time
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
