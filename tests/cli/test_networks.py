"""`shoal pretrain` and `shoal embed`: what they write and say, how they resume."""

import json
import pickle
import resource
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from PIL import Image  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

import shoal.cli._pretrain as pretrain_module  # noqa: E402
import shoal.io  # noqa: E402
from shoal.vision._backbone import save_backbone  # noqa: E402
from shoal.vision._encode import embed_folder  # noqa: E402
from shoal.vision._nets import (  # noqa: E402
    PlainNet,  # noqa: E402
    ResNet,
    resnet,
)

PLAIN = ["pretrain", "photos", "--batch", "8", "--device", "cpu"]
TRAIN = [*PLAIN, "--depth", "18"]


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


def test_a_cpu_trains_a_plain_network_on_small_views(cli, tmp_path, monkeypatch):
    for number in range(16):
        save_photo(tmp_path / f"photos/{number % 2}/{number}.png", 16, seed=number)
    seen, features = set(), PlainNet.features

    def watched(net, x):
        seen.add(tuple(x.shape[2:]))
        return features(net, x)

    monkeypatch.setattr(PlainNet, "features", watched)
    ended = cli(*PLAIN, "--epochs", 1, "--json")
    assert ended.code == 0, ended.stderr
    assert "training on cpu; checkpoint" in ended.stderr
    assert "; less than a minute" in ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert (found["depth"], found["view_size"], found["size"]) == (4, 12, 16)
    assert seen == {(12, 12)}
    weights = str(tmp_path / "photos-encoder")
    ended = cli("embed", "photos", "--weights", weights, "--json")
    assert json.loads(ended.stdout)["data"]["n_features"] == 256
    assert (16, 16) in seen  # images are asked about as they are
    ended = cli("embed", "photos", "--weights", weights, "--depth", 18, "--force")
    assert ended.code == 6
    assert "the file holds plain4: leave out --depth and --stem" in ended.stderr


def test_a_plan_leaves_the_training_as_it_is(cli, photos, tmp_path, monkeypatch):
    nets = []
    for name in ("planned", "not"):
        assert cli(*PLAIN, "--epochs", 1, "--out", name, "--quiet").code == 0
        nets.append(load_file(tmp_path / name / "encoder.safetensors"))
        monkeypatch.setattr(pretrain_module.Training, "seconds", lambda *_: 5.0)
    for key, one in nets[0].items():
        assert torch.equal(one, nets[1][key])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (20, "less than a minute"),
        (80, "about 1 minute"),
        (370, "about 6 minutes"),
        (7300, "about 2 hours"),
    ],
)
def test_a_plan_in_words(seconds, text):
    assert pretrain_module.in_words(seconds) == text


def test_a_loss_that_does_not_fall_is_said(cli, photos):
    train = [*PLAIN, "--epochs", 5, "--force"]
    ended = cli(*train, "--learning-rate", 1e-9)
    assert ended.code == 0
    assert "warning[W129] the loss has hardly fallen: " in ended.stderr
    assert "--encoder efficientnet-lite0" in ended.stderr
    ended = cli(*PLAIN, "--epochs", 4, "--force", "--learning-rate", 1e-9)
    assert "W129" not in ended.stderr  # too early to tell


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
    # the folder that was written tells Python size and network, too
    expected = embed_folder(photos, tmp_path / "photos-encoder", device="cpu")
    table = shoal.io.read(
        tmp_path / "photos-features.npz", domain="domain", id="id", label="label"
    )
    np.testing.assert_allclose(table.X, expected.X, rtol=1e-6)
    np.testing.assert_array_equal(table.domains, expected.domains)
    np.testing.assert_array_equal(table.labels, expected.labels)
    np.testing.assert_array_equal(table.ids, expected.files)


