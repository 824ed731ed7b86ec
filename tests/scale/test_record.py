"""What the records of 20 million rows and of kills must hold (benchmarks/)."""

import json
from pathlib import Path

import pytest

RECORDS = Path(__file__).parents[2] / "results" / "performance"


@pytest.fixture(scope="module")
def record():
    return json.loads((RECORDS / "scale.json").read_text())


def test_twenty_million_rows_in_four_gibibytes(record):
    largest = record["sizes"]["20000000"]
    assert record["data"]["features"] == 20
    assert record["data"]["domains"] == 50
    assert record["workers"] == 2
    assert largest["scale"]["rows"] == 20_000_000 == largest["predicted_rows"]
    assert sum(largest["scale"]["rows_per_domain"]) == 20_000_000
    assert largest["peak_gib"] < 4
    assert record["DDFA"]["scale"]["rows"] == record["DDFA"]["rows"] == 20_000_000
    assert record["DDFA"]["peak_gib"] < 4


def test_memory_does_not_grow_with_rows(record):
    assert len(record["sizes"]) == 3
    assert abs(record["memory"]["log_slope"]) < 0.1
    assert record["memory"]["gib_per_million_rows"] < 0.02


def test_all_rows_tell_more_than_the_sample(record):
    for size in record["sizes"].values():
        truth = size["truth"]
        every, sample = truth["all rows"], truth["sample alone"]
        assert every["prevalence_error_mean"] < 0.5 * sample["prevalence_error_mean"]
        assert every["accuracy"] >= sample["accuracy"]
        assert every["accuracy"] > truth["best accuracy"] - 0.003


def test_whatever_was_killed_the_result_was_the_same():
    """benchmarks/kills.py: something ended every time, and no number differed."""
    record = json.loads((RECORDS / "kills.json").read_text())
    assert record["nodes"] == 2
    for name, facts in record["repetitions"].items():
        assert len(facts) >= 9, name
        for one in facts:
            assert (one["killed"], one["equal"]) == (1, True), (name, one)
            assert one.get("kept", 1) > 0
