"""What users see: documented, listed, and light to import."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import shoal
import shoal_bench

# What a module may need that a bare machine does not have.
OPTIONAL = {"torch", "PIL", "ray", "anndata", "faiss", "lightgbm"}
HEAVY = ("torch", "pandas", "typer", "rich", "skops", "matplotlib", "jinja2", "pyarrow")


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{name} needs {error.name}")
        raise


MODULES = [
    info.name
    for package in (shoal, shoal_bench)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("__main__")
]
PACKAGES = [
    "shoal",
    "shoal.datasets",
    "shoal.metrics",
    "shoal.mixture",
    "shoal.stages.discriminate",
    "shoal.stages.factorize",
    "support",
]


def test_the_modules_are_found():
    assert len(MODULES) > 60
    assert {"shoal.ddfa", "shoal.stages.adjust", "shoal.io"} <= set(MODULES)


# ---- listed and documented --------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_exists_and_says_what_it_is(name):
    module = load(name)
    assert inspect.getdoc(module), f"{name} has no docstring"
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    for public in listed:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{public} has no docstring"


@pytest.mark.parametrize("name", PACKAGES)
def test_what_a_package_offers_is_listed(name):
    """Whatever it imports from its own modules, it imports to offer."""
    module = importlib.import_module(name)
    offered = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("shoal.")
    }
    assert offered <= set(module.__all__)


@pytest.mark.parametrize(
    "name", ["DDFA", "DensityMixture", "DiscreteMixture", "DomainMixture"]
)
def test_every_method_and_parameter_is_documented(name):
    estimator = getattr(shoal, name)
    told = inspect.cleandoc(estimator.__doc__)  # as Python 3.13 keeps it
    assert "Examples\n" in told
    for parameter in inspect.signature(estimator).parameters:
        assert f"\n{parameter} : " in told, parameter
    for key, value in inspect.getmembers(estimator, inspect.isfunction):
        if not key.startswith("_") and value.__module__.startswith("shoal."):
            assert inspect.getdoc(value), f"{name}.{key} has no docstring"


def test_names_are_loaded_on_first_use():
    assert set(shoal.__all__) <= set(dir(shoal))
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'KMeans'"):
        shoal.KMeans  # noqa: B018


# ---- light ------------------------------------------------------------------------

WITHOUT_HEAVY = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""
# torch asks which of its friends are there, and must not be answered by an error.
WITHOUT_OTHERS = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY[1:]}))
"""
FIT = """
import warnings
import numpy as np
from shoal import DDFA, DensityMixture, DiscreteMixture, DomainMixture
from shoal import choose_n_classes
from shoal.datasets import make_latent_shift

warnings.simplefilter("ignore")
X, domains, _ = make_latent_shift(
    400, n_classes=2, n_domains=3, separation=2.0, random_state=0)
for model in (
    DDFA(2, discriminator="logistic", discretizer=4, cross_fit=2, random_state=0),
    DomainMixture(2, search=False, random_state=0),
    DensityMixture(2, n_init=2, random_state=0),
    DiscreteMixture(2, n_words=6, random_state=0),
):
    proba = model.fit(X, domains).predict_proba(X, domains)
    assert np.allclose(proba.sum(axis=1), 1)
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_and_fit_need_none_of_the_heavy_packages():
    assert run(WITHOUT_HEAVY + FIT) == ""


def test_import_and_fit_import_none_of_them_where_they_are():
    """But for those that scikit-learn imports itself."""
    heavy = set(HEAVY) - {"pandas", "pyarrow", "rich"}
    found = f"import sys\nprint(sorted({heavy} & set(sys.modules)))"
    assert run(FIT + found) == "[]\n"


def test_import_alone_imports_no_numpy():
    code = "import sys, shoal\nprint(sorted({'numpy', 'sklearn'} & set(sys.modules)))"
    assert run(code) == "[]\n"


def import_all(names: list[str]) -> str:
    return "".join(f"import {name}\n" for name in names)


def test_tabular_benchmarks_need_none_of_them_either():
    names = ["paper", "panel", "published"]
    code = import_all([f"shoal_bench.{name}" for name in names])
    assert run(WITHOUT_HEAVY + code) == ""


def test_vision_and_benchmarks_need_torch_and_little_else():
    """GPU machines often have no typer, rich, skops or pandas."""
    pytest.importorskip("torch")
    parts = ("shoal.vision", "shoal_bench")
    commands = ("shoal_bench.cli", "shoal_bench.running")
    names = [
        name for name in MODULES if name.startswith(parts) and name not in commands
    ]
    assert len(names) > 40
    run(WITHOUT_OTHERS + import_all(names))
