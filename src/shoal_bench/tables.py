"""Records as tables: mean and spread over waves, beside what the paper published."""

import csv
import io
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from shoal_bench.methods import METHODS
from shoal_bench.problems import DATASETS
from shoal_bench.published import PaperResult, paper_results
from shoal_bench.spec import Cell, Setting, Spec

Record = Mapping[str, Any]

#: Every measure, and whether more of it is better (1) or worse (-1).
MEASURES: Mapping[str, int] = {"accuracy": 1, "prevalence_error": -1}


class Spread(NamedTuple):
    """Mean and standard deviation (n - 1; None for one value) of n values."""

    mean: float
    sd: float | None
    n: int

    def text(self, digits: int) -> str:
        """As tables show it: mean, spread, and the number of values."""
        sd = "" if self.sd is None else f" ± {self.sd:.{digits}f}"
        return f"{self.mean:.{digits}f}{sd} ({self.n})"


@dataclass(frozen=True)
class Line:
    """One method on one problem, over waves.

    Attributes
    ----------
    cell : tuple
        dataset, n_domains, alpha.
    method : str
    settings : tuple of pairs
    waves, missing : tuple of int
        With a record, and without.
    values : mapping of str to Spread
        By measure; a method without prevalences has no error.
    accuracy : mapping of int to float
        By wave, to compare methods on the waves that both have.
    seconds : float or None
        Mean of a run.
    device : str
        Where it ran; several are joined by "; ".
    paper : PaperResult or None
        The same method on the same problem, as published.
    """

    cell: Cell
    method: str
    settings: tuple[tuple[str, Setting], ...]
    waves: tuple[int, ...]
    missing: tuple[int, ...]
    values: Mapping[str, Spread]
    accuracy: Mapping[int, float]
    seconds: float | None
    device: str
    paper: PaperResult | None

    @property
    def title(self) -> str:
        """The method as tables call it, with what was set."""
        chosen = [f"{name}={value}" for name, value in self.settings]
        return ", ".join([METHODS[self.method].title, *chosen])

    @property
    def labelled(self) -> bool:
        """Whether the method reads labels."""
        return METHODS[self.method].labelled

    def printed(self, measure: str) -> float | None:
        """The paper's number, as it stands there."""
        return None if self.paper is None else getattr(self.paper, measure)

    def doubtful(self, measure: str) -> bool:
        """Whether the paper's number should not be used as a target."""
        return self.paper is not None and measure in self.paper.doubtful

    def published(self, measure: str) -> float | None:
        """The paper's number, unless it is doubtful."""
        return None if self.doubtful(measure) else self.printed(measure)

    def difference(self, measure: str) -> float | None:
        """Our mean less the paper's number."""
        published = self.published(measure)
        if measure not in self.values or published is None:
            return None
        return self.values[measure].mean - published


class Best(NamedTuple):
    """The best method of a cell by one measure."""

    title: str
    value: float


def summarize(specs: Iterable[Spec], records: Mapping[str, Record]) -> tuple[Line, ...]:
    """One line per problem and method of a grid, in its order.

    Parameters
    ----------
    specs : iterable of Spec
        What should be there.
    records : mapping of str to record
        What is, by name (``Store.records()``).

    Returns
    -------
    tuple of Line
    """
    groups: dict[tuple[Any, ...], list[Spec]] = {}
    for spec in specs:
        key = (spec.cell, spec.method, spec.settings, spec.n_rows)
        groups.setdefault(key, []).append(spec)
    return tuple(_line(group, records) for group in groups.values())


def _line(specs: Sequence[Spec], records: Mapping[str, Record]) -> Line:
    found = [records[spec.name] for spec in specs if spec.name in records]
    values = {}
    for measure in MEASURES:
        known = [record["metrics"][measure] for record in found]
        known = [value for value in known if value is not None]
        if known:
            values[measure] = _spread(known)
    first = specs[0]
    # a setting makes it another method than the published one
    paper = None if first.settings else _published().get((first.cell, first.method))
    return Line(
        first.cell,
        first.method,
        first.settings,
        tuple(sorted(spec.wave for spec in specs if spec.name in records)),
        tuple(sorted(spec.wave for spec in specs if spec.name not in records)),
        values,
        {
            spec.wave: records[spec.name]["metrics"]["accuracy"]
            for spec in specs
            if spec.name in records
        },
        statistics.fmean(r["seconds"] for r in found) if found else None,
        "; ".join(sorted({record["device"] for record in found})),
        paper,
    )


def _spread(values: Sequence[float]) -> Spread:
    sd = statistics.stdev(values) if len(values) > 1 else None
    return Spread(statistics.fmean(values), sd, len(values))


