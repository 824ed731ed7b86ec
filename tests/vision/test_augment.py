import copy

import numpy as np
import pytest
import torch

from shoal.vision.augment import (
    LUMA,
    QUARTER_TURN,
    Blur,
    ColorJitter,
    Crop,
    Cutout,
    Flip,
    Identity,
    RandomResizedCrop,
    Strong,
    compose,
    simclr_view,
    weak_view,
)

ALL = {
    "identity": Identity(),
    "flip": Flip(),
    "crop": Crop(3),
    "resized crop": RandomResizedCrop(flip=0.5),
    "jitter": ColorJitter(0.8, 0.8, 0.8, 0.3, grey=0.3),
    "grey": ColorJitter(0, 0, 0, 0, grey=0.5),
    "blur": Blur(radius=2),
    "cutout": Cutout(0.4, p=0.5),
    "weak": weak_view(16),
    "simclr": simclr_view(16),
    "large simclr": simclr_view(128),
    "strong": Strong(),
}


@pytest.fixture
def x(seed):
    return torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(seed))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("view", ALL.values(), ids=ALL)
def test_shape_range_type_and_input_are_kept(view, x):
    before = x.clone()
    y = view(x, generator())
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert y.device == x.device
    assert y.min() >= 0
    assert y.max() <= 1
    assert torch.equal(x, before)


