"""One training loop for everything: pretraining, heads, discriminators, fine-tuning."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from shoal.vision._backbone import describe_mismatch
from shoal.vision._checkpoint import CheckpointPlace, CheckpointStore, open_store
from shoal.vision._devices import (
    Progress,
    StepModule,
    autocast_to,
    fitting_into_memory,
    join_processes,
    mean_over_processes,
    pick_device,
    place_module,
    rank,
    share_norms,
    world_size,
)
from shoal.vision._steps import CompileSetting, compiling

# ---- learning rates over the epochs --------------------------------------------------

Schedule = Callable[[float], float]


def constant() -> Schedule:
    """Always 1."""
    return lambda epoch: 1.0


def cosine(epochs: float, *, warmup: float = 0.0, floor: float = 0.0) -> Schedule:
    """Half a cosine from 1 to ``floor`` after a linear rise over ``warmup`` epochs.

    >>> schedule = cosine(10)
    >>> [round(schedule(epoch), 3) for epoch in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """
    if not 0 <= warmup < epochs:
        raise ValueError(f"warmup must lie in [0, epochs={epochs}), got {warmup}")

    def factor(epoch: float) -> float:
        if epoch < warmup:
            return epoch / warmup
        done = min((epoch - warmup) / (epochs - warmup), 1.0)
        return floor + (1 - floor) * (1 + cos(pi * done)) / 2

    return factor


def exponential(gamma: float) -> Schedule:
    """``gamma`` to the number of whole epochs done.

    >>> exponential(0.5)(2.9)
    0.25
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must lie in (0, 1], got {gamma}")
    return lambda epoch: gamma ** int(epoch)


# ---- the training loop ---------------------------------------------------------------

#: ``step(indices, generator)`` gives a loss, or a loss and numbers to be recorded.
Step = Callable[[Tensor, torch.Generator], Tensor | tuple[Tensor, dict[str, Tensor]]]
Record = dict[str, Any]
ORDER, STREAM = 0, 1  # what a seed is for


@dataclass
class History:
    """What happened, one record (dict) per epoch.

    Every record has ``epoch`` (from 1), ``loss`` and the step's other numbers (means
    over the epoch), ``learning_rate``, ``seconds`` and ``rows_per_second``, and what
    ``on_epoch`` added.
    """

    records: list[Record] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, name: str) -> list[Any]:
        """One number over the epochs; None where an epoch lacks it."""
        return [record.get(name) for record in self.records]


def fit(
    step: Step,
    modules: Mapping[str, nn.Module],
    optimizer: Optimizer,
    schedule: Schedule | None,
    n_rows: int,
    *,
    batch_size: int,
    epochs: int,
    seed: int,
    device: str | torch.device | None = None,
    checkpoint: CheckpointPlace | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    facts: Mapping[str, Any] | None = None,
    autocast: torch.dtype | None = None,
    compile: CompileSetting = False,
    on_epoch: Callable[[Record], Mapping[str, Any] | None] | None = None,
    prefetch: Callable[[Tensor, Tensor], None] | None = None,
    progress: bool = True,
) -> History:
    """Train ``modules`` by steps on shuffled batches of row numbers.

    Parameters
    ----------
    step : callable
        ``step(indices, generator)`` with row numbers on the device and a generator for
        all that is random; returns the mean loss, or (loss, dict of numbers). It uses
        the modules directly: gradients and batch norms are shared among processes
        behind its back. The generator is the same in all of them: draw for the rows of
        all, and take one's own, as :func:`shoal.vision.extend.random_views` does.
    modules : mapping of str to Module
        All that a checkpoint keeps. They are moved to the device; those with trainable
        parameters are set to training mode at every epoch, the others to evaluation.
    optimizer : Optimizer
        Holds the parameters; the schedule scales its learning rates.
    schedule : callable or None
        Factor of the learning rate at an epoch, such as
        :func:`shoal.vision.extend.cosine` makes; None: 1.
    n_rows : int
        Rows are 0..n_rows-1. The last, incomplete batch of an epoch is left out.
    batch_size : int
        Rows of one step, over all processes together.
    epochs : int
        Number of passes over the rows.
    seed : int
        Seed of the order of rows and of everything drawn in a step.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    checkpoint : path, CheckpointStore or None, default=None
        File to write after every epoch, and to resume from, or another place with
        methods ``read`` and ``write``, such as :func:`shoal.vision.train_on_ray` gives.
    checkpoint_every : int or None, default=None
        Write it after this number of steps instead, and at the end.
    resume : bool, default=True
        Go on from ``checkpoint`` when it exists. It must be of the same run, by
        however many processes.
    facts : mapping of str to number, str or None
        What else is the same in the same run, by name.
    autocast : torch.dtype or None, default=None
        Precision of the step; None: bf16 on CUDA, float32 on the CPU.
    compile : bool, str or mapping, default=False
        Compile the parts of the step, those made by :func:`shoal.vision.part`;
        a string is torch.compile's mode, a mapping its arguments. The first steps of
        a process then take a minute or so longer; results stay those of the seed.
    on_epoch : callable or None, default=None
        Called with the record of each epoch; what it returns is added to the record.
    prefetch : callable or None, default=None
        Called with the row numbers of the next batch, on the device and on the host,
        such as ``ImageSet.prefetch``.
    progress : bool, default=True
        Show a bar (rich, on a terminal) or a line per epoch on stderr.

    Returns
    -------
    History
    """
    place = pick_device(device)
    join_processes(place)
    plan = _BatchPlan(n_rows, min(batch_size, n_rows), epochs, seed)
    plan.check(world_size())
    store = None if checkpoint is None else open_store(checkpoint)
    run = _Run(plan, dict(modules), optimizer, schedule or constant(), place)
    run.set_step(step, autocast)
    run.facts = dict(facts or {})
    run.replays_graphs = bool(compile) and place.type == "cuda"
    if store is not None and resume:
        run.restore(store)
    shown = progress and rank() == 0
    with _settings(place), compiling(compile), Progress(epochs, shown) as bar:
        while run.epoch < epochs:
            for steps_done in run.train_epoch(prefetch):
                if checkpoint_every and steps_done % checkpoint_every == 0:
                    run.save(store)
            record = run.close_epoch()
            record.update(_plain(on_epoch(record) if on_epoch else None))
            bar.show(record)
            if checkpoint_every is None or run.epoch == epochs:
                run.save(store)
    return run.history


