import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from shoal.vision._loop import exponential, fit
from support import workers

WORKERS = Path(workers.__file__)

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
BACKENDS = [
    pytest.param((), id="eager"),
    pytest.param(("aot_eager",), id="compiled", marks=pytest.mark.slow),
]


def weights_of(modules):
    return {
        f"{n}.{k}": w for n, m in modules.items() for k, w in m.state_dict().items()
    }


def assert_same_weights(one, other):
    one, other = weights_of(one), weights_of(other)
    assert one.keys() == other.keys()
    for name, weight in one.items():
        assert torch.equal(weight, other[name]), name


def without_times(history):
    clock = ("seconds", "rows_per_second")
    return [{k: v for k, v in r.items() if k not in clock} for r in history.records]


@pytest.fixture(scope="module")
def uninterrupted():
    return workers.train()


@pytest.mark.parametrize("backend", BACKENDS)
def test_killed_twice_and_resumed_gives_the_same_weights(backend, tmp_path):
    compile = {"backend": backend[0]} if backend else False
    uninterrupted = workers.train(compile=compile)
    checkpoint = tmp_path / "run.pt"
    # 5 steps an epoch, a checkpoint after every second: both kills lose a step.
    for kill_at in (8, 4):
        killed = subprocess.run(
            [sys.executable, WORKERS, "resume", checkpoint, str(kill_at), *backend],
            env=ENVIRONMENT,
        )
        assert killed.returncode == -signal.SIGKILL
    modules, history = workers.train(checkpoint, compile=compile)
    assert_same_weights(modules, uninterrupted[0])
    assert without_times(history) == without_times(uninterrupted[1])


def test_the_same_seed_gives_the_same_weights(uninterrupted):
    assert_same_weights(workers.train()[0], uninterrupted[0])
    other = weights_of(workers.train(seed=1)[0])
    assert not torch.equal(
        other["net.conv1.weight"], weights_of(uninterrupted[0])["net.conv1.weight"]
    )


def test_the_callers_random_numbers_are_not_disturbed():
    torch.manual_seed(5)
    workers.train()
    disturbed = torch.rand(3)
    torch.manual_seed(1)  # as the worker, which makes a network
    workers.Tiny(dropout=0.3), nn.Linear(8, 2)
    assert torch.equal(disturbed, torch.rand(3))


def test_any_store_keeps_a_run(uninterrupted):
    class Memory:
        """Keeps bytes, as a state goes on changing after it was handed over."""

        kept = None

        def read(self):
            if self.kept is None:
                return None
            return torch.load(io.BytesIO(self.kept), weights_only=True)

        def write(self, state):
            content = io.BytesIO()
            torch.save(state, content)
            self.kept = content.getvalue()

    def stop(record):
        raise KeyboardInterrupt

    store = Memory()
    with pytest.raises(KeyboardInterrupt):
        workers.train(store, on_epoch=stop)
    assert store.read()["steps_done"] == 4
    assert_same_weights(workers.train(store)[0], uninterrupted[0])


def test_a_finished_run_is_not_repeated(uninterrupted, tmp_path):
    checkpoint = tmp_path / "run.pt"
    workers.train(checkpoint)
    # A step would end the process.
    modules, history = workers.train(checkpoint, kill_at=1)
    assert_same_weights(modules, uninterrupted[0])
    assert len(history) == workers.EPOCHS


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    checkpoint = tmp_path / "run.pt"
    workers.train(checkpoint)
    with pytest.raises(ValueError, match=r"another run \(seed=0 instead of 3\)"):
        workers.train(checkpoint, seed=3)
    with pytest.raises(ValueError, match=r"another run \(rate=None instead of 2\)"):
        workers.train(checkpoint, facts={"rate": 2})
    step, optimizer, modules = regression(nn.Linear(3, 2))
    with pytest.raises(ValueError, match=r"net: .*missing \(weight.*unknown \(conv1"):
        fit_plainly(step, modules, optimizer, n_rows=40, checkpoint=checkpoint)
    # Asked to, it starts afresh.
    fit_plainly(step, modules, optimizer, checkpoint=checkpoint, resume=False)


def regression(net, n_rows=12):
    """Squared error of a linear target, rows as they are numbered."""
    rows = torch.randn(n_rows, 3, generator=torch.Generator().manual_seed(0))
    target = rows @ torch.tensor([[1.0, -1], [2, 0], [0, 3]])

    def step(indices, generator):
        return (net(rows[indices]) - target[indices]).square().mean()

    return step, torch.optim.SGD(net.parameters(), lr=0.1), {"net": net}


def fit_plainly(step, modules, optimizer, n_rows=12, **options):
    settings = {"batch_size": 4, "epochs": 2, "seed": 0, "device": "cpu"} | options
    schedule = settings.pop("schedule", None)
    return fit(step, modules, optimizer, schedule, n_rows, progress=False, **settings)


