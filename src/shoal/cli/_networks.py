"""What commands with networks share: images, weights, the device, and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import NUMBERS, Encoder, Work, reading
from shoal.cli._output import Output
from shoal.cli._reading import rows_of

if TYPE_CHECKING:
    from shoal.io import Table
    from shoal.io._images import ImageList
    from shoal.vision._nets import Backbone

# ---- folders of images ---------------------------------------------------------------

Images = Annotated[
    Path,
    typer.Argument(
        metavar="IMAGES",
        help="Folder of images: IMAGES/<domain>/*.jpg, at any depth.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """How the images of a folder are read."""

    size: int | None = reading(
        None, "Cut and resize all to so many pixels a side.", min=4
    )
    domain_from: str | None = reading(None, "Domain in a file's name.", metavar="REGEX")
    skip_bad: bool = reading(False, "Leave out images that cannot be read.")


def list_folder(
    output: Output, images: Path, pictures: Pictures, *, need_domains: bool = True
) -> "ImageList":
    """The images of a folder; what is odd about them is said as warnings."""
    from shoal.io._images import list_images

    if not images.is_dir():
        hint = "give a folder of images"
        if need_domains:
            hint = "give the folder that holds a folder of images for every domain"
        raise CommandError("E101", f'no folder "{images}"', hint)
    listed = list_images(
        images,
        domain_from=pictures.domain_from,
        skip_bad=pictures.skip_bad,
        need_domains=need_domains,
    )
    output.warn_all(listed.messages)
    return listed


def check_room(n_images: int, size: int) -> None:
    """Raise E137 if so many images would not fit into the free memory as bytes."""
    from shoal.io._files import GIB, available_memory
    from shoal.io._settings import READING

    need, free = 3.0 * n_images * size**2, available_memory()
    if free is not None and need > READING.room * free:
        raise CommandError(
            "E137",
            f"{n_images:,} images of {size} x {size} pixels need {need / GIB:.3g} GiB, "
            f"{free / GIB:.3g} GiB free",
            "a smaller --size",
        )


# ---- torch ---------------------------------------------------------------------------


def start_torch(device: str, threads: int | None) -> Any:
    """The device to work on; E132 without torch, E002 where there is no such device."""
    from shoal.io._files import require

    torch = require("torch", "vision", "a network")
    from shoal.vision._devices import pick_device

    if threads is not None:
        torch.set_num_threads(threads)
    try:
        return pick_device(device)
    except ValueError as error:
        text = str(error).partition(";")[0]
        raise CommandError("E002", text, "use --device cpu or auto") from error


@contextmanager
def network_errors(batch: int, least: int = 1) -> Iterator[None]:
    """Memory that runs out as E137, with a batch size from ``least`` to try next."""
    import torch

    from shoal.io._files import n_of

    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        half = max(batch // 2, least)
        fewer = f"--batch {half}, or " * (half < batch)
        text = f"a batch of {n_of(batch, 'image')} does not fit into the memory"
        raise CommandError("E137", text, f"{fewer}a smaller --size") from error


# ---- weights -------------------------------------------------------------------------


def find_weights(path: Path) -> Path:
    """The file of weights that a path or a name means; E101 where there is none."""
    from shoal.io._ready import READY, weights_file

    file = weights_file(path)
    if not file.is_file():
        hint = (
            f"give {' or '.join(READY)}, the folder that `shoal pretrain` wrote, or a "
            "file of weights"
        )
        raise CommandError("E101", f'no weights at "{file}"', hint)
    return file


def load_network(
    weights: Path, size: int | None, depth: int | None = None, stem: str | None = None
) -> tuple["Backbone", int]:
    """The network, and the size of images that it is used to."""
    from shoal.io._ready import ready_encoder
    from shoal.vision._backbone import load_backbone, resnet_like

    file, ready = find_weights(weights), ready_encoder(weights)
    found = _architecture(file)
    told = depth is not None or stem is not None
    try:
        net = load_backbone(file, resnet_like(found, depth, stem) if told else None)
    except ValueError as error:
        hint = "give weights of a ResNet-18, 34 or 50 with torchvision's names"
        if found is not None:  # so it was --depth or --stem that did not fit
            of_file = found.removeprefix("resnet").replace("-", " --stem ")
            hint = f"the file needs --depth {of_file}"
            if of_file == found:
                hint = f"the file holds {found}: leave out --depth and --stem"
        text = str(error).partition("; give")[0]
        raise CommandError("E135", text, hint) from error
    return net, size or (_usual_size(file) if ready is None else ready.size)


def taught_with(weights: str | Path) -> dict[str, str]:
    """What is to be told of an encoder that came ready: labels may have taught it."""
    from shoal.io._ready import ready_encoder

    ready = ready_encoder(weights)
    return {} if ready is None else {"encoder": f"{weights}, {ready.taught}"}


def _architecture(file: Path) -> str | None:
    """Name of a file's network, if known; E135 for one that holds no weights at all."""
    from shoal.vision._backbone import backbone_weights, find_backbone, read_weights

    try:
        return find_backbone(backbone_weights(read_weights(file)))
    except ValueError as error:
        text, _, fix = str(error).partition("; ")
        hint = fix or "give a whole file of named tensors, best as .safetensors"
        raise CommandError("E135", text, hint) from error