@dataclass(frozen=True)
class _BatchPlan:
    """What fixes the order of rows and every random number of a run."""

    n_rows: int
    batch_size: int
    epochs: int
    seed: int

    def check(self, n_processes: int) -> None:
        for name in ("n_rows", "batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1, got {getattr(self, name)}"
                )
        if self.batch_size % n_processes:
            raise ValueError(
                f"batch_size={self.batch_size} cannot be shared evenly by "
                f"{n_processes} processes; use a multiple of {n_processes}"
            )

    @property
    def steps_per_epoch(self) -> int:
        return self.n_rows // self.batch_size

    def batches(self, epoch: int, process: int, n_processes: int) -> Tensor:
        """Row numbers (steps, rows) of one process in one epoch, on the host."""
        generator = torch.Generator().manual_seed(self._derive(ORDER, epoch))
        order = torch.randperm(self.n_rows, generator=generator)
        order = order[: self.steps_per_epoch * self.batch_size]
        shares = order.view(self.steps_per_epoch, n_processes, -1)
        return shares[:, process].contiguous()

    def stream(self, step: int, process: int) -> int:
        """Seed of what is drawn in one step; that of process 0 is the common one."""
        return self._derive(STREAM, step, process)

    def _derive(self, *path: int) -> int:
        state = np.random.SeedSequence([self.seed, *path]).generate_state(1, np.uint64)
        return int(state[0]) >> 1


