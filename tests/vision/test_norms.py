"""Norms alone; shared by two processes they are tested in test_parallel."""

import pytest
import torch
from torch import nn

from shoal.vision._devices import SharedNorm, share_norms
from shoal.vision._rows import settle_norms


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


def dropping_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Dropout(0.5), nn.BatchNorm2d(4), nn.ReLU()
    )


def test_settled_statistics_are_those_without_dropout():
    net, batches = dropping_net(), torch.randn(3, 8, 3, 6, 6)
    settle_norms(net, batches)
    values = [net[0](batch) for batch in batches]
    mean = torch.stack([v.mean((0, 2, 3)) for v in values]).mean(0)
    variance = torch.stack([v.var((0, 2, 3)) for v in values]).mean(0)
    torch.testing.assert_close(net[2].running_mean, mean)
    torch.testing.assert_close(net[2].running_var, variance)


def test_settling_leaves_all_else_alone():
    net = dropping_net()
    net[3].eval()
    weights = {name: p.clone() for name, p in net.named_parameters()}
    settle_norms(net, [torch.randn(4, 3, 6, 6)])
    assert [module.training for module in net.modules()] == [True] * 4 + [False]
    assert net[2].momentum == 0.1
    assert all(torch.equal(p, weights[name]) for name, p in net.named_parameters())
    assert all(p.grad is None for p in net.parameters())


def test_dropout_spoils_statistics_of_training_and_settling_mends_them():
    net, x = dropping_net(), torch.randn(64, 3, 6, 6)
    for _ in range(100):
        net(x)
    assert (net.eval()[:3](x).var((0, 2, 3)) < 0.7).all()
    settle_norms(net, [x])
    torch.testing.assert_close(
        net[:3](x).var((0, 2, 3)), torch.ones(4), atol=1e-3, rtol=0
    )


def test_statistics_stay_when_they_cannot_be_taken():
    net = dropping_net()
    net(torch.randn(4, 3, 6, 6))
    before = {name: b.clone() for name, b in net.named_buffers()}
    with pytest.raises(ValueError, match="batches must hold at least one batch"):
        settle_norms(net, [])
    good, bad = torch.randn(4, 3, 6, 6), torch.randn(4, 2, 6, 6)
    with pytest.raises(RuntimeError, match="channels"):
        settle_norms(net, [good, bad])
    assert all(torch.equal(b, before[name]) for name, b in net.named_buffers())
    assert all(module.training for module in net.modules())
    assert net[2].momentum == 0.1


def test_shared_norms_settle_like_the_usual_ones():
    usual, batches = dropping_net(), torch.randn(3, 8, 3, 6, 6)
    shared = dropping_net()
    shared[2] = SharedNorm.of(shared[2])
    for net in (usual, shared):
        settle_norms(net, batches)
    torch.testing.assert_close(shared[2].running_mean, usual[2].running_mean)
    torch.testing.assert_close(shared[2].running_var, usual[2].running_var)
