import functools
import hashlib
import http.server
import tarfile
import threading

import numpy as np
import pytest

from shoal_bench.datasets import cifar as images_cifar
from shoal_bench.datasets.cifar import (
    load_cifar10,
    load_cifar20,
    load_cifar100,
    read_cifar_records,
)
from shoal_bench.datasets.fetching import Archive, fetch, target_folder

N = 6  # records a file


@pytest.fixture
def root(tmp_path):
    """Both sets in their official layout, with few records."""
    rng = np.random.default_rng(0)
    small = tmp_path / "cifar-10-batches-bin"
    small.mkdir()
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        write(small / f"{name}.bin", rng, [10])
    (small / "batches.meta.txt").write_text("\n".join("abcdefghij") + "\n\n")
    large = tmp_path / "cifar-100-binary"
    large.mkdir()
    for name in ("train", "test"):
        write(large / f"{name}.bin", rng, [20, 100])
    (large / "coarse_label_names.txt").write_text("\n".join(f"c{i}" for i in range(20)))
    (large / "fine_label_names.txt").write_text("\n".join(f"f{i}" for i in range(100)))
    return tmp_path


def write(path, rng, n_classes):
    labels = [rng.integers(0, n, (N, 1)) for n in n_classes]
    pixels = rng.integers(0, 256, (N, 3072))
    path.write_bytes(np.hstack([*labels, pixels]).astype(np.uint8).tobytes())


def test_a_record_is_labels_then_red_green_blue_row_by_row(tmp_path):
    record = [4, 17, *([1] * 1024), *([2] * 1024), *([3] * 1024)]
    record[2 + 5 * 32 + 7] = 99  # red of row 5, column 7
    (tmp_path / "x.bin").write_bytes(bytes(record))
    images, labels = read_cifar_records(tmp_path / "x.bin", 2)
    assert labels.tolist() == [[4, 17]]
    assert images.shape == (1, 32, 32, 3)
    assert images[0, 5, 7].tolist() == [99, 2, 3]
    assert images[0, 0, 0].tolist() == [1, 2, 3]


def test_cifar10(root):
    train, test = load_cifar10(root), load_cifar10(root, split="test")
    both = load_cifar10(root / "cifar-10-batches-bin", split="all")
    assert train.X.shape == (5 * N, 32, 32, 3)
    assert train.X.dtype == np.uint8
    assert train.domains is None
    np.testing.assert_array_equal(both.X, np.concatenate([train.X, test.X]))
    np.testing.assert_array_equal(both.labels, np.append(train.labels, test.labels))
    assert (both.split == ["train"] * 5 * N + ["test"] * N).all()
    assert train.label_names == list("abcdefghij")


def test_cifar20_and_cifar100_are_the_same_images(root):
    coarse, fine = load_cifar20(root), load_cifar100(root)
    np.testing.assert_array_equal(coarse.X, fine.X)
    assert (len(coarse.label_names), len(fine.label_names)) == (20, 100)
    raw = (root / "cifar-100-binary" / "train.bin").read_bytes()
    assert coarse.labels.tolist() == [raw[3074 * i] for i in range(N)]
    assert fine.labels.tolist() == [raw[3074 * i + 1] for i in range(N)]
    assert "superclasses" in coarse.description
    assert "superclasses" not in fine.description


def test_the_data_folder_is_searched(root, monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA_DIR", str(root))
    assert len(load_cifar20().X) == N
    (tmp_path / "inner" / "cifar").mkdir(parents=True)
    (root / "cifar-100-binary").rename(tmp_path / "inner/cifar/cifar-100-binary")
    monkeypatch.setenv("SHOAL_DATA_DIR", str(tmp_path / "inner"))
    assert len(load_cifar20().X) == N


def test_absent_files_say_what_to_place_where(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_DATA_DIR", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"CIFAR-10 needs data_batch_1\.bin.*170"
    ):
        load_cifar10()
    with pytest.raises(FileNotFoundError, match="download=True fetches it"):
        load_cifar20(tmp_path)
    with pytest.raises(ValueError, match="split must be 'train', 'test' or 'all'"):
        load_cifar10(tmp_path, split="valid")
    with pytest.raises(ValueError, match="download=True needs a place"):
        load_cifar10(download=True)


def test_damaged_files(root):
    path = root / "cifar-100-binary" / "train.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"train\.bin is damaged: its 18443 bytes"):
        load_cifar20(root)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="its 0 bytes"):
        load_cifar20(root)
    names = root / "cifar-10-batches-bin" / "batches.meta.txt"
    names.write_text("a\nb\n")
    with pytest.raises(
        ValueError, match=r"batches\.meta\.txt names 2; the files do not"
    ):
        load_cifar10(root)


@pytest.fixture
def server(root, tmp_path_factory):
    """An archive of CIFAR-100's layout on a host of this machine."""
    folder = tmp_path_factory.mktemp("host")
    with tarfile.open(folder / "cifar.tar.gz", "w:gz") as tar:
        tar.add(root / "cifar-100-binary", "cifar-100-binary")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as host:
        thread = threading.Thread(target=host.serve_forever)
        thread.start()
        checksum = hashlib.md5((folder / "cifar.tar.gz").read_bytes()).hexdigest()
        yield Archive(f"http://127.0.0.1:{host.server_port}/cifar.tar.gz", checksum, 1)
        host.shutdown()
        thread.join()


def test_download_is_checked_and_unpacked(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(images_cifar.ARCHIVES, "cifar-100-binary", server)
    home = tmp_path / "new"
    bunch = load_cifar20(home, download=True)
    assert len(bunch.X) == N
    assert "cifar.tar.gz: 0 of 1 MB" in capsys.readouterr().err
    assert [p.name for p in home.iterdir()] == ["cifar-100-binary"]
    # What is there is not fetched again.
    monkeypatch.setitem(
        images_cifar.ARCHIVES, "cifar-100-binary", Archive("http://nowhere/x", "", 1)
    )
    assert len(load_cifar20(home, download=True).X) == N


def test_another_file_than_expected_is_not_unpacked(server, tmp_path):
    wrong = Archive(server.url, "0" * 32, 1)
    with pytest.raises(ValueError, match="expected 00000000"):
        fetch(wrong, tmp_path / "new", progress=False)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_host_that_is_not_there(server, tmp_path):
    absent = Archive(f"{server.url}.absent", server.md5, 1)
    with pytest.raises(OSError, match="cannot be reached.*fetch it elsewhere"):
        fetch(absent, tmp_path, progress=False)


def test_members_stay_inside_the_folder(tmp_path):
    (tmp_path / "evil").write_text("x")
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.add(tmp_path / "evil", "../outside")
    content = (tmp_path / "evil.tar").read_bytes()
    archive = Archive(
        (tmp_path / "evil.tar").as_uri(), hashlib.md5(content).hexdigest(), 1
    )
    with pytest.raises(tarfile.FilterError):
        fetch(archive, tmp_path / "in", progress=False)
    assert not (tmp_path / "outside").exists()


def test_downloads_go_to_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOAL_DATA_DIR", str(tmp_path))
    assert target_folder(None) == tmp_path
    assert target_folder(tmp_path / "x") == tmp_path / "x"