@pytest.mark.parametrize("view", ALL.values(), ids=ALL)
def test_a_view_is_a_function_of_its_draws(view, x):
    assert torch.equal(view(x, generator(3)), view(x, generator(3)))
    draws = view.draw(len(x), x.device, generator(3))
    assert draws.shape == (6, view.n_draws)
    together = view.apply(x, draws)
    # Each image has its own draws: alone it looks the same.
    alone = torch.cat([view.apply(x[i : i + 1], draws[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(alone, together)


def test_draws_are_shared_out_in_order(x):
    first, second = Crop(2), Flip()
    both = compose(first, second)
    draws = both.draw(6, x.device, generator())
    expected = second.apply(first.apply(x, draws[:, :2]), draws[:, 2:])
    assert torch.equal(both.apply(x, draws), expected)


def test_zero_strength_is_the_identity(x):
    plain = [
        Identity(),
        Flip(0),
        Crop(0),
        ColorJitter(p=0),
        Blur(p=0),
        Cutout(p=0),
    ]
    for view in plain[:3] + plain[4:]:
        assert torch.equal(view(x, generator()), x)
    for view in (
        ColorJitter(p=0),
        ColorJitter(0, 0, 0, 0, p=1),
        RandomResizedCrop((1, 1), ratio=(1, 1)),
    ):
        torch.testing.assert_close(view(x, generator()), x, atol=1e-5, rtol=0)


def test_strong_at_zero_is_crop_and_flip(x):
    view = Strong(magnitude=0, cutout=0)
    draws = view.draw(6, x.device, generator())
    expected = RandomResizedCrop((0.5, 1.0), flip=0.5).apply(x, draws[:, :5])
    torch.testing.assert_close(view.apply(x, draws), expected, atol=1e-5, rtol=0)


def test_flip_is_torch_flip(x):
    assert torch.equal(Flip(1)(x, generator()), torch.flip(x, [3]))
    mixed = Flip(0.5).apply(x, torch.tensor([[0.1], [0.9]] * 3))
    assert torch.equal(mixed[::2], torch.flip(x[::2], [3]))
    assert torch.equal(mixed[1::2], x[1::2])


def test_crop_is_a_slice_of_the_padded_image(x):
    view = Crop(3)
    draws = view.draw(6, x.device, generator())
    padded = torch.nn.functional.pad(x, (3,) * 4)
    for i, (down, right) in enumerate((draws * 7).long().tolist()):
        expected = padded[i, :, down : down + 16, right : right + 16]
        assert torch.equal(view.apply(x, draws)[i], expected)


def test_resized_crop_is_a_resized_slice():
    x = torch.rand(1, 3, 16, 16, generator=generator())
    view = RandomResizedCrop((0.25, 0.25), ratio=(1, 1))
    # Half the sides, at the top left: the first 8 x 8 pixels, stretched.
    draws = torch.tensor([[0.5, 0.5, 0.0, 0.0, 0.9]])
    inner = x[:, :, :8, :8]
    resized = torch.nn.functional.interpolate(
        inner, size=(16, 16), mode="bilinear", align_corners=False
    )
    got = view.apply(x, draws)
    # At the edge of the part the view may look beyond it, a resized slice cannot.
    torch.testing.assert_close(got[:, :, :15, :15], resized[:, :, :15, :15])
    mirrored = RandomResizedCrop((0.25, 0.25), ratio=(1, 1), flip=1).apply(x, draws)
    torch.testing.assert_close(mirrored, got.flip(3))


def test_boxes_lie_inside_and_have_the_area_asked_for():
    view = RandomResizedCrop((0.2, 0.6))
    draws = view.draw(2000, torch.device("cpu"), generator())
    center, half = view.boxes(draws)
    assert (center.abs() + half <= 1 + 1e-6).all()
    whole = (half < 1).all(1)  # those that were not cut to the image
    area = half.prod(1)[whole]
    assert area.min() >= 0.2 - 1e-6
    assert area.max() <= 0.6 + 1e-6
    ratio = (half[:, 0] / half[:, 1])[whole]
    assert ratio.min() >= 3 / 4 - 1e-5
    assert ratio.max() <= 4 / 3 + 1e-5


def test_another_size_is_given_out(x):
    assert RandomResizedCrop(size=10)(x, generator()).shape == (6, 3, 10, 10)


def reference_jitter(image, brightness, contrast, saturation, angle):
    """The four changes one after the other, as matrices, for one image (3, h, w)."""
    luma = np.array(LUMA)
    to_yiq = np.array(
        [LUMA, [0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]]
    )
    turn = np.eye(3)
    turn[1:, 1:] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    pixels = brightness * image.reshape(3, -1)
    pixels = contrast * pixels + (1 - contrast) * (luma @ pixels).mean()
    pixels = saturation * pixels + (1 - saturation) * (luma @ pixels)
    pixels = np.linalg.inv(to_yiq) @ turn @ to_yiq @ pixels
    return pixels.clip(0, 1).reshape(image.shape)


def test_jitter_is_its_four_steps(x):
    view = ColorJitter(0.8, 0.7, 0.6, 0.2, p=1.0)
    draws = view.draw(6, x.device, generator(1))
    got = view.apply(x, draws).double().numpy()
    for i, u in enumerate(2 * draws.double().numpy() - 1):
        expected = reference_jitter(
            x[i].double().numpy(),
            1 + 0.8 * u[0],
            1 + 0.7 * u[1],
            1 + 0.6 * u[2],
            2 * np.pi * 0.2 * u[3],
        )
        np.testing.assert_allclose(got[i], expected, atol=1e-5)


def test_quarter_turn_keeps_grey_and_luminance():
    turn, luma = np.array(QUARTER_TURN), np.array(LUMA)
    np.testing.assert_allclose(turn.sum(1), 0, atol=1e-7)
    np.testing.assert_allclose(luma @ turn, 0, atol=1e-7)
    # Two quarter turns are a half turn: colours become their opposites.
    np.testing.assert_allclose(
        turn @ turn, np.tile(luma, (3, 1)) - np.eye(3), atol=1e-6
    )


def test_grey_is_the_luminance(x):
    expected = (x * torch.tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
    for p in (0, 1):  # whatever else is done to the colours
        grey = ColorJitter(0, 0, 0, 0, p=p, grey=1)(x, generator())
        torch.testing.assert_close(grey, expected.expand_as(x))


def test_grey_images_keep_their_hue():
    grey = torch.full((2, 3, 4, 4), 0.5)
    turned = ColorJitter(0, 0, 0.9, 0.5, p=1)(grey, generator())
    torch.testing.assert_close(turned, grey)


def test_blur_is_a_gaussian_sum(x):
    view = Blur((0.5, 1.5), radius=2, p=1)
    draws = view.draw(6, x.device, generator())
    got = view.apply(x, draws)
    padded = torch.nn.functional.pad(x, (2,) * 4, mode="reflect")
    for i in range(2):
        sigma = 0.5 + float(draws[i, 0])
        kernel = torch.exp(-(torch.arange(-2, 3) ** 2) / (2 * sigma**2))
        weights = torch.outer(kernel, kernel) / kernel.sum() ** 2
        patch = padded[i, :, 4:9, 6:11]  # around row 4, column 6
        torch.testing.assert_close(got[i, :, 4, 6], (patch * weights).sum((1, 2)))


def test_blur_leaves_a_flat_image():
    flat = torch.full((2, 3, 8, 8), 0.3)
    torch.testing.assert_close(Blur(p=1)(flat, generator()), flat)


def test_cutout_covers_one_square(x):
    view = Cutout(0.5)
    covered = view.apply(x, torch.tensor([[0.5, 0.5, 0.0]] * 6))
    inside = torch.zeros(16, 16, dtype=torch.bool)
    inside[4:12, 4:12] = True
    assert (covered[:, :, inside] == 0.5).all()
    assert torch.equal(covered[:, :, ~inside], x[:, :, ~inside])


def test_strong_solarizes_and_posterizes():
    x = torch.linspace(0, 1, 48).view(1, 3, 4, 4)
    view = Strong()
    draws = torch.tensor([[0.05, 0.4, 0.0]])
    solarized = view._tone(x, draws)
    assert torch.equal(solarized, torch.where(x >= 0.6, 1 - x, x))
    posterized = view._tone(x, torch.tensor([[0.15, 0.0, 1.0]]))
    assert set((posterized * 16).flatten().tolist()) == set(map(float, range(16)))
    assert torch.equal(view._tone(x, torch.tensor([[0.5, 0.4, 1.0]])), x)


def test_small_views_of_simclr_show_the_same_parts():
    ramp = torch.linspace(0.3, 0.7, 16)
    x = torch.stack([ramp.expand(16, 16), ramp[:, None].expand(16, 16)] * 3)
    x = x.view(2, 3, 16, 16)
    small, large = simclr_view(16, view_size=8), simclr_view(16)
    draws = torch.rand(2, large.n_draws, generator=generator())
    draws[:, 0], draws[:, 2:4] = 0.2, 0.4  # a part away from the edge
    views = small.apply(x, draws)
    assert views.shape == (2, 3, 8, 8)
    # On a ramp the centre of four pixels is their mean.
    means = torch.nn.functional.avg_pool2d(large.apply(x, draws), 2)
    torch.testing.assert_close(views, means)


@pytest.mark.parametrize("view", ALL.values(), ids=ALL)
def test_a_view_tells_its_settings_and_no_address(view):
    assert repr(view) == repr(copy.deepcopy(view))
    assert " at 0x" not in repr(view)


def test_views_tell_what_they_are():
    assert repr(compose(Flip(), Crop(2))) == "compose(Flip(p=0.5), Crop(padding=2))"
    assert repr(Identity()) == "Identity()"
    assert "cutout=Cutout(share=0.3, p=1.0)" in repr(Strong(cutout=0.3))
    own = Flip()
    own.p = lambda: 0.5  # an object of whatever kind, made anew in every process
    assert repr(own) == "Flip(p=<function>)"


@pytest.mark.parametrize("size", [0, -4, 8.5, True])
def test_sizes_of_views_are_whole_numbers(size):
    with pytest.raises(ValueError, match="view_size must be .* from 1, got"):
        simclr_view(16, view_size=size)


def test_half_precision_around_does_not_round_the_views(x):
    view = simclr_view(16)
    draws = view.draw(6, x.device, generator())
    with torch.autocast("cpu", torch.bfloat16):
        rounded = view.apply(x, draws)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, view.apply(x, draws))
