"""``shoal version``: what to paste into a bug report."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from shoal.cli._options import Speech, with_groups
from shoal.cli._output import running

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
EXTRAS = ("pyarrow", "faiss-cpu", "lightgbm", "torch", "ray", "h5py")


@with_groups
def version(speech: Speech) -> None:
    """Versions of shoal and of what it stands on, for bug reports."""
    with running("version", speech) as output:
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
