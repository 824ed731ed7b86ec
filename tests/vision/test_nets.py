import pickle

import numpy as np
import pytest
import torch

import shoal
from shoal.vision import (
    Backbone,
    ImageDiscriminator,
    ImageMixture,
    load_backbone,
    register_backbone,
    resnet,
    save_backbone,
)
from shoal.vision._backbone import _BUILDERS, name_of, read_weights
from shoal.vision._nets import ResNet


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    net = resnet(18)
    for module in net.modules():  # statistics that differ from a fresh network's
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return net.eval()


@pytest.mark.parametrize(("depth", "n_features"), [(18, 512), (34, 512), (50, 2048)])
def test_shapes(depth, n_features):
    net = resnet(depth, n_outputs=5).eval()
    x = torch.zeros(2, 3, 16, 16)
    assert net.n_features == n_features
    assert net.features(x).shape == (2, n_features)
    assert net(x).shape == (2, 5)


def test_names_and_sizes_are_those_of_torchvision():
    # As published for torchvision's resnet18, resnet34 and resnet50.
    n_parameters = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032}
    for depth, wanted in n_parameters.items():
        net = resnet(depth, stem="imagenet", n_outputs=1000)
        assert sum(p.numel() for p in net.parameters()) == wanted
    names = set(net.state_dict())
    assert {"conv1.weight", "layer1.0.conv3.weight", "fc.bias"} <= names
    assert {"layer2.0.downsample.0.weight", "layer4.2.bn3.running_var"} <= names


def test_stems_see_different_sizes():
    seen = {}
    for stem in ("cifar", "imagenet"):
        net = resnet(18, stem=stem).eval()
        hook = net.layer1.register_forward_hook(
            lambda module, inputs, output, stem=stem: seen.update({stem: output.shape})
        )
        net(torch.zeros(1, 3, 32, 32))
        hook.remove()
    assert seen["cifar"][2:] == (32, 32)
    assert seen["imagenet"][2:] == (8, 8)


def test_a_block_is_its_formula():
    torch.manual_seed(0)
    block = resnet(18).eval().layer2[0]
    x = torch.randn(2, 64, 8, 8)
    inner = torch.relu(block.bn1(block.conv1(x)))
    outer = block.bn2(block.conv2(inner)) + block.downsample(x)
    assert torch.equal(block(x), torch.relu(outer))


def test_dropout_acts_in_training_only_and_has_no_parameters(net):
    dropping = resnet(18, dropout=0.5)
    dropping.load_state_dict(net.state_dict())
    x = torch.rand(2, 3, 8, 8)
    assert torch.equal(dropping.eval().features(x), net.features(x))
    dropping.train()
    assert not torch.equal(dropping.features(x), dropping.features(x))


def test_a_saved_backbone_comes_back(net, tmp_path):
    with_head = resnet(18, n_outputs=3)
    with_head.load_state_dict(net.state_dict(), strict=False)
    path = save_backbone(with_head, tmp_path / "net.safetensors", {"epochs": 3})
    x = torch.rand(2, 3, 8, 8)
    assert torch.equal(load_backbone(path).features(x), net.features(x))
    assert "fc.weight" not in read_weights(path)
    assert [p.name for p in tmp_path.iterdir()] == ["net.safetensors"]


def test_half_precision_weights_become_float32(net, tmp_path):
    halved = resnet(18)
    halved.load_state_dict(net.state_dict())
    path = save_backbone(halved.half(), tmp_path / "half.safetensors")
    back = load_backbone(path)
    assert {p.dtype for p in back.parameters()} == {torch.float32}
    expected = net.state_dict()["layer1.0.conv1.weight"].half().float()
    assert torch.equal(back.state_dict()["layer1.0.conv1.weight"], expected)


