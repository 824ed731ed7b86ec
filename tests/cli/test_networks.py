"""`shoal pretrain` and `shoal embed`: what they write and say, how they resume."""

import json
import resource
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from PIL import Image  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import shoal.cli.pretrain as pretrain_module  # noqa: E402
import shoal.io  # noqa: E402
from shoal.vision.encode import embed_folder  # noqa: E402
from shoal.vision.nets import ResNet, resnet, save_backbone  # noqa: E402

TRAIN = ["pretrain", "photos", "--batch", "8", "--device", "cpu"]


def save_photo(path, side=8, seed=0):
    rng = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def photos(tmp_path):
    """photos/<place>/<kind>/<number>.png, eight of each of two places."""
    for number in range(16):
        place, kind = ("beach", "forest")[number % 2], f"kind{number // 2 % 2}"
        save_photo(tmp_path / "photos" / place / kind / f"{number}.png", seed=number)
    return tmp_path / "photos"


@pytest.fixture
def weights(tmp_path):
    """A ResNet-18 that says nothing about itself."""
    torch.manual_seed(0)
    net = resnet(18)
    save_file(net.state_dict(), tmp_path / "plain.safetensors")
    return tmp_path / "plain.safetensors"


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_views_may_be_smaller_than_the_images(cli, tmp_path, monkeypatch, method):
    for number in range(16):
        save_photo(tmp_path / f"photos/{number % 2}/{number}.png", 16, seed=number)
    seen, features = set(), ResNet.features

    def watched(net, x):
        seen.add(tuple(x.shape[2:]))
        return features(net, x)

    monkeypatch.setattr(ResNet, "features", watched)
    train = [*TRAIN, "--epochs", 1, "--method", method, "--view-size", 8, "--json"]
    found = json.loads(cli(*train).stdout)["data"]
    assert seen == {(8, 8)}
    assert (found["size"], found["view_size"]) == (16, 8)


def test_from_images_to_a_table_of_features(cli, photos, tmp_path):
    ended = cli(*TRAIN, "--epochs", 2, "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["files"] == [
        "photos-encoder/encoder.safetensors",
        "photos-encoder/history.json",
    ]
    found = document["data"]
    assert (found["n_images"], found["size"], found["epochs"]) == (16, 8, 2)
    history = json.loads((tmp_path / "photos-encoder" / "history.json").read_text())
    losses = [record["loss"] for record in history]
    assert [found["first_loss"], found["loss"]] == losses
    assert not (tmp_path / "photos-encoder" / "checkpoint.pt").exists()

    ended = cli("embed", "photos", "--weights", "photos-encoder", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert found["domains"] == {"beach": 8, "forest": 8}
    assert (found["n_features"], found["size"]) == (512, 8)
    encoder = tmp_path / "photos-encoder" / "encoder.safetensors"
    expected = embed_folder(photos, encoder, size=8, device="cpu")
    table = shoal.io.read(
        tmp_path / "photos-features.npz", domain="domain", id="id", label="label"
    )
    np.testing.assert_allclose(table.X, expected.X, rtol=1e-6)
    np.testing.assert_array_equal(table.domains, expected.domains)
    np.testing.assert_array_equal(table.labels, expected.labels)
    np.testing.assert_array_equal(table.ids, expected.files)


def test_people_see_loss_and_speed_and_quiet_is_quiet(cli, photos):
    ended = cli(*TRAIN, "--epochs", 1, "--method", "moco")
    assert "MoCo on 16 images of 8 x 8 pixels, 1 epochs on cpu: loss" in ended.stdout
    assert "images/s" in ended.stdout
    assert "Next: shoal embed photos --weights photos-encoder" in ended.stdout
    assert "checkpoint photos-encoder/checkpoint.pt" in ended.stderr
    ended = cli("embed", "photos", "--weights", "photos-encoder", "--quiet")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")
    ended = cli("embed", "photos", "--weights", "photos-encoder", "--force")
    assert "images/s on cpu" in ended.stdout
    assert "--domain domain --id id --label label" in ended.stdout


def test_interrupted_resumed_and_the_same(cli, photos, tmp_path, monkeypatch):
    options = [*TRAIN, "--epochs", 3, "--out"]
    assert cli(*options, "whole").code == 0
    shown = pretrain_module.showing

    def pressing(stages, plan, epochs):
        show = shown(stages, plan, epochs)

        def show_epoch(record):
            show(record)
            if record["epoch"] == 3:
                raise KeyboardInterrupt

        return show_epoch

    with monkeypatch.context() as patched:
        patched.setattr(pretrain_module, "showing", pressing)
        ended = cli(*options, "stopped")
    assert ended.code == 130
    assert "error[E003]" in ended.stderr
    assert "hint: go on with --resume" in ended.stderr
    ended = cli(*options, "stopped")
    assert ended.code == 2
    assert "error[E136]" in ended.stderr
    assert "--resume" in ended.stderr
    for other, told in (
        (["--seed", 5], "seed=0 instead of 5"),
        (["--view-size", 16], "view_size=8 instead of 16"),
        (["--learning-rate", 0.5], "learning_rate=0.00625 instead of 0.5"),
    ):
        ended = cli(*options, "stopped", "--resume", *other)
        assert ended.code == 6
        assert "error[E135]" in ended.stderr
        assert told in ended.stderr
    assert cli(*options, "stopped", "--resume").code == 0
    one, other = (
        load_file(tmp_path / name / "encoder.safetensors")
        for name in ("whole", "stopped")
    )
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())
    ended = cli(*options, "stopped", "--resume")
    assert "error[E136]" in ended.stderr  # trained already