def test_people_see_loss_and_speed_and_quiet_is_quiet(cli, photos):
    ended = cli(*TRAIN, "--epochs", 1, "--method", "moco")
    assert "MoCo on 16 images of 8 x 8 pixels, 1 epoch on cpu: loss" in ended.stdout
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
def test_workers_of_a_cluster_train_the_same(cli, shoal, photos, tmp_path):
    """But for rounding, which 18 layers on 8 images of 8 x 8 pixels make large soon.

    So the two steps of one epoch are compared; for more see tests/vision.
    """
    pytest.importorskip("ray")
    options = [*TRAIN, "--epochs", 1, "--learning-rate", 0.01]
    assert cli(*options, "--out", "here").code == 0
    there = (*options, "--engine", "ray", "--workers", 2, "--out", "there")
    ended = shoal(*map(str, there))
    assert ended.returncode == 0, ended.stderr
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
        ("E164", 4, [*TRAIN, "--epochs", 2, "--learning-rate", 1e30, "--out", "wild"]),
    ]
    (tmp_path / "empty" / "beach").mkdir(parents=True)
    cases.append(("E101", 3, ["pretrain", "empty"]))
    save_photo(tmp_path / "mixed" / "beach" / "a.png", side=8)
    save_photo(tmp_path / "mixed" / "forest" / "b.png", side=12)
    cases.append(("E124", 3, ["pretrain", "mixed"]))
    (photos / "beach" / "torn.png").write_bytes(b"\x89PNG torn")
    cases.append(("E143", 3, TRAIN))
    cases[1][2].append("--skip-bad")
    for code, exit_code, arguments in cases:
        ended = cli(*arguments)
        assert f"error[{code}]" in ended.stderr, ended.stderr
        assert ended.code == exit_code
    assert "--size 64" in cli("pretrain", "mixed").stderr
    ended = cli("pretrain", "mixed", "--size", 8, "--epochs", 1, "--device", "cpu")
    assert ended.code == 0, ended.stderr
    ended = cli("pretrain", "empty")
    assert "hint: put images there, or check the path\n" in ended.stderr


