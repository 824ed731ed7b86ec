"""Style and scripts of the page, and the policy that allows these and nothing else."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"

#: Runs before anything is drawn: what needs scripts may now be shown.
FIRST_SCRIPT = Markup('document.documentElement.classList.add("js")')


def policy(style: str, *scripts: str) -> Markup:
    """What the page allows itself: this style, these scripts, pictures inside it."""
    allowed = " ".join(_hash(script) for script in scripts)
    return Markup(
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {allowed}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def asset(name: str) -> Markup:
    """A file beside the templates, as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))
