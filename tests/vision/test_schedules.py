import math

import pytest

from shoal.vision._loop import constant, cosine, exponential


def test_cosine_is_half_a_cosine():
    schedule = cosine(8, floor=0.2)
    for epoch in (0, 1, 3.5, 8):
        expected = 0.2 + 0.8 * (1 + math.cos(math.pi * epoch / 8)) / 2
        assert schedule(epoch) == pytest.approx(expected)
    assert schedule(9) == pytest.approx(0.2)


def test_warmup_rises_in_a_line_to_one():
    schedule = cosine(10, warmup=2)
    assert [schedule(e) for e in (0, 0.5, 1, 2)] == pytest.approx([0, 0.25, 0.5, 1])
    assert schedule(10) == pytest.approx(0)


def test_exponential_falls_once_an_epoch():
    schedule = exponential(0.97)
    assert schedule(0.99) == 1
    assert schedule(3) == pytest.approx(0.97**3)
    assert constant()(7) == 1


def test_bad_arguments():
    with pytest.raises(ValueError, match="warmup must lie in"):
        cosine(5, warmup=5)
    with pytest.raises(ValueError, match="gamma must lie in"):
        exponential(1.5)