@pytest.mark.parametrize(
    "prefix", ["", "module.", "backbone.", "module.backbone.", "module.encoder_q."]
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_prefixes_of_other_projects(net, tmp_path, prefix, wrapped):
    weights = {f"{prefix}{name}": w for name, w in net.state_dict().items()}
    weights["module.encoder_k.conv1.weight"] = torch.zeros(64, 3, 3, 3)
    weights["module.queue"] = torch.zeros(128, 10)
    weights[f"{prefix}fc.0.weight"] = torch.zeros(128, 512)
    weights["contrastive_head.2.bias"] = torch.zeros(128)
    content = {"state_dict": weights, "epoch": 7} if wrapped else weights
    torch.save(content, tmp_path / "other.pth")
    x = torch.rand(1, 3, 8, 8)
    back = load_backbone(tmp_path / "other.pth")
    assert torch.equal(back.features(x), net.features(x))


def test_another_architecture_names_the_keys(net, tmp_path):
    path = save_backbone(net, tmp_path / "net.safetensors")
    with pytest.raises(ValueError, match=r"resnet34-cifar.*missing \(layer1\.2\.conv1"):
        load_backbone(path, "resnet34-cifar")
    with pytest.raises(ValueError, match=r"conv1\.weight \(64, 3, 3, 3\) instead of"):
        load_backbone(path, "resnet18-imagenet")


@pytest.mark.parametrize("depth", [18, 34, 50])
@pytest.mark.parametrize("stem", ["cifar", "imagenet"])
def test_a_file_tells_which_network_it_is(depth, stem, tmp_path):
    net = resnet(depth, stem=stem).eval()
    path = save_backbone(net, tmp_path / "net.safetensors")
    back = load_backbone(path)
    assert (back.name, back.depth, back.stem) == (net.name, depth, stem)
    x = torch.rand(1, 3, 16, 16)
    assert torch.equal(back.features(x), net.features(x))
    told = f"; give name='resnet{depth}-{stem}', which is that of the file"
    wrong = "resnet34-cifar" if depth == 18 else "resnet18-cifar"
    with pytest.raises(ValueError, match=told):
        load_backbone(path, wrong)


def test_weights_of_no_known_network(tmp_path):
    strange = {"layer1.0.conv1.weight": torch.zeros(3, 3)}
    torch.save(strange, tmp_path / "strange.pth")
    with pytest.raises(ValueError, match="; give weights of resnet18-cifar, resnet18"):
        load_backbone(tmp_path / "strange.pth")


# ---- names -----------------------------------------------------------------------


class Toy(Backbone):
    """A backbone of somebody else's: one convolution."""

    n_features = 4

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Conv2d(3, 4, 3)

    def features(self, x):
        return torch.relu(self.net(x)).mean(dim=(2, 3))


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr("shoal.vision._backbone._BUILDERS", {**_BUILDERS})
    register_backbone("toy", Toy)


@pytest.mark.usefixtures("toy")
def test_a_backbone_is_added_in_one_place(images, tmp_path):
    """Then it is known by name, by its weights, and in models that are saved."""
    X, domains = images.X, images.domains
    torch.manual_seed(0)
    net = load_backbone("toy")
    assert isinstance(net, Toy)
    path = save_backbone(net, tmp_path / "toy.safetensors", {"size": 8})
    again = load_backbone(path)
    assert isinstance(again, Toy)
    assert torch.equal(again.net.weight, net.net.weight)
    model = ImageMixture(2, backbone=path, fine_tuning=None, device="cpu")
    model.fit(X, domains)
    loaded = shoal.load(shoal.save(model, tmp_path / "model"))
    assert isinstance(loaded.backbone_, Toy)
    np.testing.assert_array_equal(
        loaded.predict_proba(X, domains), model.predict_proba(X, domains)
    )
    assert name_of(Toy()) == "toy"  # however it was made
    network = ImageDiscriminator("toy", epochs=1, device="cpu", random_state=0)
    proba = [network.fit(X, domains).predict_proba(X) for _ in range(2)]
    np.testing.assert_array_equal(proba[0], proba[1])


@pytest.mark.usefixtures("toy")
def test_a_name_stands_for_one_network(images):
    with pytest.raises(ValueError, match="'toy' is known already; give another name"):
        register_backbone("toy", Toy)
    found = [
        ImageMixture(
            2, backbone="toy", fine_tuning=None, device="cpu", random_state=seed
        ).fit(images.X, images.domains)
        for seed in (0, 0, 1)
    ]
    weights = [model.backbone_.net.weight for model in found]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_what_a_name_does_not_tell_is_not_saved(tmp_path):
    """A class of one's own under the name of another would come back as that."""
    mine = type("Mine", (ResNet,), {})(18, "cifar", None, 0.0)
    assert name_of(resnet(18)) == "resnet18-cifar"
    assert name_of(mine) is None
    assert name_of(Toy()) is None


def test_damaged_and_dangerous_files(tmp_path, net):
    path = save_backbone(net, tmp_path / "net.safetensors")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"net\.safetensors is not a whole"):
        load_backbone(path)
    cut = tmp_path / "cut.pth"
    torch.save(net.state_dict(), cut)
    cut.write_bytes(cut.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"cut\.pth is damaged"):
        load_backbone(cut)
    evil = tmp_path / "evil.pth"
    evil.write_bytes(pickle.dumps(Evil(str(tmp_path / "ran")), protocol=2))
    with pytest.raises(
        ValueError, match="holds more than tensors, which is never run; save"
    ):
        load_backbone(evil)
    assert not (tmp_path / "ran").exists()
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ValueError, match="holds a list, not named tensors"):
        load_backbone(tmp_path / "list.pth")
    with pytest.raises(
        FileNotFoundError, match=r"no weights file at .*; give the path of"
    ):
        load_backbone(tmp_path / "absent.pth")


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 20}, "depth must be one of"),
        ({"stem": "vgg"}, "stem must be"),
        ({"dropout": 1.0}, "dropout must lie in"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        resnet(**arguments)
