"""``shoal tree``: which class splits into which, from two classes to all of a model."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from shoal.cli import _runs
from shoal.cli._messages import CommandError
from shoal.cli._models import Model, load_model
from shoal.cli._options import (
    CsvResults,
    Speech,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import Data, name_of
from shoal.cli._tables import shortened_table
from shoal.io._options import FileOptions

#: As a table, with all numbers, as a figure; and the model that was cut.
FILES = ("tree.csv", "tree.json", "tree.png")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Where the tree is cut."""

    cut: int | None = working(
        None, "Write the model with so many classes to --out.", min=2, metavar="K"
    )


@with_groups
def tree(
    model: Model,
    data: Data,
    rows: FileOptions,
    asked: Cut,
    results: CsvResults,
    speech: Speech,
) -> None:
    """Which class splits into which, from two classes to those of a model.

    DATA are the rows of the fit. They are fitted again with two classes, three and so
    on, which takes as long as so many fits. The tree nests: classes are joined so that
    it stays as near to these fits as it can, and how many rows each of them would class
    alike is said. Said too: the columns that set the parts of a split apart. With
    --out, writes tree.csv, tree.json and tree.png; with --cut, also the model with so
    many classes, whose shares are sums.
    """
    with running("tree", speech, results) as output:
        names = [*FILES, *[_runs.MODEL] * (asked.cut is not None)]
        _runs.refuse_results(results, names)
        if asked.cut is not None and results.out is None:
            text = "--cut writes a model, and --out does not say where"
            raise CommandError("E002", text, "add --out FOLDER")
        plan = {"read": f"reading {name_of(data)}", "fit": "fitting fewer classes"}
        with output.stages(plan):
            output.begin("read")
            loaded = load_model(model)
            _refuse_cut(asked.cut, loaded.model.n_classes_)
            table = loaded.known_table(output, data, rows)
            output.begin("fit")
            found = _grow(loaded.model, table)
        output.found(found.to_dict())
        more = []
        if asked.cut is not None:
            more = [partial(loaded.save, found.cut(asked.cut))]
        _runs.keep_found(output, results, names, found, drawn, *more)
        show(output, found)


def _refuse_cut(cut: int | None, n_classes: int) -> None:
    """Raise E002, before any fit, for a level that the tree will not have."""
    if cut is not None and cut > n_classes:
        text = f"--cut {cut} is more than the {n_classes} classes of the model"
        raise CommandError("E002", text, "fit with more classes, or cut lower")


def _grow(model: Any, table: Any) -> Any:
    from threadpoolctl import threadpool_limits

    from shoal.analysis._tree import class_tree

    if table.X is None:
        text = "the model takes images, whose fits take hours"
        raise CommandError("E002", text, "fit their embeddings: `shoal embed`")
    names = table.feature_names or None
    with threadpool_limits(1):
        return class_tree(model, table.X, table.domains, feature_names=names)


def drawn(found: Any) -> Any:
    """The figure of a tree."""
    from matplotlib.figure import Figure

    size = (3.0 + 1.1 * found.n_classes, 1.2 + 0.55 * found.n_classes)
    figure = Figure(figsize=size, layout="constrained")
    found.plot(ax=figure.add_subplot())
    return figure


def show(output: Output, found: Any) -> None:
    """Every split, what sets its parts apart, and whether free fits agree."""
    rows = [
        [
            str(one["n_classes"]),
            f"{one['first']} | {one['second']}",
            f"{one['first_rows']:,} | {one['second_rows']:,}",
            one["columns"],
            f"{one['agreement']:.1%}",
        ]
        for one in found.to_records()
    ]
    heads = ["classes", "parts", "rows", "set apart by", "free fit agrees"]
    output.show(
        shortened_table("Which class splits into which", heads, rows),
        "Columns: the first part less the second, in standard deviations.",
    )
    output.show_files()
