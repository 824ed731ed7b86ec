"""Folders of images, root/<domain>/...: what is there, checked, and as pixels."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.exceptions import InputError
from shoal.io._files import digest, join, n_of, require
from shoal.io._settings import READING
from shoal.io.table._table import Message

Array = np.ndarray[Any, Any]

ENDINGS = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"}
# The formats of these endings. Pillow tells formats by their content and would open any
# other under these names, and some start programs: EPS runs Ghostscript.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
WHITE_16 = 65535
BY_NAME = "--domain-from REGEX (domain_from=REGEX)"


class _UnknownRangeError(ValueError):
    """Pixels of which nobody knows what is black and what is white."""


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
        Files that are no images although they are called so, or whose pixels are
        floats.
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
        return digest(
            f"{name}\0{path.stat().st_size}\0"
            for name, path in zip(self.names, self.paths, strict=True)
        )


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
    messages = judge_bad(root, skipped, len(files), skip_bad)
    if need_domains and domain_from is None:
        messages += _empty_folders(root, domains)
    codes = np.array(domains, dtype=object)
    shapes = np.array(sizes, dtype=np.int64).reshape(-1, 2)
    messages += _format_leak(codes, shapes, formats)
    return ImageList(root, names, codes, shapes, formats, skipped, messages)


def read_pixels(
    paths: Sequence[Any], size: int = 32, *, skip_bad: bool = False
) -> tuple[Array, Array]:
    """Pixels of images, cut to a square at their middle and resized.

    Greyscale of 16 bits becomes 8 bits, 65535 as 255. Floats, and whole numbers outside
    0 to 65535, cannot be read: their black and white are not known.

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
    pixels, readable = decode(paths, size)
    bad = [str(path) for path, ok in zip(paths, readable, strict=True) if not ok]
    judge_bad(Path(), bad, len(paths), skip_bad)
    return pixels, readable


def decode(paths: Sequence[Any], size: int) -> tuple[Array, Array]:
    """As :func:`read_pixels`, however many cannot be read: the caller judges that."""
    image_module = _pillow()
    from PIL import ImageOps

    pixels = np.empty((len(paths), size, size, 3), dtype=np.uint8)
    readable = np.ones(len(paths), dtype=bool)
    for index, path in enumerate(paths):
        try:
            with open_image(path) as image:
                upright = as_rgb(ImageOps.exif_transpose(image))
                pixels[index] = np.asarray(ImageOps.fit(upright, (size, size)))
        except _broken(image_module):
            readable[index] = False
    return pixels[readable], readable


def open_image(source: Any) -> Any:
    """A path or a file of bytes, opened by pillow as one of the formats read here."""
    return _pillow().open(source, formats=FORMATS)


def as_rgb(image: Any) -> Any:
    """An opened image with 8 bits a colour; ValueError where its range is unknown."""
    _check_mode(image)
    if image.mode == "I" or image.mode.startswith("I;16"):  # pillow would cut at 255
        image = _pillow().fromarray(_eight_bits(np.asarray(image), image.mode))
    return image.convert("RGB")


def judge_bad(
    root: Path, names: Sequence[str], n_files: int, skip_bad: bool
) -> list[Message]:
    """E143 when too many files could not be read, W128 when some."""
    if not names:
        return []
    text, fix = _tell_bad(root, names, n_files)
    if len(names) == n_files:  # nothing would be left
        raise InputError("E143", text, fix)
    if len(names) > READING.bad_share * n_files and not skip_bad:
        hint = f"{fix}, or --skip-bad (skip_bad=True) to leave them out"
        raise InputError("E143", text, hint)
    return [Message("W128", text, f"they are left out; {fix} to keep them")]


