"""Packages that only some files need."""

from importlib import import_module
from typing import Any

from shoal.exceptions import InputError

__all__ = ["require"]


def require(package: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or say which extra brings it (E132)."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            "E132",
            f"{purpose} needs the package {package}",
            f'pip install "shoal[{extra}]"',
        ) from error
