"""The command line; see :mod:`shoal.cli._app` for its commands.

Nothing here imports numpy or scikit-learn before a command needs them.
"""

from shoal.cli._main import main

__all__ = ["main"]
