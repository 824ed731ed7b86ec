"""Images as rows: flattened ones must be whole pixels of a shape that is one."""

import numpy as np
import pytest

pytest.importorskip("torch")

from numpy.testing import assert_array_equal  # noqa: E402

from shoal.vision._images import as_images, digest_rows  # noqa: E402


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(256, size=(5, 12), dtype=np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_flattened_rows_of_any_type_are_the_same_images(pixels, dtype):
    found = as_images(pixels.astype(dtype), (2, 2, 3))
    assert found.dtype == np.uint8
    assert_array_equal(found, pixels.reshape(-1, 2, 2, 3))


def test_a_little_rounding_is_forgiven(pixels):
    noise = np.random.default_rng(1).uniform(0, 9e-4, pixels.shape)
    off = np.abs(pixels - noise)
    assert_array_equal(as_images(off, (2, 2, 3)), as_images(pixels, (2, 2, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pixels_from_0_to_1_are_refused(pixels, dtype):
    with pytest.raises(
        ValueError, match=r"got 0\.\d+; scale.*\(255 \* images\)\.round"
    ):
        as_images((pixels / 255).astype(dtype), (2, 2, 3))


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_black_and_white_as_0_and_1_stay_allowed(pixels, dtype):
    binary = (pixels > 127).astype(dtype)
    assert_array_equal(as_images(binary, (2, 6))[..., 0].reshape(5, 12), binary)


@pytest.mark.parametrize("shape", [5, "two", (2, 2.0, 3), (12,), (0, 2, 3), ()])
def test_a_shape_that_is_none(pixels, shape):
    with pytest.raises(ValueError, match=r"image_shape must be \(height, width\)"):
        as_images(pixels, shape)


def test_digests_tell_arrays_apart(pixels):
    names = {
        digest_rows(pixels),
        digest_rows(pixels.astype(np.int64)),
        digest_rows(pixels.reshape(12, 5)),
        digest_rows(pixels[::-1]),
        digest_rows(pixels, pixels),
    }
    assert len(names) == 5
    assert digest_rows(pixels.T.copy().T) == digest_rows(pixels)