def test_the_loop_is_plain_gradient_descent():
    torch.manual_seed(0)
    net, by_hand = nn.Linear(3, 2), nn.Linear(3, 2)
    by_hand.load_state_dict(net.state_dict())
    seen = []
    step, optimizer, modules = regression(net)

    def watched(indices, generator):
        seen.append(indices.clone())
        return step(indices, generator)

    history = fit_plainly(watched, modules, optimizer, schedule=exponential(0.5))
    step, optimizer, _ = regression(by_hand)
    losses = []
    for number, indices in enumerate(seen):
        optimizer.param_groups[0]["lr"] = 0.1 * 0.5 ** (number // 3)
        loss = step(indices, None)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(net.weight, by_hand.weight)
    np.testing.assert_allclose(
        history["loss"], np.reshape(losses, (2, 3)).mean(1), rtol=1e-6
    )
    assert history["learning_rate"] == [0.1, 0.05]
    for epoch in range(2):  # every row once, in another order each time
        order = torch.cat(seen[3 * epoch : 3 * epoch + 3])
        assert sorted(order.tolist()) == list(range(12))
    assert not torch.equal(torch.cat(seen[:3]), torch.cat(seen[3:]))


def test_the_last_incomplete_batch_is_left_out_and_large_batches_shrink():
    step, optimizer, modules = regression(nn.Linear(3, 2))
    sizes = []

    def watched(indices, generator):
        sizes.append(len(indices))
        return step(indices, generator)

    fit_plainly(watched, modules, optimizer, batch_size=5, epochs=1)
    assert sizes == [5, 5]
    sizes.clear()
    fit_plainly(watched, modules, optimizer, batch_size=99, epochs=1)
    assert sizes == [12]


def test_numbers_of_the_step_and_of_the_epoch_are_recorded(tmp_path):
    checkpoint = tmp_path / "run.pt"
    _, history = workers.train(
        checkpoint, on_epoch=lambda record: {"seen": np.float64(record["epoch"] * 10)}
    )
    assert history["seen"] == [10, 20, 30]
    np.testing.assert_allclose(history["twice"], 2 * np.array(history["loss"]))
    assert history["nothing"] == [None] * 3
    # They survive a checkpoint, which holds plain numbers only.
    assert workers.train(checkpoint, kill_at=1)[1].records == history.records


def test_modules_without_trainable_parameters_are_in_evaluation_mode():
    step, optimizer, modules = regression(nn.Linear(3, 2))
    frozen = nn.BatchNorm1d(2).requires_grad_(False)
    modes = []

    def watched(indices, generator):
        modes.append((modules["net"].training, frozen.training))
        return step(indices, generator)

    modules["net"].eval()
    fit_plainly(watched, {**modules, "frozen": frozen}, optimizer, epochs=1)
    assert set(modes) == {(True, False)}


def test_next_rows_are_announced():
    step, optimizer, modules = regression(nn.Linear(3, 2))
    seen, announced = [], []

    def watched(indices, generator):
        seen.append(indices)
        return step(indices, generator)

    def prefetch(indices, host_indices):
        assert torch.equal(indices, host_indices)
        announced.append(indices)

    fit_plainly(watched, modules, optimizer, epochs=1, prefetch=prefetch)
    assert len(announced) == 2
    assert all(a is b for a, b in zip(announced, seen[1:], strict=True))


def test_a_loss_that_is_not_a_number_stops_with_the_last_checkpoint(tmp_path):
    checkpoint = tmp_path / "run.pt"
    step, optimizer, modules = regression(nn.Linear(3, 2))
    optimizer.param_groups[0]["lr"] = 1e30
    with pytest.raises(FloatingPointError, match="lower the learning rate"):
        fit_plainly(step, modules, optimizer, epochs=9, checkpoint=checkpoint)


def test_a_disk_that_is_full_for_a_while_loses_nothing(uninterrupted, tmp_path):
    """No file may grow beyond some bytes, from the end of the second epoch on."""
    checkpoint = tmp_path / "run.pt"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(record):
        if record["epoch"] == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))

    try:
        with pytest.raises(OSError, match="the previous checkpoint is unharmed"):
            workers.train(checkpoint, on_epoch=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    modules, history = workers.train(checkpoint)
    assert_same_weights(modules, uninterrupted[0])
    assert without_times(history) == without_times(uninterrupted[1])


def test_out_of_memory_suggests_a_batch_size():
    step, optimizer, modules = regression(nn.Linear(3, 2))

    def hungry(indices, generator):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(MemoryError, match="batch_size=4 does not fit.*batch_size=2"):
        fit_plainly(hungry, modules, optimizer)


@pytest.mark.parametrize("name", ["batch_size", "epochs", "n_rows"])
def test_sizes_are_checked(name):
    step, optimizer, modules = regression(nn.Linear(3, 2))
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        fit_plainly(step, modules, optimizer, **{name: 0})
