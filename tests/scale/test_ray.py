"""The same on a Ray cluster of two nodes, also when workers or drivers are killed."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.scale.conftest import PART_ROWS

import shoal
from shoal import DDFA, DomainMixture, scale
from shoal.exceptions import CodedError

MIXTURE = DomainMixture(3, search=False, random_state=0)
OPTIONS = {"domain": "site", "sample": 2_000, "passes": 1, "part_rows": PART_ROWS}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one core each on this machine; all end with it."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
    nodes = Cluster(
        initialize_head=True, head_node_args={**node, "include_dashboard": False}
    )
    nodes.add_node(**node)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def local(estimator, data, **options):
    return scale.fit(estimator, data, workers=1, **{**OPTIONS, **options})


def assert_same_files(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        left, right = pd.read_parquet(one / name), pd.read_parquet(other / name)
        pd.testing.assert_frame_equal(left, right, check_exact=True)


# ---- the same numbers ------------------------------------------------------------


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("name", ["mixture", "ddfa"])
def test_a_fit_is_the_same_bit_for_bit(world, name):
    ddfa = DDFA(3, discriminator="logistic", cross_fit=3, random_state=0)
    estimator = {"mixture": MIXTURE, "ddfa": ddfa}[name]
    there = scale.fit(estimator, world.folder, engine="ray", **OPTIONS)
    here = local(estimator, world.folder)
    assert np.array_equal(there.prevalence_, here.prevalence_)
    assert np.array_equal(there.labels_, here.labels_)
    assert there.scale_["engine"] == "ray"


@pytest.mark.usefixtures("cluster")
def test_a_bad_row_is_named_from_afar(world, tmp_path):
    bad = world.frame.copy()
    bad.loc[9_123, "x2"] = np.nan
    bad.to_parquet(tmp_path / "rows.parquet", row_group_size=1_000)
    with pytest.raises(CodedError, match="row 9124, x2") as error:
        scale.fit(MIXTURE, tmp_path, engine="ray", **OPTIONS)
    assert error.value.code == "E115"


# ---- workers that are killed -----------------------------------------------------


class Killer(threading.Thread):
    """kill -9 for the first worker of this test's cluster seen at work."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self.armed = threading.Event()
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            pids = self._at_work() if self.armed.is_set() else []
            for pid in pids[:1]:
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
                self.armed.clear()
            time.sleep(0.002)

    def _at_work(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(
                    b"ray::Map("
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
        return [pid for pid in found if _is_ours(pid)]

    def __enter__(self) -> "Killer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def _is_ours(pid: int) -> bool:
    """Whether this process started it, or what started it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return False


def kill_in_fit_and_predict(world, folder: Path) -> None:
    """One worker in a pass of fit, one in predict; all as if nothing had happened."""
    here = local(MIXTURE, world.folder)
    expected = scale.predict(
        here, world.folder, folder / "here", workers=1, part_rows=PART_ROWS
    )
    with Killer() as killer:

        def arm(stage: str, share: float) -> None:
            if stage in ("prevalences, pass 1", "predict") and share == 0:
                killer.armed.set()

        there = scale.fit(MIXTURE, world.folder, engine="ray", progress=arm, **OPTIONS)
        assert len(killer.killed) == 1
        found = scale.predict(
            there, world.folder, folder / "there", engine="ray", progress=arm,
            part_rows=PART_ROWS,
        )  # fmt: skip
        assert len(killer.killed) == 2
    assert np.array_equal(there.prevalence_, here.prevalence_)
    assert found.n_rows == 12_000
    pd.testing.assert_frame_equal(found.counts, expected.counts)
    assert_same_files(folder / "there", folder / "here")


@pytest.mark.usefixtures("cluster")
def test_killed_workers_change_nothing(world, tmp_path):
    kill_in_fit_and_predict(world, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("repetition", range(10))
def test_killed_workers_change_nothing_ten_times(world, tmp_path, repetition):
    kill_in_fit_and_predict(world, tmp_path)


# ---- a driver that is killed -----------------------------------------------------


def test_a_killed_driver_is_followed_by_another(world, tmp_path, cluster):
    """kill -9 in the middle of a pass on the cluster; the second call goes on."""
    kept = tmp_path / "kept"
    script = tmp_path / "driver.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, signal
            from shoal import DomainMixture, scale

            def kill(stage, share):
                if stage == "prevalences, pass 1" and share >= 0.3:
                    os.kill(os.getpid(), signal.SIGKILL)

            scale.fit(
                DomainMixture(3, search=False, random_state=0), {str(world.folder)!r},
                engine="ray", address={cluster.address!r}, checkpoint={str(kept)!r},
                progress=kill, **{OPTIONS!r})
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=400)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*.npz")}
    model = scale.fit(MIXTURE, world.folder, engine="ray", checkpoint=kept, **OPTIONS)
    stages = {one["stage"]: one["resumed"] for one in model.scale_["stages"]}
    assert stages["draw a sample"] == 10
    assert 3 <= stages["prevalences, pass 1"] < 10
    assert {path: path.stat().st_mtime_ns for path in before} == before
    here = local(MIXTURE, world.folder)
    assert np.array_equal(model.prevalence_, here.prevalence_)
    loaded = shoal.load(shoal.save(model, tmp_path / "model"))
    assert np.array_equal(loaded.prevalence_, here.prevalence_)
