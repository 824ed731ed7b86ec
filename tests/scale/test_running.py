"""Stages over parts: errors that are said, and memory that does not grow with rows."""

import os
import signal
import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
from tests.scale.conftest import PART_ROWS

from shoal import DomainMixture, scale
from shoal.exceptions import CodedError
from shoal.io.table._table import Message
from shoal.scale._parts import Part
from shoal.scale._running import Task, Where, begin, known_by
from shoal.scale._settings import SETTINGS


@dataclass(frozen=True)
class CountRows(Task):
    """Counts the rows of a part; ends its process, or fails, at one of them."""

    deadly: int = field(default=-1, compare=False)
    broken: int = field(default=-1, compare=False)

    def result_of(self, part: Part, messages: list[Message]) -> dict[str, np.ndarray]:
        if part.number == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if part.number == self.broken:
            raise ZeroDivisionError("no rows to divide by")
        messages.append(Message("W143", f"part {part.number}", "look"))
        return {"rows": np.array(part.n_rows)}


def test_results_come_in_the_order_of_the_parts(world):
    with begin(world.folder, Where(part_rows=PART_ROWS, workers=1)) as running:
        results = list(running.run("count", CountRows()))
        sizes = [part.n_rows for part in running.data.parts]
        assert [int(one["rows"]) for one in results] == sizes
        # of each warning the first is kept
        assert [one.text for one in running.messages.values()] == ["part 0"]


def test_a_part_that_ends_every_worker_is_given_up(world, tmp_path):
    where = Where(part_rows=PART_ROWS, workers=2, checkpoint=tmp_path)
    with begin(world.folder, where) as running:
        with pytest.raises(CodedError, match="the worker died 3 times") as error:
            running.run("count", CountRows(deadly=3))
        assert error.value.code == "E137"
        assert "first.parquet" in str(error.value)
        kept = running.shelf("count", known_by(CountRows()))
        assert 3 not in kept
        assert 0 in kept
        # the same stage without the trouble goes on from what is kept
        results = list(running.run("count", CountRows()))
        assert sum(int(one["rows"]) for one in results) == 12_000
        assert running.stages[-1]["resumed"] >= 1


def test_a_bug_is_shown_with_its_part(world):
    with begin(world.folder, Where(part_rows=PART_ROWS, workers=1)) as running:
        with pytest.raises(RuntimeError, match=r"ZeroDivisionError: no rows") as error:
            running.run("count", CountRows(broken=1))
        assert 'first.parquet", row groups 2 to 3' in str(error.value)


def test_results_go_when_nobody_asked_to_keep_them(world):
    with begin(world.folder, Where(workers=1)) as running:
        list(running.run("count", CountRows()))
        folder = running.folder
        assert folder.exists()
    assert not folder.exists()


def peak_of(call) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_rows(world, tmp_path, monkeypatch):
    """Four times the rows, the same peak: batches, the sample and sums are all."""
    small = replace(SETTINGS, batch_rows=4_096)
    monkeypatch.setattr("shoal.scale._parts.SETTINGS", small)
    for copy in range(4):
        world.frame.to_parquet(tmp_path / f"{copy}.parquet", row_group_size=3_000)
    estimator = DomainMixture(3, search=False, max_iter=20, random_state=0)
    peaks = {}
    for n_files in (1, 4):
        files = [tmp_path / f"{copy}.parquet" for copy in range(n_files)]
        kept = tmp_path / f"kept{n_files}"
        options = {"domain": "site", "sample": 2_000, "workers": 1, "passes": 1}
        model = scale.fit(estimator, files, checkpoint=kept, **options)
        # again without learning, which takes the sample alone
        for old in kept.glob("prevalences*"):
            for path in old.iterdir():
                path.unlink()

        def work(files=files, kept=kept, options=options, model=model, n=n_files):
            scale.fit(estimator, files, checkpoint=kept, **options)
            scale.predict(model, files, tmp_path / f"out{n}", workers=1)

        peaks[n_files] = peak_of(work)
    assert len(pd.read_parquet(tmp_path / "out4")) == 48_000
    assert peaks[4] < 1.15 * peaks[1]
