"""Every code that a command can end or warn with, and what ``shoal explain`` says.

A code never changes its meaning. ``E`` stops a command, ``W`` lets it go on, a word
names a check of ``shoal diagnose``. The short text and its hint are written where a
message arises; the long text stands here, and in docs/messages.md, which is made from
it.
"""

from shoal.cli.catalogue._bench import BENCH
from shoal.cli.catalogue._checks import CHECKS
from shoal.cli.catalogue._columns import COLUMNS
from shoal.cli.catalogue._explanation import Explanation
from shoal.cli.catalogue._files import FILES
from shoal.cli.catalogue._models import MODELS
from shoal.cli.catalogue._scale import SCALE
from shoal.cli.catalogue._usage import USAGE

__all__ = ["CATALOGUE", "EXIT_CODES", "Explanation", "SECTIONS"]

#: Title of each part of the catalogue, in the order of a command's life.
SECTIONS: dict[str, dict[str, Explanation]] = {
    "Usage and ends": USAGE,
    "Files": FILES,
    "Columns, rows and domains": COLUMNS,
    "Models and results": MODELS,
    "Checks of a diagnosis": CHECKS,
    "Work in parts": SCALE,
    "The benchmark": BENCH,
}

CATALOGUE = {
    code: explanation
    for section in SECTIONS.values()
    for code, explanation in section.items()
}

#: What the status of a command means to the shell.
EXIT_CODES = {
    0: "done",
    1: "bug in shoal",
    2: "wrong usage",
    3: "input or output unusable",
    4: "not answerable from these data",
    5: "optional package missing",
    6: "model problem",
    7: "done, but a check failed under --strict",
    130: "interrupted",
}
