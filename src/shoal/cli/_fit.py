"""``shoal fit``: from a table to classes, prevalences, checks and a report.

Numpy and scikit-learn are imported inside the functions: the command line must be able
to print its help without them.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import _runs
from shoal.cli._fitting import (
    InParts,
    at_least,
    data_in_parts,
    fit_again,
    known_labels,
    refuse_clash_of_known,
    refuse_in_parts,
    refuse_too_many,
    said_of,
)
from shoal.cli._messages import CommandError
from shoal.cli._models import (
    PlaceOptions,
    choose_k,
    diagnosis_of,
    estimator_for,
    refuse_unfit,
)
from shoal.cli._name import Names, names_from, renamed
from shoal.cli._options import (
    Classes,
    Encoder,
    Learning,
    Speech,
    TableResults,
    TunedEncoder,
    Work,
    speaking,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import (
    Data,
    h5ad_of,
    name_of,
    pictures_of,
    read,
    refuse_images,
    with_gaps,
    without_rare_names,
)
from shoal.cli._report import Shown
from shoal.cli._tables import show_results, write_results
from shoal.exceptions import CodedError
from shoal.io._options import ReadOptions

if TYPE_CHECKING:
    from shoal.io import Table


@dataclass(frozen=True, kw_only=True)
class Fitting(Classes):
    """What is asked of a fit."""

    bootstrap: int = working(200, "Resamples behind the intervals.", min=2)
    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)
    names: Path | None = working(
        None,
        'Names of classes: JSON {"c0": "Adelie"}, or an earlier run to take them '
        "from where classes match.",
        metavar="FILE|RUN",
    )
    known: str | None = working(
        None, "Column of the classes that are known of some rows.", metavar="COL"
    )
    reruns: int = working(
        0, "Fits from other seeds, and with k-1 and k+1, for the report.", min=0
    )
    tree: bool = working(
        False, "Fits with fewer classes down to 2: which one splits, in the report."
    )
    no_report: bool = speaking(False, "Write no report.html.")
    no_cells: bool = speaking(False, "Of an h5ad file, write no copy with classes.")


@with_groups
def fit(
    data: Data,
    source: ReadOptions,
    encoder: TunedEncoder,
    work: Learning,
    place: PlaceOptions,
    how: Fitting,
    shown: Shown,
    results: TableResults,
    speech: Speech,
) -> None:
    """Discover classes, their share in every domain, and whether to trust them.

    Reads the table, chooses the number of classes unless --k says it, fits, resamples
    for intervals and diagnoses. Writes to --out (shoal-NAME if not given): the model,
    prevalence.csv, class_counts.csv, assignments, diagnostics.json, draws.npz,
    summary.json, run.json and report.html; of an h5ad file also classes.h5ad, the same
    cells with their classes. A column given as --label is held aside and only used to
    score. Classes are told apart by how domains shift or by how rows look, whichever
    held-out rows speak for. With --by looks, how rows look decides, with a mix for each
    domain: then there may be more classes than domains. Cells may be missing. A folder
    of images needs --encoder; the model then takes such folders. Texts may have one,
    whose points take the place of their words.
    Parquet data that do not fit into memory are read in parts: --sample rows teach the
    model, and what is counted is counted over all rows.
    """
    with running("fit", speech, results) as output:
        settings = Settings(
            work,
            how.number,
            level=how.level,
            n_resamples=how.bootstrap,
            names=None if how.names is None else names_from(how.names),
            n_reruns=how.reruns,
            tree=how.tree,
            more_stages=encoder.plan(),
            known=how.known,
        )
        encoder.refuse_unused()
        folder = results.out or Path(f"shoal-{name_of(data)}")
        ours = _runs.reserved(folder, _runs.FILES, force=results.force)
        plan = plan_fit(name_of(data), settings, then="writing the results")
        asked = (data, source, encoder, place, settings)
        with ours, output.stages(plan), rows_to_fit(output, *asked) as rows:
            fitted = find_classes(output, rows.table, rows.settings, rows.embedded)
            fitted = told_of(output, fitted, rows.parts)
            output.begin("write")
            folder_of_images = rows.embedded.folder if rows.embedded else None
            pictures = pictures_of(shown.images or folder_of_images, fitted.table)
            summary = summary_of(output, fitted, work, folder, images=pictures)
            cells = h5ad_of(data, source.format)
            if output.redact or how.no_cells:
                cells = None
            report = not how.no_report
            write_run(output, folder, fitted, summary, report=report, cells=cells)
        output.found(found_by(fitted, summary))
        show_results(output)
        show_next(output, folder, report=report)
        if not work.looks and how.known is None:  # else there is more to go by
            _refuse_no_signal(fitted.diagnosis, encoded=encoder.encodes)


def told_of(output: Output, fitted: "Fitted", parts: InParts | None) -> "Fitted":
    """The fit as it is told: by the rows of all parts, without rare names."""
    if parts is not None:
        fitted = parts.exactly(fitted)
    if output.redact:
        return replace(fitted, diagnosis=without_rare_names(fitted.diagnosis))
    return fitted


# ---- what is computed ----------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How to fit; ``k`` None means to choose it."""

    work: Work
    k: int | None = None
    level: float = 0.9
    n_resamples: int = 200
    names: Names | None = None
    n_reruns: int = 0
    tree: bool = False
    more_stages: Mapping[str, str] = field(default_factory=dict)
    known: str | None = None  # column of known classes
    learn: Callable[[Any, "Table"], Any] | None = None  # instead of the estimator's fit


