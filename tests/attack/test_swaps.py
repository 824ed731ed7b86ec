"""Killed at any step, a folder is the one run or the other, and nothing is lost."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests.attack.kills import DONE, all_kills, in_child, without_exchange

from shoal.cli._messages import CommandError
from shoal.cli._runs import (
    MANIFEST,
    MODEL,
    RUN,
    SUMMARY,
    digests,
    filled_file,
    filled_folder,
    renew_record,
    reserved,
    settled,
)
from shoal.exceptions import CodedError
from shoal.io import _swap
from shoal.io._files import sweep, whole_file
from shoal.io._swap import READY, held, is_unfinished, whole_folder

NAMES = (SUMMARY, MODEL, RUN, "first.csv", "second.csv")


def write_run(folder: Path, text: str, own: str) -> None:
    """A run whose files all say the same; ``own`` is one that others have not."""
    with filled_folder(folder, instead_of=NAMES) as place:
        (place / SUMMARY).write_text(text)
        (place / own).write_text(text)
        (place / MODEL).mkdir()
        (place / MODEL / MANIFEST).write_text(text)
        record = {"schema": "shoal/1", "command": "fit", "files": digests(place)}
        (place / RUN).write_text(json.dumps(record))


def run_of(folder: Path) -> str:
    """What all files of a run say; the run must be whole, and all its own."""
    run = settled(folder)
    recorded = json.loads((run / RUN).read_text())["files"]
    present = {name: text for name, text in digests(run).items() if name != "notes.txt"}
    assert present == recorded
    return (run / SUMMARY).read_text()


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def first_run(folder: Path, *, foreign: bool = False) -> None:
    """A run of before, with a file of somebody else's, and perhaps a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    write_run(folder, "1", "first.csv")
    (folder / "notes.txt").write_text("mine")
    if foreign:
        (folder / "mine").mkdir()


# ---- kills ---------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["exchange", "no such call", "others' folders"])
def test_killed_at_every_step(folder: Path, way: str):
    """The next command finds the old run or the new one, and clears up."""
    foreign = way == "others' folders"
    if way == "no such call" and _swap.exchange(folder, folder):
        pytest.skip("the system has another answer")
    seen = set()

    def check(number: int) -> None:
        seen.add(run_of(folder))
        assert (folder / "notes.txt").read_text() == "mine"
        assert (folder / "mine").is_dir() == foreign
        write_run(folder, "3", "first.csv")
        assert run_of(folder) == "3"
        assert hidden(folder.parent) == []

    def second() -> None:
        if way == "no such call":
            without_exchange()
        write_run(folder, "2", "second.csv")

    n_kills = all_kills(
        second, folder.parent, lambda: first_run(folder, foreign=foreign), check
    )
    assert n_kills > 20
    assert seen == {"1", "2"}
    assert run_of(folder) == "2"


def test_an_exchange_is_never_seen_half_done(folder: Path):
    """Also by those who ask nobody: every file is of one run, at every step."""
    if not _swap.exchange(folder.parent, folder.parent):
        pytest.skip("a system without exchange")

    def check(number: int) -> None:
        texts = {
            (folder / name).read_text() for name in (SUMMARY, f"{MODEL}/{MANIFEST}")
        }
        own = {"1": "first.csv", "2": "second.csv"}[texts.pop()]
        assert not texts
        assert (folder / own).exists()

    body = lambda: write_run(folder, "2", "second.csv")  # noqa: E731
    all_kills(body, folder.parent, lambda: first_run(folder), check)


def test_a_new_folder_is_there_or_not(folder: Path):
    def check(number: int) -> None:
        if folder.exists():
            assert run_of(folder) == "1"

    body = lambda: write_run(folder, "1", "first.csv")  # noqa: E731
    prepare = lambda: shutil.rmtree(folder, ignore_errors=True)  # noqa: E731
    assert all_kills(body, folder.parent, prepare, check) > 10
    assert hidden(folder.parent) == []