@pytest.mark.slow
def test_workers_of_a_cluster_train_the_same(cli, photos, tmp_path):
    """But for rounding, which 18 layers on 8 images of 8 x 8 pixels make large soon.

    So the two steps of one epoch are compared; for more see tests/vision.
    """
    pytest.importorskip("ray")
    options = [*TRAIN, "--epochs", 1, "--learning-rate", 0.01]
    assert cli(*options, "--out", "here").code == 0
    ended = cli(*options, "--engine", "ray", "--workers", 2, "--out", "there")
    assert ended.code == 0, ended.stderr
    assert "training on Ray (2 workers); checkpoint there/checkpoints" in ended.stderr
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "encoder.safetensors",
        "history.json",
    ]
    here, there = (
        json.loads((tmp_path / name / "history.json").read_text())[0]["loss"]
        for name in ("here", "there")
    )
    assert there == pytest.approx(here, rel=1e-5)


@pytest.mark.parametrize("option", [("--workers", 2), ("--address", "auto")])
def test_options_of_a_cluster_need_one(cli, photos, option):
    ended = cli(*TRAIN, *option)
    assert ended.code == 2
    assert "error[E002]" in ended.stderr
    assert "hint: add --engine ray" in ended.stderr


def test_a_full_disk_keeps_the_checkpoint(cli, photos, tmp_path, monkeypatch):
    """From the second of two checkpoints on, no file may grow beyond some bytes."""
    options = [*TRAIN, "--epochs", 2]
    assert cli(*options, "--out", "whole").code == 0
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    shown = pretrain_module.showing

    def filling(stages, plan, epochs):
        show = shown(stages, plan, epochs)

        def show_epoch(record):
            show(record)
            if record["epoch"] == 1:
                resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))

        return show_epoch

    try:
        with monkeypatch.context() as patched:
            patched.setattr(pretrain_module, "showing", filling)
            ended = cli(*options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ended.code == 3
    assert "error[E140]" in ended.stderr
    assert "--resume" in ended.stderr
    assert cli(*options, "--resume").code == 0
    one, other = (
        load_file(tmp_path / name / "encoder.safetensors")
        for name in ("whole", "photos-encoder")
    )
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())


