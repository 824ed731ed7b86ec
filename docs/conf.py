"""Settings of the documentation site; ``make docs`` builds it."""

import re
from typing import Any

import shoal

project = "shoal"
author = "the shoal developers"
release = version = shoal.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# Pages link to README, results and examples of the repository as files.
suppress_warnings = ["myst.xref_missing"]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"shoal {release}"
html_static_path: list[str] = []


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, _: Any) -> bool:
    """Leave out what scikit-learn adds to every estimator, torch to every module."""
    home = getattr(obj, "__module__", None) or ""
    routing = name.endswith("_request") or name == "get_metadata_routing"
    return skip or routing or home.startswith(("sklearn", "torch"))


def escape_fitted_names(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """A name that ends in an underscore is a link to docutils, unless escaped."""
    for number, line in enumerate(lines):
        before, middle, shape = line.partition(" of shape (")
        lines[number] = before + middle + re.sub(r"(?<=\w)_(?=[,) ])", r"\\_", shape)


def setup(app: Any) -> None:
    """Register both, before numpydoc reads the docstrings."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=400)
