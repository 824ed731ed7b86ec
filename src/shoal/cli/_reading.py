"""The data of a command: which files, rows and columns, and how they are read."""

import csv
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import refuse_idle
from shoal.cli._output import Output
from shoal.cli._places import filled_file
from shoal.cli._redacting import without_rare_domains, without_rare_values

if TYPE_CHECKING:
    from shoal.io import Table


# ---- How many rows a file may have, without reading it: for the time left ------------

SAMPLE_BYTES = 65_536


def guess_rows(data: Sequence[str]) -> float | None:
    """About how many rows some files have together; None where nothing can be said."""
    guesses = [_guess(Path(name)) for name in data]
    known = [guess for guess in guesses if guess is not None]
    return sum(known) if len(known) == len(guesses) else None


def _guess(path: Path) -> float | None:
    if not path.is_file():
        return None
    if path.suffix == ".parquet":
        from shoal.io._files import require

        parquet = require("pyarrow.parquet", "parquet", "reading parquet files")
        return float(parquet.ParquetFile(path).metadata.num_rows)
    if path.suffix in (".csv", ".tsv"):
        with path.open("rb") as file:
            head = file.read(SAMPLE_BYTES)
        lines = max(head.count(b"\n"), 1)
        return path.stat().st_size * lines / max(len(head), 1)
    return None


# ---- reading -------------------------------------------------------------------------

reading = partial(typer.Option, rich_help_panel="Which rows and columns")

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="A table (csv, tsv, parquet, feather, npy, npz, h5ad, mtx), a folder of "
        "images or texts, several files (one domain each), or - for CSV on stdin.",
        show_default=False,
    ),
]
Text = str | None
Names = list[str] | None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """How files are to be read, beyond what their names say."""

    domain_file: Annotated[
        Text,
        reading("--domain-file", metavar="FILE", help="Domains, for npy and mtx."),
    ] = None
    format: Annotated[
        Text, reading("--format", help="Format, if the file's name does not tell.")
    ] = None
    sep: Annotated[Text, reading("--sep", help="Separator of a CSV file.")] = None
    encoding: Annotated[str, reading("--encoding", help="Of a text file.")] = "utf-8"
    na: Annotated[
        Names, reading("--na", help="Cell that means missing (repeatable).")
    ] = None
    drop_missing_domain: Annotated[
        bool, reading("--drop-missing-domain", help="Leave out rows without domain.")
    ] = False

    @property
    def for_batches(self) -> dict[str, Any]:
        """As :func:`shoal.io.batches` takes them."""
        given = {field.name: getattr(self, field.name) for field in fields(Rows)}
        return given | {"na": tuple(self.na or ())}


@dataclass(frozen=True, kw_only=True)
class Source(Rows):
    """Which rows and columns, and what they are."""

    domain: Annotated[
        Text, reading("--domain", metavar="COL", help="Column: where a row is from.")
    ] = None
    id: Annotated[
        Text, reading("--id", metavar="COL", help="Column that names the rows.")
    ] = None
    label: Annotated[
        Text,
        reading("--label", metavar="COL", help="True classes: held aside, to score."),
    ] = None
    group: Annotated[
        Text,
        reading("--group", metavar="COL", help="Group of each domain: ill, well."),
    ] = None
    features: Annotated[
        Names, reading("--features", metavar="COL,COL", help="Only these columns.")
    ] = None
    drop: Annotated[
        Names, reading("--drop", metavar="COL,COL", help="All but these columns.")
    ] = None
    text: Annotated[
        Text, reading("--text", metavar="COL", help="Column of text, to count words.")
    ] = None
    counts: Annotated[
        bool, reading("--counts", help="The columns are counts of words.")
    ] = False
    layer: Annotated[
        Text, reading("--layer", metavar="KEY", help="Layer of an h5ad file.")
    ] = None
    use_rep: Annotated[
        Text, reading("--use-rep", metavar="KEY", help="Embedding in an h5ad file.")
    ] = None
    impute: Annotated[
        Text,
        reading("--impute", metavar="HOW", help="Missing cells: median, mean or drop."),
    ] = None
    sample: Annotated[
        int | None,
        reading(
            "--sample",
            min=2,
            help="So many rows, drawn at random; of data in parts, to learn from.",
        ),
    ] = None
    domain_bins: Annotated[
        int | None, reading("--domain-bins", min=2, help="Cut a number into domains.")
    ] = None
    merge_small: Annotated[
        Text, reading("--merge-small", metavar="NAME", help="One domain of thin ones.")
    ] = None

    domain_from: Annotated[
        Text, reading("--domain-from", metavar="REGEX", help="Domain in a file's name.")
    ] = None
    skip_bad: Annotated[
        bool, reading("--skip-bad", help="Leave out images that cannot be read.")
    ] = False

    @property
    def for_read(self) -> dict[str, Any]:
        """As :func:`shoal.io.read` takes them."""
        return dict(vars(self)) | {
            "na": tuple(self.na or ()),
            "features": split_names(self.features) or None,
            "drop": tuple(split_names(self.drop)),
        }


