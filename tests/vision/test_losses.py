"""Losses equal slow loops written out here."""

import math

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from shoal.vision._steps import (  # noqa: E402
    domain_likelihood,
    domain_loss,
    neighbour_consistency,
    posterior,
    self_label_loss,
)
from support.slow import slow_softmax  # noqa: E402

sizes = st.tuples(
    st.integers(1, 6), st.integers(2, 5), st.integers(2, 4), st.integers(0, 9)
)


def draw(n, k, r, seed):
    """Logits of two views, log T, domains and weights."""
    g = torch.Generator().manual_seed(seed)
    logits, other = 3 * torch.randn(2, n, k, generator=g, dtype=torch.float64)
    log_T = torch.randn(k, r, generator=g, dtype=torch.float64).log_softmax(dim=1)
    codes = torch.randint(r, (n,), generator=g)
    weight = torch.rand(n, generator=g, dtype=torch.float64) + 0.1
    return logits, other, log_T, codes, weight


@given(sizes)
def test_domain_loss_is_the_likelihood_through_the_classes(size):
    logits, _, log_T, codes, weight = draw(*size)
    n, k, _, _ = size
    each, proba = [], []
    for i in range(n):
        g = slow_softmax(logits[i].tolist())
        joint = [g[y] * math.exp(log_T[y, codes[i]]) for y in range(k)]
        each.append(math.log(sum(joint)))
        proba.append([j / sum(joint) for j in joint])
    w = weight.tolist()
    slow = -sum(a * b for a, b in zip(w, each, strict=True)) / sum(w)
    got = domain_likelihood(logits, log_T, codes)
    torch.testing.assert_close(got, torch.tensor(each, dtype=torch.float64))
    assert domain_loss(logits, log_T, codes, weight).item() == pytest.approx(slow)
    assert domain_loss(logits, log_T, codes).item() == pytest.approx(-sum(each) / n)
    torch.testing.assert_close(
        posterior(logits, log_T, codes), torch.tensor(proba, dtype=torch.float64)
    )


@given(sizes)
def test_gradient_of_the_domain_loss_is_prior_minus_posterior(size):
    """d/dlogits = (q(y|x) - p_d(y|x)) / n: the M step of EM, nothing else."""
    logits, _, log_T, codes, _ = draw(*size)
    logits.requires_grad_()
    domain_loss(logits, log_T, codes).backward()
    wanted = torch.softmax(logits, 1) - posterior(logits, log_T, codes)
    torch.testing.assert_close(logits.grad, (wanted / len(codes)).detach())


@given(sizes)
def test_neighbours_agree_by_their_product(size):
    logits, other, _, _, weight = draw(*size)
    n, k, _, _ = size
    g = [slow_softmax(row) for row in logits.tolist()]
    h = [slow_softmax(row) for row in other.tolist()]
    each = [-math.log(sum(g[i][y] * h[i][y] for y in range(k))) for i in range(n)]
    w = weight.tolist()
    slow = sum(a * b for a, b in zip(w, each, strict=True)) / sum(w)
    assert neighbour_consistency(logits, other).item() == pytest.approx(sum(each) / n)
    assert neighbour_consistency(logits, other, weight).item() == pytest.approx(slow)


@given(sizes, st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([0.0, 0.5, 1.0]))
def test_self_labels_count_sure_rows_only(size, threshold, temperature):
    logits, other, _, _, weight = draw(*size)
    n, k, _, _ = size
    proba = torch.softmax(logits, 1)
    total = 0.0
    for i in range(n):
        p = proba[i].tolist()
        if max(p) < threshold:
            continue
        if temperature == 0:
            target = [float(y == p.index(max(p))) for y in range(k)]
        else:
            powers = [v ** (1 / temperature) for v in p]
            target = [v / sum(powers) for v in powers]
        h = slow_softmax(other[i].tolist())
        ce = -sum(target[y] * math.log(h[y]) for y in range(k))
        total += weight[i].item() * ce
    got = self_label_loss(
        proba, other, threshold=threshold, temperature=temperature, weight=weight
    )
    assert got.item() == pytest.approx(total / weight.sum().item(), abs=1e-6)


def test_balanced_self_labels_weigh_classes_not_rows():
    """Three rows of class 0 and one of class 1 count as two rows each."""
    proba = torch.tensor([[0.99, 0.01]] * 3 + [[0.01, 0.99]])
    logits = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    each = torch.nn.functional.cross_entropy(
        logits, torch.tensor([0, 0, 0, 1]), reduction="none"
    )
    got = self_label_loss(proba, logits, threshold=0.9, balance=True)
    torch.testing.assert_close(got, (2 * each[:3].mean() + 2 * each[3]) / 4)


def test_no_gradient_flows_into_self_labels():
    first = torch.randn(3, 2, requires_grad=True)
    logits = torch.randn(3, 2, requires_grad=True)
    proba = torch.softmax(first, 1)
    self_label_loss(proba, logits, threshold=0.0, temperature=1.0).backward()
    assert logits.grad is not None
    assert first.grad is None


def test_nobody_sure_is_zero_not_nan():
    proba = torch.full((4, 2), 0.5)
    logits = torch.randn(4, 2, requires_grad=True)
    loss = self_label_loss(proba, logits, threshold=0.9, balance=True)
    loss.backward()
    assert loss.item() == 0
    assert not logits.grad.any()
