"""Training with the workers of a Ray cluster, which die and whose callers die."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ray = pytest.importorskip("ray")
from ray import cloudpickle  # noqa: E402

from shoal.exceptions import CodedError  # noqa: E402
from shoal.vision._ray import _delete, train_on_ray  # noqa: E402
from support import workers  # noqa: E402

DRIVER = """
import os, signal, sys
from shoal.vision._ray import train_on_ray
sys.path.insert(0, {here!r})
import workers
from ray import cloudpickle

cloudpickle.register_pickle_by_value(workers)
def train(checkpoint):
    return workers.outcome(*workers.train(checkpoint, dropout=0.0))
def die(record):
    if record["epoch"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
train_on_ray(train, {storage!r}, workers=2, address={address!r}, on_checkpoint=die)
"""


@pytest.fixture(scope="module")
def address():
    """Address of a Ray cluster of four workers on this machine."""
    # Tests that compile leave names in the module, and these cannot travel.
    for name in [name for name in vars(workers) if name.startswith("__")]:
        if name not in vars(os):
            delattr(workers, name)
    cloudpickle.register_pickle_by_value(workers)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # as fast as the tests beside it
    context = ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80 * 2**20,
    )
    yield context.address_info["gcs_address"]
    ray.shutdown()


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """Where the run of ``undisturbed`` is kept."""
    return tmp_path_factory.mktemp("runs") / "undisturbed"


@pytest.fixture(scope="module")
def undisturbed(address, storage):
    """What two workers come to whom nothing happens."""
    return train_on_ray(make_train(), storage, workers=2)


def make_train(kill=None, kill_at=8, **options):
    """Trains; a worker kills itself, in step ``kill_at``, the first time it gets there.

    5 steps an epoch, a checkpoint after every second: the kill loses a step.
    """

    def train(checkpoint):
        from shoal.vision._devices import rank

        doomed = kill is not None and rank() == 1 and not kill.exists()
        if doomed:
            kill.touch()
        trained = workers.train(
            checkpoint, kill_at if doomed else None, dropout=0.0, **options
        )
        return workers.outcome(*trained)

    return train


def assert_same(one, other):
    assert one["records"] == other["records"]
    assert one["weights"].keys() == other["weights"].keys()
    for name, weight in one["weights"].items():
        assert torch.equal(weight, other["weights"][name]), name


@pytest.mark.usefixtures("address")
def test_two_workers_are_one_process_though_one_is_killed(tmp_path):
    """Tolerance as in test_parallel, for the same reason."""
    kill, storage, seen = tmp_path / "killed", tmp_path / "run", []
    result = train_on_ray(
        make_train(kill), storage, workers=2, on_checkpoint=seen.append
    )
    assert kill.exists()
    assert seen[-1]["epoch"] == workers.EPOCHS
    alone = workers.outcome(*workers.train(dropout=0.0))
    losses = [[r["loss"] for r in run["records"]] for run in (result, alone)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    for name, weight in alone["weights"].items():
        torch.testing.assert_close(
            result["weights"][name], weight, atol=1e-5, rtol=1e-5
        )
    # One process goes on from what two have kept; here there is nothing left to do.
    newest = max(storage.glob("**/state.pt"), key=os.path.getmtime)
    resumed = workers.outcome(*workers.train(newest, kill_at=1, dropout=0.0))
    assert_same(resumed, result)
    _delete(str(storage))  # nothing in it is taken for another's
    assert not storage.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", range(1, 11))
def test_a_worker_killed_at_any_step_leaves_no_trace(undisturbed, tmp_path, kill_at):
    kill = tmp_path / "killed"
    result = train_on_ray(make_train(kill, kill_at), tmp_path / "run", workers=2)
    assert kill.exists()
    assert_same(result, undisturbed)


@pytest.mark.slow
def test_a_killed_caller_is_resumed_by_a_second_call(address, undisturbed, tmp_path):
    storage = str(tmp_path / "run")
    here = str(Path(workers.__file__).parent)
    script = DRIVER.format(here=here, storage=storage, address=address)
    killed = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert killed.returncode == -signal.SIGKILL
    # Ten steps were done, and Ray had time to note the checkpoint after six of them:
    # a worker that begins anew would end itself.
    kill = tmp_path / "killed"
    result = train_on_ray(make_train(kill, kill_at=11), storage, workers=2, retries=0)
    assert_same(result, undisturbed)


@pytest.mark.slow
def test_a_finished_run_is_not_repeated(undisturbed, storage, tmp_path):
    kill = tmp_path / "killed"
    again = train_on_ray(make_train(kill, kill_at=1), storage, workers=2, retries=0)
    assert_same(again, undisturbed)


@pytest.mark.slow
@pytest.mark.usefixtures("undisturbed")
def test_another_run_in_the_same_place_is_refused_unless_asked_for(storage, tmp_path):
    place = shutil.copytree(storage, tmp_path / "run")
    with pytest.raises(ValueError, match=r"run is a checkpoint of another run \(seed"):
        train_on_ray(make_train(seed=3), place, retries=0)
    other = train_on_ray(make_train(seed=3), place, resume=False)
    assert len(other["records"]) == workers.EPOCHS


@pytest.mark.slow
def test_workers_that_always_die_are_an_error(address, tmp_path):
    def train(checkpoint):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(CodedError, match="training stopped after 1 tries") as error:
        train_on_ray(train, tmp_path / "run", retries=0)
    assert error.value.code == "E137"


@pytest.mark.slow
@pytest.mark.usefixtures("address")
def test_a_lost_queue_of_progress_does_not_matter(tmp_path):
    def train(checkpoint):
        ray.kill(checkpoint.queue.actor)
        return workers.outcome(*workers.train(checkpoint, dropout=0.0))

    seen = []
    result = train_on_ray(train, tmp_path / "run", retries=0, on_checkpoint=seen.append)
    assert len(result["records"]) == workers.EPOCHS
    assert not seen


@pytest.mark.usefixtures("address")
def test_room_that_is_not_there(tmp_path):
    for options, kind in [({"workers": 5}, "CPU"), ({"gpu": True}, "GPU")]:
        with pytest.raises(CodedError, match=f"need a {kind} each; this Ray cluster"):
            train_on_ray(lambda checkpoint: None, tmp_path / "run", **options)


OWN = [
    ".validate_storage_marker",
    "checkpoint_manager_snapshot.json",
    "checkpoint_2026-11-15_16-43-47.447117/state.pt",
]


@pytest.mark.parametrize("foreign", ["thesis.tex", "checkpoint_1/notes.txt", ".git/a"])
def test_only_the_folder_of_a_run_is_deleted(tmp_path, foreign):
    place = tmp_path / "my run"
    _delete(str(place))  # absent
    for name in (*OWN, foreign):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    with pytest.raises(CodedError, match=f'my run" holds "{foreign}", which no') as e:
        train_on_ray(lambda checkpoint: None, place, resume=False)
    assert e.value.code == "E136"
    assert all((place / name).exists() for name in (*OWN, foreign))
    (place / foreign).unlink()
    _delete(str(place))
    assert not place.exists()
    place.mkdir()
    _delete(str(place))  # empty


def test_a_number_of_workers_from_one(tmp_path):
    with pytest.raises(ValueError, match="workers must be a whole number from 1"):
        train_on_ray(lambda checkpoint: None, tmp_path, workers=0)