def test_weights_that_cannot_be_used(cli, photos, weights, tmp_path):
    (tmp_path / "torn.safetensors").write_bytes(b"torn")
    odd = save_backbone(resnet(18), tmp_path / "odd.safetensors", {"size": "many"})
    embed = ["embed", "photos", "--weights"]
    for code, exit_code, arguments in (
        ("E101", 3, [*embed, "nowhere"]),
        ("E135", 6, [*embed, tmp_path / "torn.safetensors"]),
        ("E135", 6, [*embed, weights, "--depth", 50]),
        ("E135", 6, [*embed, odd]),
        ("E135", 6, [*embed, weights, "--depth", 20]),
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
    assert (ended.code, "error[E143]" in ended.stderr) == (3, True)
    ended = cli(*embed, "--skip-bad", "--json")
    document = json.loads(ended.stdout)
    assert document["status"] == "warning"
    assert document["data"]["n_images"] == 16
    assert document["data"]["skipped"] == ["beach/kind0/cut.png"]


def embed_with(weights, *more):
    return ["embed", "photos", "--weights", weights, "--out", "f.npz", *more]


def test_images_of_unknown_range_are_left_out_like_damaged_ones(cli, photos, weights):
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    Image.fromarray(values).save(photos / "beach" / "kind0" / "float.tif")
    wide = np.full((8, 8), 70_000, dtype=np.int32)
    for arguments in (embed_with(weights), TRAIN):
        ended = cli(*arguments)
        assert ended.code == 3
        assert (
            "error[E143] 1 of 17 images cannot be read (beach/kind0/float.tif); in "
            "beach/kind0/float.tif, pixels must be whole numbers of 8 or 16 bits, got "
            "floats (mode F)\nhint: save them with 8 or 16 bits, or --skip-bad"
        ) in ended.stderr
    (photos / "beach" / "kind0" / "float.tif").unlink()
    Image.fromarray(wide).save(photos / "beach" / "kind0" / "wide.tif")
    for arguments in (embed_with(weights), TRAIN):
        ended = cli(*arguments)
        assert ended.code == 3
        assert "pixels must lie in 0 to 65535, got 70000 to 70000 (mode I)" in (
            ended.stderr
        )
    # in a batch of its own nothing can be read, in the folder nearly all
    ended = cli(*embed_with(weights, "--skip-bad", "--batch", 1))
    assert ended.code == 0, ended.stderr
    assert "warning[W128] 1 of 17 images cannot be read" in ended.stderr
    assert "hint: they are left out; save them with 8 or 16 bits" in ended.stderr
    ended = cli(*TRAIN, "--skip-bad", "--epochs", 1)
    assert ended.code == 0, ended.stderr
    assert "got 70000 to 70000 (mode I)" in ended.stderr


@pytest.mark.parametrize("options", [[], ["--skip-bad"]])
def test_where_all_images_are_bad_none_can_be_left_out(cli, tmp_path, weights, options):
    wide = np.full((8, 8), -1, dtype=np.int32)
    for place in ("beach", "forest"):
        (tmp_path / "photos" / place).mkdir(parents=True)
        (tmp_path / "photos" / place / "torn.png").write_bytes(b"torn")
    heads = [cli(*command, *options) for command in (embed_with(weights), TRAIN)]
    for place in ("beach", "forest"):
        (tmp_path / "photos" / place / "torn.png").unlink()
        Image.fromarray(wide).save(tmp_path / "photos" / place / "wide.tif")
    pixels = [cli(*command, *options) for command in (embed_with(weights), TRAIN)]
    for ended in (*heads, *pixels):
        assert ended.code == 3
        assert "error[E143] 2 of 2 images cannot be read" in ended.stderr
        assert "skip" not in ended.stderr
    assert all("hint: replace them\n" in ended.stderr for ended in heads)
    assert all("hint: save them with 8 or 16 bits" in one.stderr for one in pixels)


def test_thin_domains_are_named_where_domains_matter(cli, photos, weights):
    save_photo(photos / "north" / "kind0" / "only.png")
    (photos / "south").mkdir()
    (photos / ".hidden").mkdir()
    ended = cli(*embed_with(weights))
    assert ended.code == 0, ended.stderr
    assert (
        'warning[W111] domain "north" has one image, which says nothing of its class '
        "mix\nhint: add images or move it into another domain"
    ) in ended.stderr
    assert 'warning[W111] folder "south" holds no image that can be read' in (
        ended.stderr
    )
    assert "hidden" not in ended.stderr
    secret = cli(*embed_with(weights, "--redact", "--force"))
    assert "north" not in secret.stderr + secret.stdout
    ended = cli(*TRAIN, "--epochs", 1)
    assert ended.code == 0, ended.stderr
    assert "W111" not in ended.stderr


def test_a_domain_without_readable_pixels_is_named(cli, photos, weights):
    (photos / "north").mkdir()
    wide = np.full((8, 8), 70_000, dtype=np.int32)
    Image.fromarray(wide).save(photos / "north" / "wide.tif")
    ended = cli(*embed_with(weights, "--skip-bad"))
    assert ended.code == 0, ended.stderr
    assert 'warning[W111] no image of "north" can be read' in ended.stderr


def test_one_domain_alone_is_not_sent_to_fit(cli, tmp_path, weights):
    save_photo(tmp_path / "photos" / "beach" / "a.png")
    ended = cli(*embed_with(weights))
    assert ended.code == 0, ended.stderr
    assert "1 image, 512 features each" in ended.stdout
    assert "Next: add images of another domain; shoal fit needs at least two" in (
        ended.stdout
    )
    assert "--domain domain" not in ended.stdout


def test_images_in_no_folder_of_a_domain(cli, tmp_path, weights):
    save_photo(tmp_path / "photos" / "a.png")
    ended = cli(*embed_with(weights))
    assert ended.code == 3
    assert (
        'error[E101] 1 image lies directly in "photos"; expected '
        "photos/<domain>/*.jpg\nhint: images belong into one folder per domain; "
        "--domain-from REGEX"
    ) in ended.stderr
    save_photo(tmp_path / "photos" / "b.png")
    assert '2 images lie directly in "photos"' in cli(*embed_with(weights)).stderr
    assert cli(*embed_with(weights, "--domain-from", "(.)[.]png")).code == 0


def test_pretraining_needs_no_domains(cli, tmp_path):
    """Images side by side, some of them in folders: all are taken."""
    for name in ("a.png", "b.png", "beach/c.png", "beach/far/d.png"):
        save_photo(tmp_path / "photos" / name)
    (tmp_path / "photos" / "nothing").mkdir()
    photo = Image.open(tmp_path / "photos" / "a.png")
    photo.save(tmp_path / "photos" / "beach" / "e.jpg")
    ended = cli(*TRAIN, "--epochs", 1, "--json")
    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["data"]["n_images"] == 5
    assert told["messages"] == []


def test_hints_about_weights_fit_the_fault(cli, photos, weights, tmp_path):
    whole = weights.read_bytes()
    (tmp_path / "torn.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "code.pt").write_bytes(pickle.dumps({"net": ResNet}))
    odd = save_backbone(resnet(18), tmp_path / "odd.safetensors", {"size": "many"})
    for name, said, hint in (
        ("torn.safetensors", "is not a whole safetensors file: ", "give a whole file"),
        ("code.pt", "is damaged or holds more than tensors", "save the network's"),
    ):
        ended = cli(*embed_with(tmp_path / name))
        assert f"{name} {said}" in ended.stderr
        assert f"hint: {hint}" in ended.stderr
        assert "--depth" not in ended.stderr
    ended = cli(*embed_with(odd))
    assert "a whole number from 1, got 'many'\nhint: see --size" in ended.stderr
    assert cli(*embed_with(odd, "--size", 8, "--out", "g.npz")).code == 0
    for depth, said in (
        (50, "does not hold a resnet50-cifar: "),
        (20, "depth must be one of [18, 34, 50], got 20"),
    ):
        ended = cli(*embed_with(weights, "--depth", depth))
        assert said in ended.stderr
        assert "hint: the file needs --depth 18 --stem cifar\n" in ended.stderr
    save_file({"conv1.weight": torch.zeros(3)}, tmp_path / "s.safetensors")
    ended = cli(*embed_with(tmp_path / "s.safetensors"))
    assert "hint: give weights of a ResNet-18, 34 or 50 with torchvision's names" in (
        ended.stderr
    )


@pytest.mark.parametrize(("depth", "stem"), [(34, "cifar"), (18, "imagenet")])
def test_weights_tell_what_network_they_are(cli, photos, tmp_path, depth, stem):
    net = resnet(depth, stem=stem)
    torch.save(net.state_dict(), tmp_path / "plain.pt")
    ended = cli(*embed_with(tmp_path / "plain.pt", "--size", 8))
    assert ended.code == 0, ended.stderr
    expected = embed_folder(photos, net, size=8, device="cpu")
    with np.load(tmp_path / "f.npz") as found:
        np.testing.assert_allclose(found["X"], expected.X, rtol=1e-5, atol=1e-6)


def test_one_image_has_nothing_to_be_told_apart_from(cli, photos, tmp_path):
    ended = cli("pretrain", "photos", "--batch", 1, "--device", "cpu")
    assert ended.code == 2
    assert "error[E002] --batch must be at least 2, got 1" in ended.stderr
    save_photo(tmp_path / "few" / "beach" / "a.png")
    few = ["pretrain", "few", "--device", "cpu"]
    ended = cli(*few)
    assert ended.code == 3
    assert 'error[E101] "few" must hold at least 2 images, got 1' in ended.stderr
    wide = np.full((8, 8), 70_000, dtype=np.int32)
    Image.fromarray(wide).save(tmp_path / "few" / "beach" / "wide.tif")
    ended = cli(*few, "--skip-bad")
    assert ended.code == 3
    assert '"few" must hold at least 2 images, got 1' in ended.stderr


def test_the_smallest_batch_is_not_halved(cli, photos, weights, monkeypatch):
    def hungry(self, x):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ResNet, "features", hungry)
    ended = cli(*embed_with(weights, "--batch", 1))
    assert "a batch of 1 image does not fit" in ended.stderr
    assert "hint: a smaller --size" in ended.stderr
    ended = cli(*TRAIN, "--batch", 2)
    assert "hint: a smaller --size" in ended.stderr
