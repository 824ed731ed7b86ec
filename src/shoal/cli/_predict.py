"""``shoal predict``: the class of every row of a new file, however large."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from shoal.cli._messages import CommandError
from shoal.cli._models import Device, Loaded, Model, load_model, refuse_no_domains
from shoal.cli._options import Force, Redact, Speech, speaking, with_groups, working
from shoal.cli._output import Output, Stage, Stages, running
from shoal.cli._places import filled_file, refuse_existing
from shoal.cli._reading import (
    Data,
    Rows,
    guess_rows,
    name_of,
    require_h5ad,
    write_cells,
)
from shoal.cli._redacting import numbered_rows
from shoal.cli._runs import assignments_name
from shoal.cli._scaling import NO_DOMAIN, Place, check_parts_ending, predicted
from shoal.cli._tables import percent, read_mix, shortened_table
from shoal.io._settings import READING

# More rows unlike those of training than this deserve a warning.
MANY_UNLIKE = 0.1

Pooled = Annotated[
    bool,
    working(
        "--pooled", help="The mix of all training domains, wherever a row is from."
    ),
]
Prevalence = Annotated[
    Path | None,
    working("--prevalence", metavar="FILE", help="Class mix of all rows: CSV or JSON."),
]
Confidence = Annotated[
    float,
    working("--min-confidence", min=0, max=1, help="Mark rows less sure as unsure."),
]
OutFile = Annotated[
    Path | None,
    speaking("--out", metavar="FILE", help="Where to: .parquet, .csv or .h5ad."),
]
ENDINGS = (".parquet", ".csv", ".h5ad")


@with_groups
def predict(
    model: Model,
    data: Data,
    rows: Rows,
    place: Place,
    speech: Speech,
    pooled: Pooled = False,
    prevalence: Prevalence = None,
    min_confidence: Confidence = READING.unsure,
    device: Device = "auto",
    out: OutFile = None,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """The class of every row of a new file, with probabilities; in batches.

    Rows are classed by the mix of their own domain; a domain that the model has not
    seen needs `shoal adapt` first, or --pooled, or its mix as --prevalence. Writes
    --out (NAME-assignments.parquet, or .csv where parquet cannot be written): row_id,
    domain, class, the probability of each class, margin, fit_score (near 0: unlike all
    training rows) and unsure. Of an h5ad file, --out FILE.h5ad writes the same cells
    with their classes.
    """
    plan = {"load": Stage(f"loading {model}"), "class": Stage("classing rows")}
    with running("predict", redact=redact, **speech.options) as output:
        path = out or Path(f"{name_of(data)}-{assignments_name()}")
        if pooled and prevalence is not None:
            raise CommandError(
                "E002",
                "--pooled and --prevalence exclude each other: each is the mix of all "
                "rows",
                "leave one of them out",
            )
        check_ending(path)
        if path.suffix == ".h5ad":
            require_h5ad(data, rows.format, redact=redact)
        refuse_checkpoint(place)
        in_parts = place.in_parts(data, whole=False)
        if in_parts:
            check_parts_ending(path)
        else:  # what is written in parts is a folder
            refuse_data(path, data)
            refuse_existing(path, force=force)
        with output.stages(plan) as stages:
            stages.begin("load")
            loaded = load_model(model, device)
            names = list(loaded.model.class_names_)
            mix = None if prevalence is None else read_mix(prevalence, names)
            if redact:
                loaded = loaded.without_names(domains=pooled or mix is not None)
            stages.begin("class")
            how: dict[str, Any] = {
                "pooled": pooled,
                "prevalence": mix,
                "min_confidence": min_confidence,
            }
            if in_parts:
                how |= {"place": place, "force": force}
                found = predicted(output, stages, loaded, data, rows, path, **how)
                tally = Tally(names, **found)
            else:
                how |= {"redact": redact}
                tally = streamed(output, stages, loaded, data, rows, path, **how)
        output.files = [path]
        output.data = tally.to_dict() | {"min_confidence": min_confidence}
        show(output, tally)


def check_ending(path: Path) -> None:
    """Raise E102 before any work if the file's name does not tell its format."""
    if path.suffix not in ENDINGS:
        raise CommandError(
            "E102",
            f'cannot tell the format of "{path}"',
            "end the name of --out with .parquet or .csv (or .h5ad, of an h5ad file)",
        )