def test_without_torch_the_extra_is_named(cli, photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for arguments in (TRAIN, ["embed", "photos", "--weights", "x.safetensors"]):
        ended = cli(*arguments)
        assert ended.code == 5
        assert "error[E132]" in ended.stderr
        assert 'pip install "shoal[vision]"' in ended.stderr


def test_memory_that_runs_out_suggests_a_batch(cli, photos, weights, monkeypatch):
    def hungry(self, x):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ResNet, "features", hungry)
    for arguments in (TRAIN, ["embed", "photos", "--weights", weights, "--batch", 8]):
        ended = cli(*arguments)
        assert ended.code == 3
        assert "error[E137] a batch of 8 images" in ended.stderr
        assert "hint: --batch 4" in ended.stderr


def test_images_that_cannot_be_used(cli, photos, tmp_path):
    cases = [
        ("E101", 3, ["pretrain", "nowhere"]),
        ("E165", 4, [*TRAIN, "--epochs", 2, "--learning-rate", 1e30, "--out", "wild"]),
    ]
    (tmp_path / "empty" / "beach").mkdir(parents=True)
    cases.append(("E127", 3, ["pretrain", "empty"]))
    save_photo(tmp_path / "mixed" / "beach" / "a.png", side=8)
    save_photo(tmp_path / "mixed" / "forest" / "b.png", side=12)
    cases.append(("E124", 3, ["pretrain", "mixed"]))
    (photos / "beach" / "torn.png").write_bytes(b"\x89PNG torn")
    cases.append(("E128", 3, TRAIN))
    cases[1][2].append("--skip-bad")
    for code, exit_code, arguments in cases:
        ended = cli(*arguments)
        assert f"error[{code}]" in ended.stderr, ended.stderr
        assert ended.code == exit_code
    assert "--size 64" in cli("pretrain", "mixed").stderr
    ended = cli("pretrain", "mixed", "--size", 8, "--epochs", 1, "--device", "cpu")
    assert ended.code == 0, ended.stderr


def test_weights_that_cannot_be_used(cli, photos, weights, tmp_path):
    (tmp_path / "torn.safetensors").write_bytes(b"torn")
    odd = save_backbone(resnet(18), tmp_path / "odd.safetensors", {"depth": "many"})
    embed = ["embed", "photos", "--weights"]
    for code, exit_code, arguments in (
        ("E101", 3, [*embed, "nowhere"]),
        ("E135", 6, [*embed, tmp_path / "torn.safetensors"]),
        ("E135", 6, [*embed, weights, "--depth", 50]),
        ("E135", 6, [*embed, odd]),
        ("E102", 3, [*embed, weights, "--out", "features.csv"]),
    ):
        ended = cli(*arguments)
        assert f"error[{code}]" in ended.stderr, ended.stderr
        assert ended.code == exit_code
        assert len(ended.stderr.splitlines()) <= 3  # a stage, the error, a hint
    assert cli(*embed, weights).code == 0
    ended = cli(*embed, weights)
    assert (ended.code, "error[E136]" in ended.stderr) == (2, True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there(cli, photos):
    ended = cli("pretrain", "photos", "--device", "cuda")
    assert ended.code == 2
    assert "error[E002]" in ended.stderr
    assert "hint: use --device cpu or auto" in ended.stderr


def test_damaged_photos_are_left_out_with_a_word(cli, photos, weights):
    whole = (photos / "beach" / "kind0" / "0.png").read_bytes()
    (photos / "beach" / "kind0" / "cut.png").write_bytes(whole[: len(whole) // 2])
    embed = ["embed", "photos", "--weights", weights, "--out", "f.npz"]
    ended = cli(*embed)
    assert (ended.code, "error[E128]" in ended.stderr) == (3, True)
    ended = cli(*embed, "--skip-bad", "--json")
    document = json.loads(ended.stdout)
    assert document["status"] == "warning"
    assert document["data"]["n_images"] == 16
    assert document["data"]["skipped"] == ["beach/kind0/cut.png"]
