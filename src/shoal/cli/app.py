"""The command line's table of contents: one line per command, with its example."""

import inspect
from collections.abc import Callable

import typer

from shoal.cli.demo import demo
from shoal.cli.explain import explain
from shoal.cli.version import version

__all__ = ["EXAMPLES", "app"]

#: Every command and the example that its help shows; a test runs each.
EXAMPLES: dict[Callable[..., None], str] = {
    demo: "shoal demo --out penguins",
    explain: "shoal explain W139",
    version: "shoal version",
}

app = typer.Typer(
    name="shoal",
    help="Discover classes in unlabeled data from several domains: things that shift "
    "together group together.",
    epilog="Exit codes: 0 done, 1 bug in shoal, 2 wrong usage, 3 input or output "
    "unusable, 4 not answerable from these data, 130 interrupted. First try: "
    "shoal demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _help_of(command: Callable[..., None]) -> str:
    """Its docstring, one line per paragraph: the terminal does the wrapping."""
    paragraphs = inspect.getdoc(command).split("\n\n")  # type: ignore[union-attr]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


for _command, _example in EXAMPLES.items():
    app.command(help=_help_of(_command), epilog=f"Example: {_example}")(_command)
