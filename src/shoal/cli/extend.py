"""What commands of other packages are made of: options, output, places, errors.

A package adds a command by an entry point of the group ``shoal.commands`` that names a
pair: the function of the command, and an example of its use.
"""

from functools import partial
from typing import Annotated

import typer

from shoal.cli._messages import CommandError as CommandError
from shoal.cli._options import SPEAKING, WORKING
from shoal.cli._options import Speech as Speech
from shoal.cli._options import with_groups as with_groups
from shoal.cli._output import Output as Output
from shoal.cli._output import running as running
from shoal.cli._runs import filled_folder as filled_folder
from shoal.cli._runs import refuse_existing as refuse_existing

#: Options in the two panels of every command's help.
working = partial(typer.Option, rich_help_panel=WORKING)
speaking = partial(typer.Option, rich_help_panel=SPEAKING)
Force = Annotated[bool, speaking("--force", help="Overwrite what is in the way.")]
