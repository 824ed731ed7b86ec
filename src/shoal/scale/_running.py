"""Stages over the parts of a data set: wherever they run, once each, and kept."""

import io
import json
import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from shoal import __version__
from shoal.base import LatentShiftEstimator
from shoal.engine import Failure, Outcome, iterate_runs
from shoal.engine._local import Numbered
from shoal.engine._ray import connected
from shoal.exceptions import (
    CodedError,
    CodedWarning,
    InputError,
    ModelFileError,
    ShoalWarning,
)
from shoal.io._files import digest_json, require, whole_file
from shoal.io.table._table import Message
from shoal.scale._parts import Part, Parts, list_parts
from shoal.scale._settings import SETTINGS
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]
#: What a stage finds out about a part.
Result = dict[str, Array]
Progress = Callable[[str, float], None]

ENGINES = ("local", "ray")
CODED = {one.__name__: one for one in (CodedError, InputError, ModelFileError)}

log = logging.getLogger("shoal.scale")
log.addHandler(logging.NullHandler())  # whoever wants to read it says so


@dataclass(frozen=True)
class Where:
    """Where parts are worked on, and kept; see :func:`shoal.scale.fit`."""

    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    checkpoint: Any = None
    progress: Progress | None = None
    part_rows: int = SETTINGS.part_rows

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            listed = ", ".join(map(repr, ENGINES))
            raise ValueError(f"engine must be one of {listed}, got {self.engine!r}")
        if self.address is not None and self.engine != "ray":
            raise ValueError(
                f"address={self.address!r} needs engine='ray', got {self.engine!r}"
            )
        if self.workers is not None:
            check_whole(1, workers=self.workers)
        check_whole(1, part_rows=self.part_rows)

    @classmethod
    def split(cls, options: Mapping[str, Any]) -> tuple["Where", dict[str, Any]]:
        """Those of some options that say where, and the others."""
        own = {one.name for one in fields(cls)} & set(options)
        rest = {name: options[name] for name in options if name not in own}
        return cls(**{name: options[name] for name in own}), rest

    @classmethod
    def only(cls, options: Mapping[str, Any]) -> "Where":
        """Options that all say where; another one is a TypeError that names these."""
        where, others = cls.split(options)
        if others:
            known = ", ".join(one.name for one in fields(cls))
            raise TypeError(f"no option {next(iter(others))!r}; there are {known}")
        return where


# ---- what is kept --------------------------------------------------------------------


