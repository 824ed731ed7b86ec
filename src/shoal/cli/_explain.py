"""``shoal explain``: the long text of a coded message, offline."""

from difflib import get_close_matches
from typing import Annotated

import typer

from shoal.cli._messages import CommandError, catalogue
from shoal.cli._options import Speech, with_groups
from shoal.cli._output import running


@with_groups
def explain(
    code: Annotated[str, typer.Argument(help="Code of a message, such as W139.")],
    speech: Speech,
) -> None:
    """What a coded message means and what to do about it."""
    with running("explain", speech) as output:
        by_lower = {known.lower(): known for known in catalogue()}
        known = by_lower.get(code.lower())
        if known is None:
            near = [one for one in by_lower if one.startswith(code.lower())]
            near = near or get_close_matches(code.lower(), by_lower, n=1, cutoff=0)
            raise CommandError(
                "E002",
                f'no message has the code "{code}"',
                f'nearest: "{by_lower[near[0]]}"; all codes: '
                f"{', '.join(sorted(catalogue()))}",
            )
        found = catalogue()[known]
        output.data = {
            "code": known,
            "title": found.title,
            "text": found.text,
            "exit_code": found.exit,
        }
        ends = f" (exit code {found.exit})" if found.exit else ""
        output.show(f"{known}: {found.title}{ends}", "", found.text)
