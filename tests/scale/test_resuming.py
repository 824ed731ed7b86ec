"""A second call goes on where one was ended; nothing is done or counted twice."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from tests.scale.conftest import PART_ROWS

from shoal import DomainMixture, scale
from shoal.scale import _running as running
from shoal.scale._parts import list_parts
from shoal.scale._running import Shelf, Where, key_of, pack_frame, unpack_frames

ESTIMATOR = DomainMixture(3, search=False, random_state=0)
OPTIONS = {"domain": "site", "sample": 2_000, "passes": 2, "workers": 1,
           "part_rows": PART_ROWS}  # fmt: skip


def files_of(folder):
    """Every result that is kept, with the time when it was written."""
    found = folder.rglob("*.npz")
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in found}


def killed_driver(body, tmp_path):
    """Run a program that ends itself with kill -9 in the middle."""
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(body))
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=400)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_a_second_call_does_nothing_again(world, tmp_path, estimator):
    first = scale.fit(estimator, world.folder, checkpoint=tmp_path, **OPTIONS)
    before = files_of(tmp_path)
    again = scale.fit(estimator, world.folder, checkpoint=tmp_path, **OPTIONS)
    assert files_of(tmp_path) == before
    assert np.array_equal(again.prevalence_, first.prevalence_)
    assert all(one["resumed"] == one["parts"] for one in again.scale_["stages"])
    assert all(one["resumed"] == 0 for one in first.scale_["stages"])


def test_other_data_or_settings_are_not_taken_for_these(world, tmp_path):
    data = tmp_path / "rows.parquet"
    world.frame.to_parquet(data, row_group_size=1_000)
    kept = tmp_path / "kept"
    first = scale.fit(ESTIMATOR, data, checkpoint=kept, **OPTIONS)
    other = scale.fit(ESTIMATOR, data, checkpoint=kept, **{**OPTIONS, "seed": 1})
    assert other.scale_["stages"][0]["resumed"] > 0  # domains are the same
    assert other.scale_["stages"][1]["resumed"] == 0
    world.frame.iloc[::-1].to_parquet(data, row_group_size=1_000)
    changed = scale.fit(ESTIMATOR, data, checkpoint=kept, **OPTIONS)
    assert all(one["resumed"] == 0 for one in changed.scale_["stages"])
    assert not np.array_equal(first.prevalence_, changed.prevalence_)


def test_results_of_another_version_are_not_taken_for_these(tmp_path, monkeypatch):
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "rows.parquet")
    where = Where(checkpoint=tmp_path)
    with running.begin(tmp_path / "rows.parquet", where) as begun:
        before = begun.shelf("stage", {}).folder
        monkeypatch.setattr(running, "__version__", "999")
        assert begun.shelf("stage", {}).folder != before


def test_a_fit_whose_driver_was_killed_goes_on(world, tmp_path):
    """kill -9 in the middle of a pass: finished parts are not done again."""
    kept = tmp_path / "kept"
    killed_driver(
        f"""
        import os, signal
        from shoal import DomainMixture, scale

        def kill(stage, share):
            if stage == "prevalences, pass 1" and share >= 0.5:
                os.kill(os.getpid(), signal.SIGKILL)

        scale.fit(DomainMixture(3, search=False, random_state=0), {str(world.folder)!r},
                  checkpoint={str(kept)!r}, progress=kill, **{OPTIONS!r})
        """,
        tmp_path,
    )
    before = files_of(kept)
    assert len(before) == 10 + 10 + 5
    model = scale.fit(ESTIMATOR, world.folder, checkpoint=kept, **OPTIONS)
    after = files_of(kept)
    assert {path: after[path] for path in before} == before
    stages = {one["stage"]: one["resumed"] for one in model.scale_["stages"]}
    assert stages == {"count domains": 10, "draw a sample": 10, "learn": 10,
                      "prevalences, pass 1": 5, "prevalences, pass 2": 0}  # fmt: skip
    whole = scale.fit(ESTIMATOR, world.folder, **OPTIONS)
    assert np.array_equal(model.prevalence_, whole.prevalence_)
    assert np.array_equal(model.labels_, whole.labels_)


def test_a_prediction_whose_driver_was_killed_goes_on(world, tmp_path):
    model = scale.fit(ESTIMATOR, world.folder, **OPTIONS)
    import shoal

    shoal.save(model, tmp_path / "model")
    out = tmp_path / "out"
    killed_driver(
        f"""
        import os, signal
        import shoal
        from shoal import scale

        def kill(stage, share):
            if share >= 0.5:
                os.kill(os.getpid(), signal.SIGKILL)

        scale.predict(shoal.load({str(tmp_path / "model")!r}), {str(world.folder)!r},
                      {str(out)!r}, progress=kill, workers=1, part_rows={PART_ROWS})
        """,
        tmp_path,
    )
    assert not out.exists()  # not before it is whole
    (partial,) = (one for one in tmp_path.iterdir() if one.name.endswith(".partial"))
    written = {path.name: path.stat().st_mtime_ns for path in partial.glob("*.parquet")}
    assert len(written) == 5
    found = scale.predict(
        shoal.load(tmp_path / "model"), world.folder, out, workers=1,
        part_rows=PART_ROWS,
    )  # fmt: skip
    assert found.stages[0]["resumed"] == 5
    now = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert {name: now[name] for name in written} == written
    rows = pd.read_parquet(out)
    assert rows["row_id"].tolist() == list(range(1, 12_001))
    assert found.n_rows == int(found.counts["rows"].sum()) == 12_000
    expected = model.predict(world.X, world.frame["site"])
    assert rows["class"].str[1:].astype(int).tolist() == expected.tolist()
    assert not partial.exists()


def test_half_a_result_is_never_seen(tmp_path, monkeypatch):
    """What stops the writing leaves nothing that could be taken for a result."""
    shelf = Shelf(tmp_path)

    def stop(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", stop)
    with pytest.raises(KeyboardInterrupt):
        shelf.write(3, {"a": np.ones(2)})
    assert 3 not in shelf
    assert os.listdir(tmp_path) == []


def test_tables_travel_in_results():
    parts = [
        pd.DataFrame({"word": ["a", None], "rows": [1, 2]}),
        pd.DataFrame({"word": [None], "rows": [3.5]}),
    ]
    joined = unpack_frames([pack_frame(one) for one in parts])
    assert joined["word"].isna().tolist() == [False, True, True]
    assert joined["rows"].tolist() == [1, 2, 3.5]


def test_settings_have_short_names(world):
    data = list_parts(world.folder)
    first, other = (key_of("stage", {"a": value}, data) for value in (1, 2))
    assert first != other
    assert len(first) == 16
