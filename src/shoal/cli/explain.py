"""``shoal explain``: the long text of a coded message, offline."""

from difflib import get_close_matches
from typing import Annotated

import typer

from shoal.cli.messages import CATALOGUE, CommandError
from shoal.cli.options import AsJson, Debug, NoColor, Quiet
from shoal.cli.output import running

__all__ = ["explain"]


def explain(
    code: Annotated[str, typer.Argument(help="Code of a message, such as W139.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
    debug: Debug = False,
) -> None:
    """What a coded message means and what to do about it."""
    with running(
        "explain", as_json=as_json, quiet=quiet, color=not no_color, debug=debug
    ) as output:
        known = CATALOGUE.get(code.upper())
        if known is None:
            near = get_close_matches(code.upper(), CATALOGUE, n=1, cutoff=0)[0]
            raise CommandError(
                "E002",
                f'no message has the code "{code}"',
                f'nearest: "{near}"; all codes: {", ".join(CATALOGUE)}',
            )
        output.data = {
            "code": code.upper(),
            "title": known.title,
            "text": known.text,
            "exit_code": known.exit_code,
        }
        output.show(f"{code.upper()}: {known.title}", "", known.text)
