import numpy as np
import pytest
import torch

from shoal.vision._images import ImageSet, check_images, normalize, to_float


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (10, 4, 6, 3), dtype=np.uint8)


def test_a_batch_is_the_pixels_scaled(images):
    stored = ImageSet(images, "cpu")
    batch = stored.batch(torch.tensor([3, 3, 7]))
    expected = images[[3, 3, 7]].transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(batch.numpy(), expected, rtol=1e-6)
    assert batch.dtype == torch.float32
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert len(stored) == 10
    assert stored.size == (4, 6)


def test_normalized_as_the_weights_expect():
    x = to_float(torch.tensor([[[[0, 255, 51]]]], dtype=torch.uint8))
    expected = [(v / 255 - 0.5) / 0.25 for v in (0, 255, 51)]
    torch.testing.assert_close(normalize(x).flatten(), torch.tensor(expected))


def test_grey_images_are_repeated(images):
    grey = images[..., 0]
    for given in (grey, grey[..., None]):
        got = check_images(given)
        assert got.shape == (10, 4, 6, 3)
        assert (got == grey[..., None]).all()


def test_images_that_stay_on_the_host_give_the_same_batches(images, tmp_path):
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    on_host, on_device = ImageSet(mapped, "cpu"), ImageSet(images, "cpu")
    assert not on_host.on_device
    assert on_device.on_device
    rows, next_rows = torch.tensor([1, 2, 5]), torch.tensor([0, 9])
    assert torch.equal(on_host.batch(rows), on_device.batch(rows))
    for host_rows in (None, next_rows.clone()):
        on_host.prefetch(next_rows, host_rows)
        assert torch.equal(on_host.batch(next_rows), on_device.batch(next_rows))
    # Rows that were not announced are gathered all the same.
    on_host.prefetch(next_rows)
    assert torch.equal(on_host.batch(rows), on_device.batch(rows))
    on_device.prefetch(rows)


def several_sizes():
    images = np.empty(2, dtype=object)
    images[:] = [np.zeros((4, 4, 3), np.uint8), np.zeros((5, 4, 3), np.uint8)]
    return images


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.zeros((2, 4, 4, 3)), TypeError, "got float64; scale and round them"),
        (np.eye(4)[None].astype(int), TypeError, r"got int64; scale.*\(255 \* images"),
        (np.full((2, 4, 4), 70_000), TypeError, "got int64; scale and round them"),
        (
            np.full((2, 4, 4), 255),
            TypeError,
            r"got int64; as they lie in that range, use images.astype\('uint8'\)",
        ),
        (
            np.full((2, 4, 4), 254.9),
            TypeError,
            r"got float64; .* use images.round\(\).astype\('uint8'\)",
        ),
        (
            several_sizes(),
            ValueError,
            r"several sizes, such as \(4, 4, 3\) and \(5, 4, 3\); resize",
        ),
        (np.zeros((4, 4), np.uint8), ValueError, r"got \(4, 4\)"),
        (np.zeros((2, 4, 4, 4), np.uint8), ValueError, r"got \(2, 4, 4, 4\)"),
        (np.zeros((0, 4, 4, 3), np.uint8), ValueError, "must hold at least one image"),
        ([], ValueError, r"must hold at least one image, got shape \(0,\)"),
        (np.uint8(3), ValueError, r"got \(\)"),
        (
            [np.zeros((4, 4, 3), np.uint8), np.zeros((5, 4, 3), np.uint8)],
            ValueError,
            r"several sizes, such as \(4, 4, 3\) and \(5, 4, 3\); resize",
        ),
    ],
)
def test_bad_images(given, error, message):
    with pytest.raises(error, match=message):
        check_images(given)


def test_lists_and_tensors_of_images(images):
    apart = np.empty(len(images), dtype=object)
    apart[:] = list(images)
    for given in (list(images), torch.from_numpy(images), apart):
        np.testing.assert_array_equal(check_images(given), images)
