"""One random NMF of a perfect table, against tables whose answer is known."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from shoal.benchmark.published import paper_prevalence

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def chance():
    place = ROOT / "benchmarks" / "chance.py"
    spec = importlib.util.spec_from_file_location("chance", place)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_domains_of_one_class_each_leave_nothing_to_chance(chance):
    """The identity has one factorization, in whatever order NMF finds it."""
    for seed in range(5):
        assert chance.one_nmf(np.eye(4), seed) == pytest.approx((1, 0), abs=1e-3)


def test_more_is_found_than_the_majority_and_less_than_all(chance):
    truth = paper_prevalence("cifar10", 10, 10, 0)
    runs = np.array([chance.one_nmf(truth, seed) for seed in range(60)])
    accuracy, error = runs.mean(axis=0)
    assert truth.max(axis=1).mean() < accuracy < 1
    record = json.loads((ROOT / "results" / "bench" / "chance.json").read_text())
    (stated,) = (
        one
        for one in record["cells"]
        if (one["dataset"], one["alpha"], one["wave"]) == ("cifar10", 10, 0)
    )
    # another machine's last bits may send a start elsewhere
    assert accuracy == pytest.approx(stated["accuracy"], abs=0.03)
    assert error == pytest.approx(stated["prevalence_error"], abs=0.005)
