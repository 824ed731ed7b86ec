"""Folders of image files: ``root/domain/*.jpg`` or ``root/domain/class/*.jpg``."""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.exceptions import CodedWarning, IdentifiabilityWarning, InputError
from shoal.io._files import join
from shoal.io._images import ImageList, decode, inner_folders, judge_bad, list_images
from shoal.io.table._table import Message

Array = np.ndarray[Any, Any]


def load_image_folder(
    path: str | os.PathLike[str],
    size: int | None = None,
    *,
    domain_from: str | None = None,
    skip_bad: bool = False,
) -> Bunch:
    """Load images that lie in one folder per domain.

    Parameters
    ----------
    path : path
        ``path/domain/*.jpg``, or ``path/domain/class/*.jpg`` when true classes are
        known. Greyscale and transparent images become RGB of 8 bits; greyscale of
        16 bits is rescaled, floats cannot be read.
    size : int or None, default=None
        Height and width that every image is cut and resized to; None: as they are,
        which needs all of one square size.
    domain_from : str or None, default=None
        Regular expression whose first group is the domain, searched in the path below
        ``path``, instead of the first folder. Folders inside the first are then
        still taken for classes.
    skip_bad : bool, default=False
        Leave unreadable files out even when they are more than 1 in 100.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, size, size, 3) uint8, ``domains``, ``labels`` (names of the inner
        folders, for scoring only, or None), ``files`` (paths below ``path``),
        ``skipped``, ``description``, ``licence``.
    """
    listed = find_images(path, domain_from=domain_from, skip_bad=skip_bad)
    pixels, readable = decode(listed.paths, size or common_size(listed))
    warn(check_readable(listed, readable, skip_bad=skip_bad))
    return Bunch(
        X=pixels,
        **describe_rows(listed, readable),
        description=f"Images of {listed.root.name}, one folder per domain.",
        licence="that of the images",
    )


def find_images(
    path: str | os.PathLike[str],
    *,
    domain_from: str | None = None,
    skip_bad: bool = False,
) -> ImageList:
    """List a folder of images; what is odd about it is said as warnings."""
    root = Path(path)
    if not root.is_dir():
        raise InputError(
            "E101", f'no folder "{root}"', "give the folder that holds the domains"
        )
    listed = list_images(root, domain_from=domain_from, skip_bad=skip_bad)
    warn(listed.messages, stacklevel=4)
    text, hint = lone_images(listed.domains)
    if text:
        warnings.warn(f"{text}; {hint}", IdentifiabilityWarning, stacklevel=3)
    return listed


def warn(messages: Sequence[Message], stacklevel: int = 3) -> None:
    """Say what is odd about images, to the caller of the caller."""
    for message in messages:
        said = CodedWarning(message.code, message.text, message.hint)
        warnings.warn(said, stacklevel=stacklevel)


def lone_images(domains: Array) -> tuple[str, str]:
    """What to say of domains with one image, and what to do; empty without any."""
    names, counts = np.unique(domains.astype(str), return_counts=True)
    alone = [f'"{name}"' for name in names[counts == 1]]
    if not alone:
        return "", ""
    who = f"domain {alone[0]} has one image, which says"
    if len(alone) > 1:
        who = f"domains {join(alone, 3)} have one image each, which says"
    hint = "add images or move it into another domain"
    return f"{who} nothing of its class mix", hint


def check_readable(
    listed: ImageList, readable: Array, *, skip_bad: bool
) -> list[Message]:
    """E143 when too many of all files turned out to be bad, W128 when some did.

    Those whose heads are bad were judged when the folder was listed; they count again.
    """
    bad = [name for name, ok in zip(listed.names, readable, strict=True) if not ok]
    if not bad:
        return []
    n_files = len(listed.names) + len(listed.skipped)
    return judge_bad(listed.root, [*listed.skipped, *bad], n_files, skip_bad)


def describe_rows(listed: ImageList, readable: Array) -> dict[str, Any]:
    """Domains, labels (inner folders, or None), files and skipped files."""
    names = np.array(listed.names)
    labels = inner_folders(names[readable].tolist())
    return {
        "domains": listed.domains[readable].astype(str),
        "labels": None if labels is None else labels.astype(str),
        "files": names[readable],
        "skipped": [*listed.skipped, *names[~readable].tolist()],
    }


def read_class_folders(
    root: Path,
    classes: Sequence[str],
    size: int,
    *,
    keep: Callable[[int], Array] | None = None,
    skip_bad: bool = False,
) -> tuple[Array, Array, Array]:
    """Images of ``root/<class>/*`` for the classes asked for.

    Parameters
    ----------
    root : Path
        Holds a folder per class.
    classes : sequence of str
        Folders to read.
    size : int
        Height and width.
    keep : callable or None, default=None
        From the number of files of a class to the places of those wanted, in order of
        name.
    skip_bad : bool, default=False
        As :func:`load_image_folder`.

    Returns
    -------
    images : ndarray of shape (n, size, size, 3), dtype uint8
    labels : ndarray of shape (n,)
        Places in ``classes``.
    files : ndarray of shape (n,)
        Paths below ``root``, sorted within a class.
    """
    paths: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        inside = sorted(p for p in (root / name).iterdir() if p.is_file())
        if keep is not None:
            inside = [inside[place] for place in keep(len(inside))]
        paths += inside
        labels += [label] * len(inside)
    images, readable = decode(paths, size)
    files = np.array([path.relative_to(root).as_posix() for path in paths])
    warn(judge_bad(root, files[~readable].tolist(), len(files), skip_bad))
    return images, np.array(labels, dtype=np.intp)[readable], files[readable]


def common_size(listed: ImageList) -> int:
    """Side of the images, which must be squares of one size (E124)."""
    sizes = sorted({(int(w), int(h)) for w, h in listed.sizes})
    if len(sizes) == 1 and sizes[0][0] == sizes[0][1]:
        return sizes[0][0]
    shown = ", ".join(f"{w} x {h}" for w, h in sizes[:3])
    raise InputError(
        "E124",
        f"images must be squares of one size; found {shown}",
        "give size, such as size=64 (--size 64), to cut and resize all of them",
    )
