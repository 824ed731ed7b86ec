"""Options that every command takes, spelled once."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "Debug", "Force", "NoColor", "Out", "Quiet", "Seed"]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and --json).")
]
NoColor = Annotated[
    bool, typer.Option("--no-color", help="No colour; NO_COLOR does the same.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Out = Annotated[
    Path, typer.Option("--out", help="Folder for the results.", metavar="DIR")
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite files that are not shoal's own.")
]
