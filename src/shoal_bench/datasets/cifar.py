"""CIFAR-10, CIFAR-20 and CIFAR-100 from their official binary files, without pickle.

A record is one label byte (CIFAR-10) or two (CIFAR-100: coarse, then fine), and 3,072
bytes of pixels: all red, all green, all blue, row by row.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.datasets.extend import find_file
from shoal_bench.datasets.fetching import Archive, Place, fetch, target_folder

Array = np.ndarray[Any, Any]

SIDE = 32
PIXELS = 3 * SIDE * SIDE
HOST = "https://www.cs.toronto.edu/~kriz"
ARCHIVES = {
    "cifar-10-batches-bin": Archive(
        f"{HOST}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170
    ),
    "cifar-100-binary": Archive(
        f"{HOST}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", 169
    ),
}
FILES = {
    "cifar-10-batches-bin": {
        "train": [f"data_batch_{i}.bin" for i in range(1, 6)],
        "test": ["test_batch.bin"],
    },
    "cifar-100-binary": {"train": ["train.bin"], "test": ["test.bin"]},
}
DESCRIPTION = """\
{name}: colour images of 32 x 32 pixels in {n_classes} classes, 50,000 for training and
10,000 for testing. It has no domains of its own (domains is None): make some with
shoal.datasets.plan_domains.{more}

Krizhevsky A (2009). Learning multiple layers of features from tiny images.
"""
SUPERCLASSES = """ The
classes are the 20 superclasses of CIFAR-100; each holds five kinds of things, which
need not look alike."""


def load_cifar10(
    path: Place = None, split: str = "train", *, download: bool = False
) -> Bunch:
    """Load CIFAR-10.

    Parameters
    ----------
    path : path or None, default=None
        Folder of ``data_batch_1.bin`` and so on, or the folder that holds
        ``cifar-10-batches-bin``. With None: the folder named by the environment
        variable ``SHOAL_DATA_DIR``, or ``cifar`` inside it.
    split : {"train", "test", "all"}, default="train"
        Which rows; "all" has the training rows first.
    download : bool, default=False
        Fetch the files when they are absent (170 MB, checksum compared).

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, 32, 32, 3) uint8, ``domains`` (None), ``labels`` (for scoring only),
        ``label_names``, ``split`` ("train" or "test" for each row), ``description``,
        ``licence``.
    """
    return _load("cifar-10-batches-bin", "CIFAR-10", 0, path, split, download)


def load_cifar20(
    path: Place = None, split: str = "train", *, download: bool = False
) -> Bunch:
    """Load CIFAR-20: CIFAR-100 with its 20 superclasses as labels.

    Parameters
    ----------
    path : path or None, default=None
        Folder of ``train.bin`` and ``test.bin``, or the folder that holds
        ``cifar-100-binary``; None as in :func:`load_cifar10`.
    split, download
        As :func:`load_cifar10`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        As :func:`load_cifar10`.
    """
    return _load("cifar-100-binary", "CIFAR-20", 0, path, split, download)


def load_cifar100(
    path: Place = None, split: str = "train", *, download: bool = False
) -> Bunch:
    """Load CIFAR-100 with its 100 fine classes as labels.

    Parameters
    ----------
    path, split, download
        As :func:`load_cifar20`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        As :func:`load_cifar10`.
    """
    return _load("cifar-100-binary", "CIFAR-100", 1, path, split, download)


def read_cifar_records(
    path: str | os.PathLike[str], n_label_bytes: int = 1
) -> tuple[Array, Array]:
    """Images and labels of one binary file.

    Parameters
    ----------
    path : path
        The file.
    n_label_bytes : {1, 2}, default=1
        1 for CIFAR-10, 2 for CIFAR-100.

    Returns
    -------
    images : ndarray of shape (n, 32, 32, 3), dtype uint8
    labels : ndarray of shape (n, n_label_bytes), dtype uint8
    """
    content = np.fromfile(path, dtype=np.uint8)
    length = n_label_bytes + PIXELS
    if content.size == 0 or content.size % length:
        raise ValueError(
            f"{os.fspath(path)} is damaged: its {content.size} bytes are not whole "
            f"records of {length} bytes"
        )
    records = content.reshape(-1, length)
    images = records[:, n_label_bytes:].reshape(-1, 3, SIDE, SIDE)
    pixels_last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    return pixels_last, records[:, :n_label_bytes]


def _load(
    folder: str,
    name: str,
    column: int,
    path: Place,
    split: str,
    download: bool,
) -> Bunch:
    if split not in ("train", "test", "all"):
        raise ValueError(f"split must be 'train', 'test' or 'all', got {split!r}")
    n_label_bytes = 1 if folder == "cifar-10-batches-bin" else 2
    names_file = "batches.meta.txt" if n_label_bytes == 1 else _names_file(column)
    splits = ("train", "test") if split == "all" else (split,)
    files = [(part, file) for part in splits for file in FILES[folder][part]]
    try:
        home = _home(folder, name, files[0][1], path)
    except FileNotFoundError:
        if not download:
            raise
        fetch(ARCHIVES[folder], target_folder(path))
        home = _home(folder, name, files[0][1], path)
    parts = [read_cifar_records(home / file, n_label_bytes) for _, file in files]
    labels = np.concatenate([labels[:, column] for _, labels in parts])
    label_names = (home / names_file).read_text().split()
    if labels.max() >= len(label_names):
        raise ValueError(
            f"{home} has label {labels.max()}, but {names_file} names "
            f"{len(label_names)}; the files do not belong together"
        )
    more = SUPERCLASSES if name == "CIFAR-20" else ""
    return Bunch(
        X=np.concatenate([images for images, _ in parts]),
        domains=None,
        labels=labels.astype(np.intp),
        label_names=label_names,
        split=np.repeat([part for part, _ in files], [len(x) for x, _ in parts]),
        description=DESCRIPTION.format(
            name=name, n_classes=len(label_names), more=more
        ),
        licence="as the official set; no licence text comes with the files",
    )


def _names_file(column: int) -> str:
    return ("coarse_label_names.txt", "fine_label_names.txt")[column]


def _home(folder: str, name: str, first: str, path: Place) -> Path:
    """Folder that holds the files themselves."""
    if path is not None and Path(path, folder).is_dir():
        path = Path(path, folder)
    archive = ARCHIVES[folder]
    how = (
        f"download=True fetches it ({archive.megabytes} MB), or unpack {archive.url} "
        "into SHOAL_DATA_DIR"
    )
    folders = (folder, os.path.join("cifar", folder))
    return find_file([first], path, what=name, how=how, folders=folders).parent
