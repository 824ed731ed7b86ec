"""A store shared by processes: nothing lost, nothing done twice, kill -9 included."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal_bench.grids import select, tiny_specs
from shoal_bench.spec import Spec
from shoal_bench.store import Claim, Store

SPECS = [Spec("gauss2", 3, 3, wave, "kmeans") for wave in range(4)]


def record(spec: Spec, **content) -> dict:
    return {"name": spec.name, "spec": spec.to_dict(), **content}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


# ---- lines -----------------------------------------------------------------------


def test_what_was_added_is_there_for_every_reader(store):
    assert store.records() == {}
    assert SPECS[0].name not in store
    store.add(record(SPECS[0], value=0.1 + 0.2))
    other = Store(store.folder)
    assert other.records()[SPECS[0].name]["value"] == 0.1 + 0.2
    store.add(record(SPECS[1]))
    assert set(other.records()) == {SPECS[0].name, SPECS[1].name}


def test_of_two_records_the_later_counts(store):
    store.add(record(SPECS[0], value=1))
    store.add(record(SPECS[0], value=2))
    assert store.records()[SPECS[0].name]["value"] == 2


def test_a_line_taken_out_is_forgotten(store):
    for spec in SPECS:
        store.add(record(spec))
    assert len(store.records()) == 4
    file = store.folder / "records.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    assert set(store.records()) == {spec.name for spec in SPECS[1:]}


@pytest.mark.parametrize("cut", [2, 5, 30])
def test_half_a_line_is_skipped_and_harms_no_other(store, cut):
    """As a writer leaves it that dies in the middle of a write."""
    for spec in SPECS[:2]:
        store.add(record(spec))
    file = store.folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    again = Store(store.folder)
    assert set(again.records()) == {SPECS[0].name}
    again.add(record(SPECS[2]))
    assert set(again.records()) == {SPECS[0].name, SPECS[2].name}
    assert set(Store(store.folder).records()) == {SPECS[0].name, SPECS[2].name}


def test_a_whole_line_without_its_end_counts_from_the_next_write_on(store):
    store.add(record(SPECS[0]))
    file = store.folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-1])
    store = Store(store.folder)
    assert store.records() == {}  # its writer may still be at it
    store.add(record(SPECS[1]))
    assert set(store.records()) == {SPECS[0].name, SPECS[1].name}


def test_a_number_that_json_has_not_is_refused_and_nothing_written(store):
    with pytest.raises(ValueError, match="JSON compliant"):
        store.add(record(SPECS[0], value=float("nan")))
    assert store.records() == {}


def test_failures_stand_apart_until_the_spec_succeeds(store):
    store.add_failure(record(SPECS[0], failure={"kind": "ValueError"}))
    store.add_failure(record(SPECS[0], failure={"kind": "KeyError"}))
    assert store.records() == {}
    assert store.failures()[SPECS[0].name]["failure"]["kind"] == "KeyError"
    store.add(record(SPECS[0]))
    assert store.failures() == {}


# ---- claims ----------------------------------------------------------------------


def test_a_claim_is_exclusive_until_it_is_closed(store):
    claim = store.claim(SPECS[0])
    assert claim is not None
    assert store.claim(SPECS[0]) is None
    assert store.claim(SPECS[1]) is not None
    assert store.running()[SPECS[0].name]["pid"] == os.getpid()
    claim.close()
    claim.close()
    with store.claim(SPECS[0]) as again:
        assert again is not None
    assert SPECS[0].name not in store.running()


def test_what_is_done_cannot_be_claimed(store):
    store.add(record(SPECS[0]))
    assert store.claim(SPECS[0]) is None
    assert list((store.folder / "claims").iterdir()) == []


def test_a_claim_on_a_removed_file_is_taken_again(tmp_path, monkeypatch):
    """The last owner may remove the file between our opening and our locking it."""
    import fcntl

    path = tmp_path / "claim"
    lock, removed = fcntl.flock, []

    def remove_then_lock(handle: int, operation: int) -> None:
        if not removed:
            removed.append(path.unlink())
        lock(handle, operation)

    monkeypatch.setattr("shoal_bench.store.fcntl.flock", remove_then_lock)
    claim = Claim.take(path)
    assert removed
    assert Claim.take(path) is None
    claim.close()


# ---- processes -------------------------------------------------------------------

WRITER = """
import sys
from shoal_bench.spec import Spec
from shoal_bench.store import Store
store = Store(sys.argv[1])
for wave in range(100):
    spec = Spec("gauss2", 3, 3, wave, "kmeans")
    claim = store.claim(spec)
    if claim is None:
        continue
    with claim:
        store.add({"name": spec.name, "writer": sys.argv[2], "ballast": "x" * 5000})
"""


def start(code: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)])


def test_processes_that_share_a_store_do_everything_once(store):
    writers = [start(WRITER, store.folder, number) for number in range(2)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    lines = (store.folder / "records.jsonl").read_text().splitlines()
    names = [json.loads(line)["name"] for line in lines]
    assert len(names) == len(set(names)) == 100
    assert list((store.folder / "claims").iterdir()) == []


METHODS = ["kmeans", "ours_frozen", "reference"]
RUNNER = f"""
import sys
from shoal_bench.grids import select, tiny_specs
from shoal_bench.run import run_missing
from shoal_bench.store import Store
run_missing(select(tiny_specs(), methods={METHODS}), Store(sys.argv[1]))
"""


def wait_for_records(store: Store, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(store.records()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_kill_9_loses_at_most_the_running_trial(store):
    """A real grid in a real process, really killed; then the rest, and only that."""
    victim = start(RUNNER, store.folder)
    wait_for_records(store, 2)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(timeout=10) == -signal.SIGKILL
    survived = Store(store.folder).records()
    assert len(survived) in range(2, 18)
    finished = {name: one["finished"] for name, one in survived.items()}

    assert start(RUNNER, store.folder).wait(timeout=60) == 0
    final = Store(store.folder).records()
    assert set(final) == {spec.name for spec in select(tiny_specs(), methods=METHODS)}
    assert {name: final[name]["finished"] for name in finished} == finished
    assert store.failures() == {}
    lines = Path(store.folder, "records.jsonl").read_text().splitlines()
    assert len(lines) == len(final)
    assert Store(store.folder).running() == {}
