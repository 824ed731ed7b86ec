"""What a fit takes besides its table: known classes, other seeds, data in parts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError
from shoal.cli._models import PlaceOptions, estimator_for, unfit_for_looks
from shoal.cli._options import Work
from shoal.cli._output import Output
from shoal.cli._reading import (
    one_or_all,
    refuse_clash,
    refuse_of_images,
    without_rare_values,
)
from shoal.io._options import ReadOptions

if TYPE_CHECKING:
    from shoal.cli._fit import Fitted, Settings
    from shoal.io import Table


# ---- classes that somebody knows of some rows ----------------------------------------


def refuse_clash_of_known(known: str | None, source: ReadOptions) -> None:
    """Raise E002 for a column of known classes that is something else as well."""
    named = {role: getattr(source, role) for role in ("domain", "id", "label", "group")}
    named["text"] = source.text
    for role, column in named.items():
        if known is not None and column == known:
            text = f'"{known}" is named by --known and by --{role}'
            raise CommandError("E002", text, "a column is one or the other: copy it")
    if known is not None and known in (source.features or ()):
        text = f'"{known}" is named by --known and by --features'
        raise CommandError("E002", text, "take it out of --features")


def refuse_in_parts(**given: str | None) -> None:
    """Raise E002 for what data that are read in parts have no use for."""
    for name, value in given.items():
        if value is not None:
            text = f"--{name} is for rows in memory, not for data read in parts"
            raise CommandError("E002", text, "add --engine memory, or leave it out")


def known_labels(table: "Table", estimator: Any) -> dict[str, Any]:
    """What ``fit`` of an estimator is told beside the rows of a table."""
    if table.known is None:
        return {}
    if not estimator._takes_known:
        text = "--known is for columns of numbers and categories, not for words"
        raise CommandError("E002", text, "leave it out")
    return {"labels": table.known}


def n_known(table: "Table") -> int:
    """Number of classes that are known of some row."""
    if table.known is None:
        return 0
    return len({name for name in table.known if name is not None})


def at_least(k: int | None, table: "Table") -> int | None:
    """A number of classes that was chosen, or as many as are known."""
    return None if k is None else max(k, n_known(table))


def refuse_too_many(k: int | None, table: "Table") -> None:
    """Raise E112 for more classes than domains, or known rows, can tell apart."""
    import numpy as np

    n_domains = len(np.unique(np.asarray(table.domains)))
    if k is not None and k > max(n_domains, n_known(table)):
        text = f"{k} classes cannot be separated with {n_domains} domains"
        hint = f"use --k {n_domains} or less, a finer domain column, or --by looks"
        raise CommandError("E112", text, hint)


# ---- the same rows from other seeds, and with other numbers of classes ---------------


def said_of(settings: "Settings") -> str:
    """What is going on meanwhile; nothing where no such fit was asked for."""
    if settings.tree:
        return "other numbers of classes, from 2"
    n_fits = settings.n_reruns + 2
    return f"other seeds and numbers of classes: {n_fits}" * bool(settings.n_reruns)


def fit_again(
    output: Output, table: "Table", k: int, settings: "Settings"
) -> Iterator[Any]:
    """From other seeds, with one class fewer and more where that can be, and fewer."""
    import numpy as np

    if not said_of(settings):
        return
    output.begin("rerun")
    n_domains, seed = len(np.unique(np.asarray(table.domains))), settings.work.seed
    plans = [(k, seed + step) for step in range(1, settings.n_reruns + 1)]
    numbers = set(range(2, k)) if settings.tree else set()
    if settings.n_reruns:
        most = k + 1 if settings.work.looks else n_domains
        numbers |= {n for n in (k - 1, k + 1) if 2 <= n <= most}
    numbers = {n for n in numbers if n >= n_known(table)}
    plans += [(n, seed) for n in sorted(numbers)]
    for done, (n_classes, own) in enumerate(plans):
        output.at.advance(done / len(plans))
        work = replace(settings.work, seed=own)
        again = estimator_for(table, n_classes, work)
        yield again.fit(table.X, table.domains, **known_labels(table, again))


# ---- data read in parts: the sample that teaches, and rows that are counted ----------


@dataclass(frozen=True)
class InParts:
    """A data set that is worked on in parts, and the sample that stands for it."""

    running: Any
    drawn: Any
    place: PlaceOptions
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
        sizes = self.drawn.domains.sizes
        return replace(
            fitted,
            diagnosis=self.with_sizes(fitted.diagnosis),
            intervals=replace(fitted.intervals, n_rows=sizes),
            assign=self._assigner(fitted.model),
        )

    def with_sizes(self, diagnosis: Any) -> Any:
        """A diagnosis by the sample, judged by the rows of all data."""
        from shoal.scale._asking import with_sizes

        return with_sizes(diagnosis, self.drawn.domains.sizes)

    def _assigner(self, model: Any) -> Callable[[Path], None]:
        from shoal.scale import predict

        def assign(path: Path) -> None:
            if self.redact:  # rows are known by their numbers alone
                model.schema_ = {**model.schema_, "id": None}
            dropped = self.drawn.rows.drop_missing_domain
            options = {"drop_missing_domain": dropped, **self.place.options}
            found = predict(model, self.data, path, **options)
            model.scale_["stages"] += found.stages

        return assign


@contextmanager
def data_in_parts(
    output: Output,
    data: Sequence[str],
    source: ReadOptions,
    work: Work,
    place: PlaceOptions,
) -> Iterator[InParts | None]:
    """The data set of a fit, its sample drawn; None where rows fit into memory."""
    if not place.in_parts(data, whole=source.sample is None):
        yield None
        return
    if work.looks:
        raise unfit_for_looks("data read in parts")
    refuse_clash(source)
    refuse_of_images(source)
    if output.redact and place.checkpoint is not None:
        text = "--checkpoint keeps rows as they are, --redact must not"
        raise CommandError("E002", text, "leave one of them out")
    from shoal.io._options import SourceOptions
    from shoal.scale._fitting import all_messages
    from shoal.scale._running import Where, begin
    from shoal.scale._sampling import draw_table
    from shoal.scale._settings import SETTINGS

    files = one_or_all(data)
    options = SourceOptions(**{**vars(source), "seed": work.seed, "sample": None})
    where = Where(progress=output.progress, **place.options)
    with begin(files, where) as running:
        drawn = draw_table(running, source.sample or SETTINGS.sample, options)
        output.warn_all(drawn.table.messages)
        drawn = _redacted_draw(drawn) if output.redact else drawn
        yield InParts(running, drawn, place, files, output.redact)
        output.warn_all(all_messages(drawn, running))


def _redacted_draw(drawn: Any) -> Any:
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
