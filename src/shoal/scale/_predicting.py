"""The class of every row of a data set of any size, written part by part."""

import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import CodedError, InputError, ModelFileError
from shoal.io._assignments import assign, marked, rows_by_class, write_assignments
from shoal.io._settings import READING
from shoal.io._swap import take_place
from shoal.io.table._domains import DomainRule
from shoal.io.table._missing import FILL, KEEP_GAPS
from shoal.io.table._table import Message, Table
from shoal.scale._exact import Batch, RowReader, domains_of, known_rule, schema_of
from shoal.scale._parts import Part, Parts, list_parts
from shoal.scale._running import (
    Result,
    Running,
    Task,
    Where,
    begin,
    key_of,
    known_by,
    pack_frame,
    unpack_frames,
)

Array = np.ndarray[Any, Any]

# ---- where predictions stand, and what stands there already --------------------------

#: Folder of what was counted, beside the parts it was counted in.
DONE = "_done"
# Of a part that is being written; a worker that was killed leaves it.
HALF = r"\.part-\d+\.\w+\.tmp\.parquet"
# Entries of a folder that predict has written.
OWN = re.compile(rf"part-\d+\.parquet|{DONE}|{HALF}")


def refuse_place(out: Path, data: Any, parts: Parts, *, force: bool) -> None:
    """E136 where something is that may not be replaced; data may not, even by force."""
    place, hint = out.resolve(), "choose another path"
    given = data if isinstance(data, (list, tuple)) else [data]
    folders = [Path(one).resolve() for one in given if Path(one).is_dir()]
    files = [Path(part.path).resolve() for part in parts.parts]
    if any(one.is_relative_to(place) for one in (*folders, *files)):
        raise CodedError("E136", f'"{out}" is or holds the data', hint)
    for folder in folders:
        # names that begin with a dot or _ are not data there
        inside = place.is_relative_to(folder) and place.relative_to(folder).parts
        if inside and not any(name[0] in "._" for name in inside):
            raise CodedError("E136", f'"{out}" lies among the data', hint)
    if not out.exists():
        return
    if not force:
        raise CodedError("E136", f'"{out}" exists already', f"--force, or {hint}")
    if out.is_dir():
        other = [one.name for one in out.iterdir() if not OWN.fullmatch(one.name)]
        if other:
            text = f'"{out}" holds "{min(other)}", which is no prediction'
            raise CodedError("E136", text, hint)


def unfinished(out: Path, key: str, checkpoint: Any) -> Path:
    """Folder of finished parts until all are; its name says what they depend on."""
    if checkpoint is not None:
        return Path(checkpoint).absolute() / f"predicted-{key}"
    return out.absolute().with_name(f".{out.name}.{key}.partial")


def publish(folder: Path, out: Path, *, keep: bool) -> None:
    """Give a whole folder its place and name; what was there before goes last.

    With ``keep`` the parts also stay where they are, without taking room twice where
    the file system can share files.
    """
    whole = folder
    if keep:
        whole = out.absolute().with_name(f".{out.name}.{folder.name[-16:]}.partial")
        discard(whole)
        whole.mkdir(parents=True)
        for part in folder.glob("part-*.parquet"):
            _share(part, whole / part.name)
    else:
        shutil.rmtree(folder / DONE)
        for entry in folder.iterdir():
            if re.fullmatch(HALF, entry.name):
                entry.unlink()
    take_place(whole, out, _old_name(whole))
    _sweep(out)


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        shutil.copy2(source, target)


def _sweep(out: Path) -> None:
    """Remove what was replaced, and what calls that were killed have left of this name.

    Parts of the same settings were taken over before; those of others nobody wants,
    now that the name is given.
    """
    name = re.escape(out.name)
    own = re.compile(rf"\.{name}\.[0-9a-f]{{16}}(\.[0-9a-f]{{8}})*\.(partial|old)")
    for entry in out.absolute().parent.iterdir():
        if own.fullmatch(entry.name):
            discard(entry)