@dataclass(frozen=True)
class Fitted:
    """A fitted model and all that was asked about it.

    ``stored`` is what to save where that is more than ``model``: with the network in
    front of it. ``assign`` writes the classes of all rows where ``table`` is a sample.
    """

    table: "Table"
    model: Any
    choice: Any
    intervals: Any
    diagnosis: Any
    refits: tuple[Any, ...] = ()
    stored: Any = None
    assign: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class FitRows:
    """What a fit is given: rows, or the sample that stands for all parts."""

    table: "Table"
    settings: Settings
    embedded: Any
    parts: InParts | None


@contextmanager
def rows_to_fit(
    output: Output,
    data: Sequence[str],
    source: ReadOptions,
    encoder: Encoder,
    place: PlaceOptions,
    settings: Settings,
) -> Iterator[FitRows]:
    """The rows of a fit, read whole or in parts; images as features of a network."""
    work = settings.work
    refuse_unfit(encoder, work)
    refuse_clash_of_known(settings.known, source)
    whole = {"known": settings.known, "encoder": encoder.of_texts}
    in_parts = place.in_parts(data, whole=source.sample is None)
    if any(whole.values()) and in_parts:
        refuse_in_parts(**whole)
    source = source if in_parts else with_gaps(source)
    output.begin("read")
    with data_in_parts(output, data, source, work, place) as parts:
        if parts is None:
            more = {"known": settings.known, "encoder": encoder.of_texts}
            table = read(output, data, source, work.seed, **more)
        else:
            table, settings = parts.table, replace(settings, learn=parts.learn)
        how = {"work": work, "skip_bad": source.skip_bad}
        table, embedded = encoder.embed(output, table, **how)
        yield FitRows(table, settings, embedded, parts)


def plan_fit(name: str, settings: Settings, *, then: str = "") -> dict[str, str]:
    """Stages of a fit, in their order."""
    plan = {"read": f"reading {name}"}  # and loading the libraries
    more = settings.more_stages
    plan |= {key: stage for key, stage in more.items() if key != "tune"}
    if settings.k is None:
        plan["choose"] = "choosing the number of classes"
    plan["fit"] = "finding the classes"
    plan |= {key: stage for key, stage in more.items() if key == "tune"}
    plan["diagnose"] = "asking whether to trust them"
    plan["intervals"] = f"intervals: {settings.n_resamples} resamples"
    if said_of(settings):
        plan["rerun"] = said_of(settings)
    return plan | ({"write": then} if then else {})


def find_classes(
    output: Output, table: "Table", settings: Settings, embedded: Any = None
) -> Fitted:
    """Choose the number of classes unless given, fit, diagnose and resample.

    ``embedded`` is the network whose features the table holds, if any.
    """
    from threadpoolctl import threadpool_limits

    work = settings.work
    # own threads work side by side; those of BLAS would wait for each other
    with threadpool_limits(1):
        model, choice = fit_only(output, table, settings)
        stored = None
        if embedded is not None:
            if "tune" in settings.more_stages:
                output.begin("tune")
            stored, model, table = embedded.finish(model, table)
        output.begin("diagnose")
        diagnosis = diagnosis_of(model, table, work, choice)
        output.begin("intervals")
        intervals = model.bootstrap(
            table.X,
            table.domains,
            n_resamples=settings.n_resamples,
            level=settings.level,
            n_jobs=work.n_jobs,
            random_state=work.seed,
        )
        refits = tuple(fit_again(output, table, model.n_classes_, settings))
    return Fitted(table, model, choice, intervals, diagnosis, refits, stored)


def fit_only(output: Output, table: "Table", settings: Settings) -> tuple[Any, Any]:
    """The fitted model, and the choice of the number of classes if there was one."""
    refuse_images(table)
    if not settings.work.looks:
        refuse_too_many(settings.k, table)
    choice = None
    if settings.k is None:
        output.begin("choose")
        choice = choose_k(table, settings.work)
    k = settings.k if choice is None else at_least(choice.n_classes, table)
    output.begin("fit")
    model = _fit_or_refuse(estimator_for(table, k, settings.work), table, settings)
    if choice is not None and choice.n_classes is None:
        output.warn(
            "W160",
            f"{choice.sentence}; {model.n_classes_} were fitted",
            "`shoal choose` shows the curve; set the number with --k",
        )
    names = settings.names(output, model, table) if settings.names else None
    return (renamed(model, names) if names else model), choice


