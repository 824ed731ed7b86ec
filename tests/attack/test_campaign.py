"""Campaigns that take minutes, and the records of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.attack import campaign, full_disk
from tests.attack.bad_places import all_files

N_MODELS = 50_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", campaign.shares(N_MODELS))
def test_forged_models_by_the_thousand(kind: str) -> None:
    """In processes of 2 GiB, with a clock; see results/attack/models.json."""
    n_models = campaign.shares(N_MODELS)[kind]
    found = campaign.attack(kind, 0, n_models, seed=0)
    assert found["bad"] == []
    assert sum(found["counts"].values()) == n_models
    assert found["peak"] < campaign.MOST_BYTES


def record(name: str) -> Any:
    """What a campaign wrote down."""
    place = Path(__file__).parents[2] / "results" / "attack" / f"{name}.json"
    return json.loads(place.read_text())


def test_the_record_of_bad_files() -> None:
    """Written by ``python -m tests.attack.record_files``, family by family."""
    found = record("files")
    assert set(found["families"]) == {case.family for case in all_files()}
    assert found["files"] >= 300
    assert found["faults"] == 0
    for family in found["families"].values():
        assert family["largest_mib"] < 2_048
        assert family["slowest_processor_seconds"] < 60


def test_the_record_of_forged_models() -> None:
    found = record("models")
    assert found["models"] == sum(found["results"].values()) >= N_MODELS
    assert set(found["results"]) == {"loaded, answers", "refused"}
    assert found["bad"] == []
    assert set(found["kinds"]) == set(campaign.shares(N_MODELS))


def test_the_record_of_kills_and_races() -> None:
    found = record("runs")
    kills = [one["kills"] for one in found["kills at every step"].values()]
    assert sum(kills) + found["kills at random"]["killed"] >= 200
    assert set(found["races"]) == {"was told", "wrote"}
    assert found["races"]["wrote"] >= 20


def test_the_record_of_full_disks() -> None:
    found = record("full_disk")
    for way in ("full from a write on", "one write fails"):
        assert set(found[way]) == set(full_disk.CASES)
        for case in found[way].values():
            assert case["faults"] == []
            assert set(case["ends"]) <= {"E140", "ended well"}
            assert sum(case["ends"].values()) == case["writes"]
