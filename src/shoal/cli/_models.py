"""Models as commands take them: loaded, and the rows that they can class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import refuse_device, working
from shoal.cli._output import Output
from shoal.cli._reading import Rows, one_or_all

if TYPE_CHECKING:
    from shoal.io import Table


Device = Annotated[
    str, working("--device", help="For images: auto, cpu, cuda or cuda:1.")
]

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder that `shoal fit` wrote, or the model folder in it.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Loaded:
    """A fitted model and the columns that it takes."""

    path: Path
    model: Any
    schema: Any

    def without_names(self, *, domains: bool) -> "Loaded":
        """The same, blind to what names a row (and to a domain that is not used)."""
        hidden = ["id", "domain"] if domains else ["id"]
        return replace(self, schema=self.schema | dict.fromkeys(hidden))

    def batches(
        self,
        output: Output,
        data: Sequence[str],
        rows: Rows,
        *,
        require_domain: bool = True,
    ) -> Iterator["Table"]:
        """New rows as the model takes them; what reading noticed is said once."""
        import shoal.io

        said = set()
        files = one_or_all(data)
        options = rows.for_batches | {"require_domain": require_domain}
        for table in shoal.io.batches(files, self.schema, **options):
            for message in table.messages:
                if message.topic not in said:
                    output.warn(message.code, message.text, message.hint)
                said.add(message.topic)
            yield table

    def table(
        self, output: Output, data: Sequence[str], rows: Rows, **options: Any
    ) -> "Table":
        """All new rows at once."""
        import numpy as np
        import pandas as pd
        from scipy import sparse

        tables = list(self.batches(output, data, rows, **options))
        if len(tables) == 1:
            return tables[0]
        parts = [table.X for table in tables]
        stack = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
        known = all(table.domains is not None for table in tables)
        frames = [table.frame for table in tables if table.frame is not None]
        return replace(
            tables[0],
            X=stack(parts),
            domains=_join([one.domains for one in tables]) if known else None,
            ids=_join([one.ids for one in tables]),
            labels=_join([one.labels for one in tables if one.labels is not None]),
            frame=pd.concat(frames) if frames else None,
            places=_join([one.places for one in tables]),
        )

    def known_table(self, output: Output, data: Sequence[str], rows: Rows) -> "Table":
        """All rows at once, from the domains that the model knows, and from each."""
        import numpy as np

        table = self.table(output, data, rows)
        refuse_no_domains(table)
        check_known(np.asarray(table.domains), self.model)
        return table


def _join(columns: list[Any]) -> Any:
    import numpy as np

    return np.concatenate(columns) if columns else None


def refuse_no_domains(table: "Table") -> None:
    """Raise E133 where a table does not say where its rows come from."""
    if table.domains is None:
        column = getattr(table.schema.domain, "column", None)
        raise CommandError(
            "E133",
            f'the model needs "{column or "domain"}" to know where each row is from',
            "supply it, or --pooled (predict only) to do without",
        )


def check_known(domains: Any, model: Any) -> None:
    """Raise E134 for a domain that the model has not seen, E134 for an absent one."""
    known = set(model.domains_.tolist())
    unseen = [one for one in dict.fromkeys(domains.tolist()) if one not in known]
    if unseen:
        raise CommandError(
            "E134", f'the model has not seen "{unseen[0]}"', "`shoal adapt` first"
        )
    present = set(domains.tolist())
    absent = [one for one in model.domains_.tolist() if one not in present]
    if absent:
        more = f" and {len(absent) - 1} more" * (len(absent) > 1)
        raise CommandError(
            "E134",
            f'no row is from "{absent[0]}"{more}, which the model knows',
            "pass rows of every domain, best the rows of the fit",
        )


def load_model(path: Path, device: str = "auto") -> Loaded:
    """The model in a folder, with its columns; E135 or E135 if it has none.

    A model with a network computes on ``device``.
    """
    import shoal

    model = shoal.load(path)
    if model._origin._takes_images:
        from shoal.cli._networks import start_torch

        model._origin.set_params(device=start_torch(device, None))
    else:
        refuse_device(device)
    schema = getattr(model, "schema_", None)
    if schema is None:
        raise CommandError(
            "E135",
            f'the model in "{path}" does not say which columns it takes',
            "fit with `shoal fit`, or save with shoal.save(model, path, schema=...)",
        )
    return Loaded(path, model, schema)
