"""Commands of a few lines: ``shoal version``, ``explain``, ``sign`` and ``app``."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import _runs
from shoal.cli._messages import CommandError, catalogue
from shoal.cli._models import Model
from shoal.cli._options import Speech, speaking, with_groups, working
from shoal.cli._output import running
from shoal.cli._runs import collect_versions

# ---- version: what to paste into a bug report ----------------------------------------


@with_groups
def version(speech: Speech) -> None:
    """Versions of shoal and of what it stands on, for bug reports."""
    with running("version", speech) as output:
        output.data = collect_versions()
        width = max(map(len, output.data))
        for name, value in output.data.items():
            output.show(f"{name:{width}}  {value or 'not installed'}")


# ---- explain: the long text of a coded message, offline ------------------------------


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


# ---- sign: a model that can be told from forged ones by who has the key --------------


@dataclass(frozen=True, kw_only=True)
class Signing:
    """With what, and whether to sign at all."""

    key: Path | None = working(
        None, "File with a secret of 16 bytes or more.", metavar="FILE"
    )
    check: bool = working(False, "Only see whether it was signed with that key.")


@with_groups
def sign(model: Model, how: Signing, speech: Speech) -> None:
    """Sign a model with a key, or see whether it was signed with it.

    Every file of a model is under a digest, which shows damage; whoever changes it on
    purpose writes new digests. A signature cannot be made anew without the key: with
    --check, or as shoal.load(MODEL, key=FILE), a model that was changed by somebody
    else is refused before it is read. Covers the model, not the other files of a run.
    What changes the model, such as `shoal name`, takes the signature away.
    """
    import shoal
    from shoal.io import sign as sign_model

    with running("sign", speech) as output:
        if how.key is None:
            text = "say which key to sign with: --key FILE"
            raise CommandError("E002", text, "`openssl rand -hex 32` makes one")
        _runs.settled(model)
        if how.check:
            shoal.load(model, key=how.key)
            output.data = {"signed": True}
            output.show(f'"{model}" was signed with this key, and is as it was then.')
            return
        output.files = [sign_model(model, how.key)]
        output.data = {"signed": True}
        output.show_files()


# ---- app: a page to drop a table on, served on this machine only ---------------------

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
