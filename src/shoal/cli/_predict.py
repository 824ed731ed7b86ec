"""``shoal predict``: the class of every row of a new file, however large."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._messages import CommandError, read_json
from shoal.cli._models import Loaded, Model, PlaceOptions, load_model, refuse_no_domains
from shoal.cli._options import (
    NUMBERS,
    Machine,
    Speech,
    TableResults,
    speaking,
    with_groups,
    working,
)
from shoal.cli._output import Output, destination, running
from shoal.cli._reading import Data, name_of, require_h5ad, row_numbers
from shoal.cli._tables import percent, shortened_table
from shoal.cli._why import Reasons, Why
from shoal.exceptions import CodedError
from shoal.io._files import refuse_special
from shoal.io._notation import uncell, visible
from shoal.io._options import FileOptions
from shoal.io._settings import READING

#: Stands for the domain of rows where it plays no part.
NO_DOMAIN = "(not used)"
ENDINGS = (".parquet", ".csv", ".h5ad")


@dataclass(frozen=True, kw_only=True)
class Mix(Machine):
    """By which mix rows are classed, and where a network looks at them."""

    pooled: bool = working(
        False, "The mix of all training domains, wherever a row is from."
    )
    prevalence: Path | None = working(
        None, "Class mix of all rows: CSV or JSON.", metavar="FILE"
    )
    min_confidence: float = working(
        READING.unsure, "Mark rows less sure as unsure.", min=0, max=1
    )


@dataclass(frozen=True, kw_only=True)
class RowsFile(TableResults):
    """Where classed rows go."""

    out: Path | None = speaking(
        None, "Where to: .parquet, .csv or .h5ad; - prints CSV.", metavar="FILE|-"
    )


@with_groups
def predict(
    model: Model,
    data: Data,
    rows: FileOptions,
    place: PlaceOptions,
    how: Mix,
    why: Why,
    results: RowsFile,
    speech: Speech,
) -> None:
    """The class of every row of a new file, with probabilities; in batches.

    Rows are classed by the mix of their own domain; a domain that the model has not
    seen needs `shoal adapt` first, or --pooled, or its mix as --prevalence. Writes
    --out (NAME-assignments.parquet, or .csv where parquet cannot be written): row_id,
    domain, class, the probability of each class, margin, fit_score (near 0: unlike all
    training rows) and unsure; --out - prints them as CSV. Of an h5ad file, --out
    FILE.h5ad writes the same cells with their classes. --explain 20 also says why the
    20 most doubtful rows are of their class.
    """
    plan = {"load": f"loading {model}", "class": "classing rows"}
    usual = Path(f"{name_of(data)}-{_runs.assignments_name()}")
    with (
        running("predict", speech, results) as output,
        destination(output, results.out, usual) as path,
    ):
        in_parts = check_options(path, data, rows, place, how, results)
        with output.stages(plan):
            output.begin("load")
            loaded = load_model(model, how.device)
            told_why = Reasons(why, path) if why.wanted else None
            if told_why is not None:
                asked_of = {"in_parts": in_parts, "force": results.force}
                told_why.refuse(output, loaded.model, **asked_of)
            names = list(loaded.model.class_names_)
            mix = None if how.prevalence is None else read_mix(how.prevalence, names)
            if output.redact:
                loaded = loaded.without_names(domains=how.pooled or mix is not None)
            output.begin("class")
            wanted = {"pooled": how.pooled, "prevalence": mix}
            least = how.min_confidence
            asked = Prediction(
                output, loaded, data, rows, path, wanted, least, told_why
            )
            tally = asked.in_parts(place, results.force) if in_parts else asked.here()
        output.files = [path]
        if told_why is not None:
            output.files += [told_why.write(output, loaded.model, wanted)]
        output.found(tally.to_dict() | {"min_confidence": least})
        show(output, tally)


def check_options(
    path: Path,
    data: Sequence[str],
    rows: FileOptions,
    place: PlaceOptions,
    how: Mix,
    results: Any,
) -> bool:
    """Refuse what cannot be done, before any work; whether data are read in parts."""
    if how.pooled and how.prevalence is not None:
        text = (
            "--pooled and --prevalence exclude each other: each is the mix of all rows"
        )
        raise CommandError("E002", text, "leave one of them out")
    if path.suffix not in ENDINGS:
        text = f'cannot tell the format of "{path}"'
        hint = "end the name of --out with .parquet or .csv (or .h5ad, of an h5ad file)"
        raise CommandError("E102", text, hint)
    if path.suffix == ".h5ad":
        require_h5ad(data, rows.format, redact=results.redact)
    if place.checkpoint is not None:
        text = "--checkpoint is not for predict: finished parts are kept beside --out"
        hint = "leave it out; the same command goes on from them"
        raise CommandError("E002", text, hint)
    in_parts = place.in_parts(data, whole=False)
    if in_parts and path.suffix == ".csv":
        text = "rows read in parts are written as Parquet"
        raise CommandError("E002", text, "end --out with .parquet")
    if not in_parts:  # what is written in parts is a folder
        refuse_data(path, data)
        _runs.refuse_existing(path, force=results.force)
    return in_parts


def refuse_data(path: Path, data: Sequence[str]) -> None:
    """Raise E136 for predictions in the place of the rows, also with --force.

    A copy of an h5ad file with classes may take its place: nothing of it is lost.
    """
    rows = [Path(one).resolve() for one in data if one != "-"]
    if path.resolve() in rows and path.suffix != ".h5ad":
        text = f'"{path}" holds the rows to class'
        raise CommandError("E136", text, "choose another --out")


@dataclass(frozen=True)
class Prediction:
    """What is to be classed, by which mix, and where the classes go."""

    output: Output
    loaded: Loaded
    data: Sequence[str]
    rows: FileOptions
    path: Path
    mix: dict[str, Any]
    min_confidence: float
    why: Reasons | None = None

    def here(self) -> "RowTally":
        """Class one batch after the other, and write it."""
        from shoal.io import assign
        from shoal.io._assignments import marked

        model, tables = self.loaded.model, self._tables()
        if self.why is not None:
            tables = self.why.watching(tables)
        frames = marked(assign(model, tables, **self.mix), self.min_confidence)
        if self.why is not None:
            frames = self.why.choosing(frames)
        tally = RowTally(list(model.class_names_))
        counted = tally.counting(frames, self.output, self.data)
        if self.path.suffix == ".h5ad":
            _runs.write_cells(self.path, Path(self.data[0]), model, counted)
        else:
            write(self.path, counted, plain=self.output.plain_csv)
        return tally

    def _tables(self) -> Iterator[Any]:
        """The rows, batch by batch; E133 where they lack a domain that is needed."""
        needed = not any(self.mix.values())
        batches = self.loaded.batches(
            self.output, self.data, self.rows, require_domain=needed
        )
        for table in batches:
            if needed:
                refuse_no_domains(table)
            if self.output.redact:
                table = replace(table, ids=row_numbers(table))
            yield table

    def in_parts(self, place: PlaceOptions, force: bool) -> "RowTally":
        """Class all rows of a data set that is read in parts."""
        from shoal.scale import predict

        found = place.ask(
            predict,
            self.output,
            self.loaded,
            self.data,
            self.rows,
            out=self.path,
            drop_missing_domain=self.rows.drop_missing_domain,
            min_confidence=self.min_confidence,
            force=force,
            **self.mix,
        )
        self.output.warn_all(found.messages)
        counts: Counter[tuple[str, str]] = Counter()
        for domain, name, size in found.counts.itertuples(index=False):
            known = isinstance(domain, str)
            counts[domain if known else NO_DOMAIN, name] += int(size)
        names = list(self.loaded.model.class_names_)
        return RowTally(names, counts, found.n_rows, found.unsure, found.unlike)


def write(path: Path, frames: Iterator[Any], *, plain: bool) -> None:
    """Write the frames as they come; the file appears when it is whole."""
    from shoal.io import write_assignments

    with _runs.filled_file(path) as place:
        write_assignments(place, frames, plain_csv=plain)


@dataclass
class RowTally:
    """What passed by: rows by domain and class, unsure ones, ones unlike training."""

    names: list[str]
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    n_rows: int = 0
    unsure: int = 0
    unlike: int = 0

    def counting(
        self, frames: Iterable[Any], output: Output, data: Sequence[str]
    ) -> Iterator[Any]:
        """Count the rows of each frame on its way to the file."""
        from shoal.io._assignments import rows_by_class
        from shoal.io.source._open import guess_rows

        total = None
        for frame in frames:
            total = total or guess_rows(data)  # the first batch shows: it can be read
            for (domain, name), size in rows_by_class(frame).items():
                self.counts[NO_DOMAIN if domain is None else domain, name] += size
            self.n_rows += len(frame)
            self.unsure += int(frame["unsure"].sum())
            self.unlike += int((frame["fit_score"] < READING.unlike).sum())
            if total:
                output.at.advance(self.n_rows / total)
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


def show(output: Output, tally: RowTally) -> None:
    """Rows by domain and class, and how far to trust them."""
    found, names = output.data, map(visible, tally.names)
    rows = [
        [domain, *(f"{count:,}" for count in classes.values())]
        for domain, classes in found["counts"].items()
    ]
    unsure, unlike = (found[name] / found["n_rows"] for name in ("unsure", "unlike"))
    if unlike > NUMBERS.many_unlike:
        output.warn(
            "W163",
            f"{percent(unlike)} of the rows are unlike those of training",
            "look at those with a small fit_score before you use their classes",
        )
    output.show(
        shortened_table("Rows by domain and class", ["domain", *names], rows),
        f"{found['n_rows']:,} rows; {percent(unsure)} unsure (best class below "
        f"{found['min_confidence']:g}), {percent(unlike)} unlike the training rows.",
    )
    output.show_files()


# ---- class mixes from files: --prevalence --------------------------------------------


def read_mix(path: Path, names: list[str]) -> list[float]:
    """Share of each class, in the order of ``names``.

    Parameters
    ----------
    path : Path
        CSV with the columns class_id or class_name, and estimate; or a JSON object.
    names : list of str
        Of the classes; their ids are c0, c1, ...
    """
    shares = _read_shares(path)
    ids = [f"c{index}" for index in range(len(names))]
    unknown = [key for key in shares if key not in ids and key not in names]
    if unknown:
        known = ", ".join(names)
        raise _unusable(path, f'names "{unknown[0]}", the classes are {known}')
    mix = []
    for one, name in zip(ids, names, strict=True):
        if name not in shares and one not in shares:
            raise _unusable(path, f'has no share of "{name}"')
        share = _number(path, shares.get(name, shares.get(one)))
        if not 0 <= share <= 1:
            raise _unusable(path, f'gives "{name}" the share {share}, not from 0 to 1')
        mix.append(share)
    if abs(sum(mix) - 1) > NUMBERS.same_sum:
        raise _unusable(path, f"has shares that add to {sum(mix):.4g}, not to 1")
    return [share / sum(mix) for share in mix]


def _read_shares(path: Path) -> dict[str, Any]:
    """What a file says for each class."""
    is_json = path.suffix == ".json"
    try:
        content = read_json(path) if is_json else _read_table(path)
    except FileNotFoundError as error:
        text = f'no file or folder "{path}"'
        raise CommandError("E101", text, "check the path of --prevalence") from error
    except CodedError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise _unusable(path, f"cannot be read: {error}") from error
    if not is_json:
        return _shares_of(path, content)
    if not isinstance(content, dict):
        raise _unusable(path, "is not an object of shares by class")
    return {str(key): value for key, value in content.items()}


def _read_table(path: Path) -> list[dict[str, str]]:
    refuse_special(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _shares_of(path: Path, rows: list[dict[str, str]]) -> dict[str, str]:
    """Shares by class, from the rows of the only domain or the last one added."""
    columns = set(rows[0]) if rows else set()
    if "domain" in columns:
        rows = _of_one_domain(path, rows)
    key = next((name for name in ("class_id", "class_name") if name in columns), None)
    if key is None or "estimate" not in columns:
        raise _unusable(path, "lacks the columns class_id and estimate")
    shares = {uncell(row[key]): row["estimate"] for row in rows}
    if len(shares) < len(rows):
        raise _unusable(path, f"has several rows of one {key}")
    return shares


def _of_one_domain(path: Path, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of the only domain, or of the last one that `shoal adapt` added."""
    added = [row["domain"] for row in rows if row.get("flag") == "new"]
    rows = [row for row in rows if not added or row["domain"] == added[-1]]
    domains = list(dict.fromkeys(row["domain"] for row in rows))
    if len(domains) > 1:
        some = ", ".join(domains[:5]) + ", ..." * (len(domains) > 5)
        text = f"has the mixes of {len(domains)} domains: {some}"
        raise _unusable(path, text, "keep the rows of one of them, and the header")
    return rows


def _number(path: Path, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise _unusable(path, f"has the share {value!r}, not a number") from error


def _unusable(
    path: Path, text: str, hint: str = "one share per class, see `shoal explain E143`"
) -> CommandError:
    return CommandError("E143", f'"{path}" {text}', hint)
