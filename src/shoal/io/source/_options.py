"""What the reader was told, in one object that every step can be handed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.exceptions import InputError

#: Cells of a text file, and text in any table, that mean "no value".
MISSING = ("", "NA", "NaN", "nan", "null", "NULL", "<NA>")

IMPUTATIONS = ("median", "mean", "drop")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments of :func:`shoal.io.read`, which describes them."""

    domain: Any = None
    domain_file: Any = None
    id: str | None = None
    label: str | None = None
    group: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: str | None = None
    counts: bool = False
    layer: str | None = None
    use_rep: str | None = None
    format: str | None = None
    sep: str | None = None
    encoding: str = "utf-8"
    na: Sequence[str] = ()
    impute: str | None = None
    sample: int | None = None
    seed: int = 0
    domain_bins: int | None = None
    drop_missing_domain: bool = False
    merge_small: str | None = None
    require_domain: bool = True
    domain_from: str | None = None
    skip_bad: bool = False

    def __post_init__(self) -> None:
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
        """Every cell that means "no value"."""
        return (*MISSING, *self.na)

    @property
    def text_columns(self) -> set[str]:
        """Columns whose cells are names or words, whatever they look like."""
        named = (self.domain, self.id, self.label, self.group, self.text)
        return {name for name in named if isinstance(name, str)}

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
