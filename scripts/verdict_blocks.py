"""The block on how far verdicts can be trusted, from its record."""

import json
from pathlib import Path
from typing import Any

from bench_blocks import table

RECORD = Path(__file__).parents[1] / "results" / "tabular" / "verdicts.json"
INTERVALS = "90% intervals hold the truth, mean of sound problems"
#: What a row says, the name it has in the record, and what it should be.
RATES = (
    ('"clear": accuracy within .05 of the reference',
     "clear, within .05 of the reference", ".85"),
    ('"clear": more than .15 below it', "clear, more than .15 below it", "at most .01"),
    ('sound: "clear"', "sound and called clear", ""),
    ('sound: "do not use"', "sound and forbidden", ""),
    ('strongest violations: "do not use"', "strong and forbidden", ".90"),
    ("of these, more than .05 below the reference",
     "strong, more than 0.05 below the reference, forbidden", ""),
    ("of these, more than .15 below the reference",
     "strong, more than 0.15 below the reference, forbidden", ""),
    ("of these, within .05 (harmless)",
     "strong, within .05 of the reference, forbidden", ""),
    ('any violation, more than .15 below: "do not use"',
     "all more than .15 below, forbidden", ""),
    ("sound, and told `W124`", "sound, and an instrument named", ""),
)  # fmt: skip
PLANTED = {
    "column and domain named first by `W124`: unit, factor 1.2 to 4": "unit",
    "offset of .5, 1 and 2 deviations": "offset",
    "gain of 1.3, 1.6 and 2.5": "gain",
}


def verdicts() -> str:
    """Rates on problems not opened before, beside those of the version before."""
    found = json.loads(RECORD.read_text(encoding="utf-8"))["summary"]
    both = found["fresh"], found["earlier"]
    rows = [[text, *(rate(one[key]) for one in both), aim] for text, key, aim in RATES]
    for text, kind in PLANTED.items():
        rows.append([text, *(planted(one, kind) for one in both), ".90"])
    coverage = [one["coverage by shape"] for one in both]
    rows.append([INTERVALS, *(f"{one['all']:.3f}" for one in coverage), ".85 to .95"])
    for shape in (name for name in coverage[0] if name != "all"):
        rows.append([f"of these, {shape}", *(rate(one[shape]) for one in coverage), ""])
    now, before = (one["problems"] for one in both)
    head = ["", f"now ({now} problems)", f"before ({before})", "aim"]
    return table(head, rows)


def planted(found: dict[str, Any], kind: str) -> str:
    """Shares named first, by strength."""
    named = found["instruments named first"]
    return ", ".join(f"{named[f'{kind} {strength}'][0]:.2f}" for strength in (1, 2, 3))


def rate(share: tuple[float, int]) -> str:
    """A share, and of how many problems."""
    return f"{share[0]:.3f} ({share[1]})"
