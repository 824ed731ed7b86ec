"""Checkpoints that appear whole or not at all, and load without running code.

A loop keeps its state in a :class:`CheckpointStore`: usually a file, on a cluster
whatever keeps the state of a run there.
"""

import io
import os
import pickle
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from shoal.io._files import write_whole


@runtime_checkable
class CheckpointStore(Protocol):
    """Where a run keeps its state; its text form is what messages call it."""

    def read(self) -> dict[str, Any] | None:
        """The newest state; None if there is none."""
        ...

    def write(self, state: dict[str, Any] | None) -> None:
        """Keep a state.

        Called at the same steps in all processes that train together: with the state
        in the first of them, with None in the others.
        """
        ...


#: A file, or another place that keeps the state of a run.
CheckpointPlace = str | os.PathLike[str] | CheckpointStore


class CheckpointFile:
    """A state in a file of its own: tensors, numbers and text, no code.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> dict[str, Any] | None:
        """The state in the file, if there is one; tensors land on the CPU.

        Raises
        ------
        ValueError
            When the file is damaged, or would run code.
        """
        if not self.path.exists():
            return None
        try:
            state = torch.load(self.path, map_location="cpu", weights_only=True)
        except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(
                f"{self} is not a checkpoint of shoal: {reason}; delete it or pass "
                "resume=False"
            ) from error
        if not isinstance(state, dict):
            raise ValueError(f"{self} is not a checkpoint of shoal")
        return state

    def write(self, state: dict[str, Any] | None) -> None:
        """Replace the file, from the first process; whole, or it stays as it was.

        Raises
        ------
        OSError
            When the disk is full or cannot be written.
        """
        if state is None:
            return
        content = io.BytesIO()
        torch.save(state, content)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, content.getbuffer(), durable=True)
        except OSError as error:
            there = self.path.exists()
            kept = "the previous checkpoint is unharmed" if there else "none exists"
            raise OSError(
                error.errno,
                f"checkpoint of {content.getbuffer().nbytes / 1e6:.1f} MB not written: "
                f"{error.strerror}; {kept}; free some space and run again to resume",
                str(self),
            ) from error


def open_store(place: CheckpointPlace) -> CheckpointStore:
    """A file by its path, or the store that is given."""
    return place if isinstance(place, CheckpointStore) else CheckpointFile(place)
