"""``shoal demo``: the penguins' species, found from their islands alone."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.cli.demo_penguins import STAGES, discover
from shoal.cli.files import SUMMARY, fingerprint, refuse_foreign_files, write_files
from shoal.cli.options import AsJson, Debug, Force, NoColor, Out, Quiet, Seed
from shoal.cli.output import SCHEMA, Output, running

__all__ = ["demo"]

Record = dict[str, Any]

FILES = ("prevalence.csv", "assignments.csv", SUMMARY)
#: Lines to try next, shown at the end; a test runs them.
NEXT = (
    "import shoal, shoal.datasets; p = shoal.datasets.load_penguins()",
    "print(shoal.choose_n_classes(p.X, p.domains))  # why that many classes",
    "model = shoal.DomainMixture().fit(p.X, p.domains)  # or a table of your own",
    "model.adapt(p.X[p.domains == 'Dream'])  # as if the island were new",
)


def demo(
    out: Out = Path("shoal-demo"),
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
    debug: Debug = False,
) -> None:
    """Discover the penguins' species from their islands: offline, in seconds.

    Fits 342 penguins without their species, prints the mix of classes on every island
    and, because the demo happens to know the species, how well the classes match them
    beside other methods. Writes prevalence.csv, assignments.csv and summary.json; an
    earlier demo in the same folder is replaced.
    """
    with running(
        "demo", as_json=as_json, quiet=quiet, color=not no_color, debug=debug
    ) as output:
        if not force:
            refuse_foreign_files(out, FILES, "demo")
        with output.stages(STAGES) as stages:
            next(stages)
            output.data, assignments = discover(stages, seed)
        output.files = write_files(out, file_texts(output.data, assignments))
        show(output)


# ---- files -----------------------------------------------------------------------


def file_texts(summary: Record, assignments: Sequence[Record]) -> dict[str, str]:
    """Content of each file; the summary comes last and vouches for the others."""
    texts = {
        "prevalence.csv": csv_text(summary["prevalence"]),
        "assignments.csv": csv_text(assignments),
    }
    content = {
        "schema": SCHEMA,
        "command": "demo",
        "data": summary,
        "fingerprints": {name: fingerprint(text) for name, text in texts.items()},
    }
    return texts | {SUMMARY: json.dumps(content, indent=2) + "\n"}


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as CSV; floats in full, so that reading gives the same numbers back."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


# ---- tables ----------------------------------------------------------------------


def show(output: Output) -> None:
    """Print what was found, how well it matches, where it is and what to try next."""
    summary = output.data
    output.show(
        f"{summary['n_rows']} penguins, {len(summary['features'])} measurements, "
        f"the island of each, no species: {summary['n_classes']} classes found.",
        "",
        prevalence_table(summary),
        "",
        agreement_table(summary),
    )
    for finding in summary["findings"]:
        if finding["status"] != "ok":
            output.warn(finding["code"], finding["reason"], finding["advice"])
    output.show(
        "",
        f"Diagnosis of the fit: {summary['verdict']}.",
        "Written: " + ", ".join(str(path) for path in output.files),
        "",
        "Next, in Python:",
        *(f"  {line}" for line in NEXT),
    )


def prevalence_table(summary: Record) -> Any:
    """Share of each class in each domain, with the species that matches it."""
    from rich.table import Table

    species = summary["agreement"][0]["species"]
    classes = sorted({record["class_id"] for record in summary["prevalence"]})
    level = summary["prevalence"][0]["level"]
    table = Table(
        title=f"Share of each class on each island, with {level:.0%} intervals"
    )
    table.add_column(summary["domain_name"])
    table.add_column("rows", justify="right")
    for class_id in classes:
        table.add_column(f"{class_id}\n({species[class_id]})", justify="right")
    by_domain: dict[str, list[Record]] = {}
    for record in summary["prevalence"]:
        by_domain.setdefault(record["domain"], []).append(record)
    for domain, records in by_domain.items():
        shares = (share_with_interval(record) for record in records)
        table.add_row(domain, str(records[0]["n_rows"]), *shares)
    return table


def share_with_interval(record: Record) -> str:
    """A prevalence and its interval as the table shows them."""
    low, high = 100 * record["lo"], 100 * record["hi"]
    return f"{percent(record['estimate'])} ({low:.0f}-{high:.0f})"


def agreement_table(summary: Record) -> Any:
    """Every method beside the species that none of them saw."""
    from rich.table import Table

    table = Table(title="Agreement with the species, which no method saw")
    table.add_column("method")
    table.add_column("accuracy", justify="right")
    table.add_column("prevalence error", justify="right")
    for record in summary["agreement"]:
        error = record["prevalence_error"]
        table.add_row(
            record["method"],
            percent(record["accuracy"]),
            "" if error is None else percent(error),
        )
    return table


def percent(share: float) -> str:
    """A share as the tables show it."""
    return f"{100 * share:.1f}%"
