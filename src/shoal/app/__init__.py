"""A page to drop a table on: the command line for those who have no terminal habit.

``shoal app`` serves it on this machine only. Everything it does is done by the
commands themselves, each in a process of its own; nothing leaves the machine.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.app._server import make_server, serve

__all__ = ["make_server", "serve"]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {"make_server": "shoal.app._server", "serve": "shoal.app._server"},
)
