"""``shoal embed``: features of images, as a file for `shoal fit`."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cli import _networks
from shoal.cli._messages import CommandError
from shoal.cli._options import (
    NUMBERS,
    REQUIRED,
    SafeResults,
    Speech,
    Work,
    speaking,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._runs import filled_file, refuse_existing
from shoal.cli._tables import shortened_table


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network, and where it computes."""

    weights: Path = working(
        REQUIRED,
        "efficientnet-lite0, the folder that `shoal pretrain` wrote, or a .safetensors "
        "or .pt file.",
        metavar="NAME|PATH",
        show_default=False,
    )
    batch: int = working(NUMBERS.batch, "Images at a time.", min=1)
    depth: int | None = working(None, "18, 34 or 50, if the file does not tell.")
    stem: str | None = working(None, "cifar or imagenet, if the file does not tell.")
    device: str = working("auto", "auto, cpu, cuda or cuda:1.")


@dataclass(frozen=True, kw_only=True)
class FeaturesFile(SafeResults):
    """Where the features go."""

    out: Path | None = speaking(None, "Where to: an .npz file.", metavar="FILE")


@with_groups
def embed(
    images: _networks.Images,
    pictures: _networks.Pictures,
    work: Work,
    network: Network,
    results: FeaturesFile,
    speech: Speech,
) -> None:
    """Features of images from a network, as a file for `shoal fit`.

    Images are cut to a square at their middle and resized to --size, by default that
    of the training. Writes --out (NAME-features.npz): the features of every image
    (rows of unit length), its domain, its file as id and, where images lie in
    IMAGES/<domain>/<class>/, that class as label.
    """
    path = results.out or Path(f"{images.absolute().name}-features.npz")
    load = f"loading {network.weights}"
    with running("embed", speech, results) as output:
        if path.suffix != ".npz":
            text = f'cannot tell the format of "{path}"'
            raise CommandError("E102", text, "end the name of --out with .npz")
        refuse_existing(path, force=results.force)
        place = _networks.start_torch(network.device, work.threads)
        plan = {"load": load, "embed": "embedding"}
        with output.stages(plan), _networks.network_errors(network.batch):
            output.begin("load")
            told = (pictures.size, network.depth, network.stem)
            net, size = _networks.load_network(network.weights, *told)
            listed = _networks.list_folder(output, images, pictures)
            output.begin("embed")
            begun = time.perf_counter()
            bunch = _networks.encode_images(
                output,
                net,
                listed,
                size=size,
                skip_bad=pictures.skip_bad,
                batch_size=network.batch,
                device=place,
            )
            seconds = time.perf_counter() - begun
        output.warn_all(bunch.messages)
        warn_domains(output, listed.domains, bunch.domains)
        bunch = nameless(bunch) if output.redact else bunch
        write(path, bunch)
        output.files = [path]
        speed = {"images_per_second": len(bunch.X) / seconds, "device": str(place)}
        taught = _networks.taught_with(network.weights)
        output.found(describe(bunch) | {"size": size, **speed, **taught})
        show(output)


def warn_domains(output: Output, listed: Any, embedded: Any) -> None:
    """W111 for domains of which one image, or none, could be used."""
    from shoal.datasets._files import lone_images
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
        *([f"Encoder: {found['encoder']}."] if "encoder" in found else []),
        f"Written: {path}",
        f"Next: {next_step}",
    )
