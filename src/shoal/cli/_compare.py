"""``shoal compare``: why mixes differ, by what is known of each domain."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cli import _runs
from shoal.cli._current import drawn_intervals
from shoal.cli._messages import CommandError
from shoal.cli._models import Model
from shoal.cli._options import (
    REQUIRED,
    CsvResults,
    Speech,
    Work,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._tables import shortened_table

#: As a table, with all numbers, and as a figure.
FILES = ("comparison.csv", "comparison.json", "comparison.png")


@dataclass(frozen=True, kw_only=True)
class Covariates:
    """What mixes are to be explained by."""

    formula: str = working(
        REQUIRED,
        'What may explain the mix: "~ treatment + age", with "| patient" for pairs.',
        metavar="FORMULA",
    )
    domains: Path = working(
        REQUIRED, "Table with one row per domain and its covariates.", metavar="FILE"
    )
    on: str | None = working(
        None,
        "Its column of domains; that of the fit, or the first, if not given.",
        metavar="COL",
    )
    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)
    permutations: int = working(1999, "Shuffles behind the p-values.", min=1)


@with_groups
def compare(
    model: Model,
    asked: Covariates,
    work: Work,
    results: CsvResults,
    speech: Speech,
) -> None:
    """Why mixes differ: what covariates of the domains do to the odds of each class.

    Domains are the replicates. Each class is held against all others; how unsure the
    classes are is carried along by the resamples of the fit. Text is a category,
    compared with its first level in the order of the alphabet; "C(drug, none)" names
    another. p-values are those of shuffled residuals, within pairs where there are
    any; q is the false discovery rate among the classes. With --out, writes
    comparison.csv, comparison.json and comparison.png.
    """
    from shoal.analysis._compare import compare as ask

    with running("compare", speech, results) as output:
        _runs.refuse_results(results, FILES)
        plan = {"read": f"reading {asked.domains}", "compare": "shuffling domains"}
        with output.stages(plan):
            output.begin("read")
            fitted = _runs.load_settled(model)
            found = intervals_of(model, fitted)
            table = read_domains(asked, fitted)
            output.begin("compare")
            result = ask(
                found,
                table,
                asked.formula,
                level=asked.level,
                n_permutations=asked.permutations,
                random_state=work.seed,
            )
        output.found(result.to_dict())
        _runs.keep_found(output, results, FILES, result, drawn)
        show(output, result)


def intervals_of(path: Path, model: Any) -> Any:
    """The intervals of a run with their resamples; E135 where it has none."""
    run = _runs.folder_of(path)
    found = drawn_intervals(run, model)
    if found is None:
        text = f'"{run}" has no {_runs.DRAWS} and {_runs.PREVALENCE} of its model'
        hint = (
            "give the folder that `shoal fit` wrote; a copy by `shoal adapt` has none"
        )
        raise CommandError("E135", text, hint)
    return found


def read_domains(asked: Covariates, model: Any) -> Any:
    """The table of domains, with these as its index as the fit reads them."""
    from shoal.io._options import SourceOptions
    from shoal.io.source._open import open_content
    from shoal.io.table._cells import words
    from shoal.io.table._domains import DomainRule

    schema = getattr(model, "schema_", None) or {}
    usual = asked.on or (schema.get("domain") or {}).get("column")
    options = SourceOptions(domain=usual)
    frame = open_content(str(asked.domains), options).frame
    if asked.on is None and usual not in frame.columns:
        options = SourceOptions(domain=str(frame.columns[0]))
        frame = open_content(str(asked.domains), options).frame
    column = options.domain
    if column not in frame.columns:
        text = f'"{asked.domains}" has no column "{column}"'
        hint = f"it has {', '.join(map(str, frame.columns))}"
        raise CommandError("E107", text, hint)
    domains, _ = DomainRule(column).apply(frame[column], options.missing)
    kinds = frame.dtypes.items()
    texts = [name for name, kind in kinds if kind.kind not in "biuf"]
    cells = {str(name): words(frame[name], options.missing) for name in texts}
    return frame.assign(**cells).set_index(domains)


def drawn(result: Any) -> Any:
    """The figure of a comparison."""
    from matplotlib.figure import Figure

    from shoal.plots import plot_comparison

    return plot_comparison(result, figure=Figure(layout="constrained"))[0].figure


def show(output: Output, result: Any) -> None:
    """Effects on the odds of each class, and what so few domains cannot tell."""
    rows = [
        [
            one["effect"],
            one["class_name"],
            f"{one['odds_ratio']:.3g} ({odds(one['low'])} to {odds(one['high'])})",
            f"{one['p_value']:.4f}",
            f"{one['q_value']:.4f}",
        ]
        for one in result.to_records()
    ]
    heads = ["effect", "class", f"odds, times ({result.level:.0%} interval)", "p", "q"]
    title = f"Why mixes differ: {result.formula}, {result.n_domains} domains"
    output.show(
        shortened_table(title, heads, rows),
        "Shares add to one: where one class becomes more, others must become less.",
    )
    output.show_files()
    if result.too_few:
        effect = result.too_few[0]
        least = result.least_p[result.effects.index(effect)]
        output.warn(
            "W171",
            f"{result.n_domains} domains can be arranged in {1 / least:.0f} ways only "
            f'as to "{effect}": too few to shuffle',
            "go by the intervals, and by p_model in --json; or use more domains",
        )


def odds(logarithm: float) -> str:
    """Odds as tables show them."""
    import math

    return f"{math.exp(logarithm):.3g}"
