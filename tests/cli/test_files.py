"""All files or none, and nobody else's."""

import json
from pathlib import Path

import pytest

from shoal.cli.files import SUMMARY, fingerprint, refuse_foreign_files, write_files
from shoal.cli.messages import CommandError

NAMES = ("table.csv", SUMMARY)


def texts(table: str) -> dict[str, str]:
    summary = {
        "schema": "shoal/1",
        "command": "demo",
        "fingerprints": {"table.csv": fingerprint(table)},
    }
    return {"table.csv": table, SUMMARY: json.dumps(summary)}


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_files_are_written_in_order(tmp_path: Path):
    folder = tmp_path / "new" / "folder"
    assert write_files(folder, {"b": "2\n", "a": "1\r\n"}) == [
        folder / "b",
        folder / "a",
    ]
    assert (folder / "a").read_bytes() == b"1\r\n"  # line ends are the text's own
    assert len(content(folder)) == 2


def test_an_error_midway_keeps_the_old_files(tmp_path: Path):
    write_files(tmp_path, {"a": "old", "b": "old"})
    with pytest.raises(UnicodeEncodeError):
        write_files(tmp_path, {"a": "new", "b": "lone surrogate \ud800"})
    assert content(tmp_path) == {"a": "old", "b": "old"}


def test_an_error_midway_removes_the_folder_it_made(tmp_path: Path):
    with pytest.raises(UnicodeEncodeError):
        write_files(tmp_path / "new", {"a": "new", "b": "\ud800"})
    assert content(tmp_path) == {}


def test_an_earlier_run_may_be_replaced(tmp_path: Path):
    write_files(tmp_path, texts("1,2\n"))
    refuse_foreign_files(tmp_path, NAMES, "demo")
    write_files(tmp_path, texts("3,4\n"))
    assert (tmp_path / "table.csv").read_text() == "3,4\n"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"table.csv": "1,2,edited\n"}, id="a table edited since"),
        pytest.param({SUMMARY: "{}"}, id="a summary of something else"),
        pytest.param({SUMMARY: "not json"}, id="a summary that is no JSON"),
        pytest.param({SUMMARY: "[1]"}, id="a summary that is a list"),
        pytest.param(
            {SUMMARY: texts("1,2\n")[SUMMARY].replace("demo", "fit")},
            id="another command's summary",
        ),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, change: dict[str, str]):
    write_files(tmp_path, texts("1,2\n") | change)
    before = content(tmp_path)
    with pytest.raises(CommandError, match="already holds") as raised:
        refuse_foreign_files(tmp_path, NAMES, "demo")
    assert raised.value.message.code == "E136"
    assert content(tmp_path) == before


def test_no_folder_and_other_names_are_fine(tmp_path: Path):
    refuse_foreign_files(tmp_path / "absent", NAMES, "demo")
    (tmp_path / "notes.txt").write_text("mine")
    refuse_foreign_files(tmp_path, NAMES, "demo")
    assert content(tmp_path) == {"notes.txt": "mine"}