def _fit_or_refuse(estimator: Any, table: "Table", settings: Settings) -> Any:
    """The fitted estimator; E164 where it cannot fit these rows."""
    try:
        if settings.learn is not None:
            return settings.learn(estimator, table)
        return estimator.fit(table.X, table.domains, **known_labels(table, estimator))
    except CodedError:
        raise
    except ValueError as error:
        text, _, hint = str(error).partition("; ")
        hint = hint or "see what was read with `shoal check`"
        raise CommandError("E164", text, hint) from error


def _refuse_no_signal(diagnosis: Any, *, encoded: bool) -> None:
    """Raise E138 if domains cannot be told apart; what was found has been written."""
    finding = diagnosis["E138"]
    if finding.status == "fail":
        gain, needed = finding.numbers["gain"], finding.numbers["needed"]
        raise nothing_to_find(f"gain {gain:.3f} nats, needed {needed:.3f}", encoded)


def nothing_to_find(gain: str, encoded: bool = False) -> CommandError:
    """The error of domains that do not differ, as far as an encoder sees."""
    text = f"domains cannot be told apart on held-out rows ({gain})"
    unseen = "the encoder may not see what differs (try another --encoder), or "
    hint = (
        f"{unseen * encoded}the mix may be the same everywhere: --by looks groups "
        "rows by how they look alone; see `shoal explain E138`"
    )
    return CommandError("E138", text, hint)


# ---- what is written and shown -------------------------------------------------------


#: What a table knows of its rows beyond numbers and domains.
REPORTED = (
    *("ids", "labels", "groups", "order", "kind", "columns", "source"),
    "described",
)


def summary_of(
    output: Output, fitted: Fitted, work: Work, folder: Path, **options: Any
) -> dict[str, Any]:
    """All that the report says, as a dict."""
    from shoal.io.table._missing import count_filled, legible
    from shoal.report import summarize

    table = fitted.table
    summary = summarize(
        fitted.model,
        table.X,
        table.domains,
        feature_names=table.feature_names or None,
        frame=legible(table.frame, table.schema),
        intervals=fitted.intervals,
        diagnosis=fitted.diagnosis,
        choice=fitted.choice,
        refits=fitted.refits,
        command=shlex.join(["shoal", *output.arguments]),
        model_path=folder,
        seconds=time.perf_counter() - output.begun,
        seed=work.seed,
        redact=output.redact,
        gaps=count_filled(table.frame, table.schema),
        **{name: getattr(table, name) for name in REPORTED},
        **options,
    )
    return output.allowed(summary)


def write_run(
    output: Output,
    folder: Path,
    fitted: Fitted,
    summary: dict[str, Any],
    *,
    report: bool = True,
    cells: Path | None = None,
    tables: Mapping[str, Any] | None = None,
) -> None:
    """Write every file of the run, or none; ``tables`` are further ones, by name.

    ``cells`` is the h5ad file that was read, if a copy with classes is wanted.
    """
    from shoal.report import write

    with _runs.filled_folder(folder, instead_of=_runs.FILES) as place:
        write_results(output, place, fitted, summary, cells)
        if report:
            write(summary, place / _runs.REPORT)
        for name, frame in (tables or {}).items():
            frame.to_csv(place / name, index=False)
        made = {key: summary["made"][key] for key in ("seed", "seconds")}
        _runs.write_record(place, output, {**made, "source": summary["source"]})
        names = sorted(entry.name for entry in place.iterdir())
    output.files = [folder / name for name in names]


def found_by(fitted: Fitted, summary: dict[str, Any]) -> dict[str, Any]:
    """What was found, for ``--json`` and for the tables."""
    from shoal.report._view import prevalence_records

    roles = {column.role: column.name for column in fitted.table.columns}
    return {
        "n_classes": summary["size"]["classes"],
        "classes": summary["classes"],
        "prevalence": prevalence_records(summary),
        "evidence": fitted.model._told_apart(),
        "verdict": fitted.diagnosis.verdict,
        "findings": fitted.diagnosis.to_dict()["findings"],
        "trend": summary.get("trend"),
        "choice": None if fitted.choice is None else fitted.choice.sentence,
        "score": summary["score"],
        "domain_name": str(roles.get("domain", "domain")),
        "unit": summary["size"]["unit"],
        "scale": getattr(fitted.model, "scale_", None),
    }


def show_next(output: Output, folder: Path, *, report: bool) -> None:
    """What to do with a run that has just been written."""
    run = shlex.quote(str(folder))
    steps = [f"open {folder / _runs.REPORT}"] if report else []
    if output.data["verdict"] != "do not use":
        steps += [
            f"shoal name {run} --set c0=NAME",
            f"shoal predict {run} NEW",
            f"shoal adapt {run} NEW --domain-name NAME",
        ]
    if steps:
        output.show(f"Next: {'; '.join(steps)}")