@cache
def _published() -> Mapping[tuple[Cell, str], PaperResult]:
    """The paper's number for each problem and method.

    Some are printed several times; the appendix's five seeds with their spread stand
    over Table 1's, and those over the three seeds of Appendix H.
    """
    keys = {entry.title: name for name, entry in METHODS.items()}
    rank = ("appendix_E", "main", "appendix_H")
    found: dict[tuple[Cell, str], PaperResult] = {}
    for table in reversed(rank):
        for result in paper_results():
            if result.table.startswith(table):
                cell = (result.dataset, result.n_domains, result.alpha)
                found[cell, keys[result.method]] = result
    return found


# ---- winners ---------------------------------------------------------------------


def best_of(
    lines: Iterable[Line], measure: str, *, published: bool = False, ours: bool = False
) -> dict[Cell, Best]:
    """The best method of every cell by its mean; methods that read labels are left out.

    Parameters
    ----------
    lines : iterable of Line
    measure : {"accuracy", "prevalence_error"}
    published : bool, default=False
        The best of all numbers that the paper prints for the cell instead, whatever
        method and table; doubtful ones are left out.
    ours : bool, default=False
        Only our own methods.

    Returns
    -------
    dict
        Maps cell to Best; cells without any number are left out.
    """
    cells = dict.fromkeys(line.cell for line in lines)
    if published:
        candidates = [
            (cell, result.method, getattr(result, measure))
            for result in paper_results()
            for cell in [(result.dataset, result.n_domains, result.alpha)]
            if cell in cells and measure not in result.doubtful
        ]
    else:
        candidates = [
            (line.cell, line.title, line.values[measure].mean)
            for line in lines
            if measure in line.values
            and not line.labelled
            and (METHODS[line.method].ours or not ours)
        ]
    found: dict[Cell, Best] = {}
    for cell, title, value in candidates:
        if value is not None and (
            cell not in found or MEASURES[measure] * (value - found[cell].value) > 0
        ):
            found[cell] = Best(title, value)
    return {cell: found[cell] for cell in cells if cell in found}


# ---- what is missing -------------------------------------------------------------


def commands(lines: Iterable[Line], grid: str, store: str = "DIR") -> list[str]:
    """Commands that run what is missing into a store: one per data set and method."""
    wanted: dict[tuple[str, str], set[int]] = {}
    for line in lines:
        if line.missing:
            key = line.cell[0], line.method
            wanted.setdefault(key, set()).update(line.missing)
    return [
        f"shoal bench run {grid} --dataset {dataset} --method {method} "
        + " ".join(f"--wave {wave}" for wave in sorted(waves))
        + f" --store {shlex.quote(store)}"
        for (dataset, method), waves in wanted.items()
    ]


# ---- rows and CSV ----------------------------------------------------------------


def flat_rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every line as one flat row, numbers in full."""
    winners = {measure: winners_of(lines, measure) for measure in MEASURES}
    return [_flat_row(line, winners) for line in lines]


def csv_text(lines: Sequence[Line]) -> str:
    """The flat rows as CSV."""
    rows = flat_rows(lines)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat_row(line: Line, winners: Mapping[str, Mapping[Cell, Best]]) -> dict[str, Any]:
    dataset, n_domains, alpha = line.cell
    row: dict[str, Any] = {
        "dataset": dataset,
        "n_domains": n_domains,
        "alpha": alpha,
        "max_condition": DATASETS[dataset].max_condition[alpha],
        "method": line.method,
        "settings": " ".join(f"{name}={value}" for name, value in line.settings),
        "labelled": line.labelled,
        "n_waves": len(line.waves),
        "n_missing": len(line.missing),
    }
    for measure in MEASURES:
        spread = line.values.get(measure)
        best = winners[measure].get(line.cell)
        row |= {
            measure: None if spread is None else spread.mean,
            f"{measure}_sd": None if spread is None else spread.sd,
            f"{measure}_paper": line.printed(measure),
            f"{measure}_paper_doubtful": line.doubtful(measure),
            f"{measure}_difference": line.difference(measure),
            f"{measure}_wins": best is not None and best.title == line.title,
        }
    return row | {"seconds": line.seconds, "device": line.device}


def winners_of(lines: Sequence[Line], measure: str) -> dict[Cell, Best]:
    """Best of all numbers of a cell: those run here and those published."""
    here = best_of(lines, measure)
    winners = best_of(lines, measure, published=True)
    for cell, best in here.items():
        known = winners.get(cell)
        if known is None or MEASURES[measure] * (best.value - known.value) >= 0:
            winners[cell] = best
        else:
            winners[cell] = Best(f"{known.title} (paper)", known.value)
    return {
        cell: best if cell in here else Best(f"{best.title} (paper)", best.value)
        for cell, best in winners.items()
    }
