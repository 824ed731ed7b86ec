"""Blocks of the page on shift and looks, from their records."""

import json
from pathlib import Path
from typing import Any

from bench_blocks import table

RESULTS = Path(__file__).parents[1] / "results" / "tabular"
METHODS = {
    "shoal": "default",
    "shift": "shift",
    "looks": "looks",
    "k-means": "k-means",
    "gmm": "GMM",
    "gmm, a mix per domain": "GMM, mix per domain",
    "DDFA": "DDFA",
    "majority": "majority",
}


def routes(part: str) -> str:
    """Default route, its witnesses and its peers, by table, and their means."""
    found = read("route.json")[part]
    rows = []
    for name, line in found["tables"].items():
        means = [f"{line['accuracy'][method][0]:.3f}" for method in METHODS]
        if line["n_seeds"] > 1:
            means[0] += f" ± {line['accuracy']['shoal'][1]:.3f}"
        rows.append([f"{name} ({line['n_seeds']})", str(line["looks_spoke"]), *means])
    means = [f"**{found['mean'][method]:.3f}**" for method in METHODS]
    rows.append(["**mean**", "", *means])
    return table(["table (draws)", "looks spoke", *METHODS.values()], rows)


def numbers_of_classes() -> str:
    """Classes given and chosen, and what the choice costs."""
    rows = [
        [
            name,
            str(line["k_given"]),
            " ".join(map(str, line["k_chosen"])),
            plus_minus(line["accuracy_given"]),
            plus_minus(line["accuracy_chosen"]),
        ]
        for name, line in read("given_k.json")["tables"].items()
    ]
    return table(["table", "k", "k chosen", "accuracy, k given", "k chosen"], rows)


def plus_minus(spread: tuple[float, float]) -> str:
    """Mean and standard deviation."""
    return f"{spread[0]:.3f} ± {spread[1]:.3f}"


def read(name: str) -> Any:
    """Summary of a record."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))["summary"]
