"""``shoal choose``: how many classes, as a curve and a choice."""

import time
from math import isnan
from pathlib import Path
from typing import Annotated, Any

from shoal.cli._fitting import choose_k, nothing_to_find
from shoal.cli._imaging import Encoder, embed_table, plan_images
from shoal.cli._messages import CommandError, write_json
from shoal.cli._options import (
    Force,
    Out,
    Redact,
    Speech,
    Work,
    refuse_no_encoder,
    with_groups,
    working,
)
from shoal.cli._output import Output, Stage, running
from shoal.cli._places import filled_folder, refuse_existing
from shoal.cli._reading import Data, Source, name_of, read, refuse_images
from shoal.cli._tables import percent, plain_table

FILES = ("choose.json", "choose.png")

Range = Annotated[
    str | None,
    working("--k", metavar="LOW:HIGH", help="Numbers of classes to try, such as 2:8."),
]
Repeats = Annotated[
    int, working("--repeats", min=0, help="Resamples behind the stability.")
]
TimeLimit = Annotated[
    float | None,
    working(
        "--time-limit",
        min=1,
        metavar="SECONDS",
        help="Begin nothing new after so long; the likeliest numbers come first.",
    ),
]


@with_groups
def choose(
    data: Data,
    source: Source,
    encoder: Encoder,
    work: Work,
    speech: Speech,
    k: Range = None,
    repeats: Repeats = 5,
    time_limit: TimeLimit = None,
    out: Out = None,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """How many classes the data support: a curve and a choice, or "no clear number".

    Every number of classes is judged by how well it predicts the domains of held-out
    rows, by whether rows keep their class when drawn again, and by the differences
    between domains alone. A folder of images needs --encoder. With --out, writes
    choose.json and a figure.
    """
    plan = {"read": Stage(f"reading {name_of(data)}")} | plan_images(encoder)
    plan |= {"choose": Stage("trying numbers of classes", 10)}
    with running("choose", redact=redact, **speech.options) as output:
        candidates = parse_range(k)
        refuse_no_encoder(encoder)
        if out is not None:
            refuse_existing(out, FILES, force=force)
        with output.stages(plan) as stages:
            stages.begin("read")
            table = read(output, data, source, work.seed, redact=redact)
            if encoder.given:
                table, _ = embed_table(
                    output, stages, table, encoder, work, skip_bad=source.skip_bad
                )
            refuse_images(table)
            stages.begin("choose")
            begun = time.monotonic()
            choice = choose_k(
                table,
                work,
                n_classes=candidates,
                n_resamples=repeats,
                time_limit=time_limit,
            )
        if not choice.signal:
            gain = choice.held_out.max() - choice.baseline
            raise nothing_to_find(f"gain {gain:.3f} nats, within chance")
        gone = time.monotonic() - begun
        output.data = describe(choice)
        output.data["time_was_up"] = time_limit is not None and gone > time_limit
        if out is not None:
            output.files = write(out, choice, output.data)
        show(output)


def parse_range(text: str | None) -> range | None:
    """Numbers of classes as given, both ends included."""
    if text is None:
        return None
    low, _, high = text.partition(":")
    high = high or low
    if not (low.isdecimal() and high.isdecimal() and 2 <= int(low) <= int(high)):
        raise CommandError(
            "E002",
            f'k must be a whole number from 2, or a range such as 2:8, got "{text}"',
            "write --k 2:8",
        )
    return range(int(low), int(high) + 1)


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
    heads = ["classes", "unexplained (nats behind the best)", "rows that keep their "
             "class", "smallest singular value", ""]  # fmt: skip
    output.show(plain_table("Numbers of classes", heads, rows), found["sentence"] + ".")
    if found["time_was_up"]:
        output.show("The time was up: what is not shown was not tried.")
    output.show_files()


def write(out: Path, choice: Any, found: dict[str, Any]) -> list[Path]:
    """Write choose.json and the figure of the curve."""
    from matplotlib.figure import Figure

    from shoal.plots import plot_n_classes

    figure = Figure(figsize=(6, 4), layout="constrained")
    plot_n_classes(choice, ax=figure.add_subplot())
    with filled_folder(out) as place:
        write_json(place / FILES[0], found)
        figure.savefig(place / FILES[1], dpi=150)
    return [out / name for name in FILES]
