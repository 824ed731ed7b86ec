"""One seed by default, any seeds on demand.

``SHOAL_TEST_SEED=7`` or ``SHOAL_TEST_SEED=3,5,8`` runs the tests that ask for the
fixture ``seed`` with other seeds, ``SHOAL_TEST_SEED=all`` with twenty of them, so that
no test is tuned to one lucky number.
"""

import os

import pytest
from hypothesis import settings

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


# The same examples on every machine, and no wall-clock limits: CI has slow moments.
settings.register_profile("shoal", derandomize=True, deadline=None)
settings.load_profile("shoal")
