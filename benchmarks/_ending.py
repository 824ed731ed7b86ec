"""Ways to end workers, drivers and nodes of a Ray cluster, for kills.py and tests."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
# A node that is gone is missed after four seconds, not after a quarter of a minute.
WATCHFUL = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000,
            "health_check_failure_threshold": 4}  # fmt: skip


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes of one core; all its processes end with it."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # as fast as who waits for them
    head = {**NODE, "include_dashboard": False, "_system_config": WATCHFUL}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    nodes.add_node(**NODE)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


class Killer(threading.Thread):
    """kill -9, once, for the first worker of this process's cluster seen at work."""

    def __init__(self, stage: str, title: bytes = b"ray::attempt") -> None:
        super().__init__(daemon=True)
        self.stage, self.title = stage, title
        self.killed: list[int] = []
        self.armed, self.over = threading.Event(), threading.Event()

    def watch(self, stage: str, share: float) -> None:
        """For ``progress``: begin to look when the stage begins."""
        if stage == self.stage and share == 0:
            self.armed.set()

    def run(self) -> None:
        """Look, until one is found or the body is over."""
        while not (self.over.is_set() or self.killed):
            if self.armed.is_set():
                for pid in workers_at_work(self.title)[:1]:
                    os.kill(pid, signal.SIGKILL)
                    self.killed.append(pid)
            time.sleep(0.01)

    def __enter__(self) -> "Killer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def workers_at_work(title: bytes) -> list[int]:
    """Processes that this one has started, directly or not, by how they call it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(
                title
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if _is_ours(pid)]


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return False


@contextmanager
def lost_node(nodes: Any, stage: str) -> Iterator[tuple[Callable, list[float]]]:
    """For ``progress``: end the second node when a part is done; it comes back after.

    Also gives a list of the share that was done when it was lost.
    """
    lost: list[float] = []

    def watch(name: str, share: float) -> None:
        if name == stage and share > 0 and not lost:
            lost.append(share)
            (node,) = nodes.worker_nodes
            nodes.remove_node(node, allow_graceful=False)

    try:
        yield watch, lost
    finally:
        if lost:
            nodes.add_node(**NODE)


def killed_driver(nodes: Any, stage: str, call: str) -> None:
    """Run a program that ends itself when a third of a stage is done."""
    script = textwrap.dedent(
        f"""
        import os, signal
        import shoal
        from shoal import DDFA, DomainMixture, scale

        def kill(stage, share):
            if stage == {stage!r} and share >= 0.3:
                os.kill(os.getpid(), signal.SIGKILL)

        where = dict(engine="ray", address={nodes.address!r}, progress=kill)
        """
    )
    command = [sys.executable, "-c", f"{script}{call}"]
    done = subprocess.run(command, capture_output=True, timeout=600)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the driver was not killed: {done.stderr.decode()}")
