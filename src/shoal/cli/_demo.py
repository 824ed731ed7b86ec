"""``shoal demo``: species found from islands alone, or digits from their sites."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli._fit import (
    Fitted,
    Settings,
    find_classes,
    found_by,
    plan_fit,
    summary_of,
    write_run,
)
from shoal.cli._messages import CommandError
from shoal.cli._options import Results, Speech, Work, speaking, with_groups
from shoal.cli._output import Output, running
from shoal.cli._runs import FILES, REPORT, refuse_existing, refuse_foreign
from shoal.cli._tables import percent, plain_table, show_results

# ---- demo data -----------------------------------------------------------------------

N_SITES = 12


@dataclass(frozen=True)
class DemoData:
    """A table with a domain, a label that no fit sees, and rows as if from a new place.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    frame : DataFrame
        All rows, with the columns ``domain`` and ``label`` among others.
    domain, label : str
    new : DataFrame
        Rows without a domain.
    title, story : str
        What the data are, in a line.
    images : callable or None
        The picture of a row.
    """

    name: str
    frame: Any
    domain: str
    label: str
    new: Any
    title: str
    story: str
    images: Any = None


def penguins() -> DemoData:
    """Penguins of three islands; the label is the species."""
    import pandas as pd

    from shoal.datasets import load_penguins

    data = load_penguins(as_frame=True)
    frame = pd.concat([data.domains, data.X, data.labels], axis=1)
    frame.insert(0, "bird", [f"bird{number}" for number in range(1, len(frame) + 1)])
    dream = frame[data.domains == "Dream"]
    return DemoData(
        name="penguins",
        frame=frame,
        domain=data.domain_name,
        label=data.label_name,
        new=dream.drop(columns=[data.domain_name, data.label_name]),
        title="Penguins of three islands",
        story=f"{len(frame)} penguins, {data.X.shape[1]} measurements, the island of "
        "each, no species",
    )


def digits() -> DemoData:
    """Handwritten digits, dealt to sites with mixes of their own."""
    import pandas as pd
    from sklearn.datasets import load_digits

    from shoal.datasets import draw_prevalence, plan_domains, take

    pixels, labels = load_digits(return_X_y=True)
    mixes = draw_prevalence(10, N_SITES, 3.0, 8.0, random_state=0)
    plan = plan_domains(labels, mixes, valid_share=0, random_state=0)
    X, site = take(plan, pixels)
    varying = X.std(axis=0) > 0  # some corners are never written on
    columns = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    frame = pd.DataFrame(X, columns=columns).loc[:, varying]
    frame.insert(0, "scan", [f"scan{number}" for number in range(1, len(X) + 1)])
    frame.insert(1, "site", [f"site{number + 1:02d}" for number in site])
    frame["digit"] = plan.labels(labels)
    return DemoData(
        name="digits",
        frame=frame,
        domain="site",
        label="digit",
        new=frame[site == 0].drop(columns=["site", "digit"]),
        title="Handwritten digits of twelve sites",
        story=f"{len(frame)} scans of handwritten digits, dealt to {N_SITES} sites "
        "with mixes of their own, no digit told",
        images=lambda row: _picture(X[row]),
    )


def _picture(pixels: Any) -> Any:
    """Dark ink on white, as numbers from 0 to 255."""
    import numpy as np

    return (255 - pixels.reshape(8, 8) * (255 / 16)).astype(np.uint8)


DATASETS = {"penguins": penguins, "digits": digits}
#: Numbers of classes that a demo asks for; the others let it be chosen.
KNOWN_K = {"digits": 10}


# ---- Other methods beside shoal, on the data of the demo -----------------------------

Record = dict[str, Any]


def _kmeans(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit_predict(X), None


def _gaussians(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(k, n_init=10, reg_covar=1e-3, random_state=seed)
    return model.fit_predict(X), None


def _published(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from shoal import DDFA
    from shoal.stages.published import published_stages

    stages = published_stages(k, random_state=seed)
    model = DDFA(k, **stages, random_state=seed).fit(X, domains)
    return model.labels_, model.prevalence_


#: Classes of the rows and, where a method gives them, prevalences of the domains.
OTHERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "k-means": _kmeans,
    "Gaussian mixture": _gaussians,
    "DDFA as published": _published,
}


def compare_plan() -> dict[str, str]:
    """A stage for each method."""
    return {name: f"comparing: {name}" for name in OTHERS}


def compare(output: Output, fitted: Fitted, seed: int) -> list[Record]:
    """Agreement of every method with the labels that none of them saw.

    Others get the number of classes that shoal found, and columns of unit spread.
    """
    from sklearn.preprocessing import StandardScaler

    from shoal.metrics import majority_accuracy

    table, model = fitted.table, fitted.model
    scaled = StandardScaler().fit_transform(table.X)
    records = [agree("shoal", table, model.labels_, model.prevalence_)]
    for name, method in OTHERS.items():
        output.begin(name)
        found = method(scaled, table.domains, model.n_classes_, seed)
        records.append(agree(name, table, *found))
    majority = {
        "method": "most common label of each domain",
        "accuracy": majority_accuracy(table.labels, table.domains),
        "prevalence_error": None,
    }
    return [*records, majority]


def agree(method: str, table: Any, classes: Any, prevalence: Any = None) -> Record:
    """Accuracy and prevalence error under one matching of classes to labels.

    Without ``prevalence``, the share of each class among the rows of each domain
    stands for it.
    """
    from shoal.metrics import (
        match_classes,
        matched_accuracy,
        prevalence_error,
        true_prevalence,
    )

    truth, names, _ = true_prevalence(table.labels, table.domains)
    if prevalence is None:
        prevalence = true_prevalence(classes, table.domains)[0]
    matching = match_classes(table.labels, classes)
    return {
        "method": method,
        "accuracy": matched_accuracy(table.labels, classes, matching=matching),
        "prevalence_error": prevalence_error(
            truth, prevalence, matching=matching, label_names=names
        ),
    }


# ---- demo ----------------------------------------------------------------------------

NEW = "new-place.csv"

Which = Annotated[
    str,
    typer.Argument(metavar="[penguins|digits]", help="Which data.", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class DemoResults(Results):
    """Where results go; there is always a place."""

    out: Path = speaking(Path("shoal-demo"), "Folder for the results.", metavar="DIR")


@with_groups
def demo(
    work: Work, results: DemoResults, speech: Speech, which: Which = "penguins"
) -> None:
    """Discover the penguins' species from their islands: offline, in seconds.

    Fits 342 penguins without their species, prints the mix of classes on every island
    and, because the demo happens to know the species, how well the classes match them
    beside other methods. Writes a report and all other files of `shoal fit`, and the
    data, to try the next commands on. `shoal demo digits` deals handwritten digits to
    twelve sites and finds the digits. An earlier demo in the folder is replaced.
    """
    out = results.out
    with running("demo", speech) as output:
        refuse_unknown(which)
        settings = Settings(work, k=KNOWN_K.get(which))
        files = (*FILES, f"{which}.csv", NEW)
        if results.force:
            refuse_existing(out, files, force=True)
        else:
            refuse_foreign(out, files, "demo")
        first = plan_fit(f"the {which}", settings)
        plan = first | compare_plan() | {"write": "writing the results"}
        with output.stages(plan):
            output.begin("read")
            data = DATASETS[which]()
            fitted = find_classes(output, read_demo(data), settings)
            agreement = compare(output, fitted, work.seed)
            output.begin("write")
            extra = {"title": data.title, "images": data.images}
            summary = summary_of(output, fitted, work, out, **extra)
            tables = {f"{which}.csv": data.frame, NEW: data.new}
            write_run(output, out, fitted, summary, tables=tables)
        output.data = found_by(fitted, summary) | {"agreement": agreement}
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
