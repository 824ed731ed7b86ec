"""What the committed records of networks must show."""

import json
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "results"


def read(name):
    return json.loads((RESULTS / name).read_text())


def read_lines(name):
    return [json.loads(line) for line in (RESULTS / name).read_text().splitlines()]


@pytest.mark.parametrize(("data", "least"), [("cifar20", 0.66), ("cifar10", 0.86)])
def test_simclr_is_good_within_ten_minutes(data, least):
    record = read(f"vision/simclr_{data}.json")
    assert record["device"] == "NVIDIA H200"
    assert record["knn_accuracy"] >= least
    assert record["seconds"] <= 600
    assert record["views_per_second"] >= 140_000
    assert len(record["curve"]) == record["epochs"]
    median = np.median([2 * epoch["rows_per_second"] for epoch in record["curve"]])
    assert record["views_per_second"] == median


def test_a_step_of_simclr_keeps_the_gpu_busy_only_when_it_is_replayed():
    record = read("performance/pretrain_h200_24.json")
    times = {row["compile"]: row["step_ms"] for row in record["variants"]}
    busy = record["kernels"]["busy_ms"]
    assert record["kernels"]["compile"] == "reduce-overhead"
    assert busy > 0.95 * times["reduce-overhead"]
    assert busy < 0.6 * times["default"]
    parts = record["kernels"]["by_kind_ms"]
    assert sum(parts.values()) == pytest.approx(busy, abs=0.01)


@pytest.mark.parametrize(
    ("dataset", "settings", "mean"),
    [
        ("cifar20", {}, 0.379),
        ("cifar10", {}, 0.724),
        ("cifar20", {"backbone": "simclr24_resnet18"}, 0.398),
        ("cifar10", {"backbone": "simclr24_resnet18"}, 0.745),
    ],
)
def test_scan_is_as_stated_and_never_collapsed(dataset, settings, mean):
    runs = [
        record
        for record in read_lines("vision/scan.jsonl")
        if record["run"]["dataset"] == dataset and record["run"]["settings"] == settings
    ]
    assert sorted(run["run"]["seed"] for run in runs) == [0, 1, 2]
    assert np.mean([run["accuracy"] for run in runs]) == pytest.approx(mean, abs=5e-4)
    for run in runs:
        assert min(run["class_counts"]) > 0.4 * np.mean(run["class_counts"])


def test_dropout_spoils_norms_and_taking_statistics_anew_mends_them():
    record = read("vision/norms.json")
    for epoch in record["curve"]:
        assert epoch["statistics_of_training"] > record["guessing"] + 0.2
        assert epoch["statistics_taken_anew"] < record["guessing"]
        assert epoch["statistics_taken_anew"] < epoch["dropout_on"] + 0.01
    first, last = record["curve"][0], record["curve"][-1]
    assert last["statistics_taken_anew"] < first["statistics_taken_anew"] - 0.2
    assert last["statistics_of_training"] > first["statistics_of_training"]
    gain = [
        e["accuracy_taken_anew"] - e["accuracy_of_training"] for e in record["curve"]
    ]
    assert len(gain) == 8
    stated = 0.030, 0.153, 0.073
    assert (min(gain), max(gain), np.mean(gain)) == pytest.approx(stated, abs=6e-4)


def test_random_starts_failed_because_guessing_was_better():
    """Held-out loss of the domains: no better than log r in any first run."""
    runs = read_lines("vision/ri_norms_of_training.jsonl")
    assert len(runs) == 12
    for run in runs:
        guessing = np.log(run["spec"]["n_domains"])
        assert run["notes"]["held_out_loss"] > guessing


def test_with_norms_taken_anew_random_starts_learn():
    """Below guessing in all six cells, and in every one below the first runs."""
    first = random_start_losses("vision/ri_norms_of_training.jsonl")
    now = random_start_losses("bench/cifar/records.jsonl")
    assert len(now) == 6
    for cell, loss in now.items():
        assert loss < np.log(cell[1]) - 0.02
        assert loss < first[cell]


def random_start_losses(name):
    """Held-out loss of the domains by data set, r and alpha."""
    return {
        (spec["dataset"], spec["n_domains"], spec["alpha"]): run["notes"][
            "held_out_loss"
        ]
        for run in read_lines(name)
        if (spec := run["spec"])["method"] == "ddfa_ri"
    }


def test_one_trial_of_everything_takes_less_than_ninety_seconds():
    """Discriminator, DDFA with two kinds of stages, mixture; and its peak memory."""
    trial = ["ddfa-spi", "ddfa-spi-best", "end-to-end"]
    (one,) = [line for line in read_lines("vision/tally.jsonl")
              if line["methods"] == trial]  # fmt: skip
    assert (one["workers"], one["runs"], one["failed"]) == (1, 3, 0)
    assert one["device"] == "NVIDIA H200"
    assert one["seconds"] <= 90
    (cell,) = one["cells"]
    peaks = [
        record["gpu_mib"]
        for record in read_lines("bench/cifar/records.jsonl")
        if "{dataset}-{n_domains}-{alpha:g}".format(**record["spec"]) == cell
        and [record["spec"]["wave"]] == one["waves"]
        and record["gpu_mib"] is not None  # the trial's, not those of two cores
    ]
    assert len(peaks) == 3
    assert max(peaks) / 1024 == pytest.approx(2.7, abs=0.05)