def test_unfinished_runs_are_refused_until_a_command_finishes_them(folder: Path):
    from shoal.io.model._folder import find_model

    first_run(folder)
    (folder / READY).mkdir()
    (folder / READY / SUMMARY).write_text("2")
    (folder / READY / ".gone").write_text(
        json.dumps(["first.csv", "../outside", "..", 7, f"a{os.sep}b"])
    )
    (folder.parent / "outside").write_text("mine")
    for path in (folder, folder / MODEL):
        with pytest.raises(CodedError, match="is being replaced") as raised:
            find_model(path)
        assert raised.value.code == "E135"
    with pytest.raises(CommandError, match=r"summary\.json, which is not of the run"):
        settled(folder)
    assert not is_unfinished(folder)
    assert (folder / SUMMARY).read_text() == "2"
    assert not (folder / "first.csv").exists()
    assert (folder.parent / "outside").read_text() == "mine"


# ---- what a run contradicts ----------------------------------------------------------


@pytest.mark.parametrize("name", [SUMMARY, f"{MODEL}/{MANIFEST}"])
def test_a_run_that_its_record_contradicts(folder: Path, name: str):
    first_run(folder)
    assert settled(folder / MODEL) == settled(folder) == folder
    (folder / name).write_text("of another run")
    with pytest.raises(CommandError, match="which is not of the run") as raised:
        settled(folder)
    assert raised.value.code == "E135"


def test_tables_may_be_edited_and_files_removed(folder: Path):
    first_run(folder)
    (folder / "first.csv").write_text("by hand")
    (folder / SUMMARY).unlink()
    assert settled(folder) == folder


def test_a_renewed_record_forgets_what_went(folder: Path):
    first_run(folder)
    with filled_folder(folder) as place:
        (place / MODEL).mkdir()
        (place / MODEL / "weights").write_text("2")
        renew_record(folder, place)
    recorded = json.loads((folder / RUN).read_text())["files"]
    assert set(recorded) == {SUMMARY, "first.csv", f"{MODEL}/weights"}
    present = digests(folder)
    assert recorded == {name: present[name] for name in recorded}


# ---- where folders cannot be exchanged -----------------------------------------------


def test_the_folder_that_we_are_in_stays_the_same(folder: Path):
    """A shell in it would stand in a folder that is no more."""
    first_run(folder)
    before = folder.stat().st_ino
    with chdir(folder):
        write_run(Path("."), "2", "second.csv")
        assert Path("notes.txt").read_text() == "mine"
    assert folder.stat().st_ino == before
    assert run_of(folder) == "2"
    write_run(folder, "3", "first.csv")
    assert run_of(folder) == "3"
    assert hidden(folder.parent) == []


def test_where_only_the_folder_itself_can_be_written_to(folder: Path, monkeypatch):
    first_run(folder)
    real = os.access

    def access(path: Path, mode: int) -> bool:
        return Path(path) != folder.parent and real(path, mode)

    monkeypatch.setattr(os, "access", access)
    with held(folder) as workshop:
        assert workshop.parent == folder
    write_run(folder, "2", "second.csv")
    assert run_of(folder) == "2"
    assert hidden(folder.parent) == []


def test_links_and_rights_stay(folder: Path):
    first_run(folder)
    (folder / "link").symlink_to("nowhere")
    folder.chmod(0o750)
    inode = (folder / "notes.txt").stat().st_ino
    alias = folder.parent / "alias"
    alias.symlink_to(folder)
    write_run(alias, "2", "second.csv")
    assert alias.is_symlink()
    assert os.readlink(folder / "link") == "nowhere"
    assert folder.stat().st_mode & 0o777 == 0o750
    assert (folder / "notes.txt").stat().st_ino == inode
    (folder / "link").unlink()
    assert run_of(folder) == "2"


# ---- two at a time -------------------------------------------------------------------


def test_a_second_run_is_told(folder: Path):
    first_run(folder)
    with reserved(folder, NAMES, force=True):
        with held(folder):  # our own is no second one
            pass

        def second() -> None:
            with pytest.raises(CodedError, match="another run is writing") as raised:
                write_run(folder, "2", "second.csv")
            assert raised.value.code == "E136"
            with pytest.raises(CodedError, match="another run is writing"):
                reserved(folder, NAMES, force=True).__enter__()

        assert in_child(second) == DONE
        write_run(folder, "3", "first.csv")
    assert run_of(folder) == "3"
    write_run(folder, "4", "first.csv")
    assert hidden(folder.parent) == []


