"""What commands with networks share: folders of images, the device, and errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import working
from shoal.cli._output import Output
from shoal.cli._reading import reading

if TYPE_CHECKING:
    from shoal.io._images import ImageList
    from shoal.io.table._table import Message


Images = Annotated[
    Path,
    typer.Argument(
        metavar="IMAGES",
        help="Folder of images: IMAGES/<domain>/*.jpg, at any depth.",
        show_default=False,
    ),
]
Batch = Annotated[int, working("--batch", min=1, help="Images at a time.")]
Device = Annotated[str, working("--device", help="auto, cpu, cuda or cuda:1.")]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """How the images of a folder are read."""

    size: Annotated[
        int | None,
        reading("--size", min=4, help="Cut and resize all to so many pixels a side."),
    ] = None
    domain_from: Annotated[
        str | None,
        reading("--domain-from", metavar="REGEX", help="Domain in a file's name."),
    ] = None
    skip_bad: Annotated[
        bool, reading("--skip-bad", help="Leave out images that cannot be read.")
    ] = False


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
    warn(output, listed.messages)
    return listed


def warn(output: Output, messages: "Sequence[Message]") -> None:
    """Say what was odd about the images."""
    for message in messages:
        output.warn(message.code, message.text, message.hint)


@contextmanager
def network_errors(batch: int, least: int = 1) -> Iterator[None]:
    """Memory that runs out as E137, with a batch size from ``least`` to try next."""
    import torch

    from shoal.io._files import n_of

    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        half = max(batch // 2, least)
        raise CommandError(
            "E137",
            f"a batch of {n_of(batch, 'image')} does not fit into the memory",
            f"--batch {half}, or a smaller --size"
            if half < batch
            else "a smaller --size",
        ) from error
