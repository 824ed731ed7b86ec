"""Training on a Ray cluster: any of our loops, in the workers of Ray Train.

The workers run the loop as the processes of ``torchrun`` do. Its checkpoints go to the
storage of the run, from where Ray Train goes on with new workers when one dies, and
from where a second call goes on when the caller itself was killed.
"""

import os
import re
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlparse

from shoal.engine._ray import connected
from shoal.exceptions import CodedError
from shoal.io._files import require
from shoal.validation import check_whole
from shoal.vision._checkpoint import CheckpointFile, CheckpointStore
from shoal.vision._settings import SETTINGS

T = TypeVar("T")
Record = dict[str, Any]

FILE = "state.pt"
#: What Ray Train and our loops write in the folder of a run.
OWN_FILE = re.compile(
    r"\.validate_storage_marker|checkpoint_manager_snapshot\.json"
    rf"|checkpoint_[^/]+/{re.escape(FILE)}"
)


def train_on_ray(
    train: Callable[[CheckpointStore], T],
    storage: str | os.PathLike[str],
    *,
    workers: int = 1,
    address: str | None = None,
    gpu: bool | None = None,
    retries: int = 3,
    resume: bool = True,
    on_checkpoint: Callable[[Record], Any] | None = None,
) -> T:
    """Train a network with the workers of a Ray cluster.

    Parameters
    ----------
    train : callable
        ``train(checkpoint)`` trains with one of our loops, to which it hands on
        ``checkpoint``. It runs in every worker; images and networks that it holds
        travel with it.
    storage : path or URI
        Folder of this run, where its checkpoints are kept: on a cluster of several
        machines one that all of them see, such as ``s3://bucket/run``.
    workers : int, default=1
        Processes that share every batch.
    address : str or None, default=None
        Of the Ray cluster; None: the one Ray itself finds, or a new one on this
        machine. A cluster that this process is connected to already is used as it is.
    gpu : bool or None, default=None
        Give each worker a GPU; None: if the cluster has as many.
    retries : int, default=3
        How often new workers go on after one has died.
    resume : bool, default=True
        Go on from what an earlier call left in ``storage``; False deletes it, and
        refuses a folder with files of anything else.
    on_checkpoint : callable or None, default=None
        Called here, at every checkpoint, with the record of the last whole epoch.

    Returns
    -------
    object
        What ``train`` returned in the first worker; its tensors must be on the CPU. A
        value with a method ``cpu``, as networks have, is asked to bring them there.

    Notes
    -----
    On the CPU, workers that died leave no trace: two workers end with the weights of an
    undisturbed run bit for bit, more of them up to the order in which gradients are
    added. What ``train`` raises is raised here.

    Examples
    --------
    >>> from shoal.vision._ray import train_on_ray
    >>> from shoal.vision._simclr import simclr
    >>> def train(checkpoint):
    ...     return simclr(images, epochs=100, checkpoint=checkpoint, progress=False)
    >>> train_on_ray(train, "/shared/run", workers=8)  # doctest: +SKIP
    """
    check_whole(1, workers=workers)
    place = _absolute(storage)
    if not resume:
        _delete(place)
    with connected(address) as ray:
        use_gpu = _check_room(ray, workers, gpu)
        with _watched(on_checkpoint) as queue:
            trainer = _trainer(train, place, workers, use_gpu, retries, queue)
            return _fit(trainer, retries)


class _RayCheckpoints:
    """State of a run in the storage of Ray Train; for use in its workers."""

    def __init__(self, place: str, queue: Any) -> None:
        self.place, self.queue = place, queue

    def __str__(self) -> str:
        return self.place

    def read(self) -> dict[str, Any] | None:
        """What was reported last, by these workers or by those before them."""
        import ray.train

        checkpoint = ray.train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            return CheckpointFile(Path(folder, FILE)).read()

    def write(self, state: dict[str, Any] | None) -> None:
        """Report a state; all workers wait for each other here."""
        import ray.train

        if state is None:
            ray.train.report({})
            return
        records = state["records"][-1:]
        with tempfile.TemporaryDirectory() as folder:
            CheckpointFile(Path(folder, FILE)).write(state)
            ray.train.report(
                {"steps": state["steps_done"], **(records[0] if records else {})},
                checkpoint=ray.train.Checkpoint.from_directory(folder),
            )
        if self.queue is not None and records:
            with _no_matter():
                self.queue.put(records[0])