def check_image(path: Path) -> None:
    """Raise E143 for a file that is no image."""
    if _head(path) is None:
        found = _unknown_range(path)
        why, hint = "", "replace it"
        if found is not None:
            why, hint = f"; {found}", "save it with 8 or 16 bits"
        raise InputError("E143", f'"{path}" cannot be read as an image{why}', hint)


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
    if not files:
        raise InputError(
            "E101",
            f'no images below "{root}"; expected {root}/<domain>/*.jpg',
            "put images there, or check the path",
        )
    if domain_from is not None:
        pattern = re.compile(domain_from)

        def by_pattern(name: str) -> str:
            match = pattern.search(name)
            if match is None or not pattern.groups:
                raise InputError(
                    "E109",
                    f'"{domain_from}" finds no domain in "{name}"',
                    "the first group (...) of the expression is the domain",
                )
            return match[1]

        return by_pattern
    inside = [path for path in files if path.parent != root]
    if not inside:
        count = n_of(len(files), "image")
        raise InputError(
            "E101",
            f'{count} {"lies" if len(files) == 1 else "lie"} directly in "{root}"; '
            f"expected {root}/<domain>/*.jpg",
            f"images belong into one folder per domain; {BY_NAME} if the domain is in "
            "the file name",
        )
    if len(inside) < len(files):
        loose = next(path for path in files if path.parent == root)
        raise InputError(
            "E109",
            f'"{loose.name}" lies outside the folders of the domains',
            f"move it into {root}/<domain>/, or use {BY_NAME}",
        )
    return _outer_folder


def _head(path: Path) -> tuple[int, int, str] | None:
    """Width, height and format from the head of a file; None if it cannot be read."""
    image_module = _pillow()
    try:
        with open_image(path) as image:
            _check_mode(image)
            return image.width, image.height, str(image.format)
    except _broken(image_module):
        return None


def _check_mode(image: Any) -> None:
    if image.mode == "F":
        raise _UnknownRangeError(
            "pixels must be whole numbers of 8 or 16 bits, got floats (mode F)"
        )


def _eight_bits(values: Array, mode: str) -> Array:
    """Pixels of 16 bits as 8: 65535 is 257 * 255."""
    values = values.astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > WHITE_16:
        raise _UnknownRangeError(
            f"pixels must lie in 0 to {WHITE_16}, got {low} to {high} (mode {mode})"
        )
    return ((values + 128) // 257).astype(np.uint8)


def _unknown_range(path: Path) -> str | None:
    """Why the pixels of a file cannot be used; None for a file damaged otherwise."""
    image_module = _pillow()
    try:
        with open_image(path) as image:
            as_rgb(image)
    except _UnknownRangeError as error:
        return str(error)
    except _broken(image_module):
        return None
    return None


def _pillow() -> Any:
    return require("PIL.Image", "vision", "reading images")


def _broken(image_module: Any) -> tuple[type[Exception], ...]:
    """What pillow raises about a file that it cannot make sense of."""
    bombs = (image_module.DecompressionBombError, image_module.DecompressionBombWarning)
    return (OSError, SyntaxError, ValueError, EOFError, *bombs)


def _tell_bad(root: Path, names: Sequence[str], n_files: int) -> tuple[str, str]:
    """Which files could not be read and why, and how to put it right."""
    text = f"{len(names):,} of {n_of(n_files, 'image')} cannot be read"
    text += f" ({join(names, 3)})"
    for name in names[:3]:
        found = _unknown_range(root / name)
        if found is not None:
            return f"{text}; in {name}, {found}", "save them with 8 or 16 bits"
    return text, "replace them"


def _empty_folders(root: Path, domains: list[Any]) -> list[Message]:
    """W111 for folders beside those of the domains that no image was found in."""
    known = set(domains)
    empty = sorted(
        path.name
        for path in root.iterdir()
        # names such as .git and __MACOSX are nobody's domains
        if path.is_dir()
        and not path.name.startswith((".", "__"))
        and path.name not in known
    )
    if not empty:
        return []
    names = join([f'"{name}"' for name in empty], 3)
    what = f"folder {names} holds" if len(empty) == 1 else f"folders {names} hold"
    text = f"{what} no image that can be read"
    return [Message("W111", text, "add images there if it should be a domain")]


def _format_leak(domains: Array, sizes: Array, formats: list[str]) -> list[Message]:
    """W121 when format and size of the files tell the domains apart."""
    if any(domain is None for domain in domains):  # they lie side by side
        return []
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
    if right < READING.leak:
        return []
    usual = kinds[share.argmax(axis=1)]
    return [
        Message(
            "W121",
            f"format and size tell the domain of {right:.0%} of images: {names[0]} is "
            f"{usual[0]}, {names[-1]} is {usual[-1]}",
            "re-encode all alike before fitting",
        )
    ]