def discard(path: Path) -> None:
    """Remove a folder or file, if it is there.

    A folder is renamed first: a worker that has not ended cannot write to it any more.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = _old_name(path)
    os.replace(path, gone)
    shutil.rmtree(gone)


def _old_name(path: Path) -> Path:
    """A name that nobody has, and that :func:`_sweep` knows."""
    return path.with_suffix(f".{uuid.uuid4().hex[:8]}.old")


# ---- predicting ----------------------------------------------------------------------


@dataclass(frozen=True)
class Predicted:
    """What was written.

    Attributes
    ----------
    path : Path
        Folder of Parquet files, one for each part, in the order of the data.
    n_rows : int
    counts : DataFrame
        Rows of each ``domain`` and ``class``.
    unsure : int
        Rows whose best class has a probability below ``min_confidence``.
    unlike : int
        Rows stranger than 99 % of the training rows.
    messages : list of Message
    stages : list of dict
        What it has cost.
    """

    path: Path
    n_rows: int
    counts: pd.DataFrame
    unsure: int
    unlike: int
    messages: list[Message]
    stages: list[dict[str, Any]]


def predict(
    model: Any,
    data: Any,
    out: Any,
    *,
    pooled: bool = False,
    prevalence: Any = None,
    min_confidence: float = READING.unsure,
    drop_missing_domain: bool = False,
    force: bool = False,
    **where: Any,
) -> Predicted:
    """Class every row of Parquet files of any size, in bounded memory.

    Parameters
    ----------
    model : fitted estimator
        With ``schema_``, as of :func:`shoal.scale.fit` or :func:`shoal.load`.
    data, engine, address, workers, progress, part_rows
        As in :func:`shoal.scale.fit`.
    out : path
        A folder: part-00000.parquet and so on, one for each part, in the order of the
        rows. It appears when it is whole. Until then finished parts are kept beside
        it, and a second call goes on from them. On a cluster, a path that every node
        can write to.
    checkpoint : path, default=None
        Folder to keep finished parts in instead, also when all are done; on a cluster,
        one that every node can write to. The caller removes it.
    pooled, prevalence
        As in :func:`shoal.io.assign`.
    min_confidence : float, default=0.8
        Rows less sure are marked in the column ``unsure``.
    drop_missing_domain : bool, default=False
    force : bool, default=False
        Replace a file, or a folder of earlier predictions. Never the data, a place
        among them, or a folder that holds anything else (E136).

    Returns
    -------
    Predicted
    """
    place = Where.only(where)
    out, parts = Path(out), list_parts(data, part_rows=place.part_rows)
    refuse_place(out, data, parts, force=force)
    rows, rule = _rows(model, parts, pooled or prevalence is not None)
    rows = replace(rows, drop_missing_domain=drop_missing_domain)
    mix = None if prevalence is None else np.asarray(prevalence, dtype=float)
    task = PredictRows(model._lean(), rows, rule, pooled, mix, min_confidence)
    key = key_of("predict", known_by(task), parts)
    kept = unfinished(out, key, place.checkpoint)
    try:
        with begin(parts, replace(place, checkpoint=kept / DONE)) as running:
            results = list(running.run("predict", replace(task, folder=str(kept))))
            found = _collect(results, out, running)
    except (InputError, ModelFileError):
        # the data do not suit the model: other data make other parts. Whatever else
        # ends a call leaves finished parts for a second one
        discard(kept)
        raise
    _refuse_absent(kept, parts, results)
    refuse_place(out, data, parts, force=force)  # it may have changed since
    publish(kept, out, keep=place.checkpoint is not None)
    return found


@dataclass(frozen=True)
class PredictRows(Task):
    """Write the classes of the rows of a part; the result counts them."""

    model: Any
    rows: RowReader
    rule: DomainRule | None  # where domains are shown but not used
    pooled: bool
    prevalence: Array | None
    min_confidence: float
    folder: str = field(default="", compare=False)

    def result_of(self, part: Part, messages: list[Message]) -> Result:
        """Rows of each domain and class, and how many are doubtful."""
        tally: Counter[tuple[str | None, str]] = Counter()
        doubtful = np.zeros(3, dtype=np.int64)

        def counted(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for frame in frames:
                tally.update(rows_by_class(frame))
                unlike = int((frame["fit_score"] < READING.unlike).sum())
                doubtful[:] += len(frame), int(frame["unsure"].sum()), unlike
                yield frame

        tables = (self._table(batch) for batch in self.rows.batches(part, messages))
        first = next(tables, None)
        if first is not None:  # else no row of the part has a domain
            found = assign(
                self.model,
                chain([first], tables),
                pooled=self.pooled,
                prevalence=self.prevalence,
            )
            frames = marked(found, self.min_confidence)
            write_assignments(Path(self.folder, file_name(part)), counted(frames))
        total = pd.DataFrame(
            {
                "domain": pd.Series([domain for domain, _ in tally], dtype=object),
                "class": pd.Series([name for _, name in tally], dtype=object),
                "rows": np.array(list(tally.values()), dtype=np.int64),
            }
        )
        return {"frame": pack_frame(total), "doubtful": doubtful}

    def _table(self, batch: Batch) -> Table:
        schema, frame = self.rows.schema, batch.frame
        ids: Any = frame.index.to_numpy() + 1
        if schema.id is not None and schema.id in frame.columns:
            ids = frame[schema.id].to_numpy()
        domains: Any = None
        if self.rows.domains is not None:
            domains = self.rows.domains[batch.codes]
        elif self.rule is not None:
            names, codes = domains_of(
                frame[self.rule.column], self.rule, schema.missing
            )
            domains = np.array([*names, None], dtype=object)[codes]
        return Table(
            X=batch.X,
            domains=domains,
            ids=ids,
            labels=None,
            feature_names=schema.feature_names,
            schema=schema,
            columns=[],
            kind=schema.kind,
            source={"rows": len(frame)},
        )


def file_name(part: Part) -> str:
    """Of the predictions of a part."""
    return f"part-{part.number:05d}.parquet"


def _rows(
    model: Any, parts: Parts, without: bool
) -> tuple[RowReader, DomainRule | None]:
    """How rows are read, and the rule of domains that are only shown."""
    schema = schema_of(model, parts.columns)
    beside = [schema.id] if schema.id in parts.columns and schema.id else []
    if not without:
        known_rule(schema, parts.columns)
        return RowReader(schema, model.domains_, beside=tuple(beside)), None
    rule = schema.domain
    if rule is None or rule.column is None or rule.column not in parts.columns:
        return RowReader(schema, None, beside=tuple(beside)), None
    shown = replace(rule, kind="text")
    return RowReader(schema, None, beside=(*beside, rule.column)), shown


def _collect(results: list[Result], out: Path, running: Running) -> Predicted:
    counted = unpack_frames([one["frame"] for one in results])
    by = counted.groupby(["domain", "class"], dropna=False)["rows"].sum()
    doubtful = np.sum([one["doubtful"] for one in results], axis=0)
    n_rows, unsure, unlike = doubtful.tolist()
    if not n_rows:
        if any(one.hint == KEEP_GAPS for one in running.messages.values()):
            raise InputError("E115", "every row has a missing value", FILL)
        raise InputError("E115", "no row has a domain", "fill them in, or --pooled")
    return Predicted(
        path=out,
        n_rows=n_rows,
        counts=by.reset_index(),
        unsure=unsure,
        unlike=unlike,
        messages=list(running.messages.values()),
        stages=running.stages,
    )


def _refuse_absent(folder: Path, parts: Parts, results: list[Result]) -> None:
    for part, result in zip(parts.parts, results, strict=True):
        n_rows = result["doubtful"][0]
        if n_rows and not (folder / file_name(part)).is_file():
            discard(folder)  # a second call must not take it for done
            raise CodedError(
                "E140",
                f'"{folder / file_name(part)}" was written where it cannot be seen',
                "choose a folder that every node of the cluster can write to",
            )
