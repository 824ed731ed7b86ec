"""The data of a command: which files, rows and columns, and how they are read."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import refuse_idle
from shoal.cli._output import Output
from shoal.io._options import ReadOptions

if TYPE_CHECKING:
    from shoal.io import Table


Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="A table (csv, tsv, xlsx, parquet, feather, dta, npy, npz, h5ad, mtx, fcs)"
        ", a folder of images or texts, several files (one domain each), or - for CSV "
        "on stdin.",
        show_default=False,
    ),
]


def one_or_all(data: Sequence[str]) -> Any:
    """The file, or all of them where there are several."""
    return data[0] if len(data) == 1 else list(data)


def name_of(data: Sequence[str]) -> str:
    """A short name for what is read: of one file without its endings."""
    if len(data) != 1 or data[0] == "-":
        return "data"
    return PurePath(data[0]).name.partition(".")[0] or "data"


# ---- reading -------------------------------------------------------------------------


def read(
    output: Output,
    data: Sequence[str],
    source: ReadOptions,
    seed: int,
    known: str | None = None,
    encoder: str | None = None,
) -> "Table":
    """The table of a command; what reading noticed is said as warnings."""
    import shoal.io

    _refuse_split_names(data, source)
    refuse_clash(source)
    more: dict[str, Any] = {"seed": seed, "known": known, "encoder": encoder}
    table = shoal.io.read(one_or_all(data), **more, **vars(source))
    if table.kind != "images":
        refuse_of_images(source)
    output.warn_all(table.messages)
    if output.redact:
        table = without_rare_domains(without_rare_values(table))
    return _without_empty_bags(output, table)


def _refuse_split_names(data: Sequence[str], source: ReadOptions) -> None:
    """Raise E002 for ``--features a b``: after a space, b is taken for a file."""
    no_files = [one for one in data if one != "-" and not os.path.exists(one)]
    for option, names in (("--features", source.features), ("--drop", source.drop)):
        if names and 0 < len(no_files) < len(data):
            joined = shlex.quote(",".join([*names, *no_files]))
            raise CommandError(
                "E002",
                f'"{no_files[0]}" is taken for a file, and there is none',
                f"columns are joined by commas, without spaces: {option} {joined}",
            )


def refuse_clash(source: ReadOptions) -> None:
    """Raise E002 for a column that would be both a feature and something else."""
    features = source.features or ()
    for role in ("domain", "id", "label", "group", "order"):
        if getattr(source, role) in features:
            text = f'"{getattr(source, role)}" is named by --{role} and by --features'
            hint = "a column is one or the other: take it out of one of them"
            raise CommandError("E002", text, hint)


def with_gaps(source: ReadOptions) -> ReadOptions:
    """The options of a fit, which takes gaps of a table unless told otherwise."""
    counted = source.counts or source.text is not None
    return replace(source, impute=source.impute or (None if counted else "keep"))


def refuse_of_images(source: ReadOptions) -> None:
    """Raise E002 for options that only a folder of images has a use for."""
    given = {
        "--domain-from": source.domain_from is not None,
        "--skip-bad": source.skip_bad,
    }
    refuse_idle(given, "is for a folder of images")


def refuse_images(table: "Table") -> None:
    """Raise E124 for a folder of images: a fit needs their embeddings."""
    if table.X is None:
        path = table.source["path"]
        text = f'"{path}" holds images, and classes are found in columns'
        hint = "add --encoder efficientnet-lite0, or the folder of `shoal pretrain`"
        raise CommandError("E124", text, hint)


def _without_empty_bags(output: Output, table: "Table") -> "Table":
    """The rows that hold a word; W144 says how many others were left out."""
    import numpy as np

    if table.kind not in ("counts", "text"):
        return table
    filled = np.asarray(abs(table.X).sum(axis=1)).ravel() > 0
    if filled.all():
        return table
    domains = np.asarray(table.domains)
    lost = sorted(set(map(str, domains)) - set(map(str, domains[filled])))
    if lost:
        text = f'no row of the domain "{lost[0]}" holds a word that counts'
        hint = "use more rows, or leave that domain out"
        raise CommandError("E114", text, hint)
    text = f"{int((~filled).sum()):,} rows hold no word that counts; left out"
    output.warn("W144", text, "words must occur in two rows, and not in most")
    more = {"X": table.X[filled], "frame": _taken(table.frame, filled)}
    return rows_of(table, filled, **more)


def rows_of(table: "Table", kept: Any, **more: Any) -> "Table":
    """The table with some of its rows; ``more`` has what is known of them already."""
    names = ("domains", "ids", "labels", "places", "known")
    columns = {name: _taken(getattr(table, name), kept) for name in names}
    known_by = table.described and (table.described[0][kept], table.described[1])
    return replace(table, **columns, described=known_by, **more)


def _taken(column: Any, kept: Any) -> Any:
    return None if column is None else column[kept]


# ---- pictures that the ids of rows name ----------------------------------------------


def pictures_of(folder: Path | None, table: Any) -> Callable[[int], bytes] | None:
    """A function from the number of a row to the file that its id names."""
    if folder is None:
        return None
    if table.ids is None:
        text = "--images needs to know which picture a row is"
        raise CommandError("E002", text, "name the column of file names with --id")
    return lambda row: read_picture(folder, str(table.ids[row]))


def read_picture(folder: Path, name: str) -> bytes:
    """The content of an image below a folder; E101 where there is none."""
    from shoal.io._images import check_image

    if not folder.is_dir():
        hint = "give the folder that the ids of the rows begin in"
        raise CommandError("E101", f'no folder "{folder}"', hint)
    path = (folder / name).resolve()
    if not (path.is_relative_to(folder.resolve()) and path.is_file()):
        hint = "the id of a row must be the path of its picture below that folder"
        raise CommandError("E101", f'no image "{name}" below "{folder}"', hint)
    check_image(path)
    return path.read_bytes()


# ---- cells of an h5ad file -----------------------------------------------------------


def h5ad_of(data: Sequence[str], format: str | None) -> Path | None:
    """The h5ad file that is the input; None for any other."""
    if len(data) != 1 or data[0] == "-":
        return None
    path = Path(data[0])
    named = path.suffix.lower() == ".h5ad" if format is None else format == "h5ad"
    return path if named and path.is_file() else None


def require_h5ad(data: Sequence[str], format: str | None, *, redact: bool) -> None:
    """Raise E002 where the output of a command cannot be an h5ad file."""
    text = ""
    if redact:
        text = "an h5ad file holds the cells themselves, which --redact leaves out"
    elif h5ad_of(data, format) is None:
        text = f'only an h5ad file can be written as one, not "{data[0]}"'
    if text:
        raise CommandError("E002", text, "end --out with .parquet or .csv")


# ---- --redact: rows without names, and no value that few of them share ---------------
#
# A model must know its domains, categories and words to class new rows: those that few
# rows share lose their names, or are not even used.


def row_numbers(table: "Table") -> Any:
    """Numbers of the rows in their source, from 1."""
    import numpy as np

    places = np.arange(table.n_rows) if table.places is None else table.places
    return places + 1


def without_rare_domains(table: "Table") -> "Table":
    """The table, domains of fewer than ten rows without their names."""
    import numpy as np

    from shoal.report._gather import RARE, RARE_DOMAIN

    names, codes, sizes = np.unique(
        np.asarray(table.domains).astype(str), return_inverse=True, return_counts=True
    )
    rare = sizes < RARE
    rule = table.schema.domain
    if rule is not None and rule.merged:  # thin ones, by their names
        rule = replace(rule, merged=(), into=None)
    if not rare.any():
        return replace(table, schema=replace(table.schema, domain=rule))
    hidden = [f"{RARE_DOMAIN} {index}" for index in range(len(names))]
    safe = np.where(rare, hidden, names).astype(object)
    domains = safe[codes]
    groups = table.groups and {
        safe[names == str(domain)][0]: group for domain, group in table.groups.items()
    }
    groups = groups and _safe_groups(groups, domains)
    rule = None if rule is None else replace(rule, kind="text")
    schema = replace(table.schema, domain=rule)
    return replace(table, domains=domains, groups=groups, schema=schema)


def _safe_groups(groups: dict[Any, str], domains: Any) -> dict[Any, str]:
    """The group of each domain, groups of fewer than ten rows without their names.

    The name of such a group says what those of its domains no longer say. It gets the
    number that the report gives it, that of its first domain.
    """
    import numpy as np

    from shoal.report._gather import RARE

    names, sizes = np.unique(domains.astype(str), return_counts=True)
    of_domain = np.array([groups[name] for name in names], dtype=object)
    safe = {}
    for group in set(of_domain):
        places = np.flatnonzero(of_domain == group)
        rare = sizes[places].sum() < RARE
        safe[group] = f"rare group {places[0]}" if rare else group
    return {domain: safe[group] for domain, group in groups.items()}


def without_rare_names(diagnosis: Any) -> Any:
    """The diagnosis, domains of fewer than ten rows without their names."""
    import numpy as np

    from shoal.analysis.diagnose import judge
    from shoal.report._gather import RARE, RARE_DOMAIN

    sizes = np.asarray(diagnosis.numbers["rows_per_domain"])
    names = [
        f"{RARE_DOMAIN} {index}" if size < RARE else str(name)
        for index, (name, size) in enumerate(zip(diagnosis.domains, sizes, strict=True))
    ]
    domains = np.array(names, dtype=object)
    return judge(diagnosis.numbers, domains, diagnosis.class_names)


def without_rare_values(table: "Table") -> "Table":
    """The table without columns that are named after a value of fewer than ten rows."""
    import numpy as np

    from shoal.report._gather import RARE

    schema = table.schema
    if table.X is None or schema.n_columns is not None or schema.encoder is not None:
        return table  # columns of numbers are named after no value
    common = np.asarray((abs(table.X) > 0).sum(axis=0)).ravel() >= RARE  # no gap is
    schema, kept = _without_rare(schema, common)
    if not kept.any():
        text = f"every value of the columns is shared by fewer than {RARE} rows"
        hint = "fit without --redact, or group the values"
        raise CommandError("E114", text, hint)
    return replace(
        table, X=table.X[:, kept], schema=schema, feature_names=schema.feature_names
    )


def _without_rare(schema: Any, common: Any) -> tuple[Any, Any]:
    """The schema without rare words and categories, and which columns of X stay."""
    import numpy as np

    if schema.text is not None:
        words = zip(schema.vocabulary, common, strict=True)
        vocabulary = tuple(word for word, stays in words if stays)
        return replace(schema, vocabulary=vocabulary), common
    features, kept, start = [], np.ones(len(common), dtype=bool), 0
    for feature in schema.features:
        columns = slice(start, start + feature.width)
        start += feature.width
        if feature.kind == "category":
            kept[columns] = common[columns]
            levels = zip(feature.levels, common[columns], strict=True)
            left = tuple(level for level, stays in levels if stays)
            feature = replace(feature, levels=left)
        if feature.width:
            features.append(feature)
    return replace(schema, features=tuple(features)), kept
