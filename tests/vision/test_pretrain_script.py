"""benchmarks/vision/pretrain.py: the schedule that fits into a number of minutes."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from support import workers
from support.scripts import script


@pytest.fixture
def pretrain(tmp_path, monkeypatch):
    """Run the script on tiny images with a tiny network; gives record and weights."""
    images = workers.make_images(24)
    for name, rows in (("train", images), ("test", images[:8])):
        np.save(tmp_path / f"{name}.npy", rows)
        np.save(tmp_path / f"{name}_labels.npy", np.arange(len(rows)) % 2)
    with script("benchmarks/vision/pretrain.py") as module:
        monkeypatch.setattr(module, "default_net", lambda images, depth: workers.Tiny())

        def run(*arguments):
            out, record = tmp_path / "net.safetensors", tmp_path / "record.json"
            module.main(
                ["--data", str(tmp_path), "--batch-size", "8", "--device", "cpu",
                 "--out", str(out), "--record", str(record), *map(str, arguments)]
            )  # fmt: skip
            return json.loads(record.read_text()), load_file(out)

        yield run


def same(one, other):
    return all(torch.equal(weight, other[name]) for name, weight in one.items())


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_epochs_that_were_only_timed_leave_no_trace(pretrain, method):
    timed, weights = pretrain("--minutes", 0.02, "--method", method)
    assert timed["plan"]["reason"] == "timed"
    assert timed["plan"]["warm_up_seconds"] is not None
    assert timed["epochs"] == timed["plan"]["epochs"] == len(timed["curve"])
    assert 0 <= timed["knn_accuracy"] <= 1
    asked, again = pretrain("--epochs", timed["epochs"], "--method", method)
    assert asked["plan"]["reason"] == "as asked"
    assert [r["loss"] for r in asked["curve"]] == [r["loss"] for r in timed["curve"]]
    assert same(weights, again)


def test_a_resumed_run_keeps_its_schedule(pretrain, tmp_path):
    checkpoint = tmp_path / "run.pt"
    first, weights = pretrain("--epochs", 3, "--checkpoint", checkpoint)
    resumed, again = pretrain("--minutes", 60, "--checkpoint", checkpoint)
    assert resumed["plan"]["reason"] == "resumed"
    assert resumed["curve"] == first["curve"]
    assert same(weights, again)


def test_views_may_be_smaller_than_the_images(pretrain):
    small, weights = pretrain("--epochs", 1, "--view-size", 4)
    assert small["settings"]["view_size"] == 4
    _, full = pretrain("--epochs", 1)
    assert not same(weights, full)


def test_no_time_left_is_one_epoch(pretrain):
    record, _ = pretrain("--minutes", 0)
    assert record["epochs"] == 1
