"""Progress on stderr: a bar where rich and a terminal are present, lines otherwise."""

import sys
from typing import Any

__all__ = ["Progress"]

LEFT_OUT = ("epoch", "seconds")


class Progress:
    """Shows the record of each epoch.

    Parameters
    ----------
    epochs : int
        Number of epochs in all.
    shown : bool, default=True
        False for silence.
    """

    def __init__(self, epochs: int, shown: bool = True) -> None:
        self.epochs, self.shown = epochs, shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        if self.shown and sys.stderr.isatty():
            self._bar = _rich_bar()
            if self._bar is not None:
                self._bar.start()
                self._task = self._bar.add_task("training", total=self.epochs)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, record: dict[str, Any]) -> None:
        """Say what an epoch brought."""
        if not self.shown:
            return
        text = ", ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
            if name not in LEFT_OUT and isinstance(value, int | float)
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=record["epoch"], description=text)
        else:
            print(f"epoch {record['epoch']}/{self.epochs}: {text}", file=sys.stderr)


def _rich_bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import Progress as Bar
    except ImportError:
        return None
    return Bar(console=Console(stderr=True), transient=True)