class _Run:
    """Where a run stands, how it goes one step further, and how it is kept."""

    def __init__(
        self,
        plan: _BatchPlan,
        modules: dict[str, nn.Module],
        optimizer: Optimizer,
        schedule: Schedule,
        device: torch.device,
    ) -> None:
        self.plan, self.modules, self.device = plan, modules, device
        self.optimizer, self.schedule = optimizer, schedule
        for module in modules.values():
            place_module(module, device)
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.generator = torch.Generator(device)
        self.history = History()
        self.facts: dict[str, Any] = {}
        self.replays_graphs = False
        self.steps_done = 0
        self.seconds = 0.0  # of the present epoch
        self.sums: dict[str, Tensor] = {}  # of the present epoch, on the device

    @property
    def epoch(self) -> int:
        """Whole epochs recorded."""
        return len(self.history)

    def set_step(self, step: Step, autocast: torch.dtype | None) -> None:
        """Prepare the step; gradients and norms are shared among processes."""
        self.autocast = autocast_to(self.device, autocast)
        for module in self.modules.values():
            share_norms(module, self.device)
        forward: nn.Module = StepModule(step, self.modules)
        if world_size() > 1:
            forward = DistributedDataParallel(forward)
        self.forward = forward

    def train_epoch(self, prefetch: Callable[..., None] | None) -> Iterator[int]:
        """Take the remaining steps of this epoch, one at a time."""
        for module in self.modules.values():
            module.train(any(p.requires_grad for p in module.parameters()))
        host = self.plan.batches(self.epoch, rank(), world_size())
        batches = host.to(self.device).unbind()
        first = self.steps_done - self.epoch * self.plan.steps_per_epoch
        started = time.perf_counter() - self.seconds
        for position in range(first, len(batches)):
            self._set_learning_rate()
            loss = self._loss(batches[position])
            if prefetch is not None and position + 1 < len(batches):
                prefetch(batches[position + 1], host[position + 1])
            self._descend(loss)
            self.steps_done += 1
            self.seconds = time.perf_counter() - started
            yield self.steps_done

    def close_epoch(self) -> Record:
        """Record of the epoch just trained; here the host waits for the device."""
        started = time.perf_counter()
        self._share_sums()
        names = [*self.sums]
        sums = torch.stack([self.sums[name].double() for name in names])
        means = (sums / self.plan.steps_per_epoch).tolist()
        seconds = self.seconds + time.perf_counter() - started
        record: Record = {"epoch": self.epoch + 1}
        record |= dict(zip(names, means, strict=True))
        if not np.isfinite(record["loss"]):
            raise FloatingPointError(
                f"loss is {record['loss']} in epoch {record['epoch']}; lower the "
                "learning rate"
            )
        n_rows = self.plan.steps_per_epoch * self.plan.batch_size
        record["learning_rate"] = self.optimizer.param_groups[0]["lr"]
        record |= {"seconds": seconds, "rows_per_second": n_rows / seconds}
        self.history.records.append(record)
        self.sums, self.seconds = {}, 0.0
        return record

    def save(self, store: CheckpointStore | None) -> None:
        """Keep where the run stands; all processes come here, the first has a say."""
        if store is None:
            return
        if self.sums and self.device.type == "cuda":
            started = time.perf_counter()
            torch.cuda.synchronize(self.device)
            # Steps still under way are part of the epoch's time, writing is not.
            self.seconds += time.perf_counter() - started
        self._share_sums()
        store.write(self._state() if rank() == 0 else None)

    def _state(self) -> dict[str, Any]:
        return {
            "plan": asdict(self.plan),
            "facts": self.facts,
            "modules": {name: m.state_dict() for name, m in self.modules.items()},
            "optimizer": self.optimizer.state_dict(),
            "records": self.history.records,
            "steps_done": self.steps_done,
            "seconds": self.seconds,
            "sums": self.sums,
        }

    def restore(self, store: CheckpointStore) -> None:
        """Go back to where a checkpoint was written, if there is one."""
        state = store.read()
        if state is None:
            return
        wanted = asdict(self.plan) | self.facts
        got = state.get("plan", {}) | state.get("facts", {})
        differing = [f"{k}={got.get(k)} instead of {v}" for k, v in wanted.items()
                     if got.get(k) != v]  # fmt: skip
        weights = state.get("modules", {})
        for name, module in self.modules.items():
            problem = describe_mismatch(module.state_dict(), weights.get(name, {}))
            differing += [f"{name}: {problem}"] if problem else []
        if differing:
            raise ValueError(
                f"{store} is a checkpoint of another run "
                f"({'; '.join(differing)}); pass resume=False to start afresh"
            )
        for name, module in self.modules.items():
            module.load_state_dict(weights[name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.history.records[:] = state["records"]
        self.steps_done, self.seconds = state["steps_done"], state["seconds"]
        self.sums = {name: x.to(self.device) for name, x in state["sums"].items()}

    def _share_sums(self) -> None:
        """Means over processes in place of each one's own sums of the epoch so far."""
        for name, value in self.sums.items():
            self.sums[name] = mean_over_processes(value)

    def _set_learning_rate(self) -> None:
        factor = self.schedule(self.steps_done / self.plan.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor

    def _loss(self, indices: Tensor) -> Tensor:
        """Loss of one batch; adds the step's numbers to the epoch's sums."""
        # Dropout and the like are each process's own, views are drawn in common.
        torch.manual_seed(self.plan.stream(self.steps_done, rank()))
        self.generator.manual_seed(self.plan.stream(self.steps_done, 0))
        if self.replays_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        with fitting_into_memory(self.plan.batch_size, self.device), self.autocast:
            outcome = self.forward(indices, self.generator)
        loss, numbers = outcome if isinstance(outcome, tuple) else (outcome, {})
        for name, value in {"loss": loss, **numbers}.items():
            value = value.detach()
            # A copy, since a compiled step reuses the memory of its results.
            self.sums[name] = (
                self.sums[name] + value if name in self.sums else value.clone()
            )
        return loss

    def _descend(self, loss: Tensor) -> None:
        with fitting_into_memory(self.plan.batch_size, self.device):
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


@contextmanager
def _settings(device: torch.device) -> Iterator[None]:
    """Random state that is given back afterwards; on CUDA the fastest convolutions."""
    devices = [device] if device.type == "cuda" else []
    with (
        torch.random.fork_rng(devices),
        torch.backends.cudnn.flags(enabled=True, benchmark=True),
    ):
        yield


def _plain(numbers: Mapping[str, Any] | None) -> Record:
    """Numbers as Python's own, which a checkpoint can hold."""
    return {
        name: value.item() if hasattr(value, "item") else value
        for name, value in (numbers or {}).items()
    }