def test_a_reservation_leaves_nothing(folder: Path):
    deep = folder / "deep"

    def stopped() -> None:
        with reserved(deep, NAMES, force=False):
            assert deep.parent.is_dir()
            raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        stopped()
    assert list(folder.parent.iterdir()) == []


def race(folder: Path, n_processes: int) -> Iterator[str]:
    """What became of processes that write to one place at one time."""
    start = folder.parent / "start"
    children = []
    for number in range(n_processes):
        child = os.fork()
        if child == 0:
            code = 9
            try:
                while not start.exists():
                    time.sleep(0.0005)
                write_run(folder, str(number), "first.csv")
                code = 0
            except CodedError as error:
                code = 1 if error.code == "E136" else 2
            finally:
                os._exit(code)
        children.append(child)
    start.touch()
    for child in children:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield {0: "wrote", 1: "was told"}.get(code, "failed")
    start.unlink()


def test_races(folder: Path):
    """Of twenty races each is won by somebody, and no run is a mixture."""
    for _ in range(20):
        found = list(race(folder, 4))
        assert set(found) <= {"wrote", "was told"}
        assert "wrote" in found
        assert run_of(folder) in "0123"
        assert hidden(folder.parent) == []


# ---- the disk ------------------------------------------------------------------------


def test_files_and_folders_are_on_the_disk_before_the_exchange(folder, monkeypatch):
    first_run(folder)
    events: list[str] = []
    fsync, exchange = os.fsync, _swap.exchange

    def synced(descriptor: int) -> None:
        events.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def exchanged(one: Path, other: Path) -> bool:
        events.append("exchange")
        return exchange(one, other)

    if not Path("/proc/self/fd").exists():
        pytest.skip("files cannot be told by their descriptors")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(_swap, "exchange", exchanged)
    write_run(folder, "2", "second.csv")
    when = events.index("exchange")
    assert {SUMMARY, "second.csv", MANIFEST, RUN, MODEL, "new"} <= set(events[:when])
    assert folder.parent.name in events[when:]


def test_writes_that_fail_leave_the_old_run(folder: Path):
    """Files that may hold so many bytes and no more, as on a disk that is full."""
    first_run(folder)
    text = "2" * 3000
    limits = [0, 1, 100, 2999, 3000, 3200, 3400]
    told = []

    def limited(limit: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(CommandError) as raised:
            write_run(folder, text, "second.csv")
        assert raised.value.code == "E140"

    for limit in limits:
        code = in_child(lambda limit=limit: limited(limit))
        told.append(code)
        assert run_of(folder) in ("1", text)
        assert (code == DONE) == (run_of(folder) == "1")
        assert hidden(folder.parent) == []
    assert told[0] == told[3] == DONE


# ---- files, and those who end us -----------------------------------------------------


def test_temporary_files_of_the_dead_go(tmp_path: Path):
    path = tmp_path / "rows.csv"

    def die() -> None:
        with whole_file(path) as place:
            place.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    assert len(hidden(tmp_path)) == 1
    with whole_file(path) as mine:
        mine.write_text("ours")
        sweep(path)  # those of the living stay
        assert hidden(tmp_path) == [mine.name]
    assert in_child(die) == -signal.SIGKILL
    with filled_file(path) as place:
        place.write_text("whole")
    assert hidden(tmp_path) == []
    assert path.read_text() == "whole"


SLEEPER = """
import sys, time
from pathlib import Path
from shoal.cli import main, _small
from shoal.cli._runs import reserved

def wait():
    with reserved(Path(sys.argv[1]), ["x"], force=False):
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)

_small.catalogue = wait
main(["explain", "E001"])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_in_good_order(tmp_path: Path, number: int):
    """Like Ctrl-C: one line, exit code 130, and nothing is left."""
    command = [sys.executable, "-c", SLEEPER, str(tmp_path / "deep" / "run")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(number)
        told = process.stderr.read()
    assert process.returncode == 130
    assert told.startswith("error[E003] interrupted")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_no_folder(tmp_path: Path):
    (tmp_path / ".run.shoal-tmp").write_text("mine")
    with pytest.raises(OSError) as raised:  # noqa: PT011, SIM117
        with whole_folder(tmp_path / "run"):
            pass
    assert raised.value.errno == errno.EEXIST
