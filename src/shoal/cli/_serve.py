"""``shoal app``: a page to drop a table on, served on this machine only."""

from dataclasses import dataclass
from pathlib import Path

import typer

from shoal.cli._options import Speech, speaking, with_groups
from shoal.cli._output import running

LARGEST_PORT = 65_535


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where the page is, and for how long."""

    out: Path = speaking(
        Path("shoal-app"), "Folder of tables and results.", metavar="DIR"
    )
    port: int = speaking(0, "Port; a free one if 0.", min=0, max=LARGEST_PORT)
    max_mb: float = speaking(200.0, "Larger files are refused.", min=1)
    seconds: float | None = speaking(None, "End by itself after so long.", min=0)
    open_it: bool = speaking(False, "Show it in the browser.", "--open")


@with_groups
def app(how: Serving, speech: Speech) -> None:
    """A page to drop a table on: choose the domain, fit, read, name, download.

    Prints an address that works on this machine only and holds a random word, so that
    no other program knows it; open it in a browser. Ctrl-C ends the page. Tables and
    results stay in --out, where the next start finds them; nothing leaves the machine.
    """
    from shoal.io._files import require

    with running("app", speech) as output:
        for package in ("starlette", "uvicorn"):
            require(package, "app", "the page")
        from shoal.app import serve

        def ready(address: str) -> None:
            output.show(f"Open {address} (Ctrl-C ends it)")
            output.data = {"address": address, "folder": str(how.out)}
            if how.open_it:
                typer.launch(address)

        serve(
            how.out,
            port=how.port,
            max_mb=how.max_mb,
            seconds=how.seconds,
            ready=ready,
        )
        output.show(f"Tables and results stay in {how.out}")
