"""Scripts of the project as modules, to call their functions in tests."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


@contextmanager
def script(path: str) -> Iterator[ModuleType]:
    """A script by its path below the project's folder, and meanwhile its neighbours.

    Neither stays importable: scripts of several folders have names in common.
    """
    file = ROOT / path
    sys.path.insert(0, str(file.parent))
    try:
        yield import_module(file.stem)
    finally:
        sys.path.remove(str(file.parent))
        for name, module in list(sys.modules.items()):
            home = getattr(module, "__file__", None)
            if home is not None and Path(home).parent == file.parent:
                del sys.modules[name]
