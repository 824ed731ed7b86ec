"""``shoal update``: new rows and new domains join a run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._adapt import describe_unknown, new_name
from shoal.cli._current import current_records, drawn_intervals, new_records
from shoal.cli._messages import CommandError, read_json, write_json
from shoal.cli._models import Loaded, Model, load_model, refuse_no_domains
from shoal.cli._options import (
    Speech,
    TableResults,
    Work,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import Data, name_of
from shoal.cli._tables import prevalence_table
from shoal.exceptions import CodedError
from shoal.io._files import digest_file
from shoal.io._options import FileOptions


@dataclass(frozen=True, kw_only=True)
class Joining:
    """What joins, and what is known of the rows that were there before."""

    domain_name: str | None = working(
        None,
        "All rows are of this domain; else their column of domains says it.",
        metavar="NAME",
    )
    before: Sequence[str] | None = working(
        None,
        "The rows of the fit, if they are not where the run found them; may be given "
        "again.",
        metavar="FILE",
    )
    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)


@with_groups
def update(
    model: Model,
    data: Data,
    rows: FileOptions,
    work: Work,
    joining: Joining,
    results: TableResults,
    speech: Speech,
) -> None:
    """New rows and new domains join a run; its classes and their names stay.

    The mix of a new domain is learned from its rows, that of a known one from its rows
    of then and now. Said is where the mix of new rows or their looks are others than
    those of the fit. A class joins only if rows that belong to none are there beyond
    doubt, and come together in one class of a fit to all rows. Changes the run itself,
    in one step (--out DIR writes another instead): the model, prevalence.csv,
    assignments, update.json and run.json; report.html and what else was about the rows
    of then goes. Looks are compared, and a class can join, while the rows of the fit
    are where the run found them, or given as --before.
    """
    plan = {"read": f"reading {name_of(data)}", "update": "updating"}
    with running("update", speech, results) as output:
        folder = results.out or _run_itself(model)
        in_place = results.out is None
        force = in_place or results.force
        held = _runs.reserved(folder, _runs.FILES, force=force)
        with held, output.stages(plan):
            output.begin("read")
            loaded = load_model(model)
            refuse_network(loaded)
            table = read_rows(output, loaded, data, rows, joining.domain_name)
            known = Known.of(output, loaded, rows, joining)
            output.begin("update")
            found = ask(loaded, table, known, joining, work)
            output.found(described(found))
            details = details_of(loaded, data, joining, known, found)
            write(output, folder, loaded, table, known, found, details)
        show(output, found)


def _run_itself(model: Path) -> Path:
    """The folder of the run; E002 for a model that lies alone."""
    run = _runs.folder_of(model)
    if not (run / _runs.MODEL).is_dir():
        text = f'"{model}" is a model without a run'
        raise CommandError("E002", text, "say where to write: --out DIR")
    return run


def refuse_network(loaded: Loaded) -> None:
    """Raise E002 for a model with a network: what it sees cannot be compared here."""
    if loaded.model._origin._takes_images:
        text = "update is for tables, and this model takes images"
        raise CommandError("E002", text, "use `shoal adapt`")


# ---- what is read --------------------------------------------------------------------


def read_rows(
    output: Output,
    loaded: Loaded,
    data: Sequence[str],
    rows: FileOptions,
    domain_name: str | None,
) -> Any:
    """Rows with their domains: by the column, or all of one."""
    import numpy as np

    table = loaded.table(output, data, rows, require_domain=domain_name is None)
    if domain_name is None:
        refuse_no_domains(table)
        return table
    known = loaded.model.domains_.tolist()
    domain = next((one for one in known if str(one) == domain_name), None)
    domain = new_name(loaded, domain_name) if domain is None else domain
    return replace(table, domains=np.array([domain] * table.n_rows))


@dataclass(frozen=True)
class LearnedFile:
    """A file of rows that a model has learned from."""

    path: str
    fingerprint: str
    domain: str | None = None

    def found(self, run: Path) -> str | None:
        """Where it is, unchanged: as it was named, or beside the model."""
        for place in (Path(self.path), run / Path(self.path).name):
            if place.is_file() and digest_file(place) == self.fingerprint:
                return str(place)
        return None


def sources_of(record: dict[str, Any]) -> list[LearnedFile] | None:
    """Files that a run has learned from; None where one of them is not known."""
    recorded = record.get("learned_from") or [record.get("source")]
    try:
        return [
            LearnedFile(str(one["path"]), str(one["fingerprint"]), one.get("domain"))
            for one in recorded
        ]
    except (KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Known:
    """The rows that a run has learned from, or what it says of them.

    Attributes
    ----------
    sources : list of LearnedFile or None
        None where nobody knows all of them.
    before : pair of rows and domains, Intervals or None
    has_rows : bool
    record : dict
        The run.json of the run.
    """

    sources: list[LearnedFile] | None
    before: Any
    has_rows: bool
    record: dict[str, Any]

    @classmethod
    def of(
        cls, output: Output, loaded: Loaded, rows: FileOptions, joining: Joining
    ) -> "Known":
        """The rows given, or where they were; else the draws of the run."""
        run = _runs.folder_of(loaded.path)
        record = _record_of(run)
        sources = sources_of(record)
        if joining.before:
            sources = [LearnedFile(one, _digest(one)) for one in joining.before]
        places = [one.found(run) for one in sources or ()]
        if not places or None in places:
            return cls(sources, drawn_intervals(run, loaded.model), False, record)
        assert sources is not None
        tables = [
            read_rows(output, loaded, [str(place)], rows, one.domain)
            for place, one in zip(places, sources, strict=True)
        ]
        return cls(sources, _stacked(tables), True, record)


def _digest(name: str) -> str:
    """Of a file that was given; its reader refuses what is none."""
    path = Path(name)
    if not path.is_file():
        raise CommandError("E101", f'no file "{name}"', "check the path of --before")
    return digest_file(path)


def _stacked(tables: list[Any]) -> Any:
    """Rows and domains of several tables."""
    import numpy as np
    from scipy import sparse

    parts = [one.X for one in tables]
    stack = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
    return stack(parts), np.concatenate([np.asarray(one.domains) for one in tables])


def _record_of(run: Path) -> dict[str, Any]:
    try:
        record = read_json(run / _runs.RUN)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


# ---- what is asked and written -------------------------------------------------------


def ask(loaded: Loaded, table: Any, known: Known, joining: Joining, work: Work) -> Any:
    """The updated model; E164 where these rows cannot join it."""
    from shoal.analysis._update import update

    try:
        return update(
            loaded.model,
            table.X,
            table.domains,
            before=known.before,
            feature_names=table.feature_names,
            level=joining.level,
            random_state=work.seed,
        )
    except CodedError:
        raise
    except ValueError as error:
        text, _, _ = str(error).partition("; ")
        hint = "pass the rows of the fit: --before FILE"
        raise CommandError("E164", text, hint) from error


def described(found: Any) -> dict[str, Any]:
    """What was found, as JSON takes it."""
    records = [{**one, "domain": str(one["domain"])} for one in found.to_records()]
    return {
        "findings": found.findings,
        "new_class": found.new_class,
        "reason": found.reason,
        "looks_known": found.looks_known,
        "mixes": records,
        "domains": [
            {
                "domain": str(one.name),
                "is_new": one.is_new,
                "n_rows": one.n_rows,
                "moved": [vars(change) for change in one.moved],
                "drifted": [vars(change) for change in one.drifted],
                "unknown": describe_unknown(one.unknown),
                "fit_score": one.fit_score,
            }
            for one in found.domains
        ],
    }


def write(
    output: Output,
    folder: Path,
    loaded: Loaded,
    table: Any,
    known: Known,
    found: Any,
    details: dict[str, Any],
) -> None:
    """Write the run anew, whole or not at all."""
    from shoal.cli._current import assignments_after
    from shoal.io import write_assignments

    model = found.model
    model.class_history_ = list(getattr(loaded.model, "class_history_", []))
    frames = assignments_after(loaded, table, known, model, redact=output.redact)
    with _runs.filled_folder(folder, instead_of=_runs.FILES) as place:
        loaded.save(model, place)
        records = updated_records(loaded, found)
        plain = output.plain_csv
        _runs.write_csv(place / _runs.PREVALENCE, records, plain=plain)
        if not output.redact:
            rows = place / _runs.assignments_name()
            write_assignments(rows, frames, plain_csv=plain)
        write_json(place / _runs.UPDATE, output.allowed(output.data))
        _runs.write_record(place, output, details)
        names = sorted(entry.name for entry in place.iterdir())
    output.files = [folder / name for name in names]


def details_of(
    loaded: Loaded, data: Sequence[str], joining: Joining, known: Known, found: Any
) -> dict[str, Any]:
    """What run.json says: files of all rows, and every update so far."""
    paths = [Path(one) for one in data]
    new = [
        vars(LearnedFile(str(one), digest_file(one), joining.domain_name))
        for one in paths
        if one.is_file()
    ]
    whole = known.sources is not None and len(new) == len(paths)
    sources = [*map(vars, known.sources or ()), *new] if whole else [{}]
    history = list(known.record.get("updates") or [])
    return {
        "updated_from": str(loaded.path),
        "source": known.record.get("source"),
        "learned_from": sources,
        "updates": [*history, {"data": list(data), "findings": found.findings}],
    }


def learned_records(found: Any, one: Any) -> list[dict[str, Any]]:
    """Records of a domain with new rows."""
    n_rows, flag = one.n_rows + one.n_before, "new" if one.is_new else ""
    how = {"level": found.level, "n_rows": n_rows, "flag": flag}
    return new_records(one.name, found.class_names, one, **how)


def updated_records(loaded: Loaded, found: Any) -> list[dict[str, Any]]:
    """Records of prevalence.csv; of domains without new rows as they were."""
    model, told = found.model, {str(one.name): one for one in found.domains}
    before = {
        (record["domain"], record["class_id"]): record
        for record in current_records(loaded.path, loaded.model)
    }
    records = []
    for d, domain in enumerate(map(str, model.domains_.tolist())):
        if domain in told:
            records += learned_records(found, told[domain])
            continue
        for y, name in enumerate(model.class_names_):
            old = before.get((domain, f"c{y}"), {})
            same = not found.new_class  # a class more changes the shares of all
            records.append(
                {
                    "domain": domain,
                    "class_id": f"c{y}",
                    "class_name": str(name),
                    "estimate": float(model.prevalence_[d, y]),
                    **{key: old.get(key, "") if same else "" for key in ("lo", "hi")},
                    "level": old.get("level", ""),
                    "n_rows": old.get("n_rows", ""),
                    "flag": "",
                }
            )
    return records


def show(output: Output, found: Any) -> None:
    """The mixes that were learned, and what has changed."""
    records = [row for one in found.domains for row in learned_records(found, one)]
    said = found.findings or ["Nothing has changed."]
    if not found.looks_known:
        said.append(
            "What classes look like was not compared: the rows of the fit are not at "
            "hand (--before FILE)."
        )
    output.show(prevalence_table(records, "domain"), *said)
    output.show_files()
    unlike = [one for one in found.domains if one.unknown.verdict == "present"]
    if unlike and not found.new_class:
        output.warn(
            "W163",
            f"{unlike[0].name}: {unlike[0].unknown.low:.1%} of the rows or more belong "
            f"to no class of the model. {found.reason}",
            "look at the rows with a small fit_score that `shoal predict` gives",
        )
