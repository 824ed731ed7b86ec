"""All files or none, and nobody else's."""

import json
import os
import signal
from pathlib import Path

import pytest

from shoal.cli._messages import CommandError
from shoal.cli._runs import (
    RUN,
    digests,
    filled_file,
    filled_folder,
    refuse_existing,
    refuse_foreign,
    settled,
)
from shoal.io import _swap

NAMES = ["table.csv", "model", RUN]


def write_run(folder: Path, table: str, command: str = "demo") -> None:
    with filled_folder(folder) as place:
        (place / "table.csv").write_text(table)
        (place / "model").mkdir()
        (place / "model" / "weights").write_text(table)
        record = {"schema": "shoal/1", "command": command, "files": digests(place)}
        (place / RUN).write_text(json.dumps(record))


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def code_of(raised: pytest.ExceptionInfo[CommandError]) -> str:
    return raised.value.code


# ---- writing ---------------------------------------------------------------------


def test_a_folder_and_those_above_it_are_made(tmp_path: Path):
    write_run(tmp_path / "new" / "folder", "1")
    found = content(tmp_path)
    assert set(found) == {
        "new/folder/table.csv",
        "new/folder/model/weights",
        "new/folder/run.json",
    }


def test_entries_are_replaced_and_others_stay(tmp_path: Path):
    write_run(tmp_path, "1")
    (tmp_path / "model" / "old").write_text("of the first run")
    (tmp_path / "notes.txt").write_text("mine")
    write_run(tmp_path, "2")
    found = content(tmp_path)
    assert found["table.csv"] == found["model/weights"] == "2"
    assert found["notes.txt"] == "mine"
    assert "model/old" not in found


def test_what_a_run_no_longer_writes_goes(tmp_path: Path):
    write_run(tmp_path, "1")
    for name in ("report.html", "notes.txt"):
        (tmp_path / name).write_text("of the first run")
    names = ["table.csv", "model", "report.html", "absent"]
    with filled_folder(tmp_path, instead_of=names) as place:
        (place / "table.csv").write_text("2")
    assert set(content(tmp_path)) == {"table.csv", "notes.txt", "run.json"}


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
def test_what_stops_the_body_leaves_no_trace(tmp_path: Path, error: BaseException):
    write_run(tmp_path / "old", "1")
    before = content(tmp_path)

    def fill(folder: Path) -> None:
        with filled_folder(folder) as place:
            (place / "table.csv").write_text("2")
            raise error

    def write(path: Path) -> None:
        with filled_file(path) as place:
            place.write_text("2")
            raise error

    for folder in (tmp_path / "old", tmp_path / "new" / "deep"):
        with pytest.raises(type(error)):
            fill(folder)
    for path in (tmp_path / "old" / "table.csv", tmp_path / "new" / "file.csv"):
        with pytest.raises(type(error)):
            write(path)
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("exchanged", [True, False])
def test_ctrl_c_leaves_one_run_or_the_other(tmp_path: Path, monkeypatch, exchanged):
    """Pressed at any rename: the new run is whole, and then the command ends."""
    folder = tmp_path / "run"
    write_run(folder, "1")
    replace, exchange = os.replace, _swap.exchange

    def pressed(source: Path, target: Path) -> None:
        replace(source, target)
        signal.raise_signal(signal.SIGINT)

    def pressed_after(one: Path, other: Path) -> bool:
        done = exchanged and exchange(one, other)
        if done:
            signal.raise_signal(signal.SIGINT)
        return done

    monkeypatch.setattr(os, "replace", pressed)
    monkeypatch.setattr(_swap, "exchange", pressed_after)
    # a process started in the background may have been told to ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        write_run(folder, "2")
    monkeypatch.undo()
    settled(folder)
    found = content(folder)
    assert found["table.csv"] == found["model/weights"] == "2"
    refuse_foreign(folder, NAMES, "demo")


def test_a_file_keeps_its_ending_while_it_is_written(tmp_path: Path):
    with filled_file(tmp_path / "rows.csv") as place:
        assert place.suffix == ".csv"
        place.write_text("1")
    assert content(tmp_path) == {"rows.csv": "1"}


def test_errors_of_the_file_system_are_e140(tmp_path: Path):
    def full_disk() -> None:
        with filled_folder(tmp_path / "out"):
            raise OSError(28, "No space left on device")

    with pytest.raises(CommandError, match="No space left") as raised:
        full_disk()
    assert code_of(raised) == "E140"
    assert content(tmp_path) == {}


# ---- what is in the way ----------------------------------------------------------


def test_nothing_in_the_way(tmp_path: Path):
    refuse_existing(tmp_path / "absent", NAMES, force=False)
    refuse_existing(tmp_path / "absent.csv", force=False)
    (tmp_path / "notes.txt").write_text("mine")
    refuse_existing(tmp_path, NAMES, force=False)
    refuse_foreign(tmp_path, NAMES, "demo")
    assert content(tmp_path) == {"notes.txt": "mine"}


def test_a_run_in_the_way_is_told_with_its_day(tmp_path: Path):
    write_run(tmp_path, "1")
    os.utime(tmp_path / RUN, (1_715_500_000, 1_715_500_000))
    with pytest.raises(CommandError, match="holds a run of 12 May 2024") as raised:
        refuse_existing(tmp_path, NAMES, force=False)
    assert code_of(raised) == "E136"
    assert "--force" in raised.value.hint
    refuse_existing(tmp_path, NAMES, force=True)


def test_a_file_in_the_way_is_named(tmp_path: Path):
    (tmp_path / "table.csv").write_text("mine")
    with pytest.raises(CommandError, match=r"already holds table\.csv"):
        refuse_existing(tmp_path, NAMES, force=False)
    with pytest.raises(CommandError, match="exists already"):
        refuse_existing(tmp_path / "table.csv", force=False)


@pytest.mark.parametrize("force", [False, True])
def test_a_file_where_a_folder_should_be(tmp_path: Path, force: bool):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(CommandError, match="is a file, not a folder") as raised:
            refuse_existing(path, NAMES, force=force)
        assert code_of(raised) == "E140"


def test_a_folder_where_a_file_should_be(tmp_path: Path):
    with pytest.raises(CommandError, match="is a folder, not a file") as raised:
        refuse_existing(tmp_path, force=True)
    assert code_of(raised) == "E140"


def test_an_unchanged_run_of_the_same_command_may_be_replaced(tmp_path: Path):
    """Nothing is refused, and nothing is touched before there is anything to put."""
    write_run(tmp_path, "1")
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    refuse_foreign(tmp_path, NAMES, "demo")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    (tmp_path / "table.csv").unlink()
    refuse_foreign(tmp_path, NAMES, "demo")
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("table.csv", "edited", id="a table edited since"),
        pytest.param("model/weights", "edited", id="a model edited since"),
        pytest.param(RUN, "{}", id="a record of something else"),
        pytest.param(RUN, "not json", id="a record that is no JSON"),
        pytest.param(RUN, "[1]", id="a record that is a list"),
        pytest.param(
            RUN,
            '{"schema": "shoal/1", "command": "fit", "files": {}}',
            id="another command's record",
        ),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, name: str, text: str):
    write_run(tmp_path, "1")
    (tmp_path / name).write_text(text)
    before = content(tmp_path)
    with pytest.raises(CommandError) as raised:
        refuse_foreign(tmp_path, NAMES, "demo")
    assert code_of(raised) == "E136"
    assert content(tmp_path) == before
