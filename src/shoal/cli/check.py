"""``shoal check``: how the data were read and what stands out, without fitting."""

from typing import Any

from shoal.cli.groups import with_groups
from shoal.cli.looking import describe, remarks
from shoal.cli.options import Force, Out, Redact, Speech, Work
from shoal.cli.output import Output, running
from shoal.cli.places import filled_folder, refuse_existing
from shoal.cli.plain import write_json
from shoal.cli.progress import Stage
from shoal.cli.reading import Data, Source, name_of, read
from shoal.cli.tables import percent, plain_table, shortened_table

__all__ = ["check"]

FILE = "check.json"


@with_groups
def check(
    data: Data,
    source: Source,
    work: Work,
    speech: Speech,
    out: Out = None,
    redact: Redact = False,
    force: Force = False,
) -> None:
    """How each column is read, rows per domain, what stands out; fits nothing.

    Shows which columns become features and why others are set aside, how many rows
    each domain has, how many classes the domains allow, and columns that alone give
    the domain away. With --out, writes check.json.
    """
    plan = {"read": Stage(f"reading {name_of(data)}"), "look": Stage("looking at it")}
    with running("check", redact=redact, **speech.options) as output:
        if out is not None:
            refuse_existing(out, [FILE], force=force)
        with output.stages(plan) as stages:
            stages.begin("read")
            table = read(output, data, source, work.seed, redact=redact)
            stages.begin("look")
            output.data = describe(table, work.seed, redact=redact)
        for remark in remarks(output.data):
            output.warn(remark.code, remark.text, remark.hint)
        if out is not None:
            with filled_folder(out) as place:
                write_json(place / FILE, output.data)
            output.files = [out / FILE]
        show(output)


def show(output: Output) -> None:
    """Tables of columns and domains, then what the numbers mean."""
    found = output.data
    output.show(
        shortened_table(
            "Columns",
            ["column", "role", "why"],
            [[one["name"], one["role"], one["reason"]] for one in found["columns"]],
        ),
        shortened_table(
            "Domains",
            ["domain", "rows"],
            [[name, str(size)] for name, size in found["domains"].items()],
        ),
        *(show_columns(found) if found["images"] is None else show_images(found)),
        f"{len(found['domains'])} domains: 2 to {found['largest_k']} classes can be "
        "told apart.",
    )
    output.show_files()


def show_columns(found: dict[str, Any]) -> list[Any]:
    """What columns tell about the domain, and the cost of a fit."""
    return [
        plain_table(
            "Columns that tell most about the domain",
            ["column", "rows whose domain it names alone"],
            [[name, percent(share)] for name, share in found["leaks"].items()],
        ),
        f"{found['n_rows']:,} rows, {found['n_features']:,} features "
        f"({found['kind']}); a fit needs about {max(found['megabytes'], 1):,.0f} MB "
        f"beside the libraries and, on one core, very roughly "
        f"{_duration(found['seconds_to_fit'])}.",
    ]


def show_images(found: dict[str, Any]) -> list[str]:
    """What is known of images before a network has looked at them."""
    images = found["images"]
    wide, high = (_span(images[side]) for side in ("width", "height"))
    formats = ", ".join(f"{n:,} {name}" for name, n in images["formats"].items())
    return [
        f"{found['n_rows']:,} images ({formats}), {wide} x {high} pixels. To fit them, "
        "add --encoder with the weights of a network; `shoal pretrain` trains one."
    ]


def _duration(seconds: float) -> str:
    """A time as people say it, no more exact than it is known."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.0f} hours"


def _span(ends: list[int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"