class Shelf:
    """Results of one stage, by the number of their part.

    Parameters
    ----------
    folder : Path
        The name says what the results depend on (:func:`key_of`), so that those of
        other data or settings are never taken for them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, number: int) -> Path:
        """Where the result of a part is."""
        return self.folder / f"{number:05d}.npz"

    def __contains__(self, number: int) -> bool:
        return self.path(number).is_file()

    def write(self, number: int, result: Result) -> None:
        """Keep a result; a reader never sees half of it."""
        with whole_file(self.path(number)) as place, place.open("wb") as file:
            np.savez(file, allow_pickle=False, **result)

    def read(self, number: int) -> Result:
        """A result as it was written."""
        with np.load(self.path(number), allow_pickle=False) as content:
            return {name: content[name] for name in content.files}


def key_of(stage: str, settings: Mapping[str, Any], data: Parts) -> str:
    """A short name for all that the results of a stage depend on."""
    parts = [(part.name, part.row_groups) for part in data.parts]
    known = {"stage": stage, "files": data.files, "parts": parts,
             "settings": settings, "version": __version__}  # fmt: skip
    return digest_json(known)[:16]


def known_by(value: Any) -> Any:
    """What tells a value from others, in a form that JSON can hold.

    A model from a file is known by the same as when it was saved.
    """
    if isinstance(value, LatentShiftEstimator):
        return {
            "params": {
                name: repr(one)
                for name, one in value.get_params().items()
                if not name.endswith("n_jobs")  # no result depends on it
            },
            "arrays": [known_by(one) for one in value._fitted_arrays()],
            "domains": [str(name) for name in value.domains_.tolist()],
            "classes": value.class_names_,
        }
    if isinstance(value, np.ndarray):
        plain = value.dtype != object
        return joblib.hash(np.ascontiguousarray(value)) if plain else value.tolist()
    if is_dataclass(value):
        return {
            one.name: known_by(getattr(value, one.name))
            for one in fields(value)
            if one.compare
        }
    return value


def pack_frame(frame: pd.DataFrame) -> Array:
    """A table as bytes in an array, for a result; its index is left out."""
    pyarrow = require("pyarrow", "parquet", "reading parquet data sets")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpack_frames(packed: list[Array]) -> pd.DataFrame:
    """Tables below each other; a column may be empty in some, or hold whole numbers."""
    pyarrow = require("pyarrow", "parquet", "reading parquet data sets")
    tables = [pyarrow.ipc.open_stream(one.tobytes()).read_all() for one in packed]
    joined = pyarrow.concat_tables(tables, promote_options="permissive")
    return joined.to_pandas(ignore_metadata=True)


# ---- stages --------------------------------------------------------------------------


class Task:
    """What is done with one part. A subclass says it in :meth:`result_of`.

    It is a dataclass that pickles, and its result depends on the part and on those of
    its fields that are compared.
    """

    def __call__(self, part: Part) -> Result:
        """The result, or the coded error of a part that cannot be used."""
        messages: list[Message] = []
        try:
            # the sums of several threads would differ in their last digits
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)
                result = self.result_of(part, messages)
        except CodedError as error:
            kind = type(error).__name__
            return {"error": np.array([kind, error.code, error.text, error.hint])}
        first = {one.topic: [one.code, one.text, one.hint] for one in messages[::-1]}
        return {**result, "messages": np.array(json.dumps(list(first.values())))}

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """Small arrays about the rows of a part; warnings go to ``messages``."""
        raise NotImplementedError


@dataclass
class Running:
    """A data set, where its parts are worked on, and what that has cost.

    Attributes
    ----------
    data : Parts
    where : Where
    folder : Path
        Where results are kept.
    stages : list of dict
        Name, rows, parts, parts that were there already, and seconds of each stage.
    messages : dict of tuple to Message
        The first of each topic that a part had.
    """

    data: Parts
    where: Where
    folder: Path
    stages: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)

    def run(self, name: str, task: Task) -> Iterator[Result]:
        """Results of all parts in their order; what is kept is not done again."""
        shelf = self.shelf(name, known_by(task))
        n_parts, begun = len(self.data.parts), time.perf_counter()
        todo = [number for number in range(n_parts) if number not in shelf]
        self.tell(name, 1 - len(todo) / n_parts)
        parts = [self.data.parts[number] for number in todo]
        # closed whatever happens: no worker goes on after an error
        with closing(self._outcomes(task, parts)) as outcomes:
            for done, (index, outcome) in enumerate(outcomes, start=1):
                shelf.write(todo[index], self._value(outcome))
                self.tell(name, 1 - (len(todo) - done) / n_parts)
        self.note(name, begun, self.data.n_rows, resumed=n_parts - len(todo))
        return self._read(shelf, n_parts)

    def shelf(self, name: str, settings: dict[str, Any]) -> Shelf:
        """Where the results of a stage are kept."""
        key = key_of(name, settings, self.data)
        return Shelf(self.folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}-{key}")

    def tell(self, name: str, share: float) -> None:
        """Say how much of a stage is done."""
        if self.where.progress is not None:
            self.where.progress(name, share)

    def note(self, name: str, begun: float, n_rows: int, *, resumed: int = 0) -> None:
        """Keep and log what a stage has cost."""
        seconds = time.perf_counter() - begun
        n_parts = len(self.data.parts)
        self.stages.append(
            {"stage": name, "rows": n_rows, "parts": n_parts, "resumed": resumed,
             "seconds": round(seconds, 3)}
        )  # fmt: skip
        log.info(
            "%s: %s rows, %d parts (%d kept from before), %.1f s",
            name, f"{n_rows:,}", n_parts, resumed, seconds,
        )  # fmt: skip

    def note_movement(self, moved: list[float]) -> str:
        """Words for passes that ended early; a warning where they ended too early."""
        if not moved or moved[-1] < SETTINGS.still:
            return ""
        said = f"not converged, last move {moved[-1]:.1g}"
        if moved[-1] < SETTINGS.worth_a_warning:
            return said
        log.warning("%d passes over all rows: %s", len(moved), said)
        text = f"{len(moved)} passes over all rows have {said}"
        hint = "more passes (passes=, from Python), or a larger sample"
        self.keep([Message("W161", text, hint)])
        return said

    def keep(self, messages: Iterable[Message]) -> None:
        """Keep messages, the first of each topic."""
        for one in messages:
            self.messages.setdefault(one.topic, one)

    def warn(self) -> None:
        """Say all messages as Python does, where the result has no place for them."""
        for one in self.messages.values():
            warnings.warn(CodedWarning(one.code, one.text, one.hint), stacklevel=3)

    def _outcomes(self, task: Task, parts: list[Part]) -> Numbered:
        place, workers, name = self.where, self.where.workers, "ray"
        if place.engine != "ray":
            n_workers = min(workers or self._usual_workers(), len(parts))
            name = "processes" if n_workers > 1 else "here"
        return iterate_runs(task, parts, name, address=place.address, workers=workers)

    def _usual_workers(self) -> int:
        """All cores, unless starting them would take longer than the work."""
        return 1 if self.data.n_rows < SETTINGS.few_rows else os.cpu_count() or 1

    def _value(self, outcome: Outcome) -> Result:
        if outcome.failure is not None:
            raise _error_of(outcome.failure, outcome.item)
        result: Result = outcome.value
        if "error" in result:
            kind, *said = result["error"].tolist()
            raise CODED[kind](*said)
        return result

    def _read(self, shelf: Shelf, n_parts: int) -> Iterator[Result]:
        for number in range(n_parts):  # one in memory at a time
            result = shelf.read(number)
            said = json.loads(str(result.pop("messages")))
            self.keep(Message(*one) for one in said)
            yield result


@contextmanager
def begin(data: Any, where: Where) -> Iterator[Running]:
    """A run over a data set; without a checkpoint, its results go when it ends."""
    if not isinstance(data, Parts):
        data = list_parts(data, part_rows=where.part_rows)
    with ExitStack() as stack:
        if where.engine == "ray":  # connected once, not for every stage
            stack.enter_context(connected(where.address))
        folder = where.checkpoint
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-"))
        yield Running(data, where, Path(folder))


def _error_of(failure: Failure, part: Part) -> Exception:
    """Of a part that ended its workers, or in which something else went wrong."""
    where = f'"{part.path}", row groups {part.row_groups[0]} to {part.row_groups[-1]}'
    if failure.kind == "WorkerDied":
        return CodedError(
            "E137",
            f"{where}: {failure.text}",
            "use fewer workers, or smaller row groups; finished parts are kept",
        )
    return RuntimeError(f"{where}: {failure.kind}: {failure.text}\n{failure.traceback}")