def read(
    output: Output,
    data: Sequence[str],
    source: Source,
    seed: int,
    *,
    redact: bool = False,
) -> "Table":
    """The table of a command; what reading noticed is said as warnings."""
    import shoal.io

    refuse_split_names(data, source)
    refuse_clash(source)
    table = shoal.io.read(one_or_all(data), seed=seed, **source.for_read)
    if table.kind != "images":
        refuse_of_images(source)
    for message in table.messages:
        output.warn(message.code, message.text, message.hint)
    if redact:
        table = without_rare_domains(without_rare_values(table))
    return without_empty_bags(output, table)


def refuse_split_names(data: Sequence[str], source: Source) -> None:
    """Raise E002 for ``--features a b``: after a space, b is taken for a file."""
    from pathlib import Path

    for option, names in (("--features", source.features), ("--drop", source.drop)):
        no_files = [one for one in data if one != "-" and not Path(one).exists()]
        if names and 0 < len(no_files) < len(data):
            joined = shlex.quote(",".join([*names, *no_files]))
            raise CommandError(
                "E002",
                f'"{no_files[0]}" is taken for a file, and there is none',
                f"columns are joined by commas, without spaces: {option} {joined}",
            )


def refuse_clash(source: Source) -> None:
    """Raise E002 for a column that would be both a feature and something else."""
    features = split_names(source.features)
    for role in ("domain", "id", "label", "group"):
        if getattr(source, role) in features:
            raise CommandError(
                "E002",
                f'"{getattr(source, role)}" is named by --{role} and by --features',
                "a column is one or the other: take it out of one of them",
            )


def refuse_of_images(source: Source) -> None:
    """Raise E002 for options that only a folder of images has a use for."""
    given = {
        "--domain-from": source.domain_from is not None,
        "--skip-bad": source.skip_bad,
    }
    refuse_idle(given, "is for a folder of images")


def without_empty_bags(output: Output, table: "Table") -> "Table":
    """The rows that hold a word; W144 says how many others were left out."""
    import numpy as np

    if table.kind not in ("counts", "text"):
        return table
    filled = np.asarray(table.X.sum(axis=1)).ravel() > 0
    if filled.all():
        return table
    domains = np.asarray(table.domains)
    lost = sorted(set(map(str, domains)) - set(map(str, domains[filled])))
    if lost:
        raise CommandError(
            "E114",
            f'no row of the domain "{lost[0]}" holds a word that counts',
            "use more rows, or leave that domain out",
        )
    text = f"{int((~filled).sum()):,} rows hold no word that counts; left out"
    output.warn("W144", text, "words must occur in two rows, and not in most")
    return replace(
        table,
        X=table.X[filled],
        domains=domains[filled],
        ids=None if table.ids is None else np.asarray(table.ids)[filled],
        labels=None if table.labels is None else np.asarray(table.labels)[filled],
        frame=None if table.frame is None else table.frame[filled],
        places=None if table.places is None else table.places[filled],
    )


def refuse_images(table: "Table") -> None:
    """Raise E124 for a folder of images: a fit needs their embeddings."""
    if table.X is None:
        raise CommandError(
            "E124",
            f'"{table.source["path"]}" holds images, and classes are found in columns',
            "add --encoder WEIGHTS, or `shoal embed` them first",
        )


def one_or_all(data: Sequence[str]) -> Any:
    """The file, or all of them where there are several."""
    return data[0] if len(data) == 1 else list(data)


def split_names(given: Sequence[str] | None) -> list[str]:
    """Names given as ``a,b`` or one by one; quotes protect a comma in a name."""
    return [name for row in csv.reader(given or ()) for name in row if name]


def name_of(data: Sequence[str]) -> str:
    """A short name for what is read: of one file without its endings."""
    from pathlib import PurePath

    if len(data) != 1 or data[0] == "-":
        return "data"
    return PurePath(data[0]).name.partition(".")[0] or "data"


# ---- cells ---------------------------------------------------------------------------

#: The copy of the input in the folder of a run.
CELLS = "classes.h5ad"


def h5ad_of(data: Sequence[str], format: str | None) -> Path | None:
    """The h5ad file that is the input; None for any other."""
    if len(data) != 1 or data[0] == "-":
        return None
    path = Path(data[0])
    named = path.suffix.lower() == ".h5ad" if format is None else format == "h5ad"
    return path if named and path.is_file() else None


def require_h5ad(data: Sequence[str], format: str | None, *, redact: bool) -> Path:
    """The input of a command whose output is to be an h5ad file."""
    if redact:
        raise CommandError(
            "E002",
            "an h5ad file holds the cells themselves, which --redact leaves out",
            "end --out with .parquet or .csv",
        )
    source = h5ad_of(data, format)
    if source is None:
        raise CommandError(
            "E002",
            f'only an h5ad file can be written as one, not "{data[0]}"',
            "end --out with .parquet or .csv",
        )
    return source


def write_cells(
    path: Path, source: Path, model: Any, frames: Iterable[Any], **facts: Any
) -> None:
    """Copy the cells of ``source`` and add the classes that ``frames`` say."""
    from shoal.io._annotation import Annotation, n_cells_of

    found = Annotation.of(model, frames, n_cells_of(source), **facts)
    with filled_file(path) as place:
        found.write(source, place)
