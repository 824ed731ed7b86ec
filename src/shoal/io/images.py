"""Folders of images, root/<domain>/...: what is there, checked, and as pixels."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.exceptions import InputError
from shoal.io.extras import require
from shoal.io.names import join
from shoal.io.table import Message

__all__ = [
    "ImageList",
    "check_image",
    "holds_images",
    "inner_folders",
    "list_images",
    "read_pixels",
]

Array = np.ndarray[Any, Any]

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"}
# More unreadable files than this share stop the reading.
BAD_SHARE = 0.01
# Format and size alone name the domain of this share of images: they leak it.
LEAK = 0.95


@dataclass(frozen=True, eq=False)
class ImageList:
    """The readable images of a folder.

    Attributes
    ----------
    root : Path
    names : list of str
        Paths below ``root``, sorted.
    domains : ndarray of shape (n_images,)
    sizes : ndarray of shape (n_images, 2)
        Width and height in pixels.
    formats : list of str
    skipped : list of str
        Files that are no images although they are called so.
    messages : list of Message
    """

    root: Path
    names: list[str]
    domains: Array
    sizes: Array
    formats: list[str]
    skipped: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def paths(self) -> list[Path]:
        """Where the images lie."""
        return [self.root / name for name in self.names]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of names and sizes of the files (not of their content)."""
        digest = hashlib.sha256()
        for name, path in zip(self.names, self.paths, strict=True):
            digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        return digest.hexdigest()


def holds_images(root: Path) -> bool:
    """Whether there is an image anywhere below a folder."""
    return next(_image_files(root), None) is not None


def list_images(
    root: Any,
    *,
    domain_from: str | None = None,
    skip_bad: bool = False,
    need_domains: bool = True,
) -> ImageList:
    """List a folder of images and look at the head of each file.

    Parameters
    ----------
    root : path
        Images lie in root/<domain>/, at any depth.
    domain_from : str, default=None
        Regular expression for the path below root; its first group is the domain.
    skip_bad : bool, default=False
        Go on also when more than 1 % of the files cannot be read.
    need_domains : bool, default=True
        False takes images outside the folders of domains too; their domain is None.

    Returns
    -------
    ImageList
    """
    root = Path(root)
    files = sorted(_image_files(root))
    if need_domains or domain_from is not None or not files:
        domain_of = _domain_finder(root, files, domain_from)
    else:
        domain_of = _outer_folder
    names, domains, sizes, formats, skipped = [], [], [], [], []
    for path in files:
        name = path.relative_to(root).as_posix()
        head = _head(path)
        if head is None:
            skipped.append(name)
            continue
        names.append(name)
        domains.append(domain_of(name))
        sizes.append(head[:2])
        formats.append(head[2])
    messages = _judge_skipped(skipped, len(files), skip_bad)
    codes = np.array(domains, dtype=object)
    shapes = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    messages += _format_leak(codes, shapes, formats)
    return ImageList(root, names, codes, shapes, formats, skipped, messages)


def read_pixels(
    paths: Sequence[Any], size: int = 32, *, skip_bad: bool = False
) -> tuple[Array, Array]:
    """Pixels of images, cut to a square at their middle and resized.

    Parameters
    ----------
    paths : sequence of paths
    size : int, default=32
        Width and height of the result.
    skip_bad : bool, default=False
        Go on also when more than 1 % cannot be decoded.

    Returns
    -------
    images : uint8 ndarray of shape (n_readable, size, size, 3)
    readable : bool ndarray of shape (n_paths,)
    """
    image_module = _pillow()
    from PIL import ImageOps

    pixels = np.empty((len(paths), size, size, 3), dtype=np.uint8)
    readable = np.ones(len(paths), dtype=bool)
    for index, path in enumerate(paths):
        try:
            with image_module.open(path) as image:
                upright = ImageOps.exif_transpose(image).convert("RGB")
                pixels[index] = np.asarray(ImageOps.fit(upright, (size, size)))
        except _broken(image_module):
            readable[index] = False
    skipped = [str(path) for path, ok in zip(paths, readable, strict=True) if not ok]
    _judge_skipped(skipped, len(paths), skip_bad)
    return pixels[readable], readable


