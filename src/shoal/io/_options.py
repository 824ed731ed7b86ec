"""What a reader can be told: one declaration, for Python and for the command line.

Every field of :class:`FileOptions` and :class:`ReadOptions` is an argument of
:func:`shoal.io.read` and an option of the commands that read data; its metadata are
what their help says of it. Nothing here imports pandas: ``shoal --help`` reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from shoal.exceptions import InputError
from shoal.io._notation import GAPS, MISSING, THOUSANDS, Notation

IMPUTATIONS = ("median", "mean", "drop", "keep", "stop")

Text = str | None


def told(default: Any, help: str, **facts: Any) -> Any:
    """A field, and what a help page says of it (``facts`` as typer takes them)."""
    return field(default=default, metadata={"facts": {"help": help, **facts}})


def columns(default: Any, help: str) -> Any:
    """A field of column names, which a command line joins by commas."""
    facts = {"help": help, "metavar": "COL,COL"}
    return field(default=default, metadata={"facts": facts, "joined": True})


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are to be read, beyond what their names say."""

    domain_file: Any = told(None, "Domains, for npy and mtx.", metavar="FILE")
    format: Text = told(None, "Format, if the file's name does not tell.")
    sheet: Text = told(None, "Sheet of an Excel workbook.", metavar="NAME")
    sep: Text = told(None, "Separator of a CSV file, if it is not found.")
    decimal: Text = told(None, "Decimal sign, if it is not found.", metavar=".|,")
    encoding: str = told("utf-8", "Of a text file, if it is not found.")
    na: Sequence[str] = told((), "Cell that means missing (repeatable).")
    na_only: bool = told(False, "Only --na and empty cells are missing, not NA or -.")
    drop_missing_domain: bool = told(False, "Leave out rows without domain.")

    @property
    def of_files(self) -> dict[str, Any]:
        """These options alone, as :func:`shoal.io.batches` takes them."""
        return {one.name: getattr(self, one.name) for one in fields(FileOptions)}


@dataclass(frozen=True, kw_only=True)
class ReadOptions(FileOptions):
    """Which rows and columns, and what they are."""

    domain: Any = told(None, "Column: where a row is from.", metavar="COL")
    id: Text = told(None, "Column that names the rows.", metavar="COL")
    label: Text = told(None, "True classes: held aside, to score.", metavar="COL")
    group: Text = told(None, "Group of each domain: ill, well.", metavar="COL")
    order: Text = told(None, "Number or date: when a row is from.", metavar="COL")
    features: Sequence[str] | None = columns(None, "Only these columns.")
    drop: Sequence[str] = columns((), "All but these columns.")
    text: Text = told(None, "Column of text, to count words.", metavar="COL")
    counts: bool = told(False, "The columns are counts of words.")
    layer: Text = told(None, "Layer of an h5ad file.", metavar="KEY")
    use_rep: Text = told(None, "Embedding in an h5ad file.", metavar="KEY")
    impute: Text = told(
        None, "Missing cells: median, mean, drop, keep, stop.", metavar="HOW"
    )
    sample: int | None = told(
        None, "So many rows, drawn at random; of data in parts, to learn from.", min=2
    )
    domain_bins: int | None = told(None, "Cut a number into domains.", min=2)
    merge_small: Text = told(None, "One domain of thin ones.", metavar="NAME")
    domain_from: Text = told(None, "Domain in a file's name.", metavar="REGEX")
    skip_bad: bool = told(False, "Leave out images that cannot be read.")


@dataclass(frozen=True, kw_only=True)
class SourceOptions(ReadOptions):
    """Arguments of :func:`shoal.io.read`, which describes them."""

    seed: int = 0
    require_domain: bool = True
    known: Text = None
    encoder: Text = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, *THOUSANDS):
            raise InputError(
                "E002",
                f"decimal={self.decimal!r} is no decimal sign",
                "use . or , or leave it out",
            )
        if self.impute is not None and self.impute not in IMPUTATIONS:
            raise InputError(
                "E002",
                f"impute={self.impute!r} is not a way to fill missing values",
                f"use one of {', '.join(IMPUTATIONS)}",
            )
        for name in ("sample", "domain_bins"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 2):
                raise InputError(
                    "E002",
                    f"{name}={value!r} is not a whole number from 2",
                    f"leave {name} out, or raise it",
                )

    @property
    def missing(self) -> tuple[str, ...]:
        """Every cell that means "no value", in any column."""
        return ("", *self.na) if self.na_only else (*MISSING, *self.na)

    @property
    def notation(self) -> Notation:
        """How numbers and gaps are written."""
        gaps = () if self.na_only else GAPS
        return Notation(self.missing, gaps, self.decimal or ".")

    @property
    def text_columns(self) -> set[str]:
        """Columns whose cells are names or words, whatever they look like."""
        named = (
            self.domain, self.id, self.label, self.group, self.text, self.known
        )  # fmt: skip
        return {name for name in named if isinstance(name, str)}

    @property
    def text_becomes(self) -> str:
        """What is made of the texts of a column, in words for people."""
        how = "words are counted"
        return how if self.encoder is None else f"encoded by {self.encoder}"

    def refuse_encoder(self, kind: str) -> None:
        """E124 for an encoder of texts where there are none."""
        if self.encoder is not None and kind != "text":
            raise InputError(
                "E124",
                f"{self.encoder} encodes texts, and none were named",
                "name the column of texts with --text, or leave the encoder out",
            )

    def refuse_unfit(self, table: bool, annotated: bool = False) -> None:
        """Refuse options that would be overlooked in silence.

        Parameters
        ----------
        table : bool
            Whether the source has named columns instead of a matrix.
        annotated : bool
            Whether it is AnnData.
        """
        unfit = {
            "domain_file": table and self.domain_file is not None,
            "features": not table and self.features is not None,
            "drop": not table and len(self.drop) > 0,
            "text": not table and self.text is not None,
            "layer": not annotated and self.layer is not None,
            "use_rep": not annotated and self.use_rep is not None,
        }
        what = "a table with named columns" if table else "a matrix"
        for name in (name for name, wrong in unfit.items() if wrong):
            instead = "name the column with --domain instead"
            raise InputError(
                "E002",
                f"{name} says nothing about {what}",
                instead if name == "domain_file" else "leave it out",
            )
