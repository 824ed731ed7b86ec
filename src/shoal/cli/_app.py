"""The command line's table of contents: every command, with its example."""

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from shoal.cli._adapt import adapt
from shoal.cli._check import check
from shoal.cli._choose import choose
from shoal.cli._compare import compare
from shoal.cli._demo import demo
from shoal.cli._diagnose import diagnose
from shoal.cli._diff import diff
from shoal.cli._embed import embed
from shoal.cli._fit import fit
from shoal.cli._messages import EXIT_CODES
from shoal.cli._name import name
from shoal.cli._predict import predict
from shoal.cli._pretrain import pretrain
from shoal.cli._report import report
from shoal.cli._small import app as page_to_drop_on
from shoal.cli._small import explain, sign, version
from shoal.cli._tree import tree
from shoal.cli._trend import trend
from shoal.cli._update import update

#: Every command and the example that its help shows; a test runs them in this order.
#: Other packages bring commands as entry points of "shoal.commands".
EXAMPLES: dict[Callable[..., None], str] = {
    demo: "shoal demo",
    check: "shoal check shoal-demo/penguins.csv --domain island --label species",
    choose: "shoal choose shoal-demo/penguins.csv --domain island --label species",
    fit: "shoal fit shoal-demo/penguins.csv --domain island --label species",
    diagnose: "shoal diagnose shoal-demo/penguins.csv --model shoal-demo",
    name: "shoal name shoal-demo --set c0=Adelie --set c1=Gentoo",
    predict: "shoal predict shoal-demo shoal-demo/penguins.csv",
    adapt: "shoal adapt shoal-demo shoal-demo/new-place.csv --domain-name Anvers",
    update: "shoal update shoal-demo shoal-demo/new-place.csv --domain-name Anvers "
    "--out with-anvers",
    diff: "shoal diff shoal-demo with-anvers",
    compare: "shoal compare shoal-demo --formula '~ ice' --domains islands.csv",
    trend: "shoal trend shoal-demo birds.csv --order year",
    tree: "shoal tree shoal-demo shoal-demo/penguins.csv --cut 2 --out coarse",
    report: "shoal report shoal-demo --title 'Penguins of Palmer Station'",
    sign: "shoal sign shoal-demo --key key.txt",
    pretrain: "shoal pretrain photos --epochs 2",
    embed: "shoal embed photos --weights photos-encoder",
    page_to_drop_on: "shoal app --seconds 1",
    **dict(point.load() for point in entry_points(group="shoal.commands")),
    explain: "shoal explain W139",
    version: "shoal version",
}

app = typer.Typer(
    name="shoal",
    help="Discover classes in unlabeled data from several domains: things that shift "
    "together group together.",
    epilog="Exit codes: "
    + ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
    + ". First try: shoal demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"shoal {version_of('shoal')}")
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[
        bool,
        typer.Option(
            "--version", help="Print it.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    pass


def _help_of(command: Callable[..., None]) -> str:
    """Its docstring, one line per paragraph: the terminal does the wrapping."""
    paragraphs = inspect.getdoc(command).split("\n\n")  # type: ignore[union-attr]
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


for _command, _example in EXAMPLES.items():
    app.command(help=_help_of(_command), epilog=f"Example: {_example}")(_command)
