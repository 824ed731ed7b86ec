"""A fit to data read in parts: the sample that teaches, and rows that are counted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError
from shoal.cli._models import PlaceOptions, unfit_for_looks
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
    from shoal.cli._fit import Fitted
    from shoal.io._read import Table


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
def opened(
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
