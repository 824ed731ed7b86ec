"""The mixes of so many domains that nobody reads them one by one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.cli._options import NUMBERS

Mixes = Mapping[str, Sequence[Mapping[str, Any]]]

#: What the rows of the summary are called, and the share of domains below.
SPREAD = {"a tenth are below": 0.1, "half are below": 0.5, "nine tenths are below": 0.9}


def spread_rows(mixes: Mixes, cell: Callable[[float], str]) -> list[list[str]]:
    """How the share of each class is spread over domains, all of which count alike.

    ``mixes`` has the records of each domain, one for each class.
    """
    import numpy as np

    shares = np.array([[one["estimate"] for one in own] for own in mixes.values()])
    n_rows = sum(own[0]["n_rows"] for own in mixes.values())
    rows = [["average of all", f"{n_rows:,}", *map(cell, shares.mean(axis=0))]]
    for name, below in SPREAD.items():
        rows.append([name, "", *map(cell, np.quantile(shares, below, axis=0))])
    return rows


def largest(mixes: Mixes) -> tuple[list[str], str]:
    """The largest of the domains whose own shares can be read, and a word on them."""
    wide = [name for name, own in mixes.items() if own[0]["flag"] != "thin"]
    wide.sort(key=lambda name: -int(mixes[name][0]["n_rows"]))
    shown = wide[: NUMBERS.largest_domains]
    if not shown:
        return shown, "No domain has rows enough to be read alone"
    thin = " that are not thin" if len(wide) < len(mixes) else ""
    return shown, f"Below the line: the {len(shown)} largest{thin}"