def refuse_data(path: Path, data: Sequence[str]) -> None:
    """Raise E136 for predictions in the place of the rows, also with --force.

    A copy of an h5ad file with classes may take its place: nothing of it is lost.
    """
    rows = [Path(one).resolve() for one in data if one != "-"]
    if path.resolve() in rows and path.suffix != ".h5ad":
        raise CommandError(
            "E136", f'"{path}" holds the rows to class', "choose another --out"
        )


def refuse_checkpoint(place: Place) -> None:
    """Raise E002 for an option that the other commands have."""
    if place.checkpoint is not None:
        raise CommandError(
            "E002",
            "--checkpoint is not for predict: finished parts are kept beside --out",
            "leave it out; the same command goes on from them",
        )


def streamed(
    output: Output,
    stages: Stages,
    loaded: Loaded,
    data: Sequence[str],
    rows: Rows,
    path: Path,
    *,
    pooled: bool,
    prevalence: Any,
    min_confidence: float,
    redact: bool,
) -> "Tally":
    """Class one batch after the other, and write it."""
    from shoal.io import assign
    from shoal.io._assignments import marked

    by_domain = not (pooled or prevalence)
    tables = loaded.batches(output, data, rows, require_domain=by_domain)
    if by_domain:
        tables = with_domains(tables)
    if redact:
        tables = numbered_rows(tables)
    frames = assign(loaded.model, tables, pooled=pooled, prevalence=prevalence)
    tally = Tally(list(loaded.model.class_names_))
    counted = tally.counting(marked(frames, min_confidence), stages, data)
    if path.suffix == ".h5ad":
        write_cells(path, Path(data[0]), loaded.model, counted)
    else:
        write(path, counted)
    return tally


def with_domains(tables: Iterable[Any]) -> Iterator[Any]:
    """The tables; E133 where they do not say where their rows come from."""
    for table in tables:
        refuse_no_domains(table)
        yield table


def write(path: Path, frames: Iterator[Any]) -> None:
    """Write the frames as they come; the file appears when it is whole."""
    from shoal.io import write_assignments

    with filled_file(path) as place:
        write_assignments(place, frames)


@dataclass
class Tally:
    """What passed by: rows by domain and class, unsure ones, ones unlike training."""

    names: list[str]
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_rows: int = 0
    unsure: int = 0
    unlike: int = 0

    def counting(
        self, frames: Iterable[Any], stages: Stages, data: Sequence[str]
    ) -> Iterator[Any]:
        """Count the rows of each frame on its way to the file."""
        from shoal.io._assignments import rows_by_class

        total = None
        for frame in frames:
            total = total or guess_rows(data)  # the first batch shows: it can be read
            for (domain, name), size in rows_by_class(frame).items():
                self.counts[NO_DOMAIN if domain is None else domain, name] += size
            self.n_rows += len(frame)
            self.unsure += int(frame["unsure"].sum())
            self.unlike += int((frame["fit_score"] < READING.unlike).sum())
            if total:
                stages.advance(self.n_rows / total)
            yield frame

    def to_dict(self) -> dict[str, Any]:
        """Everything counted."""
        domains = sorted({domain for domain, _ in self.counts}, key=_as_people_sort)
        return {
            "n_rows": self.n_rows,
            "counts": {
                domain: {name: self.counts[domain, name] for name in self.names}
                for domain in domains
            },
            "unsure": self.unsure,
            "unlike": self.unlike,
        }


def _as_people_sort(domain: str) -> tuple[bool, int, str]:
    """Numbers by size, then words."""
    number = re.fullmatch(r"-?\d{1,18}", domain)
    return number is None, int(domain) if number else 0, domain


def show(output: Output, tally: Tally) -> None:
    """Rows by domain and class, and how far to trust them."""
    found = output.data
    rows = [
        [domain, *(f"{count:,}" for count in classes.values())]
        for domain, classes in found["counts"].items()
    ]
    unsure, unlike = (found[name] / found["n_rows"] for name in ("unsure", "unlike"))
    if unlike > MANY_UNLIKE:
        output.warn(
            "W163",
            f"{percent(unlike)} of the rows are unlike those of training",
            "look at those with a small fit_score before you use their classes",
        )
    output.show(
        shortened_table("Rows by domain and class", ["domain", *tally.names], rows),
        f"{found['n_rows']:,} rows; {percent(unsure)} unsure (best class below "
        f"{found['min_confidence']:g}), {percent(unlike)} unlike the training rows.",
    )
    output.show_files()
