"""Data larger than memory: which are read in parts, and the commands' part in it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli._messages import CommandError
from shoal.cli._options import Work, refuse_idle, working
from shoal.cli._output import Output, Stages
from shoal.cli._reading import Rows, Source, one_or_all, refuse_clash, refuse_of_images
from shoal.cli._redacting import without_rare_values

if TYPE_CHECKING:
    from shoal.cli._fitting import Fitted
    from shoal.io import Table


ENGINES = ("auto", "memory", "local", "ray")
PARQUET = (".parquet", ".pq")
#: Stands for the domain of rows where it plays no part.
NO_DOMAIN = "(not used)"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where rows are worked on."""

    engine: Annotated[
        str,
        working(
            "--engine",
            metavar="auto|memory|local|ray",
            help="All rows in memory, in parts here, or in parts on a Ray cluster; "
            "auto: in parts what does not fit, and folders of Parquet files.",
        ),
    ] = "auto"
    address: Annotated[
        str | None,
        working("--address", help="Of the Ray cluster; else one on this machine."),
    ] = None
    workers: Annotated[
        int | None,
        working("--workers", min=1, help="Parts at a time; all cores if not given."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        working(
            "--checkpoint",
            metavar="DIR",
            help="Keep finished parts there; a second call goes on from them.",
        ),
    ] = None

    @property
    def options(self) -> dict[str, Any]:
        """As :mod:`shoal.scale` takes them."""
        engine = "ray" if self.engine == "ray" else "local"
        return {"engine": engine, "address": self.address, "workers": self.workers}

    def in_parts(self, data: Sequence[str], *, whole: bool = True) -> bool:
        """Whether data are read in parts; ``whole`` if they would have to fit at once.

        Where somebody draws a sample, or reads in batches, they need not.
        """
        if self.engine not in ENGINES:
            raise CommandError(
                "E002",
                f'there is no engine "{self.engine}"',
                f"use one of {', '.join(ENGINES)}",
            )
        if self.address is not None and self.engine != "ray":
            raise CommandError(
                "E002", "--address is that of a Ray cluster", "add --engine ray"
            )
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
    from shoal.io.source._columnar import columns_of, n_rows_of

    return not fits(
        sum(
            n_rows_of(path, "parquet") * len(columns_of(path, "parquet"))
            for path in paths
        )
    )


# ---- fit -------------------------------------------------------------------------


@dataclass(frozen=True)
class InParts:
    """A data set that is worked on in parts, and the sample that stands for it."""

    running: Any
    drawn: Any
    place: Place
    data: Any
    redact: bool

    @property
    def table(self) -> "Table":
        """The sample."""
        table: Table = self.drawn.table
        return table

    def learn(self, estimator: Any, table: "Table") -> Any:
        """The fitted estimator: taught by the sample, exact over all rows."""
        from shoal.scale._fitting import fit_drawn

        model = fit_drawn(estimator, self.drawn, self.running)
        if self.redact:  # they may quote what is in a cell
            model.scale_["messages"] = []
        return model

    def exactly(self, fitted: "Fitted") -> "Fitted":
        """With the rows of all data, and a way to class them all."""
        from shoal.scale._asking import with_sizes

        sizes = self.drawn.domains.sizes
        return replace(
            fitted,
            diagnosis=with_sizes(fitted.diagnosis, sizes),
            intervals=replace(fitted.intervals, n_rows=sizes),
            assign=self._assigner(fitted.model),
        )

    def diagnose(self, model: Any, n_permutations: int, seed: int) -> Any:
        """The diagnosis of a model by the sample, judged by the rows of all data."""
        from shoal.analysis.diagnose import with_columns
        from shoal.scale._asking import with_sizes

        found = model.diagnose(
            self.table.X,
            self.table.domains,
            n_permutations=n_permutations,
            random_state=seed,
        )
        found = with_columns(found, self.table.feature_names)
        return with_sizes(found, self.drawn.domains.sizes)

    def _assigner(self, model: Any) -> Callable[[Path], None]:
        from shoal.scale import predict

        def assign(path: Path) -> None:
            if self.redact:  # rows are known by their numbers alone
                model.schema_ = {**model.schema_, "id": None}
            found = predict(
                model,
                self.data,
                path,
                drop_missing_domain=self.drawn.rows.drop_missing_domain,
                checkpoint=self.place.checkpoint,
                **self.place.options,
            )
            model.scale_["stages"] += found.stages

        return assign


def show_costs(output: Output, record: dict[str, Any]) -> None:
    """Say what was sampled and what every stage has cost."""
    costs = [f"{one['stage']} {one['seconds']:.1f} s" for one in record["stages"]]
    output.show(
        f"{record['rows']:,} rows in {record['parts']} parts; learned from a sample of "
        f"{record['sampled']:,}; {record['exact']}.",
        f"Cost: {', '.join(costs)}.",
    )


@contextmanager
def opened(
    output: Output,
    stages: Stages,
    data: Sequence[str],
    source: Source,
    work: Work,
    place: Place,
    *,
    redact: bool = False,
) -> Iterator[InParts | None]:
    """The data set of a fit, its sample drawn; None where rows fit into memory."""
    if not place.in_parts(data, whole=source.sample is None):
        yield None
        return
    refuse_clash(source)
    refuse_of_images(source)
    if redact and place.checkpoint is not None:
        raise CommandError(
            "E002",
            "--checkpoint keeps rows as they are, --redact must not",
            "leave one of them out",
        )
    from shoal.io.source._options import Options
    from shoal.scale._fitting import all_messages
    from shoal.scale._running import Where, begin
    from shoal.scale._sampling import draw_table
    from shoal.scale._settings import SETTINGS

    files = one_or_all(data)
    options = Options(**{**source.for_read, "seed": work.seed, "sample": None})
    where = Where(
        checkpoint=place.checkpoint,
        progress=lambda _, share: stages.advance(share),
        **place.options,
    )
    with begin(files, where) as running:
        drawn = draw_table(running, source.sample or SETTINGS.sample, options)
        for message in drawn.table.messages:
            output.warn(message.code, message.text, message.hint)
        drawn = redacted_draw(drawn) if redact else drawn
        yield InParts(running, drawn, place, files, redact)
        for message in all_messages(drawn, running):
            output.warn(message.code, message.text, message.hint)


def redacted_draw(drawn: Any) -> Any:
    """The draw without values that few of its rows share; small domains are refused.

    In memory such a domain loses its name. Here all rows are read again and again, each
    with the name of its domain, so there is no place to hide it in.
    """
    from shoal.report._gather import RARE

    few = int((drawn.domains.sizes < RARE).sum())
    if few:
        raise CommandError(
            "E114",
            f"{few} of {len(drawn.domains.sizes)} domains have fewer than {RARE} rows, "
            "and a model names its domains",
            "leave these rows out, join them to another domain, or fit without "
            "--redact",
        )
    table = without_rare_values(drawn.table)
    rows = replace(drawn.rows, schema=table.schema)
    return replace(drawn, table=table, rows=rows)


# ---- with a model ----------------------------------------------------------------


def check_parts_ending(path: Path) -> None:
    """Refuse what rows that are read in parts are not written as."""
    if path.suffix == ".csv":
        raise CommandError(
            "E002",
            "rows read in parts are written as Parquet",
            "end --out with .parquet",
        )


def predicted(
    output: Output,
    stages: Stages,
    loaded: Any,
    data: Sequence[str],
    rows: Rows,
    path: Path,
    *,
    place: Place,
    **options: Any,
) -> dict[str, Any]:
    """Class all rows of a data set; what was counted, as the fields of a Tally."""
    from shoal.scale import predict

    found = predict(
        _with_tokens(loaded, rows),
        one_or_all(data),
        path,
        drop_missing_domain=rows.drop_missing_domain,
        progress=lambda _, share: stages.advance(share),
        **place.options,
        **options,
    )
    for message in found.messages:
        output.warn(message.code, message.text, message.hint)
    counts: Counter[tuple[Any, str]] = Counter()
    for domain, name, size in found.counts.itertuples(index=False):
        known = isinstance(domain, str)
        counts[domain if known else NO_DOMAIN, name] += int(size)
    return {
        "counts": counts,
        "n_rows": found.n_rows,
        "unsure": found.unsure,
        "unlike": found.unlike,
    }


def adapted(
    stages: Stages, loaded: Any, data: Sequence[str], rows: Rows, work: Work,
    place: Place, level: float,
) -> Any:  # fmt: skip
    """The class mix of a new domain of any size."""
    from shoal.scale import adapt

    return adapt(
        _with_tokens(loaded, rows),
        one_or_all(data),
        level=level,
        seed=work.seed,
        checkpoint=place.checkpoint,
        progress=lambda _, share: stages.advance(share),
        **place.options,
    )


def diagnosed(
    stages: Stages, loaded: Any, data: Sequence[str], source: Source, seed: int,
    place: Place, n_permutations: int,
) -> Any:  # fmt: skip
    """The diagnosis of a model by a sample of a data set."""
    from shoal.scale import diagnose
    from shoal.scale._settings import SETTINGS

    return diagnose(
        _with_tokens(loaded, source),
        one_or_all(data),
        sample=source.sample or SETTINGS.sample,
        n_permutations=n_permutations,
        seed=seed,
        drop_missing_domain=source.drop_missing_domain,
        checkpoint=place.checkpoint,
        progress=lambda _, share: stages.advance(share),
        **place.options,
    )


def _with_tokens(loaded: Any, rows: Rows) -> Any:
    """The model, its schema knowing further cells that mean "no value"."""
    model = loaded.model
    schema = dict(loaded.schema)
    schema["missing"] = [*schema["missing"], *(rows.na or ())]
    model.schema_ = schema
    return model
