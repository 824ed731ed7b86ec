"""``shoal version``: what to paste into a bug report."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from shoal.cli.options import AsJson, Debug, NoColor, Quiet
from shoal.cli.output import running

__all__ = ["version"]

PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "joblib",
    "safetensors",
    "skops",
    "typer",
    "rich",
    "jinja2",
    "matplotlib",
)
EXTRAS = ("pyarrow", "faiss-cpu", "lightgbm", "torch", "ray", "anndata")


def version(
    as_json: AsJson = False,
    quiet: Quiet = False,
    no_color: NoColor = False,
    debug: Debug = False,
) -> None:
    """Versions of shoal and of what it stands on, for bug reports."""
    options: Any = {"as_json": as_json, "quiet": quiet, "debug": debug}
    with running("version", color=not no_color, **options) as output:
        output.data = collect_versions()
        width = max(map(len, output.data))
        output.show(
            *(
                f"{name:{width}}  {value or 'not installed'}"
                for name, value in output.data.items()
            )
        )


def collect_versions() -> dict[str, str | None]:
    """Version by name; None where a package is not installed. Imports none of them."""
    import shoal

    known: dict[str, str | None] = {
        "shoal": shoal.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    return known | {name: _installed(name) for name in (*PACKAGES, *EXTRAS)}


def _installed(name: str) -> str | None:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None
