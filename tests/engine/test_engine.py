"""The same truths wherever work runs; the Ray cases share one local cluster."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from shoal.engine import ENGINES, Outcome, map_runs


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended but was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two cores on this machine; all its processes end with it."""
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80 * 2**20,
    )
    yield ray
    pid = ray.get(ray.remote(lambda: os.getpid()).remote())
    ray.shutdown()
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(pid)


@pytest.fixture(params=["here", "processes", "ray"])
def where(request: pytest.FixtureRequest) -> str:
    """Every place where work can run."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return str(request.param)


@pytest.fixture(params=["processes", "ray"])
def elsewhere(request: pytest.FixtureRequest) -> str:
    """Every place that has workers."""
    if request.param == "ray":
        request.getfixturevalue("cluster")
    return str(request.param)


def test_values_come_in_the_order_of_the_items(where):
    def square_late_ones_first(number: int) -> int:
        import time

        time.sleep(0.2 if number == 0 else 0)
        return number**2

    seen: list[Outcome] = []
    outcomes = map_runs(
        square_late_ones_first, range(5), where, workers=2, on_result=seen.append
    )
    assert [outcome.value for outcome in outcomes] == [0, 1, 4, 9, 16]
    assert [outcome.item for outcome in outcomes] == list(range(5))
    assert sorted(outcome.item for outcome in seen) == list(range(5))


def test_an_exception_fails_its_item_only(where):
    def reciprocal(number: int) -> float:
        return 1 / number

    first, bad, last = map_runs(reciprocal, [1, 0, 2], where, workers=2)
    assert (first.value, last.value) == (1.0, 0.5)
    assert bad.value is None
    assert bad.failure.kind == "ZeroDivisionError"
    assert bad.failure.text == "division by zero"
    assert "return 1 / number" in bad.failure.traceback or where == "ray"
    assert "in reciprocal" in bad.failure.traceback


def test_no_items_no_work(where):
    assert map_runs(abs, [], where) == []


def test_items_are_taken_when_a_worker_is_free(where):
    """A generator decides late: never more items are taken than workers work."""
    taken, done = [], []

    def items():
        for number in range(6):
            taken.append(number)
            assert len(taken) - len(done) <= 2
            yield number

    map_runs(abs, items(), where, workers=2, on_result=done.append)
    assert len(done) == 6


def test_workers_compute_with_one_thread(elsewhere):
    def threads(_: int) -> str | None:
        import os

        return os.environ.get("OMP_NUM_THREADS")

    assert {o.value for o in map_runs(threads, range(2), elsewhere, workers=2)} == {"1"}


def test_a_grid_completes_though_a_worker_is_killed(elsewhere, tmp_path):
    """kill -9, from outside, in the middle of an item: it is done by another."""

    def work(number: int) -> tuple[int, int]:
        import os
        import time

        started = tmp_path / f"started-{number}"
        first = not started.exists()
        started.write_text(str(os.getpid()))
        if number == 2 and first:
            time.sleep(60)  # until the killer finds it
        return number, os.getpid()

    killed = []

    def kill() -> None:
        started = tmp_path / "started-2"
        while not (started.exists() and started.read_text()):
            time.sleep(0.02)
        killed.append(int(started.read_text()))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = map_runs(work, range(6), elsewhere, workers=2)
    killer.join(timeout=10)
    assert [outcome.failure for outcome in outcomes] == [None] * 6
    assert [outcome.value[0] for outcome in outcomes] == list(range(6))
    assert outcomes[2].value[1] != killed[0]


def test_an_item_that_kills_every_worker_fails_alone(elsewhere, tmp_path):
    def work(number: int) -> int:
        import os
        import signal

        if number == 1:
            tries = tmp_path / "tries"
            tries.write_text(f"{tries.read_text() if tries.exists() else ''}x")
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    outcomes = map_runs(work, range(4), elsewhere, workers=2, retries=1)
    assert [outcome.value for outcome in outcomes] == [0, None, 2, 3]
    assert outcomes[1].failure.kind == "WorkerDied"
    assert "the worker died 2 times" in outcomes[1].failure.text
    assert (tmp_path / "tries").read_text() == "xx"


def test_a_worker_killed_between_two_items_is_replaced():
    def pid(_: int) -> int:
        import os

        return os.getpid()

    pids: list[int] = []

    def items():
        yield 0
        os.kill(pids[0], signal.SIGKILL)
        time.sleep(0.5)  # until its pool knows
        yield 1

    outcomes = map_runs(
        pid,
        items(),
        "processes",
        workers=1,
        on_result=lambda outcome: pids.append(outcome.value),
    )
    assert [outcome.failure for outcome in outcomes] == [None, None]
    assert pids[0] != pids[1]


def test_processes_end_with_the_call():
    def pid(_: int) -> int:
        import os

        return os.getpid()

    pids = {
        outcome.value for outcome in map_runs(pid, range(4), "processes", workers=2)
    }
    assert os.getpid() not in pids
    assert not any(alive(pid) for pid in pids)


def test_processes_end_when_the_call_is_interrupted(tmp_path):
    def work(number: int) -> int:
        import os
        import time

        (tmp_path / str(number)).write_text(str(os.getpid()))
        time.sleep(60 if number else 0)
        return number

    def interrupt(outcome: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_runs(work, range(2), "processes", workers=2, on_result=interrupt)
    pids = [int(file.read_text()) for file in tmp_path.iterdir()]
    assert not any(alive(pid) for pid in pids)


@pytest.mark.usefixtures("cluster")
def test_tasks_end_when_the_call_is_interrupted(tmp_path):
    """Also on a cluster that others go on to use."""

    def work(number: int) -> None:
        import time

        started = tmp_path / "started"
        if number == 0:
            while not started.exists():
                time.sleep(0.02)
            return
        try:
            started.touch()
            for _ in range(600):
                time.sleep(0.1)
        finally:
            (tmp_path / "ended").touch()

    def interrupt(outcome: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_runs(work, range(2), "ray", workers=2, on_result=interrupt)
    wait_for((tmp_path / "ended").exists, seconds=30)


def test_processes_end_soon_after_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, time
            from pathlib import Path
            from shoal.engine import map_runs

            def work(number):
                import os, time
                from pathlib import Path
                path = Path({str(tmp_path)!r}) / f"pid-{{number}}"
                path.with_suffix(".tmp").write_text(str(os.getpid()))
                path.with_suffix(".tmp").rename(path)
                time.sleep(60)

            map_runs(work, range(2), "processes", workers=2)
            """
        )
    )
    with subprocess.Popen([sys.executable, script]) as parent:
        wait_for(lambda: len(list(tmp_path.glob("pid-?"))) == 2)
        pids = [int(file.read_text()) for file in tmp_path.glob("pid-?")]
        assert all(map(alive, pids))
        parent.kill()
    wait_for(lambda: not any(map(alive, pids)))


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert condition()


