"""One seed by default, any seeds on demand.

``SHOAL_TEST_SEED=7`` or ``SHOAL_TEST_SEED=3,5,8`` runs the tests that ask for the
fixture ``seed`` with other seeds, ``SHOAL_TEST_SEED=all`` with twenty of them, so that
no test is tuned to one lucky number.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from shoal.cli import main
from support.browsing import browser, serious_violations

# One browser for all rooms: a process can drive only one at a time.
__all__ = ["browser", "serious_violations"]

DEFAULT_SEED = 0
ALL_SEEDS = range(20)


def requested_seeds() -> list[int]:
    """Read the environment variable SHOAL_TEST_SEED."""
    value = os.environ.get("SHOAL_TEST_SEED", str(DEFAULT_SEED)).strip()
    if value == "all":
        return list(ALL_SEEDS)
    try:
        return [int(seed) for seed in value.split(",")]
    except ValueError:
        raise pytest.UsageError(
            f"SHOAL_TEST_SEED must be 'all' or integers such as 3,5,8, got {value!r}"
        ) from None


def pytest_report_header() -> str:
    return f"SHOAL_TEST_SEED: {','.join(map(str, requested_seeds()))}"


# Session scope, so that Hypothesis tests may ask for it too.
@pytest.fixture(scope="session", params=requested_seeds(), ids="seed{}".format)
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of everything random in a test."""
    return int(request.param)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = end.value.code
        assert isinstance(code, int)
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def tiny_net():
    """An untrained network of two convolutions."""
    torch = pytest.importorskip("torch")
    from support.networks import TinyNet

    torch.manual_seed(0)
    return TinyNet().eval()


@pytest.fixture(scope="session")
def make_images():
    """Makes stripes of three kinds in four domains; see support.networks."""
    pytest.importorskip("torch")
    from support.networks import make_images

    return make_images


@pytest.fixture(scope="session")
def images(make_images):
    """Three hundred of them."""
    return make_images()


# The same examples on every machine, and no wall-clock limits: CI has slow moments.
settings.register_profile("shoal", derandomize=True, deadline=None)
settings.load_profile("shoal")
