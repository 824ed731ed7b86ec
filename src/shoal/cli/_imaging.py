"""Commands on a folder of images: a network's features, then as any table."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli._embed import find_weights, load
from shoal.cli._messages import CommandError
from shoal.cli._models import Device
from shoal.cli._networks import network_errors, start_torch, warn
from shoal.cli._options import Work, working
from shoal.cli._output import Output, Stage, Stages
from shoal.cli._pretrain import check_room
from shoal.cli._reading import reading

if TYPE_CHECKING:
    from shoal.io import Table


NONE = "none"
BATCH = 1024
# Components of the features: with fewer rows for each, domains are learned by heart.
MOST_COMPONENTS, ROWS_PER_COMPONENT = 128, 20


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """The network that turns images into columns."""

    encoder: Annotated[
        str,
        working(
            "--encoder",
            metavar="none|PATH",
            help="For images: the folder that `shoal pretrain` wrote, or weights.",
        ),
    ] = NONE
    size: Annotated[
        int | None, reading("--size", min=4, help="Pixels a side; as in the training.")
    ] = None
    device: Device = "auto"

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self.encoder != NONE


@dataclass(frozen=True, kw_only=True)
class TunedEncoder(Encoder):
    """The same, where it may learn."""

    fine_tune: Annotated[
        bool,
        working("--fine-tune", help="For images: train the network end to end too."),
    ] = False


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
        from shoal.vision.mixture._assemble import assemble

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
        return tuned, head, replace(table, X=tuned._check_rows(pixels))

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
            raise CommandError(
                "E143", "images changed while they were used", "run the command again"
            )
        return pixels


def plan_images(encoder: Encoder) -> dict[str, Stage]:
    """The stages that images add to a fit: before it, and after it.

    E101 already here where there are no weights, not after all images were listed.
    """
    if not encoder.given:
        return {}
    find_weights(Path(encoder.encoder))
    stages = {"embed": Stage("embedding the images", 10)}
    tune = {"tune": Stage("training the network end to end", 60)}
    return stages | (tune if _learns(encoder) else {})


def _learns(encoder: Encoder) -> bool:
    return isinstance(encoder, TunedEncoder) and encoder.fine_tune


def embed_table(
    output: Output,
    stages: Stages,
    table: "Table",
    encoder: Encoder,
    work: Work,
    *,
    skip_bad: bool,
) -> tuple["Table", Embedded]:
    """The table of the images' features, and the network that made them."""
    from shoal.vision.mixture._net import project_features

    if table.X is not None:
        raise CommandError(
            "E124",
            f'--encoder was given, and "{table.source.get("path")}" holds no images',
            "leave --encoder out, or pass a folder of images",
        )
    stages.begin("embed")
    place = start_torch(encoder.device, work.threads)
    net, size = load(Path(encoder.encoder), None, None, encoder.size)
    with network_errors(BATCH):
        bunch = _encode(stages, table, net, size=size, device=place, skip_bad=skip_bad)
    warn(output, bunch.messages)
    units, table = bunch.X, _readable(table, bunch)
    fewer = max(len(units) // ROWS_PER_COMPONENT, 2)
    features, projection = project_features(units, min(fewer, MOST_COMPONENTS))
    schema = replace(table.schema, size=size)
    names = [f"x{index}" for index in range(features.shape[1])]
    table = replace(table, X=features, schema=schema, feature_names=names, frame=None)
    folder = Path(table.source["path"])
    embedded = Embedded(
        net, projection, folder, size, place, _learns(encoder), work.seed
    )
    return table, embedded


def _encode(stages: Stages, table: "Table", net: Any, **options: Any) -> Any:
    """Features of unit length, and which images could be read."""
    import numpy as np

    from shoal.io._images import ImageList
    from shoal.vision._encode import encode_files

    listed = ImageList(
        Path(table.source["path"]),
        list(table.ids),  # type: ignore[arg-type]
        np.asarray(table.domains),
        table.frame[["width", "height"]].to_numpy(),
        table.frame["format"].tolist(),
        skipped=table.source["skipped"],
    )
    return encode_files(
        net,
        listed,
        batch_size=BATCH,
        on_batch=lambda n_files: stages.advance(n_files / len(listed.names)),
        **options,
    )


def _readable(table: "Table", bunch: Any) -> "Table":
    """The table without images that cannot be read."""
    import numpy as np

    assert table.ids is not None
    assert table.domains is not None
    kept = np.isin(table.ids.astype(str), bunch.files)
    return replace(
        table,
        domains=table.domains[kept],
        ids=table.ids[kept],
        labels=None if table.labels is None else table.labels[kept],
        places=None if table.places is None else table.places[kept],
        source=table.source | {"skipped": bunch.skipped},
    )
