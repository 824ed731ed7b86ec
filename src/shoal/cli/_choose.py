"""``shoal choose``: how many classes, as a curve and a choice."""

import time
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from shoal.cli._fit import nothing_to_find
from shoal.cli._messages import CommandError, write_json
from shoal.cli._models import choose_k, refuse_unfit
from shoal.cli._options import (
    Encoder,
    Learning,
    SafeResults,
    Speech,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._reading import (
    Data,
    name_of,
    read,
    refuse_images,
    with_gaps,
)
from shoal.cli._runs import keep, refuse_results
from shoal.cli._tables import percent, plain_table
from shoal.io._options import ReadOptions

FILES = ("choose.json", "choose.png")


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """What is tried."""

    k: str | None = working(
        None, "Numbers of classes to try, such as 2:8.", metavar="LOW:HIGH"
    )
    repeats: int = working(5, "Resamples behind the stability.", min=0)
    time_limit: float | None = working(
        None,
        "Begin nothing new after so long; the likeliest numbers come first.",
        min=1,
        metavar="SECONDS",
    )

    @property
    def numbers(self) -> range | None:
        """Numbers of classes as given, both ends included."""
        if self.k is None:
            return None
        low, _, high = self.k.partition(":")
        high = high or low
        if not (low.isdecimal() and high.isdecimal() and 2 <= int(low) <= int(high)):
            text = "k must be a whole number from 2, or a range such as 2:8, got "
            raise CommandError("E002", f'{text}"{self.k}"', "write --k 2:8")
        return range(int(low), int(high) + 1)


@with_groups
def choose(
    data: Data,
    source: ReadOptions,
    encoder: Encoder,
    work: Learning,
    trials: TrialOptions,
    results: SafeResults,
    speech: Speech,
) -> None:
    """How many classes the data support: a curve and a choice, or "no clear number".

    Every number of classes is judged by how well it predicts the domains of held-out
    rows, by whether rows keep their class when drawn again, and by the differences
    between domains alone. A folder of images needs --encoder. With --out, writes
    choose.json and a figure.
    """
    plan = {"read": f"reading {name_of(data)}"} | encoder.plan()
    plan |= {"choose": "trying numbers of classes"}
    with running("choose", speech, results) as output:
        candidates = trials.numbers
        encoder.refuse_unused()
        refuse_unfit(encoder, work)
        refuse_results(results, FILES)
        with output.stages(plan):
            output.begin("read")
            asked = (output, data, with_gaps(source), work.seed)
            table = read(*asked, encoder=encoder.of_texts)
            how = {"work": work, "skip_bad": source.skip_bad}
            table, _ = encoder.embed(output, table, **how)
            refuse_images(table)
            output.begin("choose")
            begun, limit = time.monotonic(), trials.time_limit
            choice = choose_k(
                table,
                work,
                n_classes=candidates,
                n_resamples=trials.repeats,
                time_limit=limit,
            )
        if not choice.signal:
            gain = choice.held_out.max() - choice.baseline
            told = f"gain {gain:.3f} nats, within chance"
            raise nothing_to_find(told, encoded=encoder.encodes)
        was_up = limit is not None and time.monotonic() - begun > limit
        output.found(describe(choice) | {"time_was_up": was_up})
        keep(output, results, FILES, lambda to: write(to, choice, output.data))
        show(output)


def describe(choice: Any) -> dict[str, Any]:
    """The choice and one record per number of classes."""
    return {
        "n_classes": choice.n_classes,
        "sentence": choice.sentence,
        "rank": choice.rank,
        "baseline": choice.baseline,
        "curve": choice.to_pandas().to_dict("records"),
    }


def show(output: Output) -> None:
    """The curve as a table, and the choice."""
    found = output.data
    best = max(record["held_out"] for record in found["curve"])
    rows = []
    for record in found["curve"]:
        behind = best - record["held_out"]
        mark = "chosen" if record["chosen"] else ""
        mark = mark if record["identifiable"] else "more than domains"
        rows.append(
            [
                str(record["n_classes"]),
                f"{behind:.4f} ± {record['difference_error']:.4f}",
                "-" if isnan(record["stability"]) else percent(record["stability"]),
                f"{record['singular_value']:.3f}",
                mark,
            ]
        )
    heads = ["classes", "unexplained (nats behind the best)", "rows in the same class "
             "when fitted anew", "smallest singular value", ""]  # fmt: skip
    output.show(plain_table("Numbers of classes", heads, rows), found["sentence"] + ".")
    if found["time_was_up"]:
        output.show("The time was up: what is not shown was not tried.")
    output.show_files()


def write(place: Path, choice: Any, found: dict[str, Any]) -> None:
    """Write choose.json and the figure of the curve."""
    from matplotlib.figure import Figure

    from shoal.plots import plot_choice

    figure = Figure(figsize=(6, 4), layout="constrained")
    plot_choice(choice, ax=figure.add_subplot())
    write_json(place / FILES[0], found)
    figure.savefig(place / FILES[1], dpi=150)
