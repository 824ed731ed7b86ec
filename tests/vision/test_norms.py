"""Norms alone; shared by two processes they are tested in test_parallel."""

import torch
from torch import nn

from shoal.vision.norms import SharedNorm, share_norms


def test_alone_a_shared_norm_is_the_usual_one():
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    with torch.no_grad():
        norm.weight.uniform_()
    twin = nn.BatchNorm2d(4)
    twin.load_state_dict(norm.state_dict())
    shared = SharedNorm.of(norm)
    x = torch.randn(5, 4, 3, 3)
    assert torch.equal(shared(x), twin(x))
    assert torch.equal(shared.eval()(x), twin.eval()(x))
    for name, value in twin.state_dict().items():
        assert torch.equal(shared.state_dict()[name], value)


def test_an_optimizer_does_not_notice():
    norm = nn.BatchNorm1d(3)
    shared = SharedNorm.of(norm)
    assert shared.weight is norm.weight
    assert shared.bias is norm.bias
    assert shared.running_mean is norm.running_mean


def test_alone_nothing_is_shared():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    share_norms(net, torch.device("cpu"))
    assert type(net[1]) is nn.BatchNorm1d
