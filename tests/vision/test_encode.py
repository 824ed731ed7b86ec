import numpy as np
import pytest
import torch
from PIL import Image

from shoal.exceptions import InputError, ShoalWarning
from shoal.vision._backbone import save_backbone
from shoal.vision._encode import embed_folder, encode
from shoal.vision._images import ImageSet
from shoal.vision._nets import resnet


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return resnet(18)


@pytest.fixture(scope="module")
def weights(net, tmp_path_factory):
    return save_backbone(net, tmp_path_factory.mktemp("weights") / "net.safetensors")


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


def test_features_are_those_of_the_network(net, images):
    got = encode(net, images, batch_size=2, device="cpu", normalize=False)
    x = torch.from_numpy((images.transpose(0, 3, 1, 2) / 255 - 0.5) / 0.25).float()
    expected = net.eval().features(x).detach().numpy()
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)
    unit = encode(net, ImageSet(images, "cpu"))
    norm = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, expected / norm, atol=1e-5)


def test_one_image_is_encoded_as_in_a_batch(net, images):
    together = encode(net, images, device="cpu")
    alone = np.concatenate([encode(net, image[None], device="cpu") for image in images])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_training_mode_comes_back(net, images):
    net.train()
    encode(net, images, device="cpu")
    assert net.training
    net.eval()
    encode(net, images, device="cpu")
    assert not net.training


def test_out_of_memory_suggests_a_batch_size(images):
    class Hungry(torch.nn.Module):
        def forward(self, x):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(MemoryError, match="batch_size=64 does not fit.*batch_size=32"):
        encode(Hungry(), images, batch_size=64, device="cpu")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    for domain in ("east", "west"):
        for name in ("cat", "dog"):
            place = tmp_path / "photos" / domain / name
            place.mkdir(parents=True)
            for i in range(2):
                pixels = rng.integers(0, 256, (10, 12, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(place / f"{i}.png")
    return tmp_path / "photos"


def test_a_folder_becomes_a_file_that_the_library_reads(folder, weights, tmp_path):
    from shoal.io import read

    out = tmp_path / "features.npz"
    bunch = embed_folder(folder, weights, out, size=8, batch_size=3, device="cpu")
    assert bunch.X.shape == (8, 512)
    table = read(out, domain="domain", id="id", label="label")
    np.testing.assert_allclose(table.X, bunch.X, rtol=1e-6)
    assert table.domains.tolist() == ["east"] * 4 + ["west"] * 4
    assert table.labels.tolist() == ["cat", "cat", "dog", "dog"] * 2
    assert table.ids[0] == "east/cat/0.png"


def test_truncated_files_are_left_out_when_asked_to(folder, weights):
    broken = folder / "east" / "cat" / "0.png"
    broken.write_bytes(broken.read_bytes()[:200])
    with pytest.raises(InputError, match="1 of 8 images cannot be read .east"):
        embed_folder(folder, weights, size=8, device="cpu")
    with pytest.warns(ShoalWarning, match="1 of 8 images cannot be read .east") as said:
        bunch = embed_folder(folder, weights, size=8, device="cpu", skip_bad=True)
    assert [one.filename for one in said] == [__file__]  # told to who called
    assert bunch.X.shape == (7, 512)
    assert bunch.skipped == ["east/cat/0.png"]
    assert len(bunch.domains) == len(bunch.labels) == len(bunch.files) == 7


@pytest.mark.parametrize("given", ["file", "folder"])
def test_the_file_tells_size_and_network(folder, tmp_path, given):
    torch.manual_seed(1)
    net = resnet(18, stem="imagenet")
    place = tmp_path / "photos-encoder"
    place.mkdir()
    file = save_backbone(net, place / "encoder.safetensors", {"size": 8})
    got = embed_folder(folder, file if given == "file" else place, device="cpu")
    expected = embed_folder(folder, net.eval(), size=8, device="cpu")
    np.testing.assert_array_equal(got.X, expected.X)
    other = embed_folder(folder, file, size=10, device="cpu")
    assert np.abs(other.X - expected.X).max() > 1e-3


def test_a_silent_file_is_for_images_of_32_pixels(folder, weights):
    got = embed_folder(folder, weights, device="cpu")
    expected = embed_folder(folder, weights, size=32, device="cpu")
    np.testing.assert_array_equal(got.X, expected.X)


def test_a_size_in_the_file_that_is_none(folder, net, tmp_path):
    file = save_backbone(net, tmp_path / "odd.safetensors", {"size": "many"})
    with pytest.raises(ValueError, match="size in .* got 'many'; give size"):
        embed_folder(folder, file, device="cpu")
    assert embed_folder(folder, file, size=8, device="cpu").X.shape == (8, 512)


def test_the_weights_may_be_a_network(folder, net, weights):
    got = embed_folder(folder, net, size=8, device="cpu")
    expected = embed_folder(folder, weights, size=8, device="cpu")
    np.testing.assert_array_equal(got.X, expected.X)
    with pytest.raises(TypeError, match="weights must be a path .* network .* got int"):
        embed_folder(folder, 18, device="cpu")
    with pytest.raises(FileNotFoundError, match="no weights file at .*encoder.safe"):
        embed_folder(folder, folder, device="cpu")


def test_the_file_must_be_an_npz(folder, weights, tmp_path):
    with pytest.raises(ValueError, match=r"out must end in \.npz"):
        embed_folder(folder, weights, tmp_path / "features.csv", device="cpu")
