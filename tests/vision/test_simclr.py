from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from shoal.vision._backbone import load_backbone
from shoal.vision._encode import knn_monitor
from shoal.vision._images import ImageSet, normalize
from shoal.vision._simclr import SimCLR, simclr
from shoal.vision._steps import nt_xent
from shoal.vision.augment import Flip, Identity, compose, simclr_view
from shoal_bench.moco import MoCo, moco
from support import workers


def coloured_images(n=60, seed=0):
    """Noise around one of three colours; which one is the label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    colours = np.array([[200, 60, 60], [60, 200, 60], [60, 60, 200]])
    noise = rng.normal(0, 40, (n, 8, 8, 3))
    pixels = colours[labels][:, None, None] + noise
    return pixels.clip(0, 255).astype(np.uint8), labels


def test_the_step_is_the_loss_of_two_views():
    images = ImageSet(workers.make_images(), "cpu")
    view, net = simclr_view(8), workers.Tiny(norm=False)
    task = SimCLR(images, net=net, view=view, temperature=0.3, device="cpu")
    rows = torch.tensor([3, 1, 4, 15])
    got = task.step(rows, torch.Generator().manual_seed(7))
    draws = view.draw(8, images.device, torch.Generator().manual_seed(7))
    first, second = (
        task.head(net.features(normalize(view.apply(images.batch(rows), half))))
        for half in draws.chunk(2)
    )
    torch.testing.assert_close(got, nt_xent(first, second, 0.3))


def test_the_loss_falls():
    torch.manual_seed(0)
    images, _ = coloured_images()
    result = simclr(
        images,
        net=workers.Tiny(),
        epochs=6,
        batch_size=20,
        device="cpu",
        progress=False,
    )
    assert len(result.history) == 6
    assert result.history["loss"][-1] < result.history["loss"][0]
    assert not result.net.training


def test_labels_are_looked_at_and_change_nothing(seed):
    images, labels = coloured_images(seed=seed)
    shuffled = np.random.default_rng(seed).permutation(labels)
    weights, curves = [], []
    for seen in (labels, shuffled, None):
        torch.manual_seed(seed)
        monitor = None
        if seen is not None:
            monitor = knn_monitor(images, seen, images, labels, k=5, device="cpu")
        result = simclr(
            images,
            net=workers.Tiny(),
            epochs=3,
            batch_size=20,
            seed=seed,
            device="cpu",
            monitor=monitor,
            monitor_every=2,
            progress=False,
        )
        weights.append(result.net.state_dict())
        curves.append(result.history["knn_accuracy"])
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name])
        assert torch.equal(weight, weights[2][name])
    # Looked at in epoch 2 and, as the last one, in epoch 3.
    assert [x is None for x in curves[0]] == [True, False, False]
    assert curves[0][-1] > curves[1][-1]


def test_default_network_by_size_and_seed():
    small = SimCLR(np.zeros((4, 8, 8, 3), np.uint8), device="cpu", seed=3)
    again = SimCLR(np.zeros((4, 8, 8, 3), np.uint8), device="cpu", seed=3)
    large = SimCLR(np.zeros((4, 128, 128), np.uint8), device="cpu")
    assert (small.net.stem, large.net.stem) == ("cifar", "imagenet")
    assert torch.equal(small.net.conv1.weight, again.net.conv1.weight)
    assert torch.equal(small.head[0].weight, again.head[0].weight)


def test_images_on_the_host_train_the_same(tmp_path):
    np.save(tmp_path / "images.npy", workers.make_images())
    losses = []
    for images in (
        ImageSet(workers.make_images(), "cpu"),
        ImageSet(np.load(tmp_path / "images.npy", mmap_mode="r"), "cpu"),
    ):
        torch.manual_seed(0)
        result = simclr(
            images,
            net=workers.Tiny(),
            epochs=2,
            batch_size=8,
            device="cpu",
            progress=False,
        )
        losses.append(result.history["loss"])
    assert losses[0] == losses[1]


def test_what_was_trained_is_saved(tmp_path):
    images = np.zeros((4, 8, 8, 3), np.uint8)
    result = simclr(
        images, epochs=1, view=Identity(), lr=0.0, device="cpu", progress=False
    )
    path = result.save(tmp_path / "net.safetensors", data="zeros")
    back = load_backbone(path).state_dict()
    assert all(torch.equal(w, back[n]) for n, w in result.net.state_dict().items())
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        facts = file.metadata()
    assert facts["method"] == "SimCLR"
    assert facts["epochs"] == "1"
    assert facts["data"] == "zeros"


def test_the_learning_rate_is_proportional_to_the_batch():
    def train(batch_size):
        task = SimCLR(workers.make_images(16), net=workers.Tiny(), device="cpu")
        options = {"epochs": 1, "warmup": 0.0, "progress": False}
        return task.train(batch_size=batch_size, **options).history["learning_rate"][0]

    # Of the last step: one batch of 16, or the second of 8, half way down the cosine.
    assert train(16) == pytest.approx(0.4 * 16 / 512)
    assert train(8) == pytest.approx(0.4 * 8 / 512 / 2)
    assert train(512) == train(16)  # no batch is larger than the images


def test_epochs_are_shown_with_what_the_monitor_saw():
    shown = []
    history = simclr(
        workers.make_images(16),
        net=workers.Tiny(),
        epochs=2,
        batch_size=8,
        device="cpu",
        progress=False,
        monitor=lambda net: {"seen": 7.0},
        monitor_every=1,
        on_epoch=lambda record: shown.append(dict(record)),
    ).history
    assert [record["seen"] for record in shown] == history["seen"] == [7.0, 7.0]


@pytest.mark.parametrize("make", [SimCLR, MoCo])
def test_only_simclr_on_one_gpu_is_replayed(make, monkeypatch):
    task = make(workers.make_images(), net=workers.Tiny(), device="cpu")
    on_gpu = copy(task)
    on_gpu.images = SimpleNamespace(device=torch.device("cuda"))
    replayed = make is SimCLR
    assert on_gpu.how_to_compile(True) == ("reduce-overhead" if replayed else True)
    assert task.how_to_compile(True) is True
    for asked in (False, "max-autotune", {"backend": "eager"}):
        assert on_gpu.how_to_compile(asked) == asked
    monkeypatch.setattr("shoal.vision._simclr.own_gpu", lambda: 0)  # one of several
    assert on_gpu.how_to_compile(True) is True


@pytest.mark.parametrize("method", [simclr, moco])
def test_a_run_is_resumed_with_its_own_settings_only(method, tmp_path):
    checkpoint = tmp_path / "run.pt"
    settings = {"net": workers.Tiny(), "epochs": 1, "batch_size": 8, "device": "cpu"}
    settings |= {"progress": False, "checkpoint": checkpoint}
    images = workers.make_images()
    begun = method(images, **settings)
    for name, value in (("temperature", 0.7), ("weight_decay", 0.3), ("warmup", 0.5)):
        told = rf"{name}=.* instead of {value}\)"
        with pytest.raises(ValueError, match=told):
            method(images, **settings, **{name: value})
    with pytest.raises(
        ValueError, match=r"view=.* instead of compose\(Flip\(p=0.5\)\)"
    ):
        method(images, **settings, view=compose(Flip()))
    for same in ({}, {"view": simclr_view(max(images.shape[1:3]))}):
        again = method(images, **settings, **same)
        assert again.history.records == begun.history.records


@pytest.mark.parametrize("method", [simclr, moco])
def test_one_image_has_nothing_to_be_told_from(method):
    images = workers.make_images()
    settings = {"net": workers.Tiny(), "epochs": 1, "device": "cpu", "progress": False}
    with pytest.raises(ValueError, match="images must be at least 2 .*, got 1"):
        method(images[:1], **settings)
    with pytest.raises(ValueError, match="batch_size must be a whole number from 2"):
        method(images, **settings, batch_size=1)
    with pytest.raises(ValueError, match="lr must be a number from 0, got -1"):
        method(images, **settings, lr=-1)
    with pytest.raises(ValueError, match="temperature must be a number above 0, got 0"):
        method(images, **settings, temperature=0)
