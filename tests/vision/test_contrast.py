import math

import pytest
import torch
from torch.nn import functional

from shoal.vision._steps import info_nce, nt_xent


def slow_nt_xent(first, second, temperature):
    """The definition, one pair at a time."""
    views = [functional.normalize(v, dim=0) for v in [*first, *second]]
    n = len(first)
    total = 0.0
    for i, view in enumerate(views):
        partner = (i + n) % (2 * n)
        scores = [math.exp(float(view @ other) / temperature) for other in views]
        total -= math.log(scores[partner] / (sum(scores) - scores[i]))
    return total / (2 * n)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_nt_xent_is_its_definition(n, temperature, seed):
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(2, n, 5, dtype=torch.float64, generator=generator)
    got = nt_xent(first, second, temperature)
    assert float(got) == pytest.approx(
        slow_nt_xent(first, second, temperature), abs=1e-5
    )
    # Swapped views are the same pairs.
    torch.testing.assert_close(nt_xent(second, first, temperature), got)


def test_nt_xent_falls_when_partners_meet(seed):
    torch.manual_seed(seed)
    first, second = torch.randn(2, 8, 16)
    apart, together = nt_xent(first, second, 0.2), nt_xent(first, first + 0.01, 0.2)
    assert together < apart


def test_nt_xent_gradient_is_numerical(seed):
    torch.manual_seed(seed)
    first, second = torch.randn(2, 3, 4, requires_grad=True)
    loss = nt_xent(first, second, 0.5)
    (gradient,) = torch.autograd.grad(loss, first)
    nudge = torch.zeros_like(first)
    nudge[1, 2] = 1e-2
    with torch.no_grad():
        up, down = (
            nt_xent(first + nudge, second, 0.5),
            nt_xent(first - nudge, second, 0.5),
        )
    assert float(gradient[1, 2]) == pytest.approx(float(up - down) / 2e-2, abs=1e-3)


def test_losses_are_float32_under_autocast():
    torch.manual_seed(0)
    first, second = torch.randn(2, 8, 16)
    views, others = torch.randn(8, 16), functional.normalize(torch.randn(11, 16))
    with torch.autocast("cpu", torch.bfloat16):
        contrast = nt_xent(first, second, 0.1)
        found = info_nce(views, others, 0.1)
    torch.testing.assert_close(contrast, nt_xent(first, second, 0.1))
    torch.testing.assert_close(found, info_nce(views, others, 0.1))


def test_info_nce_is_its_definition(seed):
    """Four images, keys of both their views, and three keys of earlier images."""
    torch.manual_seed(seed)
    views = torch.randn(8, 6)
    others = functional.normalize(torch.randn(11, 6))
    total = 0.0
    for i, view in enumerate(functional.normalize(views)):
        scores = [math.exp(float(view @ other) / 0.2) for other in others]
        total -= math.log(scores[(i + 4) % 8] / (sum(scores) - scores[i]))
    got = info_nce(views, others, 0.2)
    assert float(got) == pytest.approx(total / 8, abs=1e-5)
