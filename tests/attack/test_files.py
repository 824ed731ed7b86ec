"""Bad files end in a coded line: soon, in little memory, and nothing else happens."""

import gzip
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.attack.bad_files import (
    far_cell,
    good_csv,
    good_frame,
    mtx_bytes,
    npy_bytes,
    zipped,
)
from tests.attack.bad_places import EPS, JSONS, all_files
from tests.attack.forked import forked, warm
from tests.attack.record_files import attack, fitted

from shoal.exceptions import CodedError, InputError
from shoal.io import _files, read, read_pixels
from shoal.io._images import list_images
from shoal.io._settings import READING

CASES = all_files()
# In the quick part, every so manyth: the slow part has all of them.
STEP = 24


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    warm()
    return fitted(tmp_path_factory.mktemp("run"))


def test_there_are_more_than_three_hundred() -> None:
    assert len({str(case) for case in CASES}) == len(CASES) > 600


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.family != "bombs"][::STEP], ids=str
)
def test_some_bad_files(case, run: Path) -> None:
    found = attack(case, run)
    assert found.faults() == [], found.said.decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_bad_files(case, run: Path) -> None:
    found = attack(case, run)
    assert found.faults() == [], found.said.decode("utf-8", "replace")


def test_the_watcher_sees_what_it_is_for(tmp_path: Path) -> None:
    """A watcher that overlooks a fault would make every attack look harmless."""

    def fault(work) -> str:
        return ", ".join(forked(work, tmp_path).faults())

    assert "foreign exception" in fault(lambda: [][0])
    assert "E001" in fault(lambda: print("error[E001] x"))
    assert "signal" in fault(lambda: os.kill(os.getpid(), 9))
    assert "not printable" in fault(lambda: print("\x1b[2J"))
    assert fault(lambda: print("fine")) == ""


# ---- pictures ------------------------------------------------------------------------


@pytest.fixture
def _no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*arguments, **options):
        raise SystemExit("a picture started a program")

    monkeypatch.setattr("subprocess.Popen.__init__", forbidden)
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", forbidden)


@pytest.mark.usefixtures("_no_programs")
@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tif"])
def test_an_eps_file_is_no_picture(tmp_path: Path, name: str) -> None:
    """By whatever name: to show its pixels, pillow starts Ghostscript."""
    path = tmp_path / "site" / name
    path.parent.mkdir()
    path.write_bytes(EPS)
    with pytest.raises(InputError, match="1 of 1 image cannot be read"):
        list_images(tmp_path)
    with pytest.raises(InputError, match="1 of 1 image cannot be read"):
        read_pixels([path])


@pytest.mark.usefixtures("_no_programs")
def test_an_eps_file_is_no_thumbnail() -> None:
    from PIL import UnidentifiedImageError

    from shoal.report._gather import thumbnail

    with pytest.raises(UnidentifiedImageError):
        thumbnail(EPS)


# ---- places --------------------------------------------------------------------------


def test_pipes_devices_and_files_of_the_system(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.csv"
    os.mkfifo(fifo)
    for place, kind in {
        fifo: "a named pipe", Path("/dev/zero"): "a device",
        Path("/proc/self/environ"): "a file of the system",
    }.items():  # fmt: skip
        for options in ({}, {"format": "csv"}):
            with pytest.raises(InputError, match=f"is {kind}") as caught:
                read(place, domain="site", **options)
            assert caught.value.code == "E102"
    (tmp_path / "link.csv").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="a device"):
        read(tmp_path / "link.csv", domain="site")


def test_a_pipe_among_texts_and_parts_is_no_text(tmp_path: Path, cli) -> None:
    for site in ("a", "b"):
        (tmp_path / "texts" / site).mkdir(parents=True)
        for row in range(4):
            path = tmp_path / "texts" / site / f"{row}.txt"
            path.write_text(f"fish and chips {row} {'ab' * row}")
    os.mkfifo(tmp_path / "texts" / "a" / "pipe.txt")
    assert read(tmp_path / "texts").n_rows == 8
    (tmp_path / "rows").mkdir()
    os.mkfifo(tmp_path / "rows" / "x.parquet")
    ended = cli("fit", "rows/*.parquet", "--domain", "site", "--engine", "local")
    assert ended.code == 3
    assert "no file matches" in ended.stderr


@pytest.mark.parametrize("place", ["/dev/zero", "/proc/self/mem"])
def test_options_are_not_read_from_devices(cli, tmp_path: Path, place: str) -> None:
    (tmp_path / "a.csv").write_bytes(good_csv())
    ended = cli("check", "a.csv", "--domain", "site", "--config", place)
    assert ended.code == 3
    assert "error[E102]" in ended.stderr