@pytest.mark.usefixtures("cluster")
def test_a_cluster_in_use_stays_connected():
    import ray

    map_runs(abs, [1], "ray")
    assert ray.is_initialized()


def test_a_cluster_of_somebody_else_is_left_alone(cluster):
    """Without an address a process starts its own; RAY_ADDRESS is an address."""
    theirs = cluster.get_runtime_context().gcs_address
    code = (
        "from shoal.engine._ray import connected\n"
        "with connected(None) as ray:\n"
        "    print(ray.get_runtime_context().gcs_address)\n"
    )
    clean = {name: text for name, text in os.environ.items() if name != "RAY_ADDRESS"}
    for more, joined in (({}, False), ({"RAY_ADDRESS": theirs}, True)):
        ended = subprocess.run(
            [sys.executable, "-c", code],
            env=clean | more,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (ended.stdout.split()[-1] == theirs) is joined


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "dask"}, r"where must be one of \['here', 'processes', 'ray'"),
        ({"address": "auto"}, "address='auto' needs where='ray', got where='here'"),
        ({"workers": 0}, "workers must be a whole number from 1, got 0"),
        ({"gpu_share": 2}, "gpu_share must be above 0 and at most 1, got 2"),
    ],
)
def test_bad_options_are_refused_before_any_work(options, message):
    with pytest.raises(ValueError, match=message):
        map_runs(abs, iter([1]), **options)


def test_a_gpu_that_is_not_there_is_an_error(elsewhere, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match=r"gpu_share=0\.5 needs a GPU"):
        map_runs(abs, [1], elsewhere, gpu_share=0.5)


def test_two_trials_share_each_gpu(monkeypatch):
    """Which worker sees which device, without the devices."""
    from shoal.engine import _local as processes
    from shoal.engine._local import Room

    monkeypatch.setattr(processes, "_visible_gpus", lambda: ["0", "3"])
    environments = processes._environments(Room(gpu_share=0.5))
    seen = [variables["CUDA_VISIBLE_DEVICES"] for variables in environments]
    assert seen == ["0", "3", "0", "3"]
    assert len(processes._environments(Room(workers=3, gpu_share=0.5))) == 3


def test_ray_absent_is_a_coded_error(monkeypatch):
    from shoal.exceptions import CodedError

    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(
        CodedError, match=r"where='ray' needs one more package"
    ) as error:
        map_runs(abs, [1], "ray")
    assert error.value.code == "E132"
    assert error.value.hint == 'pip install "shoal[ray]"'
    assert set(ENGINES) == {"here", "processes", "ray"}
