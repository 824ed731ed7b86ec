"""``shoal adapt``: the class mix of a place that the model has not seen."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._current import current_records, new_records
from shoal.cli._messages import CommandError
from shoal.cli._models import Loaded, Model, PlaceOptions, load_model
from shoal.cli._options import (
    NUMBERS,
    REQUIRED,
    Machine,
    Speech,
    TableResults,
    Work,
    with_groups,
    working,
)
from shoal.cli._output import Output, destination, running
from shoal.cli._reading import Data, name_of
from shoal.cli._tables import prevalence_table
from shoal.io._notation import is_utf8
from shoal.io._options import FileOptions

FILES = (_runs.MODEL, _runs.PREVALENCE, _runs.RUN)


@dataclass(frozen=True, kw_only=True)
class NewDomain(Machine):
    """The new domain, and where a network looks at it."""

    domain_name: str = working(REQUIRED, "What to call the new domain.", metavar="NAME")
    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)


@with_groups
def adapt(
    model: Model,
    data: Data,
    rows: FileOptions,
    work: Work,
    place: PlaceOptions,
    new: NewDomain,
    results: TableResults,
    speech: Speech,
) -> None:
    """The class mix of a new domain, with intervals; the classes stay as they are.

    All rows of DATA count as one domain that the model has not seen. Writes a copy of
    the model that knows it by --domain-name to --out (MODEL-NAME if not given), with
    prevalence.csv of all its domains; the model itself is never changed. A fit score
    near 1 says that the rows look like those of training; near 0, that the prevalence
    means nothing. Said too: what share of the rows belongs to no class of the model.
    With --out - only prevalence.csv is made, and printed.
    """
    plan = {"read": f"reading {name_of(data)}", "adapt": "adapting"}
    usual = default_folder(model, new.domain_name)
    with (
        running("adapt", speech, results) as output,
        destination(output, results.out, usual, _runs.PREVALENCE) as folder,
    ):
        ours = (*FILES, _runs.MANIFEST)
        _runs.refuse_existing(folder, ours, force=results.force)
        refuse_in_place(folder, model)
        with _runs.reserved(folder, ours, force=results.force), output.stages(plan):
            output.begin("read")
            loaded = load_model(model, new.device)
            name = new_name(loaded, new.domain_name)
            if place.in_parts(data):
                from shoal.scale import adapt

                output.begin("adapt")
                how = {"level": new.level, "seed": work.seed}
                found = place.ask(adapt, output, loaded, data, rows, **how)
            else:
                table = loaded.table(output, data, rows, require_domain=False)
                output.begin("adapt")
                how = {"level": new.level, "random_state": work.seed}
                found = loaded.model.adapt(table.X, **how)
            output.found(describe(found, name))
            write(output, folder, loaded, found, name)
        show(output)


def default_folder(model: Path, name: str) -> Path:
    """Beside the run, named after both."""
    run, plain = _runs.folder_of(model), re.sub(r"[^\w.-]+", "-", name)
    return run.with_name(f"{run.resolve().name}-{plain}")


def refuse_in_place(folder: Path, model: Path) -> None:
    """Raise E136 for the folder of the model itself, also with --force."""
    if folder.resolve() in (model.resolve(), _runs.folder_of(model).resolve()):
        text = f'"{folder}" holds the model to adapt'
        raise CommandError("E136", text, "choose another --out")


def new_name(loaded: Loaded, text: str) -> Any:
    """The name as the other domains are: a number where all of them are numbers."""
    if not text.strip():
        empty = f'--domain-name is empty, got "{text}"'
        raise CommandError("E002", empty, "say what to call the new domain")
    if not is_utf8(text):
        odd = f'--domain-name holds bytes that are no text, got "{text}"'
        raise CommandError("E002", odd, "write it in UTF-8")
    domains = loaded.model.domains_
    whole = domains.dtype.kind in "iu" and re.fullmatch(r"-?\d+", text)
    name = int(text) if whole else text
    if name in domains.tolist():
        known = f'the model knows a domain "{text}" already'
        hint = "choose another --domain-name, or use `shoal predict`"
        raise CommandError("E002", known, hint)
    return name


def describe(found: Any, name: Any) -> dict[str, Any]:
    """Prevalence records of the new domain, how well its rows fit, and what is new."""
    how = {"level": found.level, "n_rows": found.n_rows, "flag": "new"}
    return {
        "domain": str(name),
        "prevalence": new_records(name, found.class_names, found, **how),
        "fit_score": found.fit_score,
        "unknown": describe_unknown(found.unknown),
    }


def describe_unknown(unknown: Any) -> dict[str, Any]:
    """Share of rows of no known class; null where nobody can tell."""
    told = {"share": unknown.share, "lo": unknown.low, "hi": unknown.high}
    told |= {"level": unknown.level, "power": unknown.power}
    numbers = {key: None if value != value else value for key, value in told.items()}
    return {**numbers, "verdict": unknown.verdict, "sentence": str(unknown)}


def write(
    output: Output, folder: Path, loaded: Loaded, adaptation: Any, name: Any
) -> None:
    """Write a copy of the model that knows the new domain."""
    found = output.data
    model = adaptation.as_domain(name)
    model.class_history_ = list(getattr(loaded.model, "class_history_", []))
    known = loaded.summary.get("adapted", {})
    adapted = known | {found["domain"]: adaptation.n_rows}
    # a model saved there by itself would be taken for this one
    with _runs.filled_folder(folder, instead_of=[_runs.MANIFEST]) as place:
        loaded.save(model, place, adapted=adapted)
        records = [*current_records(loaded.path, loaded.model), *found["prevalence"]]
        file, plain = place / _runs.PREVALENCE, output.plain_csv
        _runs.write_csv(file, records, plain=plain)
        details = {"adapted_from": str(loaded.path), "fit_score": found["fit_score"]}
        details["unknown"] = found["unknown"]
        _runs.write_record(place, output, details)
    output.files = [folder / name for name in FILES]


def show(output: Output) -> None:
    """The new mix, and whether to believe it."""
    found = output.data
    score, unknown = found["fit_score"], found["unknown"]
    output.show(
        prevalence_table(found["prevalence"], "domain"),
        f"Fit score {score:.2f}: near 1 for rows like those of training, near 0 for "
        "rows unlike anything seen.",
        unknown["sentence"],
    )
    output.show_files()
    if score < NUMBERS.least_fit:
        output.warn(
            "W163",
            f"many rows are unlike those of training (fit score {score:.2f})",
            "look at them before you use this prevalence: `shoal predict` gives each "
            "row its fit_score",
        )
    elif unknown["verdict"] == "present":
        output.warn(
            "W163",
            f"at least {unknown['lo']:.1%} of the rows belong to no class of the model",
            "the prevalence is that of known classes: look at the rows with a small "
            "fit_score that `shoal predict` gives, and fit anew if they are of a kind",
        )