def test_standard_input_without_an_end(tmp_path: Path) -> None:
    """Zeros for ever: refused by the first line, which does not end."""
    command = [sys.executable, "-m", "shoal", "check", "-", "--domain", "site"]
    with open("/dev/zero", "rb") as zeros:
        ended = subprocess.run(
            command, stdin=zeros, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 3
    assert 'line 1 of "standard input" is longer than 32 MiB' in ended.stderr


# ---- memory before work --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.mtx", mtx_bytes("3 1000000000 1", "1 1 1"), "1,000,000,000 columns"),
        ("x.mtx", mtx_bytes("1000000000 3 1", "1 1 1"), "rows, and holds 1 numbers"),
        ("x.mtx", mtx_bytes("3 3 99999999999", "1 1 1"), "GiB free"),
        ("x.npy", npy_bytes((0, 10**9)), "1,000,000,000 columns"),
    ],
)
def test_claimed_sizes_are_refused(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path / name, domain=["a", "b", "c"])
    assert caught.value.code == "E137"


def test_an_honest_wide_matrix_is_read(tmp_path: Path) -> None:
    """Words that were hashed make a million columns; that is no attack."""
    entries = [f"{row + 1} {row * 7 + 1} 1" for row in range(60)]
    (tmp_path / "x.mtx").write_bytes(mtx_bytes(f"60 {2**20} 60", *entries))
    table = read(tmp_path / "x.mtx", domain=["a", "b", "c"] * 20)
    assert table.X.shape == (60, 2**20)


