import pytest
import torch

from shoal.vision.nets import load_backbone, read_weights, resnet, save_backbone


@pytest.mark.parametrize(("depth", "n_features"), [(18, 512), (34, 512), (50, 2048)])
def test_shapes(depth, n_features):
    net = resnet(depth, n_outputs=5).eval()
    x = torch.zeros(2, 3, 16, 16)
    assert net.n_features == n_features
    assert net.features(x).shape == (2, n_features)
    assert net(x).shape == (2, 5)


def test_a_saved_backbone_comes_back(tmp_path):
    net = resnet(18, n_outputs=3)
    path = save_backbone(net, tmp_path / "net.safetensors", {"epochs": 3})
    back = load_backbone(path)
    x = torch.rand(2, 3, 8, 8)
    assert torch.equal(back.features(x), net.eval().features(x))
    assert "fc.weight" not in read_weights(path)