class _Value:
    """What ``train`` returned, in a box that Ray Train does not look into.

    It refuses tensors, as it reads values in a process of its own, which has no GPU;
    so they come from the CPU. Files of tensors in the storage would not do: a value is
    any object, such as a network of a class that is not ours.
    """

    def __init__(self, content: Any) -> None:
        self.content = content.cpu() if hasattr(content, "cpu") else content


def _trainer(
    train: Callable[[CheckpointStore], T],
    place: str,
    workers: int,
    use_gpu: bool,
    retries: int,
    queue: Any,
) -> Any:
    from ray.train import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    folder, _, name = place.rpartition("/")

    def run_worker() -> Any:
        return _Value(train(_RayCheckpoints(place, queue)))

    return TorchTrainer(
        run_worker,
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
        run_config=RunConfig(
            name=name,
            storage_path=folder,
            failure_config=FailureConfig(max_failures=retries),
            checkpoint_config=CheckpointConfig(num_to_keep=SETTINGS.checkpoints_kept),
        ),
    )


def _fit(trainer: Any, retries: int) -> Any:
    """Value of the first worker; exceptions of workers as they were."""
    from ray.train import TrainingFailedError

    try:
        with _own_interrupts(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray's, of one of its parts to another
            value: _Value = trainer.fit().return_value
            return value.content
    except SystemExit:  # how Ray Train answers to Ctrl-C
        raise KeyboardInterrupt from None
    except TrainingFailedError as error:
        failures = getattr(error, "worker_failures", {})
        for failure in failures.values():
            # Ray's wrapper has no public name for what it wraps.
            cause = getattr(failure, "_base_exc", None)
            if isinstance(cause, Exception):
                raise cause from error
        text = str(error).strip().splitlines()[-1]
        raise CodedError(
            "E137",
            f"training stopped after {retries + 1} tries: {text}",
            "look for what ended the workers; a second call resumes the training",
        ) from error


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Give Ctrl-C back to whom it belonged; Ray Train takes it and keeps it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def _watched(on_checkpoint: Callable[[Record], Any] | None) -> Iterator[Any]:
    """Queue through which workers tell of their epochs, read by a thread here.

    Should its process die, no more is told, and the training goes on.
    """
    if on_checkpoint is None:
        yield None
        return
    from ray.util.queue import Queue

    queue = Queue(actor_options={"num_cpus": 0})

    def watch() -> None:
        while (record := next_record()) is not None:
            on_checkpoint(record)

    def next_record() -> Record | None:
        with _no_matter():
            return queue.get()
        return None

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield queue
    finally:
        with _no_matter():
            queue.put(None)
        watcher.join()
        with _no_matter():
            queue.shutdown()


def _no_matter() -> suppress:
    """For what tells of progress: a cluster that lost it still trains."""
    from ray.exceptions import RayError

    return suppress(RayError)


def _check_room(ray: Any, workers: int, gpu: bool | None) -> bool:
    """Whether workers get GPUs; E002 where Ray would wait for room that never comes."""
    resources = ray.cluster_resources()
    use_gpu = resources.get("GPU", 0) >= workers if gpu is None else gpu
    for name in ("CPU", "GPU")[: 1 + use_gpu]:
        if resources.get(name, 0) < workers:
            raise CodedError(
                "E002",
                f"workers={workers} need a {name} each; this Ray cluster has "
                f"{resources.get(name, 0):g}",
                "ask for fewer workers, or start more nodes first",
            )
    return bool(use_gpu)


def _absolute(storage: str | os.PathLike[str]) -> str:
    text = os.fspath(storage)
    return text if urlparse(text).scheme else os.path.abspath(text)


def _delete(place: str) -> None:
    """Delete the folder of an earlier run, wherever it is; E136 if it is another's."""
    fs = require("pyarrow.fs", "ray", "training on Ray")
    files, path = fs.FileSystem.from_uri(place)
    if files.get_file_info(path).type != fs.FileType.Directory:
        return
    for found in files.get_file_info(fs.FileSelector(path, recursive=True)):
        name = found.path.removeprefix(path).lstrip("/")
        if found.type != fs.FileType.Directory and not OWN_FILE.fullmatch(name):
            raise CodedError(
                "E136",
                f'"{place}" holds "{name}", which no training on Ray wrote; with '
                "resume=False it would be deleted",
                "name another folder, or delete this one yourself",
            )
    files.delete_dir(path)
