"""Models as commands take them, the rows they can class, and where these are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli._messages import CommandError
from shoal.cli._options import HONOURED, Encoder, Work, refuse_idle, working
from shoal.cli._output import Output
from shoal.cli._reading import one_or_all
from shoal.cli._runs import MODEL, load_settled
from shoal.io._options import FileOptions

if TYPE_CHECKING:
    from shoal.io import Table


# ---- models --------------------------------------------------------------------------

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

    @property
    def summary(self) -> dict[str, Any]:
        """What the model was told of its training."""
        from shoal.io.model._models import read_manifest

        return read_manifest(self.path)["summary"] or {}

    def save(self, model: Any, run: Path, **more: Any) -> None:
        """Put a model of the same columns into a run; ``more`` joins the summary."""
        import shoal

        told = {"schema": self.schema, "summary": self.summary | more}
        shoal.save(model, run / MODEL, **told)

    def without_names(self, *, domains: bool) -> "Loaded":
        """The same, blind to what names a row (and to a domain that is not used)."""
        hidden = ["id", "domain"] if domains else ["id"]
        return replace(self, schema=self.schema | dict.fromkeys(hidden))

    def batches(
        self,
        output: Output,
        data: Sequence[str],
        rows: FileOptions,
        *,
        require_domain: bool = True,
    ) -> Iterator["Table"]:
        """New rows as the model takes them; what reading noticed is said once."""
        import shoal.io

        said = set()
        files = one_or_all(data)
        options = rows.of_files | {"require_domain": require_domain}
        for table in shoal.io.batches(files, self.schema, **options):
            output.warn_all(one for one in table.messages if one.topic not in said)
            said |= {message.topic for message in table.messages}
            yield table

    def table(
        self, output: Output, data: Sequence[str], rows: FileOptions, **options: Any
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

    def known_table(
        self, output: Output, data: Sequence[str], rows: FileOptions
    ) -> "Table":
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
        column = getattr(table.schema.domain, "column", None) or "domain"
        text = f'the model needs "{column}" to know where each row is from'
        hint = "supply it, or --pooled (predict only) to do without"
        raise CommandError("E133", text, hint)


def check_known(domains: Any, model: Any) -> None:
    """Raise E134 for a domain that the model has not seen, or that has no row."""
    known, present = model.domains_.tolist(), list(dict.fromkeys(domains.tolist()))
    unseen = [one for one in present if one not in known]
    if unseen:
        text = f'the model has not seen "{unseen[0]}"'
        raise CommandError("E134", text, "`shoal adapt` first")
    absent = [one for one in known if one not in present]
    if absent:
        more = f" and {len(absent) - 1} more" * (len(absent) > 1)
        text = f'no row is from "{absent[0]}"{more}, which the model knows'
        hint = "pass rows of every domain, best the rows of the fit"
        raise CommandError("E134", text, hint)


def load_model(path: Path, device: str = "auto") -> Loaded:
    """The model in a folder, with its columns; E135 if it has none.

    A model with a network computes on ``device``.
    """
    model = load_settled(path)
    if model._origin._takes_images:
        from shoal.cli._networks import start_torch

        model._origin.set_params(device=start_torch(device, None))
    else:
        given = {"--device": device not in HONOURED}
        refuse_idle(given, "is for images, and this model takes none")
    schema = getattr(model, "schema_", None)
    if schema is None:
        text = f'the model in "{path}" does not say which columns it takes'
        hint = "fit with `shoal fit`, or save with shoal.save(model, path, schema=...)"
        raise CommandError("E135", text, hint)
    return Loaded(path, model, schema)


def unfit_for_looks(what: str) -> CommandError:
    """E002 for data whose looks nothing describes."""
    text = f"--by looks is for columns of numbers in memory, not for {what}"
    return CommandError("E002", text, "leave it out: what shifts is found in them, too")


def refuse_unfit(encoder: Encoder, work: Work) -> None:
    """Raise E002, before any work, for looks of what a network sees."""
    if work.looks and encoder.given:
        raise unfit_for_looks("images")


def estimator_for(table: "Table", k: int | None, work: Work) -> Any:
    """The estimator that suits a table, not fitted."""
    from shoal import CountMixture, DensityMixture, DiscreteMixture, DomainMixture

    how: dict[str, Any] = {"random_state": work.seed, "n_jobs": work.n_jobs}
    if table.kind == "counts" and _is_one_bag_each(table):
        if work.looks:
            raise unfit_for_looks("a single row of counts for each domain")
        if table.order is not None:
            text = "--order is for rows of one class each, not for bags of words"
            raise CommandError("E002", text, "leave it out")
        return DiscreteMixture(k, input="counts", random_state=work.seed)
    if table.kind in ("counts", "text") or table.is_wide:
        weighting = {"text": "tfidf", "counts": "log"}.get(table.kind, "auto")
        if table.schema is not None and table.schema.encoder is not None:
            weighting = "points"
        return CountMixture(k, weighting=weighting, by=work.by, **how)
    if work.looks:
        return DensityMixture(k, random_state=work.seed)
    if table.kind == "images":  # what can become a layer of the network
        how |= {"scale": "global", "expansion": "linear"}
    return DomainMixture(k, by=work.by, **how)


def _is_one_bag_each(table: "Table") -> bool:
    """Whether domains are documents: then words, not rows, are of one class each."""
    import numpy as np

    domains = np.asarray(table.domains)
    return len(np.unique(domains)) == len(domains)


def choose_k(table: "Table", work: Work, **options: Any) -> Any:
    """The curve over numbers of classes."""
    from shoal.mixture import choose_n_classes

    return choose_n_classes(
        table.X,
        table.domains,
        estimator=estimator_for(table, None, work),
        n_jobs=work.n_jobs,
        random_state=work.seed,
        **options,
    )


def diagnosis_of(
    model: Any, table: "Table", work: Work, choice: Any = None, **options: Any
) -> Any:
    """The diagnosis of a model by the rows of a table, which has names for columns."""
    from shoal.analysis.diagnose._procedure import with_choice, with_columns

    found = model.diagnose(table.X, table.domains, random_state=work.seed, **options)
    return with_choice(with_columns(found, table.feature_names), choice)


# ---- data larger than memory: where, and whether they are read in parts --------------

ENGINES = ("auto", "memory", "local", "ray")
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where rows are worked on."""

    engine: str = working(
        "auto",
        "All rows in memory, in parts here, or in parts on a Ray cluster; "
        "auto: in parts what does not fit, and folders of Parquet files.",
        metavar="auto|memory|local|ray",
    )
    address: str | None = working(None, "Of the Ray cluster; else one on this machine.")
    workers: int | None = working(
        None, "Parts at a time; all cores if not given.", min=1
    )
    checkpoint: Path | None = working(
        None,
        "Keep finished parts there; a second call goes on from them.",
        metavar="DIR",
    )

    @property
    def options(self) -> dict[str, Any]:
        """As :mod:`shoal.scale` takes them."""
        given = {
            name: getattr(self, name) for name in ("address", "workers", "checkpoint")
        }
        return {"engine": "ray" if self.engine == "ray" else "local", **given}

    def ask(
        self,
        question: Callable[..., Any],
        output: Output,
        loaded: Loaded,
        data: Sequence[str],
        rows: FileOptions,
        **options: Any,
    ) -> Any:
        """The answer of a function of :mod:`shoal.scale` about a model and data."""
        from shoal.io import Schema

        # its schema gets to know how these rows write numbers and gaps
        schema = Schema.from_dict(loaded.schema).written(
            na=rows.na, na_only=rows.na_only, decimal=rows.decimal
        )
        loaded.model.schema_ = schema.to_dict()
        return question(
            loaded.model,
            one_or_all(data),
            progress=output.progress,
            **self.options,
            **options,
        )

    def in_parts(self, data: Sequence[str], *, whole: bool = True) -> bool:
        """Whether data are read in parts; ``whole`` if they would have to fit at once.

        Where somebody draws a sample, or reads in batches, they need not.
        """
        if self.engine not in ENGINES:
            text = f'there is no engine "{self.engine}"'
            raise CommandError("E002", text, f"use one of {', '.join(ENGINES)}")
        if self.address is not None and self.engine != "ray":
            text = "--address is that of a Ray cluster"
            raise CommandError("E002", text, "add --engine ray")
        self._refuse_unused(data)
        if self.engine != "auto":
            return self.engine != "memory"
        if len(data) == 1 and _is_data_set(data[0]):
            return True
        return whole and _are_too_large(data)

    def _refuse_unused(self, data: Sequence[str]) -> None:
        """Raise E002 for options of parts where data are never read in parts.

        Parquet data may be, once they are too large: a script need not know.
        """
        if self.engine in ("local", "ray"):
            return
        given = {
            "--workers": self.workers is not None,
            "--checkpoint": self.checkpoint is not None,
        }
        if self.engine == "memory":
            refuse_idle(given, "is for data read in parts, not for --engine memory")
        if any(given.values()) and not all(map(_is_parquet, data)):
            refuse_idle(given, "is for data read in parts, and only Parquet data are")


def _is_parquet(name: str) -> bool:
    return Path(name).suffix in PARQUET or _is_data_set(name)


def _is_data_set(name: str) -> bool:
    """A folder or a pattern; asked without loading any library where it is a file."""
    path = Path(name)
    if path.is_file() or not (path.is_dir() or any(one in name for one in "*?[")):
        return False
    from shoal.scale._parts import holds_parquet

    return holds_parquet(name)


def _are_too_large(names: Sequence[str]) -> bool:
    """Whether Parquet files, together, would not fit into memory."""
    paths = [Path(name) for name in names]
    if not all(one.suffix in PARQUET and one.is_file() for one in paths):
        return False
    from shoal.io._files import fits
    from shoal.io.source._others import columns_of, n_rows_of

    cells = (
        n_rows_of(path, "parquet") * len(columns_of(path, "parquet")) for path in paths
    )
    return not fits(sum(cells))
