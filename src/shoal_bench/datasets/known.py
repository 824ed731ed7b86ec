"""CINIC-10, ImageNet-50, FieldGuide and Waterbirds from their official folders."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.datasets.extend import DATA_DIR, read_class_folders, read_table
from shoal.io import read_pixels
from shoal_bench.datasets.fetching import Archive, Place, fetch, target_folder

Array = np.ndarray[Any, Any]

CINIC = Archive(
    "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
    "6ee4d0c996905fe93221de577967a372",
    688,
)
CINIC_SPLITS = ("train", "valid", "test")
#: WordNet ids of the ImageNet-50 of Van Gansbeke W et al. (2020), SCAN: Learning to
#: classify images without labels, which the paper uses too.
IMAGENET50 = tuple(
    """
    n01601694 n01669191 n01755581 n01770393 n01855672 n02018207 n02058221 n02096177
    n02097130 n02099267 n02100877 n02104365 n02106030 n02114855 n02125311 n02133161
    n02484975 n02489166 n02747177 n02906734 n03124170 n03272010 n03337140 n03483316
    n03498962 n03710721 n03717622 n03733281 n03759954 n03775071 n03814639 n03837869
    n03838899 n03854065 n03954731 n03983396 n04026417 n04200800 n04209239 n04311004
    n04380533 n04428191 n04443257 n04509417 n04525305 n04554684 n04606251 n07583066
    n07711569 n07753592
    """.split()
)
SPECIES_IMAGES, SPECIES_TEST = 1000, 200
WATERBIRDS = (
    "https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz"
)
WATERBIRD_SPLITS = {"train": "0", "valid": "1", "test": "2"}
NO_DOMAINS = (
    "It has no domains of its own (domains is None): make some with "
    "shoal.datasets.plan_domains."
)


def load_cinic10(
    path: Place = None, split: str = "train", *, size: int = 32, download: bool = False
) -> Bunch:
    """Load CINIC-10: the classes of CIFAR-10, 90,000 images in each of three parts.

    Parameters
    ----------
    path : path or None, default=None
        Folder that holds ``train``, ``valid`` and ``test``, each with a folder per
        class. With None: ``CINIC-10`` in the folder that ``SHOAL_DATA_DIR`` names.
    split : {"train", "valid", "test"}, default="train"
        Which part.
    size : int, default=32
        Height and width.
    download : bool, default=False
        Fetch the files when they are absent (688 MB, checksum compared), into ``path``
        or ``SHOAL_DATA_DIR/CINIC-10``.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, size, size, 3) uint8, ``domains`` (None), ``labels`` (for scoring
        only), ``label_names``, ``files``, ``sources`` ("cifar10" or "imagenet": where
        an image was taken from), ``description``, ``licence``.
    """
    _check_split(split, CINIC_SPLITS)
    if download and not _is_there(path, "CINIC-10", "train"):
        fetch(CINIC, target_folder(path) if path else target_folder(None) / "CINIC-10")
    how = (
        f"download=True fetches it ({CINIC.megabytes} MB), or unpack {CINIC.url} there"
    )
    root = _find_folder(path, "CINIC-10", split, how) / split
    bunch = _by_class(root, _class_folders(root), size)
    names = np.char.partition(bunch.files, "/")[:, 2]
    bunch.sources = np.where(
        np.char.startswith(names, "cifar10"), "cifar10", "imagenet"
    )
    bunch.description = (
        "CINIC-10: small colour images in ten classes, from CIFAR-10 and ImageNet.\n"
        f"{NO_DOMAINS}\n\n"
        "Darlow LN et al. (2018). CINIC-10 is not ImageNet or CIFAR-10."
    )
    bunch.licence = "CC BY 4.0; the images as in their sources"
    return bunch


def load_imagenet50(
    path: Place = None,
    split: str = "train",
    *,
    class_ids: Sequence[str] | str | os.PathLike[str] | None = None,
    size: int = 224,
) -> Bunch:
    """Load ImageNet-50, or other classes of ImageNet, from the official folders.

    Parameters
    ----------
    path : path or None, default=None
        Folder that holds ``train`` and ``val``, each with a folder per class id
        (``n01440764`` and so on). With None: ``imagenet`` in the folder that
        ``SHOAL_DATA_DIR`` names. ImageNet asks for a login: image-net.org.
    split : {"train", "val"}, default="train"
        Which part.
    class_ids : sequence of str, path or None, default=None
        The class ids, or a text file with one at the start of each line. None: the 50
        that the paper uses, ``shoal_bench.datasets.known.IMAGENET50``.
    size : int, default=224
        Height and width.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, size, size, 3) uint8, ``domains`` (None), ``labels`` (for scoring
        only), ``label_names`` (class ids), ``files``, ``description``, ``licence``.
    """
    _check_split(split, ("train", "val"))
    how = (
        "get ImageNet (ILSVRC 2012) from image-net.org and place the folders of the 50 "
        "classes as train/<class id>/*.JPEG and val/<class id>/*.JPEG there"
    )
    root = _find_folder(path, "imagenet", split, how) / split
    ids = IMAGENET50 if class_ids is None else _read_ids(class_ids)
    absent = sorted(set(ids) - set(_class_folders(root)))
    if absent:
        raise ValueError(
            f"{root} lacks {len(absent)} of the {len(ids)} class folders, such as "
            f"{absent[0]!r}; place them there, or name those to use in class_ids"
        )
    bunch = _by_class(root, sorted(ids), size)
    bunch.description = (
        f"{len(ids)} classes of ImageNet, {split}.\n{NO_DOMAINS}\n\n"
        "Deng J et al. (2009). ImageNet: a large-scale hierarchical image database."
    )
    bunch.licence = "ImageNet's terms of access: non-commercial research"
    return bunch


def load_fieldguide(
    path: Place = None,
    split: str = "train",
    *,
    n_classes: int = 28,
    species: Sequence[str] | None = None,
    size: int = 224,
    seed: int = 42,
) -> Bunch:
    """Load moths and butterflies of the FieldGuide challenge (FGVC6, 2019).

    The classes are the species with 1,000 training images; 200 of each, drawn with
    ``seed``, are set aside for testing, as the official test images have no labels.

    Parameters
    ----------
    path : path or None, default=None
        Folder of the official training images, one folder per species. With None:
        ``fieldguide`` in the folder that ``SHOAL_DATA_DIR`` names.
    split : {"train", "test"}, default="train"
        800 or 200 images of each species.
    n_classes : int, default=28
        28, or 2 for FieldGuide-2: the first so many of the species in order of name.
    species : sequence of str or None, default=None
        Folders to use instead.
    size : int, default=224
        Height and width.
    seed : int, default=42
        Of the split; independent of which species are asked for.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        As :func:`load_imagenet50`; ``label_names`` are the species.
    """
    _check_split(split, ("train", "test"))
    how = (
        "get the training images of the competition butterflies-moths-2019 (FGVC6, on "
        "Kaggle, with a login) and place them as <species>/*.jpg there"
    )
    root = _find_folder(path, "fieldguide", "", how)
    chosen = _common_species(root, n_classes) if species is None else list(species)
    bunch = _by_class(root, chosen, size, keep=lambda n: _held_out(n, seed, split))
    bunch.description = (
        f"FieldGuide-{len(chosen)}: moths and butterflies, caterpillars among them.\n"
        f"{NO_DOMAINS}"
    )
    bunch.licence = "the competition's rules: non-commercial research"
    return bunch


def load_waterbirds(
    path: Place = None, split: str = "train", *, size: int = 224
) -> Bunch:
    """Load Waterbirds: birds cut out and placed before land or water.

    Parameters
    ----------
    path : path or None, default=None
        Folder that holds ``metadata.csv``. With None:
        ``waterbird_complete95_forest2water2`` in the folder that ``SHOAL_DATA_DIR``
        names.
    split : {"train", "valid", "test"}, default="train"
        Which part.
    size : int, default=224
        Height and width.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, size, size, 3) uint8, ``domains`` (None), ``labels`` (for scoring
        only), ``label_names``, ``backgrounds`` ("land" or "water"), ``files``,
        ``description``, ``licence``.
    """
    _check_split(split, tuple(WATERBIRD_SPLITS))
    how = f"unpack {WATERBIRDS} there"
    root = _find_folder(path, "waterbird_complete95_forest2water2", "", how)
    table = read_table(root / "metadata.csv", ["img_filename", "y", "split", "place"])
    rows = table["split"] == WATERBIRD_SPLITS[split]
    files = table["img_filename"][rows]
    images, readable = read_pixels([root / name for name in files], size)
    place = table["place"][rows][readable]
    return Bunch(
        X=images,
        domains=None,
        labels=table["y"][rows][readable].astype(np.intp),
        label_names=["landbird", "waterbird"],
        backgrounds=np.where(place == "1", "water", "land"),
        files=files[readable],
        description="Waterbirds: birds of CUB before backgrounds of Places; 95 in 100 "
        f"training birds before their own kind of background.\n{NO_DOMAINS}\n\n"
        "Sagawa S, Koh PW, Hashimoto TB, Liang P (2020). Distributionally robust "
        "neural networks for group shifts. ICLR.",
        licence="as CUB-200-2011 and Places: non-commercial research",
    )


def _by_class(root: Path, classes: Sequence[str], size: int, keep: Any = None) -> Bunch:
    """Bunch of the images of some class folders, perhaps of some of each."""
    images, labels, files = read_class_folders(root, classes, size, keep=keep)
    return Bunch(
        X=images,
        domains=None,
        labels=labels,
        label_names=list(classes),
        files=files,
    )


def _held_out(n: int, seed: int, split: str) -> Array:
    """Places of the images of one species that belong to a split."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[:SPECIES_TEST] if split == "test" else order[SPECIES_TEST:])


