"""What ``shoal bench run`` does: make what is missing and can be made here."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from shoal.cli.extend import CommandError, Output, working
from shoal.exceptions import CodedError

Specs = Sequence[Any]


class Place(StrEnum):
    """Where runs are made."""

    here = "here"
    processes = "processes"
    ray = "ray"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where and how runs are made."""

    data: Annotated[
        Path | None,
        working("--data", metavar="DIR", help="Data; else SHOAL_DATA_DIR."),
    ] = None
    where: Annotated[
        Place, working("--where", help="This process, several, or a Ray cluster.")
    ] = Place.here
    workers: Annotated[
        int | None, working("--workers", min=1, help="Runs at a time; all cores.")
    ] = None
    address: Annotated[
        str | None,
        working("--address", help="Of the Ray cluster; else one on this machine."),
    ] = None
    gpu_share: Annotated[
        float | None,
        working("--gpu-share", min=0, max=1, help="Of a GPU per run, such as 0.25."),
    ] = None
    retry_failed: Annotated[
        bool, working("--retry-failed", help="Also what failed before.")
    ] = False

    @property
    def place(self) -> dict[str, Any]:
        """As :func:`shoal.engine.map_runs` takes it."""
        return {
            "where": self.where.value,
            "workers": self.workers,
            "address": self.address,
            "gpu_share": self.gpu_share,
        }


def run(output: Output, specs: Specs, folder: Path, options: RunOptions) -> None:
    """Make what is missing, say what became of it, and what could not be made here."""
    from shoal_bench.run import run_missing
    from shoal_bench.store import Store

    store = Store(folder)
    missing = [spec for spec in specs if spec.name not in store]
    possible = runnable(output, missing, options)
    with told(output, len(possible), len(specs)) as tell:
        try:
            tally = run_missing(
                possible,
                store,
                data_dir=options.data,
                retry_failed=options.retry_failed,
                on_result=tell,
                **options.place,
            )
        except ValueError as error:  # those of runs are failures, not errors
            raise usage_error(error) from error
    output.data = {
        "store": str(folder),
        "done": len(tally.done),
        "known": len(specs) - len(missing) + len(tally.known),
        "failed": len(tally.failed),
        "failed_before": len(tally.failed_before),
        "elsewhere": len(tally.elsewhere),
        "not_possible": len(missing) - len(possible),
        "seconds": tally.seconds,
    }
    output.files = [folder / "records.jsonl"]
    output.show(summary(output.data))
    warn_failed(output, store, [*tally.failed, *tally.failed_before])


@contextmanager
def told(output: Output, n_runs: int, n_all: int) -> Iterator[Callable[..., None]]:
    """What to call with each result: moves the bar, or prints a line into a log."""
    with output.stages({"runs": f"{n_runs} runs of {n_all}"}) as stages:
        stages.begin("runs")
        seen = count(1)

        def tell(spec: Any, record: dict[str, Any]) -> None:
            if not (output.speech.quiet or sys.stderr.isatty()):
                print(f"{spec}: {verdict(record)}", file=sys.stderr, flush=True)
            stages.advance(next(seen) / n_runs)

        yield tell


def usage_error(error: ValueError) -> CodedError:
    """A place that cannot be had, or an option that makes no sense there."""
    if isinstance(error, CodedError):
        return error
    return CommandError("E002", str(error), "see `shoal bench --help`")


def runnable(output: Output, specs: Specs, options: RunOptions) -> Specs:
    """Specs whose method and data are here; if there are none, what is missing."""
    from shoal_bench.methods import METHODS, absent

    reasons: list[CodedError] = []
    left = list(specs)
    for method in dict.fromkeys(spec.method for spec in specs):
        missing = absent(method)
        if missing is not None:
            reasons.append(missing)
            left = [spec for spec in left if spec.method != method]
    # on a cluster the data are where the workers are
    views = {} if options.where is Place.ray else {
        (spec.dataset, METHODS[spec.method].view): spec for spec in left
    }  # fmt: skip
    for (dataset, view), example in views.items():
        absent_data = data_missing(example, view, options.data)
        if absent_data is not None:
            reasons.append(absent_data)
            left = [
                spec
                for spec in left
                if (spec.dataset, METHODS[spec.method].view) != (dataset, view)
            ]
    if reasons and not left:
        raise reasons[0]
    for reason in reasons:
        output.warn("W150", reason.text, reason.hint)
    return left


def data_missing(spec: Any, view: str, folder: Path | None) -> CodedError | None:
    """What keeps the rows of a spec from being read, if anything does."""
    from shoal_bench.problems import load_problem

    try:
        load_problem(spec, view, folder)
    except FileNotFoundError as error:
        text, _, hint = str(error).rpartition("; ")
        return CodedError("E101", text, hint)
    return None


def verdict(record: dict[str, Any]) -> str:
    """What became of a run, in a few words."""
    if "failure" in record:
        return f"failed, {record['failure']['kind']}: {record['failure']['text']}"
    accuracy, error = (
        record["metrics"][name] for name in ("accuracy", "prevalence_error")
    )
    known = "" if error is None else f", prevalence error {error:.4f}"
    return f"accuracy {accuracy:.3f}{known}, {record['seconds']:.1f} s"


def summary(data: dict[str, Any]) -> str:
    """The counts of a call as one line."""
    words = {
        "done": "done",
        "known": "there already",
        "failed": "failed",
        "failed_before": "failed before",
        "elsewhere": "being run by another process",
        "not_possible": "not possible here",
    }
    counts = [f"{data[key]} {text}" for key, text in words.items() if data[key]]
    return f"{', '.join(counts) or 'nothing to do'} in {data['seconds']:.0f} s"


def warn_failed(output: Output, store: Any, names: Sequence[str]) -> None:
    """Say how many runs failed, and why the first did."""
    failures = store.failures()
    known = [failures[name] for name in names if name in failures]
    if known:
        first = known[0]["failure"]
        text = " ".join(f"{first['kind']}: {first['text']}".split())
        output.warn(
            "W150",
            f"{len(known)} runs failed; the first: {text}",
            f"tracebacks are in {store.folder / 'failed.jsonl'}; try again with "
            "--retry-failed",
        )
