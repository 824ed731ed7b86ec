"""``shoal embed``: features of images, as a file for `shoal fit`."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli._messages import CommandError
from shoal.cli._networks import (
    Batch,
    Device,
    Images,
    Pictures,
    list_folder,
    network_errors,
    start_torch,
    warn,
)
from shoal.cli._options import (
    Force,
    Redact,
    Speech,
    Work,
    speaking,
    with_groups,
    working,
)
from shoal.cli._output import Output, Stage, running
from shoal.cli._places import filled_file, refuse_existing
from shoal.cli._pretrain import ENCODER
from shoal.cli._tables import shortened_table

if TYPE_CHECKING:
    from shoal.vision._nets import Backbone


Weights = Annotated[
    Path,
    working(
        "--weights",
        metavar="PATH",
        help="Folder that `shoal pretrain` wrote, or a .safetensors or .pt file.",
        show_default=False,
    ),
]
Layers = Annotated[
    int | None, working("--depth", help="18, 34 or 50, if the file does not tell.")
]
Stem = Annotated[
    str | None, working("--stem", help="cifar or imagenet, if the file does not tell.")
]
OutFile = Annotated[
    Path | None, speaking("--out", metavar="FILE", help="Where to: an .npz file.")
]


@with_groups
def embed(
    images: Images,
    weights: Weights,
    pictures: Pictures,
    work: Work,
    speech: Speech,
    batch: Batch = 1024,
    depth: Layers = None,
    stem: Stem = None,
    device: Device = "auto",
    out: OutFile = None,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """Features of images from a network, as a file for `shoal fit`.

    Images are cut to a square at their middle and resized to --size, by default that
    of the training. Writes --out (NAME-features.npz): the features of every image
    (rows of unit length), its domain, its file as id and, where images lie in
    IMAGES/<domain>/<class>/, that class as label.
    """
    path = out or Path(f"{images.absolute().name}-features.npz")
    plan = {"load": Stage(f"loading {weights}"), "embed": Stage("embedding", 20)}
    with running("embed", redact=redact, **speech.options) as output:
        if path.suffix != ".npz":
            text = f'cannot tell the format of "{path}"'
            raise CommandError("E102", text, "end the name of --out with .npz")
        refuse_existing(path, force=force)
        place = start_torch(device, work.threads)
        with output.stages(plan) as stages, network_errors(batch):
            stages.begin("load")
            net, size = load(weights, depth, stem, pictures.size)
            listed = list_folder(output, images, pictures)
            stages.begin("embed")
            bunch, seconds = encode(
                net,
                listed,
                size=size,
                skip_bad=pictures.skip_bad,
                batch_size=batch,
                device=place,
                on_batch=lambda n_files: stages.advance(n_files / len(listed.names)),
            )
        warn(output, bunch.messages)
        warn_domains(output, listed.domains, bunch.domains)
        bunch = nameless(bunch) if redact else bunch
        write(path, bunch)
        output.files = [path]
        output.data = describe(bunch) | {
            "size": size,
            "images_per_second": len(bunch.X) / seconds,
            "device": str(place),
        }
        show(output)


def find_weights(path: Path) -> Path:
    """The file of weights that a path means; E101 where there is none."""
    file = path / ENCODER if path.is_dir() else path
    if not file.is_file():
        hint = "give the folder that `shoal pretrain` wrote, or a file of weights"
        raise CommandError("E101", f'no weights at "{file}"', hint)
    return file


def load(
    weights: Path, depth: int | None, stem: str | None, size: int | None
) -> tuple["Backbone", int]:
    """The network, and the size of images that it is used to."""
    from shoal.vision._backbone import load_backbone, resnet_like

    file = find_weights(weights)
    found = architecture(file)
    told = depth is not None or stem is not None
    try:
        net = load_backbone(file, resnet_like(found, depth, stem) if told else None)
    except ValueError as error:
        hint = "give weights of a ResNet-18, 34 or 50 with torchvision's names"
        if found is not None:  # so it was --depth or --stem that did not fit
            of_file = found.removeprefix("resnet").replace("-", " --stem ")
            hint = f"the file needs --depth {of_file}"
        text = str(error).partition("; give")[0]
        raise CommandError("E135", text, hint) from error
    return net, size or usual_size(file)


def architecture(file: Path) -> str | None:
    """Name of a file's network, if known; E135 for one that holds no weights at all."""
    from shoal.vision._backbone import backbone_weights, find_backbone, read_weights

    try:
        return find_backbone(backbone_weights(read_weights(file)))
    except ValueError as error:
        text, _, fix = str(error).partition("; ")
        hint = fix or "give a whole file of named tensors, best as .safetensors"
        raise CommandError("E135", text, hint) from error