def check_image(path: Path) -> None:
    """Raise E128 for a file that is no image."""
    if _head(path) is None:
        raise InputError("E128", f'"{path}" cannot be read as an image', "replace it")


def inner_folders(names: Sequence[str]) -> Array | None:
    """The one folder below each image's domain, or None where any has none or more."""
    inner = [name.split("/")[1:-1] for name in names]
    if not all(len(folders) == 1 for folders in inner):
        return None
    return np.array([folder for (folder,) in inner], dtype=object)


def _outer_folder(name: str) -> str | None:
    return name.partition("/")[0] if "/" in name else None


def _image_files(root: Path) -> Iterator[Path]:
    return (
        path
        for path in root.rglob("*")
        if path.suffix.lower() in ENDINGS and path.is_file()
    )


def _domain_finder(root: Path, files: list[Path], domain_from: str | None) -> Any:
    """A function from the path below root to the domain."""
    if domain_from is not None:
        pattern = re.compile(domain_from)

        def by_pattern(name: str) -> str:
            match = pattern.search(name)
            if match is None or not pattern.groups:
                raise InputError(
                    "E127",
                    f'"{domain_from}" finds no domain in "{name}"',
                    "the first group (...) of the expression is the domain",
                )
            return match[1]

        return by_pattern
    inside = [path for path in files if path.parent != root]
    if not inside:
        raise InputError(
            "E127",
            f'no images below "{root}"; expected {root}/<domain>/*.jpg',
            "--domain-from REGEX if the domain is in the file name",
        )
    if len(inside) < len(files):
        loose = next(path for path in files if path.parent == root)
        raise InputError(
            "E127",
            f'"{loose.name}" lies outside the folders of the domains',
            f"move it into {root}/<domain>/, or use --domain-from REGEX",
        )
    return _outer_folder


def _head(path: Path) -> tuple[int, int, str] | None:
    """Width, height and format from the head of a file; None if it is no image."""
    image_module = _pillow()
    try:
        with image_module.open(path) as image:
            return image.width, image.height, str(image.format)
    except _broken(image_module):
        return None


def _pillow() -> Any:
    return require("PIL.Image", "vision", "reading images")


def _broken(image_module: Any) -> tuple[type[Exception], ...]:
    """What pillow raises about a file that it cannot make sense of."""
    bombs = (image_module.DecompressionBombError, image_module.DecompressionBombWarning)
    return (OSError, SyntaxError, ValueError, EOFError, *bombs)


def _judge_skipped(skipped: list[str], n_files: int, skip_bad: bool) -> list[Message]:
    if not skipped:
        return []
    text = f"{len(skipped):,} of {n_files:,} images cannot be read ({join(skipped, 3)})"
    too_many = len(skipped) > BAD_SHARE * n_files
    if len(skipped) == n_files or (too_many and not skip_bad):
        raise InputError("E128", text, "replace them, or --skip-bad to leave them out")
    return [Message("W128", text, "they are left out; replace them to keep them")]


def _format_leak(domains: Array, sizes: Array, formats: list[str]) -> list[Message]:
    """W129 when format and size of the files tell the domains apart."""
    looks = [
        f"{form} {wide} x {high} px"
        for form, (wide, high) in zip(formats, sizes.tolist(), strict=True)
    ]
    names, codes = np.unique(domains.astype(str), return_inverse=True)
    kinds, signs = np.unique(looks, return_inverse=True)
    if len(names) < 2 or len(kinds) < 2:
        return []
    table = np.zeros((len(names), len(kinds)))
    np.add.at(table, (codes, signs), 1)
    share = table / table.sum(axis=1, keepdims=True)
    winner = share.argmax(axis=0)
    right = share[winner, np.arange(len(kinds))].sum() / len(names)
    if right < LEAK:
        return []
    usual = kinds[share.argmax(axis=1)]
    return [
        Message(
            "W129",
            f"format and size tell the domain of {right:.0%} of images: {names[0]} is "
            f"{usual[0]}, {names[-1]} is {usual[-1]}",
            "re-encode all alike before fitting",
        )
    ]