def _common_species(root: Path, n_classes: int) -> list[str]:
    """The first species that have enough images."""
    counts = {
        name: sum(path.is_file() for path in (root / name).iterdir())
        for name in _class_folders(root)
    }
    full = [name for name, count in counts.items() if count >= SPECIES_IMAGES]
    if len(full) < n_classes:
        raise ValueError(
            f"{root} has {len(full)} folders of at least {SPECIES_IMAGES} images, "
            f"n_classes={n_classes} needs as many; check the download, or give species"
        )
    return full[:n_classes]


def _class_folders(root: Path) -> list[str]:
    return sorted(p.name for p in root.iterdir() if p.is_dir() and p.name[0] != ".")


def _read_ids(class_ids: Sequence[str] | str | os.PathLike[str]) -> list[str]:
    if isinstance(class_ids, str | os.PathLike):
        lines = Path(class_ids).read_text().splitlines()
        return [line.split()[0] for line in lines if line.strip()]
    return list(class_ids)


def _check_split(split: str, known: Sequence[str]) -> None:
    if split not in known:
        raise ValueError(f"split must be one of {', '.join(known)}, got {split!r}")


def _folders(path: Place, folder: str) -> list[Path]:
    if path is not None:
        return [Path(path), Path(path, folder)]
    root = os.environ.get(DATA_DIR)
    return [Path(root, folder)] if root else []


def _is_there(path: Place, folder: str, inside: str) -> bool:
    return any((place / inside).is_dir() for place in _folders(path, folder))


def _find_folder(path: Place, folder: str, inside: str, how: str) -> Path:
    """The folder of a data set, or a message that says what to place where."""
    places = _folders(path, folder)
    for place in places:
        if (place / inside).is_dir():
            return place
    where = places[0] if places else f"${DATA_DIR}/{folder}, which is not set"
    raise FileNotFoundError(f"{folder} is not at {where}; {how}")
