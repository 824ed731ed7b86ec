"""``shoal fit``: from a table to classes, prevalences, checks and a report."""

import shlex
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from shoal.cli._fitting import Fitted, Settings, find_classes, parse_k, plan_fit
from shoal.cli._imaging import TunedEncoder, embed_table, plan_images
from shoal.cli._naming import names_from
from shoal.cli._options import (
    Force,
    Level,
    Out,
    Redact,
    Speech,
    Work,
    refuse_no_encoder,
    speaking,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._places import filled_folder, refuse_existing
from shoal.cli._reading import Data, Source, h5ad_of, name_of, read
from shoal.cli._redacting import without_rare_names
from shoal.cli._report import ImagesFolder, pictures_of
from shoal.cli._runs import FILES, REPORT, write_record, write_results
from shoal.cli._scaling import Place, opened, show_costs
from shoal.cli._tables import VERDICTS, percent, prevalence_table, warn_findings

K = Annotated[
    str, working("--k", metavar="N|auto", help="Number of classes; auto chooses it.")
]
Bootstrap = Annotated[
    int, working("--bootstrap", min=2, help="Resamples behind the intervals.")
]
Names = Annotated[
    Path | None,
    working(
        "--names",
        metavar="FILE|RUN",
        help='Names of classes: JSON {"c0": "Adelie"}, or an earlier run to take them '
        "from where classes match.",
    ),
]
Reruns = Annotated[
    int,
    working(
        "--reruns",
        min=0,
        help="Fits from other seeds, and with k-1 and k+1, for the report.",
    ),
]
NoCells = Annotated[
    bool, speaking("--no-cells", help="Of an h5ad file, write no copy with classes.")
]
NoReport = Annotated[bool, speaking("--no-report", help="Write no report.html.")]


@with_groups
def fit(
    data: Data,
    source: Source,
    encoder: TunedEncoder,
    work: Work,
    place: Place,
    speech: Speech,
    k: K = "auto",
    bootstrap: Bootstrap = 200,
    level: Level = 0.9,
    names: Names = None,
    reruns: Reruns = 0,
    images: ImagesFolder = None,
    out: Out = None,
    no_report: NoReport = False,
    no_cells: NoCells = False,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """Discover classes, their share in every domain, and whether to trust them.

    Reads the table, chooses the number of classes unless --k says it, fits, resamples
    for intervals and diagnoses. Writes to --out (shoal-NAME if not given): the model,
    prevalence.csv, class_counts.csv, assignments, diagnostics.json, draws.npz,
    summary.json, run.json and report.html; of an h5ad file also classes.h5ad, the same
    cells with their classes. A column given as --label is held aside and only used to
    score. A folder of images needs --encoder; the model then takes such folders.
    Parquet data that do not fit into memory are read in parts: --sample rows teach the
    model, and what is counted is counted over all rows.
    """
    with running("fit", redact=redact, **speech.options) as output:
        known = None if names is None else names_from(names)
        refuse_no_encoder(encoder)
        more = plan_images(encoder)
        settings = Settings(work, parse_k(k), level, bootstrap, known, reruns, more)
        folder = out or Path(f"shoal-{name_of(data)}")
        refuse_existing(folder, FILES, force=force)
        plan = plan_fit(name_of(data), settings, then="writing the results")
        with output.stages(plan) as stages, ExitStack() as stack:
            stages.begin("read")
            rows = opened(output, stages, data, source, work, place, redact=redact)
            parts = stack.enter_context(rows)
            if parts is None:
                table = read(output, data, source, work.seed, redact=redact)
            else:
                table, settings = parts.table, replace(settings, learn=parts.learn)
            embedded = None
            if encoder.given:
                table, embedded = embed_table(
                    output, stages, table, encoder, work, skip_bad=source.skip_bad
                )
            fitted = find_classes(output, stages, table, settings, embedded)
            fitted = fitted if parts is None else parts.exactly(fitted)
            if redact:
                told = without_rare_names(fitted.diagnosis)
                fitted = replace(fitted, diagnosis=told)
            stages.begin("write")
            shown = None if embedded is None else embedded.folder
            pictures = pictures_of(images or shown, fitted.table)
            options = {"redact": redact, "images": pictures}
            summary = summary_of(output, fitted, work, folder, **options)
            cells = None if redact or no_cells else h5ad_of(data, source.format)
            kept = not no_report
            write_run(output, folder, fitted, summary, report=kept, cells=cells)
        output.data = results(fitted, summary)
        show_results(output)
        show_next(output, folder, report=not no_report)


def show_next(output: Output, folder: Path, *, report: bool) -> None:
    """What to do with a run that has just been written."""
    run = shlex.quote(str(folder))
    steps = [f"open {folder / REPORT}"] if report else []
    if output.data["verdict"] != "do not use":
        steps += [
            f"shoal name {run} --set c0=NAME",
            f"shoal predict {run} NEW",
            f"shoal adapt {run} NEW --domain-name NAME",
        ]
    if steps:
        output.show(f"Next: {'; '.join(steps)}")


def summary_of(
    output: Output, fitted: Fitted, work: Work, folder: Path, **options: Any
) -> dict[str, Any]:
    """All that the report says, as a dict."""
    from shoal.report import summarize

    table = fitted.table
    options.setdefault("command", shlex.join(["shoal", *output.arguments]))
    return summarize(
        fitted.model,
        table.X,
        table.domains,
        feature_names=table.feature_names or None,
        frame=table.frame,
        ids=table.ids,
        labels=table.labels,
        intervals=fitted.intervals,
        diagnosis=fitted.diagnosis,
        choice=fitted.choice,
        refits=fitted.refits,
        groups=table.groups,
        kind=table.kind,
        columns=table.columns,
        source=table.source,
        model_path=folder,
        seconds=time.perf_counter() - output.begun,
        seed=work.seed,
        **options,
    )


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

    redact = summary["redacted"]
    with filled_folder(folder, instead_of=FILES) as place:
        write_results(place, fitted, summary, redact=redact, cells=cells)
        if report:
            write(summary, place / REPORT)
        for name, frame in (tables or {}).items():
            frame.to_csv(place / name, index=False)
        details = {
            "seed": summary["made"]["seed"],
            "seconds": summary["made"]["seconds"],
            "source": summary["source"],
        }
        arguments = () if redact else output.arguments
        write_record(place, output.command, arguments, details)
        names = sorted(entry.name for entry in place.iterdir())
    output.files = [folder / name for name in names]


def results(fitted: Fitted, summary: dict[str, Any]) -> dict[str, Any]:
    """What was found, for ``--json`` and for the tables."""
    from shoal.report import prevalence_records

    return {
        "n_classes": summary["size"]["classes"],
        "classes": summary["classes"],
        "prevalence": prevalence_records(summary),
        "verdict": fitted.diagnosis.verdict,
        "findings": fitted.diagnosis.to_dict()["findings"],
        "choice": None if fitted.choice is None else fitted.choice.sentence,
        "score": summary["score"],
        "domain_name": _domain_name(fitted),
        "unit": summary["size"]["unit"],
        "scale": getattr(fitted.model, "scale_", None),
    }


def _domain_name(fitted: Fitted) -> str:
    """The column that holds the domain."""
    roles = {column.role: column.name for column in fitted.table.columns}
    return str(roles.get("domain", "domain"))


def show_results(output: Output) -> None:
    """Classes by domains, the verdict, and what was written."""
    found = output.data
    warn_findings(output, found["findings"])
    score = found["score"]
    labels = score["matching"] if score else {}
    records, column, unit = (
        found[key] for key in ("prevalence", "domain_name", "unit")
    )
    output.show(prevalence_table(records, column, labels, unit))
    if found["choice"]:
        output.show(found["choice"] + ".")
    if score:
        output.show(
            f"Held-aside labels: {percent(score['accuracy'])} of rows in the matching "
            f"class (most common label of each domain: {percent(score['majority'])}); "
            f"prevalences off by {percent(score['prevalence_error'])} on average."
        )
    output.show(f"Verdict: {VERDICTS[found['verdict']]}")
    if found["scale"]:
        show_costs(output, found["scale"])
    output.show_files()