def usual_size(file: Path) -> int:
    """The size of images that the file tells; E135 where it is no number."""
    from shoal.vision._backbone import find_size

    try:
        return find_size(file)
    except ValueError as error:
        text = str(error).partition("; give")[0]
        raise CommandError("E135", text, "see --size") from error


def encode(net: "Backbone", listed: Any, **options: Any) -> tuple[Any, float]:
    """Features of the images, and the seconds that they took."""
    from shoal.vision._encode import encode_files

    begun = time.perf_counter()
    return encode_files(net, listed, **options), time.perf_counter() - begun


def warn_domains(output: Output, listed: Any, embedded: Any) -> None:
    """W111 for domains of which one image, or none, could be used."""
    from shoal.datasets._folders import lone_images
    from shoal.io._files import join

    gone = sorted(set(listed.astype(str)) - set(embedded))
    if gone:
        names = join([f'"{name}"' for name in gone], 3)
        text = f"no image of {names} can be read"
        output.warn("W111", text, "replace its images to keep the domain")
    text, hint = lone_images(embedded)
    if text:
        output.warn("W111", text, hint)


def write(path: Path, bunch: Any) -> None:
    """Write the features; the file appears when it is whole."""
    from shoal.vision._encode import write_features

    with filled_file(path) as place:
        write_features(place, bunch)


def nameless(bunch: Any) -> Any:
    """The features, images known by their numbers and rare folders without names."""
    import numpy as np
    from sklearn.utils import Bunch

    from shoal.report._gather import RARE

    def common(names: Any) -> Any:
        values, codes, sizes = np.unique(names, return_inverse=True, return_counts=True)
        return np.where(sizes < RARE, "rare", values)[codes]

    return Bunch(
        X=bunch.X,
        domains=common(bunch.domains),
        labels=None if bunch.labels is None else common(bunch.labels),
        files=np.arange(1, len(bunch.X) + 1),
        skipped=[],
    )


def describe(bunch: Any) -> dict[str, Any]:
    """What was embedded, in numbers."""
    return {
        "n_images": len(bunch.X),
        "n_features": bunch.X.shape[1],
        "domains": dict(sorted(Counter(bunch.domains.tolist()).items())),
        "labels": bunch.labels is not None,
        "skipped": bunch.skipped,
    }


def show(output: Output) -> None:
    """Images by domain, the speed, and what to do next."""
    from shoal.io._files import n_of

    found, path = output.data, output.files[0]
    rows = [[name, f"{count:,}"] for name, count in found["domains"].items()]
    label = " --label label" * found["labels"]
    next_step = f"shoal fit {path} --domain domain --id id{label}"
    if len(rows) < 2:
        next_step = "add images of another domain; shoal fit needs at least two domains"
    output.show(
        shortened_table("Images by domain", ["domain", "images"], rows),
        f"{n_of(found['n_images'], 'image')}, {found['n_features']} features each; "
        f"{found['images_per_second']:,.0f} images/s on {found['device']}.",
        f"Written: {path}",
        f"Next: {next_step}",
    )
