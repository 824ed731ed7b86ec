"""Why rows are of their class: the table that ``shoal predict --explain`` writes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from shoal.cli import _runs
from shoal.cli._messages import CommandError
from shoal.cli._options import working
from shoal.cli._output import Output

#: Sentences that are shown; the file has all rows.
SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Why:
    """Of which rows the reasons are wanted."""

    explain: int = working(
        0,
        "Say why of so many rows, the most doubtful, in NAME-why.csv beside --out: "
        "evidence in nats by column and by domain.",
        min=0,
        metavar="N",
    )
    explain_id: Sequence[str] | None = working(
        None, "The same of the row with this id; may be given again.", metavar="ID"
    )

    @property
    def wanted(self) -> bool:
        """Whether any row is to be explained."""
        return bool(self.explain or self.explain_id)


class Kept(NamedTuple):
    """A row to explain."""

    margin: float
    number: int
    row_id: Any
    domain: Any
    X: Any


class Reasons:
    """Keeps the rows that are asked about while all rows pass by.

    Parameters
    ----------
    why : Why
    path : Path
        Of the assignments; the reasons go beside it.
    """

    def __init__(self, why: Why, path: Path) -> None:
        self.n_doubtful = why.explain
        self.asked = list(dict.fromkeys(why.explain_id or ()))
        self.path = path.with_name(f"{path.stem}-why.csv")
        self.named: list[Kept] = []
        self.doubtful: list[Kept] = []
        self.columns: list[str] = []
        self.n_seen = 0

    def refuse(
        self, output: Output, model: Any, *, in_parts: bool, force: bool
    ) -> None:
        """Raise E002 or E136 for what cannot be, before any work."""
        causes = {
            "--redact hides single rows": output.redact,
            "--out - prints one table": output.piped,
            "these rows are read in parts": in_parts,
            "this model takes images": model._origin._takes_images,
        }
        cause = next((one for one, holds in causes.items() if holds), None)
        if cause is not None:
            text = f"--explain is about columns of single rows, and {cause}"
            raise CommandError("E002", text, "leave --explain out")
        _runs.refuse_existing(self.path, force=force)

    def watching(self, tables: Iterator[Any]) -> Iterator[Any]:
        """The tables, each at hand while its frame is made."""
        for table in tables:
            self.table = table
            self.columns = list(table.feature_names)
            yield table

    def choosing(self, frames: Iterator[Any]) -> Iterator[Any]:
        """The frames of these tables; E002 where an id that is asked for is missing."""
        for frame in frames:
            ids = frame["row_id"].map(str)
            for row in ids.isin(self.asked).to_numpy().nonzero()[0]:
                self.named.append(self._kept(frame, int(row)))
            few = frame["margin"].to_numpy().argsort(kind="stable")[: self.n_doubtful]
            kept = [*self.doubtful, *(self._kept(frame, int(row)) for row in few)]
            self.doubtful = sorted(kept, key=lambda one: one[:2])[: self.n_doubtful]
            self.n_seen += len(frame)
            yield frame
        known = {str(one.row_id) for one in self.named}
        absent = [one for one in self.asked if one not in known]
        if absent:
            text = f'no row has the id "{absent[0]}" of --explain-id'
            raise CommandError("E002", text, "ids are those in the column row_id")

    def _kept(self, frame: Any, row: int) -> Kept:
        line = frame.iloc[row]
        domains, X = self.table.domains, self.table.X[row : row + 1]
        domain = None if domains is None else domains[row]
        number = self.n_seen + row
        return Kept(float(line["margin"]), number, line["row_id"], domain, X)

    def write(self, output: Output, model: Any, mix: dict[str, Any]) -> Path:
        """Write the reasons of all rows that were kept, and show a few."""
        pooled, prevalence = mix["pooled"], mix["prevalence"]
        rows = {one.number: one for one in [*self.named, *self.doubtful]}.values()
        records, told = [], []
        for one in rows:
            domain = None if pooled or prevalence is not None else one.domain
            found = model.explain(one.X, domain, prevalence=prevalence)
            if len(found.columns) == len(self.columns):
                found = replace(found, columns=self.columns)
            records += reasons(one, found)
            told.append(f"Row {one.row_id}: {found}.")
        with _runs.filled_file(self.path) as place:
            _runs.write_csv(place, records, plain=output.plain_csv)
        output.show(*told[:SHOWN])
        return self.path


def reasons(row: Kept, found: Any) -> list[dict[str, Any]]:
    """One record for each part of the evidence for a row."""
    about = {
        "row_id": row.row_id,
        "domain": "" if row.domain is None else row.domain,
        "class": found.class_name,
        "p": found.probability,
        "other": found.other_name,
        "p_other": found.other_probability,
    }
    parts = [
        {**one, "value": "" if one["value"] is None else one["value"]}
        for one in found.to_records()
    ]
    return [{**about, **one} for one in parts]