def test_too_many_entries_are_noticed_without_reading_them(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.mtx.gz", "wb") as file:
        file.write(mtx_bytes("3 3 1"))
        file.write(b"1 1 1\n" * 100_000)
    with pytest.raises(InputError, match="1 entries expected, found 2"):
        read(tmp_path / "x.mtx.gz", domain=["a", "b", "c"])


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach in no time."""
    from dataclasses import replace

    small = replace(READING, always_unpacked=2**16, longest_line=2**18)
    monkeypatch.setattr(_files, "READING", small)


@pytest.mark.usefixtures("_small")
def test_a_packed_table_of_nothing_but_repeats(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"site,x\n" + b"a,1\n" * 2**20)
    with pytest.raises(InputError, match="over 100 times its size") as caught:
        read(path, domain="site")
    assert caught.value.code == "E137"
    with gzip.open(path, "wb") as file:
        file.write(good_csv())
    assert read(path, domain="site").n_rows == 90


@pytest.mark.usefixtures("_small")
def test_a_packed_array_of_nothing_but_zeros(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(zipped({"X.npy": npy_bytes((4_096, 512), body=bytes(2**24))}))
    with pytest.raises(InputError, match="over 100 times its size"):
        read(path, domain=["a"] * 4_096)


def test_an_archive_that_does_not_fit(tmp_path: Path, monkeypatch) -> None:
    """By what its directory says, before a member is unpacked."""
    path = tmp_path / "x.npz"
    np.savez(path, X=np.random.default_rng(0).normal(size=(50, 4)))
    monkeypatch.setattr("shoal.io._files.available_memory", lambda: 1_000.0)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(InputError, match="GiB free"):
        _files.check_archive(path)


def test_a_sheet_with_a_cell_at_its_far_end(tmp_path: Path) -> None:
    far_cell(tmp_path)
    with pytest.raises(InputError, match="GiB free") as caught:
        read(tmp_path / "a.xlsx", domain="site")
    assert caught.value.code == "E137"


def test_members_that_are_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(zipped({"X": b"not an array"}))
    with pytest.raises(InputError, match="0 arrays with two dimensions"):
        read(tmp_path / "x.npz", domain=["a"])


@pytest.mark.usefixtures("_small")
def test_a_line_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a" * 2**21)
    with pytest.raises(InputError, match=r"line 1 of .* is longer than 0 MiB"):
        read(tmp_path / "x.csv", domain="site")


def test_more_bins_than_rows() -> None:
    with pytest.raises(InputError, match="is more than the 90 rows") as caught:
        read(good_frame(), domain="x0", domain_bins=10**9)
    assert caught.value.code == "E002"


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_names_of_columns_are_compared_in_linear_time() -> None:
    """As many comparisons as names, not as pairs of them."""
    from shoal.io.source._delimited import check_names

    class Cell(str):
        def strip(self, *_) -> str:
            return CountedName(self)

    n_names = 2_000
    check_names("x.csv", [Cell(f"x{place}") for place in range(n_names)])
    assert CountedName.compared <= 3 * n_names


def test_a_header_of_more_than_a_megabyte(tmp_path: Path) -> None:
    """It was cut there, so that the last columns had no names."""
    names = [f"a_rather_long_name_of_a_column_{place}" for place in range(30_000)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join([",".join(["site", *names]), ",".join("a" * 30_001)]))
    from shoal.io._options import SourceOptions
    from shoal.io.source._delimited import read_header

    assert read_header(path, SourceOptions()) == ["site", *names]


# ---- what was a bug, and is a line with a code ---------------------------------------


@pytest.mark.parametrize("encoding", ["base64", "hex", "rot13", "zlib", "a\0b"])
def test_encodings_that_are_not_of_text(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.csv").write_bytes(good_csv())
    with pytest.raises(InputError, match="there is no encoding .* of text") as caught:
        read(tmp_path / "x.csv", domain="site", encoding=encoding)
    assert caught.value.code == "E143"


def test_whole_numbers_of_400_digits() -> None:
    for large in ("9" * 400, "-" + "9" * 400, -(10**400)):
        cells = ["1", "2", "3"] * 29 + ["5", large, "4"]
        with pytest.raises(InputError, match=r"infinite|not finite") as caught:
            read(good_frame().assign(x0=cells), domain="site")
        assert caught.value.code == "E115"


def test_parts_of_other_types(tmp_path: Path, cli) -> None:
    frame = good_frame()
    (tmp_path / "rows").mkdir()
    frame.to_parquet(tmp_path / "rows" / "0.parquet")
    frame.assign(x0="word").to_parquet(tmp_path / "rows" / "1.parquet")
    ended = cli("fit", "rows", "--domain", "site", "--engine", "local", "--k", "2")
    assert ended.code == 3
    assert "error[E119]" in ended.stderr
    # pandas before 3 writes words as short strings
    assert re.search(r'"x0" is (large_)?string in', ended.stderr.replace("\n", " "))
    # whole numbers beside fractions are no contradiction
    from shoal.scale._parts import list_parts

    frame.assign(x0=7).to_parquet(tmp_path / "rows" / "1.parquet")
    assert list_parts(tmp_path / "rows").n_rows == 180


@pytest.mark.parametrize("option", ["--features", "--drop"])
@pytest.mark.parametrize("value", ["", ",", ",,"])
def test_lists_of_no_columns(cli, tmp_path: Path, option: str, value: str) -> None:
    (tmp_path / "a.csv").write_bytes(good_csv())
    ended = cli("check", "a.csv", "--domain", "site", option, value)
    assert ended.code == 2
    assert f"{option} names no column" in ended.stderr


@pytest.mark.parametrize("name", ["deep-lists", "deep-objects", "open"])
def test_json_without_end(tmp_path: Path, name: str) -> None:
    from shoal.cli._messages import read_json
    from shoal.cli._name import read_names
    from shoal.cli._predict import read_mix
    from shoal.cli._runs import read_summary

    path = tmp_path / "summary.json"
    path.write_text(JSONS[name])
    with pytest.raises(ValueError, match=r"nested too deeply"):
        read_json(path)
    for reader, code in (
        (read_names, "E002"),
        (lambda path: read_mix(path, ["a", "b"]), "E143"),
        (lambda path: read_summary(path.parent), "E135"),
    ):
        with pytest.raises(CodedError, match="nested too deeply") as caught:
            reader(path)
        assert caught.value.code == code


def test_toml_without_end(cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(good_csv())
    (tmp_path / "x.toml").write_text("features = " + "[" * 20_000 + "]" * 20_000)
    ended = cli("check", "a.csv", "--domain", "site", "--config", "x.toml")
    assert ended.code == 2
    assert "is not TOML" in ended.stderr


def test_names_that_no_file_can_hold(cli, tmp_path: Path) -> None:
    from shoal.cli._name import check_text

    with pytest.raises(CodedError, match="is not text"):
        check_text(["fine", "\ud800"])
    ended = cli("check", "x" * 5_000, "--domain", "site")
    assert ended.code == 3
    assert "error[E101]" in ended.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "base64", "a\0b"])
def test_lines_of_json_without_end(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.jsonl").write_text("[" * 100_000)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "x.jsonl", domain="site", encoding=encoding)
    assert caught.value.code == "E143"


def test_frames_of_a_gzip_file_can_be_sought(tmp_path: Path) -> None:
    """The reader goes back to the first byte, packed or not."""
    content = io.BytesIO()
    pd.DataFrame({"a": range(9)}).to_csv(content, index=False)
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(content.getvalue()))
    with _files.opened(path) as file:
        first = file.read()
        file.seek(0)
        assert file.read() == first == content.getvalue()
