"""``shoal check``: how the data were read and what stands out, without fitting."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import Notice
from shoal.cli._options import NUMBERS, SafeResults, Speech, Work, with_groups
from shoal.cli._output import Output, running
from shoal.cli._reading import Data, name_of, read, with_gaps
from shoal.cli._runs import keep_json, refuse_results
from shoal.cli._tables import percent, plain_table, shortened_table
from shoal.io._options import ReadOptions

if TYPE_CHECKING:
    from shoal.io import Table


FILE = "check.json"


@with_groups
def check(
    data: Data, source: ReadOptions, work: Work, results: SafeResults, speech: Speech
) -> None:
    """How each column is read, rows per domain, what stands out; fits nothing.

    Shows which columns become features and why others are set aside, how many rows
    each domain has, how many classes the domains allow, columns that alone give the
    domain away, and domains that measure otherwise. With --out, writes check.json.
    """
    plan = {"read": f"reading {name_of(data)}", "look": "looking at it"}
    with running("check", speech, results) as output:
        refuse_results(results, [FILE])
        with output.stages(plan):
            output.begin("read")
            table = read(output, data, with_gaps(source), work.seed)
            output.begin("look")
            output.found(describe(table, work.seed))
        output.warn_all(remarks(output.data))
        keep_json(output, results, FILE)
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
        "beside the libraries.",
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


def _span(ends: list[int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]}-{ends[1]}"


# ---- what is said about a table before any fit ---------------------------------------

# Of images nothing is known before they are embedded.
UNSEEN = {
    "rows_looked_at": 0,
    "leaks": {},
    "repeated_rows": 0,
    "repeated_excess": None,
    "drift": [],
}


def describe(table: "Table", seed: int) -> dict[str, Any]:
    """Columns, domains, leaks, copies and size, as plain numbers and words."""
    import numpy as np

    domains, codes = np.unique(np.asarray(table.domains, str), return_inverse=True)
    sizes, has_columns = np.bincount(codes), table.X is not None
    return {
        "kind": table.kind,
        "source": table.source,
        "n_rows": table.n_rows,
        "n_features": len(table.feature_names),
        "columns": [
            {"name": one.name, "role": one.role, "reason": one.reason}
            for one in table.columns
        ],
        "domains": dict(zip(domains.tolist(), sizes.tolist(), strict=True)),
        "largest_k": len(domains),
        "images": None if has_columns else _describe_images(table.frame),
        "megabytes": NUMBERS.copies * _bytes(table.X) / 1e6,
        **(_look(table, codes, np.random.default_rng(seed)) if has_columns else UNSEEN),
    }


def _describe_images(frame: Any) -> dict[str, Any]:
    """Formats of the files, and the least and largest width and height."""
    return {
        "formats": {
            str(name): int(n) for name, n in frame["format"].value_counts().items()
        },
        "width": [int(frame["width"].min()), int(frame["width"].max())],
        "height": [int(frame["height"].min()), int(frame["height"].max())],
    }


def remarks(found: dict[str, Any]) -> Iterator[Notice]:
    """What of it deserves a warning, by the thresholds of a diagnosis."""
    from shoal.analysis.diagnose import THRESHOLDS
    from shoal.io._files import quoted

    for name, accuracy in found["leaks"].items():
        if accuracy >= THRESHOLDS.leak:
            yield Notice(
                "W121",
                f'"{name}" alone names the domain in {accuracy:.0%} of rows',
                f"--drop {quoted(name)} unless it is a property of the class",
            )
    for one in found["drift"]:
        yield Notice(one["code"], one["text"].rstrip("."), one["hint"].rstrip("."))
    copies, looked = found["repeated_rows"], found["rows_looked_at"]
    if copies > THRESHOLDS.repeats * looked and (found["repeated_excess"] or 3) > 2:
        yield Notice(
            "W122",
            f"{copies} of {looked} rows occur in more than one domain",
            "remove copies; they pull the domains together",
        )


def _look(table: "Table", codes: Any, rng: Any) -> dict[str, Any]:
    """Columns that alone name the domain, and rows with a copy in another domain."""
    import numpy as np

    from shoal.analysis.diagnose._guess import find_repeats, naming_columns

    names = np.unique(np.asarray(table.domains, str))
    rows = np.arange(len(codes))
    if len(rows) > NUMBERS.check_rows:
        rows = np.sort(rng.choice(rows, NUMBERS.check_rows, replace=False))
    X, codes = table.X[rows], codes[rows]
    accuracy = naming_columns(X, codes, rng)
    ranked = sorted(accuracy, key=accuracy.__getitem__, reverse=True)
    is_bag = table.kind in ("counts", "text")  # short texts are alike by chance
    repeats = None if is_bag else find_repeats(X, codes)
    excess = None if repeats is None or np.isinf(repeats.excess) else repeats.excess
    return {
        "rows_looked_at": len(rows),
        "leaks": {
            table.feature_names[index]: accuracy[index]
            for index in ranked[: NUMBERS.shown_leaks]
        },
        "repeated_rows": 0 if repeats is None else repeats.n_rows,
        "repeated_excess": excess,
        "drift": [] if is_bag else _drift(table, X, codes, names, rng),
    }


def _drift(
    table: "Table", X: Any, codes: Any, names: Any, rng: Any
) -> list[dict[str, str]]:
    """What speaks against domains that hold the same classes in another mix."""
    import numpy as np

    from shoal.analysis.diagnose import Case
    from shoal.analysis.diagnose._drift import find_drift
    from shoal.analysis.diagnose._findings_domains import (
        find_domains_apart,
        find_instrument,
    )

    if not isinstance(X, np.ndarray):
        return []
    numbers = {
        "drift": find_drift(X, codes, rng),
        "columns": list(table.feature_names),
        "drift_fitted": False,
        "drift_left": None,
    }
    case = Case(numbers, names, [])
    findings = (find_domains_apart(case), find_instrument(case))
    return [
        {"code": one.code, "text": one.reason, "hint": one.advice}
        for one in findings
        if one is not None and one.status != "ok"
    ]


def _bytes(X: Any) -> int:
    if X is None:
        return 0
    parts = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
    return sum(part.nbytes for part in parts)
