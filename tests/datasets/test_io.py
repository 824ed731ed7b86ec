"""Finding and reading data files."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from shoal.datasets._files import (
    DATA_DIR,
    find_file,
    read_table,
    table_bunch,
    to_numbers,
)

TABLE = "island,species,mass\nDream,NA,3.5\nBiscoe,Adelie,\n"
WHAT = {"what": "load_birds", "how": "place birds.csv there"}


@pytest.fixture
def no_data_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_DIR, raising=False)


class TestFindFile:
    def test_path_may_be_the_file_or_its_folder(self, tmp_path: Path) -> None:
        file = tmp_path / "birds.csv"
        file.write_text(TABLE)
        assert find_file(("birds.csv",), file, **WHAT) == file
        assert find_file(("birds.csv",), str(tmp_path), **WHAT) == file

    def test_environment_variable_names_the_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(DATA_DIR, str(tmp_path))
        (tmp_path / "inner").mkdir()
        file = tmp_path / "inner" / "birds.csv"
        file.write_text(TABLE)
        found = find_file(("birds.csv",), None, folders=("inner",), **WHAT)
        assert found == file

    def test_given_path_is_the_only_place_searched(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "birds.csv").write_text(TABLE)
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv(DATA_DIR, str(tmp_path))
        with pytest.raises(FileNotFoundError, match=r"neither birds\.csv nor a folder"):
            find_file(("birds.csv",), tmp_path / "empty", **WHAT)

    @pytest.mark.usefixtures("no_data_dir")
    def test_system_folder_comes_last(self, tmp_path: Path) -> None:
        file = tmp_path / "birds.csv"
        file.write_text(TABLE)
        assert find_file(("birds.csv",), None, system=str(tmp_path), **WHAT) == file

    @pytest.mark.usefixtures("no_data_dir")
    def test_absent_file_says_what_to_place_where(self) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            find_file(("birds.csv",), None, **WHAT)
        message = str(caught.value)
        assert "\n" not in message
        for part in ("load_birds", "birds.csv", DATA_DIR, "place birds.csv there"):
            assert part in message

    def test_absent_in_data_dir_names_the_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(DATA_DIR, str(tmp_path))
        with pytest.raises(FileNotFoundError, match=f"is not in {DATA_DIR}={tmp_path}"):
            find_file(("birds.csv",), None, **WHAT)


class TestReadTable:
    @pytest.mark.parametrize(
        ("name", "compress"),
        [("t.csv", bytes), ("t.csv.gz", gzip.compress), ("t.csv.xz", lzma.compress)],
    )
    def test_plain_and_compressed_are_the_same(
        self, tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
    ) -> None:
        (tmp_path / name).write_bytes(compress(TABLE.encode()))
        table = read_table(tmp_path / name, ("species", "mass"))
        assert list(table) == ["species", "mass"]
        assert_array_equal(table["species"], ["NA", "Adelie"])  # NA is text here
        assert_array_equal(to_numbers(table["mass"]), [3.5, np.nan])

    def test_absent_column_is_named(self, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        file.write_text(TABLE)
        with pytest.raises(ValueError, match="no column 'wing'; its first line has"):
            read_table(file, ("species", "wing"))

    def test_empty_file(self, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        file.write_text("")
        with pytest.raises(ValueError, match="no column 'species'"):
            read_table(file, ("species",))

    def test_cut_line_is_numbered(self, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        file.write_text(TABLE + "Dream,Adelie\n")
        with pytest.raises(ValueError, match="line 4 has 2 cells, the first line 3"):
            read_table(file, ("species",))

    @pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.xz"])
    def test_damaged_compression(self, tmp_path: Path, name: str) -> None:
        compress = gzip.compress if name.endswith("gz") else lzma.compress
        (tmp_path / name).write_bytes(compress(TABLE.encode())[:-9])
        with pytest.raises(ValueError, match="damaged or not a table"):
            read_table(tmp_path / name, ("species",))
        (tmp_path / name).write_bytes(b"not compressed at all")
        with pytest.raises(ValueError, match="damaged or not a table"):
            read_table(tmp_path / name, ("species",))

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        file = tmp_path / "t.csv"
        file.write_bytes(b"species\n\xff\xfe\n")
        with pytest.raises(ValueError, match="damaged or not a table"):
            read_table(file, ("species",))


def test_numbers_reject_words() -> None:
    with pytest.raises(ValueError, match="heavy"):
        to_numbers(np.array(["1", "heavy"]))


def test_frames_hold_the_same_values() -> None:
    features = {"wing": np.array([1.0, 2.0]), "mass": np.array([3.0, 4.0])}
    islands, species = np.array(["A", "B"]), np.array(["x", "y"])
    text = {"description": "birds", "licence": "CC0"}
    arrays = table_bunch(features, ("island", islands), ("species", species), **text)
    frames = table_bunch(
        features, ("island", islands), ("species", species), as_frame=True, **text
    )
    assert_array_equal(arrays.X, [[1, 3], [2, 4]])
    assert_array_equal(frames.X.to_numpy(), arrays.X)
    assert frames.X.columns.tolist() == arrays.feature_names == ["wing", "mass"]
    assert frames.domains.name == arrays.domain_name == "island"
    assert frames.labels.name == arrays.label_name == "species"
    assert_array_equal(frames.domains, islands)
    assert_array_equal(frames.labels, species)
