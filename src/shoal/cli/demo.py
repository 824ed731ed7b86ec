"""``shoal demo``: species found from islands alone, or digits from their sites."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.demo_compare import compare, compare_plan
from shoal.cli.demo_data import DATASETS, KNOWN_K, DemoData
from shoal.cli.fit import results, show_results, summary_of, write_run
from shoal.cli.fitting import Settings, find_classes, plan_fit
from shoal.cli.groups import with_groups
from shoal.cli.messages import CommandError
from shoal.cli.options import Force, Speech, Work, speaking
from shoal.cli.output import Output, running
from shoal.cli.places import refuse_existing, refuse_foreign
from shoal.cli.progress import Stage
from shoal.cli.runs import FILES, REPORT
from shoal.cli.tables import percent, plain_table

__all__ = ["demo"]

NEW = "new-place.csv"

Which = Annotated[
    str,
    typer.Argument(metavar="[penguins|digits]", help="Which data.", show_default=False),
]
DemoOut = Annotated[
    Path, speaking("--out", metavar="DIR", help="Folder for the results.")
]


@with_groups
def demo(
    work: Work,
    speech: Speech,
    which: Which = "penguins",
    out: DemoOut = Path("shoal-demo"),
    force: Force = False,
) -> None:
    """Discover the penguins' species from their islands: offline, in seconds.

    Fits 342 penguins without their species, prints the mix of classes on every island
    and, because the demo happens to know the species, how well the classes match them
    beside other methods. Writes a report and all other files of `shoal fit`, and the
    data, to try the next commands on. `shoal demo digits` deals handwritten digits to
    twelve sites and finds the digits. An earlier demo in the folder is replaced.
    """
    with running("demo", **speech.options) as output:
        refuse_unknown(which)
        settings = Settings(work, k=KNOWN_K.get(which))
        files = (*FILES, f"{which}.csv", NEW)
        if force:
            refuse_existing(out, files, force=True)
        else:
            refuse_foreign(out, files, "demo")
        first = plan_fit(f"the {which}", settings)
        plan = first | compare_plan() | {"write": Stage("writing the results", 2)}
        with output.stages(plan) as stages:
            stages.begin("read")
            data = DATASETS[which]()
            fitted = find_classes(output, stages, read_demo(data), settings)
            agreement = compare(stages, fitted, work.seed)
            stages.begin("write")
            extra = {"title": data.title, "images": data.images}
            summary = summary_of(output, fitted, work, out, **extra)
            tables = {f"{which}.csv": data.frame, NEW: data.new}
            write_run(output, out, fitted, summary, tables=tables)
        output.data = results(fitted, summary) | {"agreement": agreement}
        show(output, data, out)


def refuse_unknown(which: str) -> None:
    """Raise E002 for data that the demo does not have."""
    if which not in DATASETS:
        known = " and ".join(DATASETS)
        raise CommandError("E002", f'no demo "{which}"', f"there are {known}")


def read_demo(data: DemoData) -> Any:
    """The table as ``shoal fit`` reads it from the file that the demo writes."""
    import shoal.io

    table = shoal.io.read(
        data.frame, domain=data.domain, label=data.label, id=data.frame.columns[0]
    )
    return replace(table, source={**table.source, "path": f"{data.name}.csv"})


def show(output: Output, data: DemoData, out: Path) -> None:
    """What was found, beside other methods, and what to try next."""
    found = output.data
    output.show(f"{data.story}: {found['n_classes']} classes found.", "")
    output.show(agreement_table(found["agreement"]))
    show_results(output)
    output.show(
        "",
        f"Open the report: {out / REPORT}",
        "",
        "Next:",
        *(f"  {line}" for line in next_commands(data, out)),
    )


def agreement_table(agreement: list[dict[str, Any]]) -> Any:
    """Every method beside the labels that none of them saw."""
    rows = [
        [
            record["method"],
            percent(record["accuracy"]),
            *(
                [""]
                if record["prevalence_error"] is None
                else [percent(record["prevalence_error"])]
            ),
        ]
        for record in agreement
    ]
    title = "Agreement with the labels, which no method saw"
    return plain_table(title, ["method", "accuracy", "prevalence error"], rows)


def next_commands(data: DemoData, out: Path) -> list[str]:
    """Commands that work as printed, on the files that the demo wrote."""
    table, k = str(out / f"{data.name}.csv"), KNOWN_K.get(data.name)
    commands = [
        ["fit", table, "--domain", data.domain, "--label", data.label,
         *(["--k", str(k)] if k else [])],
        ["predict", str(out), table],
        ["adapt", str(out), str(out / NEW), "--domain-name", "new"],
    ]  # fmt: skip
    return [shlex.join(["shoal", *command]) for command in commands]