def _usual_size(file: Path) -> int:
    """The size of images that the file tells; E135 where it is no number."""
    from shoal.vision._backbone import find_size

    try:
        return find_size(file)
    except ValueError as error:
        text = str(error).partition("; give")[0]
        raise CommandError("E135", text, "see --size") from error


def encode_images(
    output: Output, net: "Backbone", listed: "ImageList", **options: Any
) -> Any:
    """Features of unit length, and which images could be read."""
    from shoal.vision._encode import encode_files

    def on_batch(n_files: int) -> None:
        output.at.advance(n_files / len(listed.names))

    return encode_files(net, listed, on_batch=on_batch, **options)


# ---- a table of images: a network's features, then as any table ----------------------


def plan_images(encoder: Encoder) -> dict[str, str]:
    """The stages that images add to a fit: before it, and after it.

    E101 already here where there are no weights, not after all images were listed.
    """
    find_weights(Path(encoder.encoder))
    told = taught_with(encoder.encoder).get("encoder")
    stages = {"embed": "embedding the images" + (f" ({told})" if told else "")}
    tune = {"tune": "training the network end to end"}
    return stages | (tune if encoder.learns else {})


@dataclass(frozen=True)
class Embedded:
    """A network, the images that it was asked about, and where it computes."""

    net: Any
    projection: Any
    folder: Path
    size: int
    device: Any
    fine_tune: bool
    seed: int

    def finish(self, model: Any, table: "Table") -> tuple[Any, Any, "Table"]:
        """The model to save, the mixture in it, and the table of its features."""
        from shoal.vision._assemble import assemble

        whole = assemble(
            self.net,
            self.projection,
            model,
            image_shape=(self.size, self.size, 3),
            device=None,
            seed=self.seed,
        )
        if not self.fine_tune:
            return whole, model, table
        pixels = self._pixels(table)
        tuned = self._tune(whole, pixels, table).set_names(model.class_names_)
        if not tuned.fine_tuned_:
            return tuned, model, table
        head = tuned.head_.set_names(model.class_names_)
        return tuned, head, _of_features(table, tuned._check_rows(pixels))

    def _tune(self, whole: Any, pixels: Any, table: "Table") -> Any:
        from shoal.vision._settings import FineTuning

        whole.set_params(device=self.device)
        with network_errors(FineTuning().batch_size):
            tuned = whole.tune(pixels, table.domains, FineTuning())
        return tuned.set_params(device=None)

    def _pixels(self, table: "Table") -> Any:
        from shoal.io._images import read_pixels

        check_room(table.n_rows, self.size)
        paths = [self.folder / name for name in table.ids]  # type: ignore[union-attr]
        pixels, readable = read_pixels(paths, self.size)
        if not readable.all():
            text = "images changed while they were used"
            raise CommandError("E143", text, "run the command again")
        return pixels


def with_features(
    output: Output, table: "Table", encoder: Encoder, *, work: Work, skip_bad: bool
) -> tuple["Table", Embedded]:
    """The table of the images' features, and the network that made them."""
    from shoal.vision._mixture_net import project_features

    path = table.source.get("path")
    if table.X is not None:
        text = f'--encoder was given, and "{path}" holds no images'
        hint = "leave --encoder out, or pass a folder of images"
        raise CommandError("E124", text, hint)
    output.begin("embed")
    place = start_torch(encoder.device, work.threads)
    net, size = load_network(Path(encoder.encoder), encoder.size)
    options = {"size": size, "device": place, "skip_bad": skip_bad}
    with network_errors(NUMBERS.batch):
        listed = _listed(table)
        bunch = encode_images(output, net, listed, batch_size=NUMBERS.batch, **options)
    output.warn_all(bunch.messages)
    units, table = bunch.X, _readable(table, bunch)
    fewer = max(len(units) // NUMBERS.rows_per_component, 2)
    features, projection = project_features(units, min(fewer, NUMBERS.most_components))
    schema = replace(table.schema, size=size)
    source = table.source | taught_with(encoder.encoder)
    table = replace(table, schema=schema, source=source, frame=None)
    asked = (size, place, encoder.learns, work.seed)
    embedded = Embedded(net, projection, listed.root, *asked)
    return _of_features(table, features), embedded


def _of_features(table: "Table", features: Any) -> "Table":
    """The table with a network's outputs as its columns."""
    names = [f"x{index}" for index in range(features.shape[1])]
    return replace(table, X=features, feature_names=names)


def _listed(table: "Table") -> "ImageList":
    """The images of a table, as they were listed when it was read."""
    import numpy as np

    from shoal.io._images import ImageList

    return ImageList(
        Path(table.source["path"]),
        list(table.ids),  # type: ignore[arg-type]
        np.asarray(table.domains),
        table.frame[["width", "height"]].to_numpy(),
        table.frame["format"].tolist(),
        skipped=table.source["skipped"],
    )


def _readable(table: "Table", bunch: Any) -> "Table":
    """The table without images that cannot be read."""
    import numpy as np

    assert table.ids is not None
    kept = np.isin(table.ids.astype(str), bunch.files)
    return rows_of(table, kept, source=table.source | {"skipped": bunch.skipped})
