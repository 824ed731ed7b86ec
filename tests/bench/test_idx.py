"""IDX files, good and damaged, made here; the real sets when they are at hand."""

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from shoal.datasets._files import DATA_DIR
from shoal_bench.datasets import load_fashion_mnist, load_mnist
from shoal_bench.datasets.idx import DTYPES, read_idx

Loader = Callable[..., Bunch]
CODES = {np.dtype(name): code for code, name in DTYPES.items()}


def idx_bytes(values: np.ndarray) -> bytes:
    """Write the format as its definition says."""
    header = bytes([0, 0, CODES[values.dtype], values.ndim])
    return header + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def write_set(folder: Path, *, n_train: int = 5, n_test: int = 3) -> None:
    """Four files of tiny images; training files plain, test files gzipped."""
    rng = np.random.default_rng(0)
    for prefix, n in (("train", n_train), ("t10k", n_test)):
        images = rng.integers(0, 256, (n, 4, 3), dtype=np.uint8)
        labels = np.arange(n, dtype=np.uint8) % 10
        files = {
            f"{prefix}-images-idx3-ubyte": idx_bytes(images),
            f"{prefix}-labels-idx1-ubyte": idx_bytes(labels),
        }
        for name, content in files.items():
            if prefix == "train":
                (folder / name).write_bytes(content)
            else:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))


class TestReadIdx:
    @given(
        st.sampled_from(list(CODES)).flatmap(
            lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=4, min_side=0))
        ),
        st.booleans(),
    )
    def test_round_trip(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        values: np.ndarray,
        compressed: bool,
    ) -> None:
        content = idx_bytes(values)
        file = tmp_path_factory.mktemp("idx") / "values"  # the name says nothing
        file.write_bytes(gzip.compress(content) if compressed else content)
        got = read_idx(file)
        assert_array_equal(got, values)
        assert got.dtype == values.dtype.newbyteorder("=")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "not an IDX file"),
            (b"\x00\x00\x08", "not an IDX file"),
            (b"PK\x03\x04 a zip file", "begins with bytes '50 4b 03 04'"),
            (b"\x00\x00\x07\x01\x00\x00\x00\x00", "not an IDX file"),
            (b"\x00\x00\x08\x03\x00\x00\x00\x01", "cut short: its header needs 16"),
        ],
    )
    def test_not_idx(self, tmp_path: Path, content: bytes, message: str) -> None:
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_idx(tmp_path / "file")

    @pytest.mark.parametrize("change", [-1, 1])
    def test_wrong_size(self, tmp_path: Path, change: int) -> None:
        content = idx_bytes(np.zeros((2, 3), np.uint8))
        damaged = content[:-1] if change < 0 else content + b"\0"
        (tmp_path / "file").write_bytes(damaged)
        expected = rf"promises shape \(2, 3\), 18 bytes, it holds {18 + change}"
        with pytest.raises(ValueError, match=expected):
            read_idx(tmp_path / "file")

    def test_huge_promise_is_refused_without_allocating(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"\0\0\x0e\x03" + b"\xff" * 12)
        with pytest.raises(ValueError, match="it holds 16"):
            read_idx(tmp_path / "file")

    def test_cut_gzip(self, tmp_path: Path) -> None:
        content = gzip.compress(idx_bytes(np.arange(99, dtype=np.uint8)))
        (tmp_path / "file").write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match="damaged gzip file"):
            read_idx(tmp_path / "file")

    def test_flipped_bit_in_gzip(self, tmp_path: Path) -> None:
        content = bytearray(gzip.compress(idx_bytes(np.arange(99, dtype=np.uint8))))
        content[len(content) // 2] ^= 0x10
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            read_idx(tmp_path / "file")


@pytest.mark.parametrize("load", [load_mnist, load_fashion_mnist])
class TestLoaders:
    def test_splits(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        train, test, every = (
            load(tmp_path, split) for split in ("train", "test", "all")
        )
        assert train.X.shape == (5, 12)
        assert train.X.dtype == np.uint8
        assert train.image_shape == (4, 3)
        assert len(train.feature_names) == 12
        assert_array_equal(train.labels, np.arange(5))
        assert_array_equal(every.X, np.vstack([train.X, test.X]))
        assert_array_equal(every.labels, np.concatenate([train.labels, test.labels]))
        assert_array_equal(every.split, ["train"] * 5 + ["test"] * 3)
        assert every.domains is None
        assert len(every.label_names) == 10
        assert every.description
        assert every.licence

    def test_rows_are_the_images(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        images = read_idx(tmp_path / "train-images-idx3-ubyte")
        train = load(tmp_path)
        assert_array_equal(train.X.reshape(-1, *train.image_shape), images)

    def test_unknown_split(self, tmp_path: Path, load: Loader) -> None:
        with pytest.raises(ValueError, match="'train', 'test' or 'all', got 'valid'"):
            load(tmp_path, "valid")

    def test_one_file_absent_is_named(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        (tmp_path / "train-labels-idx1-ubyte").unlink()
        with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte"):
            load(tmp_path)

    def test_path_is_a_file(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        with pytest.raises(ValueError, match="path must be the folder"):
            load(tmp_path / "train-images-idx3-ubyte")

    def test_swapped_files(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        labels = (tmp_path / "train-labels-idx1-ubyte").read_bytes()
        (tmp_path / "train-images-idx3-ubyte").write_bytes(labels)
        with pytest.raises(ValueError, match="images and labels may be swapped"):
            load(tmp_path)

    def test_files_of_two_sets(self, tmp_path: Path, load: Loader) -> None:
        write_set(tmp_path)
        labels = idx_bytes(np.zeros(4, np.uint8))
        (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
        with pytest.raises(ValueError, match=r"5 images.*4 labels; the files do not"):
            load(tmp_path)


def test_folders_of_the_data_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_DIR, str(tmp_path))
    for name, n_train in (("mnist", 6), ("fashion-mnist", 7)):
        (tmp_path / name).mkdir()
        write_set(tmp_path / name, n_train=n_train)
    assert len(load_mnist().X) == 6
    assert len(load_fashion_mnist().X) == 7


def test_absent_mnist_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_DIR, raising=False)
    with pytest.raises(FileNotFoundError, match=r"scripts/data/get_mnist\.sh"):
        load_mnist()


@pytest.mark.parametrize(
    ("load", "folder", "first_labels"),
    [
        (load_mnist, "mnist", [5, 0, 4, 1, 9]),
        (load_fashion_mnist, "fashion-mnist", [9, 0, 0, 3, 0]),
    ],
)
def test_real_files(load: Loader, folder: str, first_labels: list[int]) -> None:
    if not Path(os.environ.get(DATA_DIR, ""), folder).is_dir():
        pytest.skip(f"{DATA_DIR} does not name a folder with {folder}")
    every = load(split="all")
    assert every.X.shape == (70_000, 784)
    assert every.image_shape == (28, 28)
    assert_array_equal(every.labels[:5], first_labels)
    assert set(every.labels) == set(range(10))
    assert (every.split == "test").sum() == 10_000
