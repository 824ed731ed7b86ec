"""SCAN: neighbours agree, classes are used, collapse is said, priors by EM."""

import copy
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from numpy.testing import assert_allclose, assert_array_equal  # noqa: E402
from sklearn.base import clone  # noqa: E402

from shoal.exceptions import CollapseWarning  # noqa: E402
from shoal.metrics import matched_accuracy  # noqa: E402
from shoal.probability import match_rows  # noqa: E402
from shoal.vision import ImageSet, encode  # noqa: E402
from shoal.vision.extend import nearest, neighbour_consistency  # noqa: E402
from shoal_bench.domain_prior import DomainPrior  # noqa: E402
from shoal_bench.scan import SCAN  # noqa: E402
from shoal_bench.scan_files import read_scan, write_scan  # noqa: E402
from shoal_bench.scan_net import mean_entropy, scan_loss  # noqa: E402
from support.slow import slow_shares, slow_softmax  # noqa: E402


def scan(net, **settings):
    given = {
        "n_heads": 3,
        "head_epochs": 80,
        "head_rate": 1e-2,
        "epochs": 0,
        "batch_size": 100,
        "n_neighbours": 10,
        "device": "cpu",
        "random_state": 0,
    }
    return SCAN(3, backbone=net, **{**given, **settings})


@pytest.fixture(scope="module")
def fitted(tiny_net, images):
    return scan(tiny_net).fit(images.X)


def test_classes_are_found_without_domains(fitted, images):
    assert matched_accuracy(images.labels, fitted.labels_) > 0.8
    assert_array_equal(fitted.labels_, fitted.predict(images.X))
    assert_array_equal(fitted.class_counts_, np.bincount(fitted.labels_, minlength=3))
    assert fitted.class_counts_.min() > 0


def test_the_head_with_the_smallest_loss_is_kept(fitted, tiny_net, images):
    """Its loss, computed again from its own answers, is the smallest of all."""
    assert fitted.loss_ == fitted.head_losses_.min()
    assert len(fitted.head_losses_) == 3
    features = encode(copy.deepcopy(tiny_net), images.X, device="cpu", normalize=False)
    near = nearest(features, 10, device="cpu")[0][:, :5]
    logits = torch.tensor(fitted._logits(ImageSet(images.X, "cpu")))
    again = scan_loss(logits.repeat_interleave(5, 0), logits[near.reshape(-1)], 5.0)
    assert again.item() == pytest.approx(fitted.loss_, rel=1e-5)


@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 9), st.floats(0, 5))
def test_loss_is_agreement_less_entropy(n, k, seed, entropy_weight):
    g = torch.Generator().manual_seed(seed)
    logits, other = 3 * torch.randn(2, n, k, generator=g, dtype=torch.float64)
    g = [slow_softmax(row) for row in logits.tolist()]
    h = [slow_softmax(row) for row in other.tolist()]
    agree = -sum(math.log(sum(g[i][y] * h[i][y] for y in range(k))) for i in range(n))
    mean = [sum(g[i][y] for i in range(n)) / n for y in range(k)]
    entropy = -sum(p * math.log(p) for p in mean)
    assert neighbour_consistency(logits, other).item() == pytest.approx(agree / n)
    assert mean_entropy(logits).item() == pytest.approx(entropy, abs=1e-6)
    got = scan_loss(logits, other, entropy_weight).item()
    assert got == pytest.approx(agree / n - entropy_weight * entropy, abs=1e-5)


def test_all_layers_move_only_in_the_second_step(fitted, tiny_net, images):
    before = tiny_net.state_dict()["body.0.weight"]
    torch.testing.assert_close(fitted.backbone_.state_dict()["body.0.weight"], before)
    whole = scan(tiny_net, epochs=1, self_label_epochs=1, threshold=0.6).fit(images.X)
    assert not torch.equal(whole.backbone_.state_dict()["body.0.weight"], before)
    steps = [record["step"] for record in whole.history_]
    assert steps == ["heads"] * 80 + ["network", "self-labels"]
    assert all(np.isfinite(record["loss"]) for record in whole.history_)


def test_same_seed_same_classes_and_clones_are_unfitted(fitted, tiny_net, images):
    again = clone(fitted)
    assert not hasattr(again, "net_")
    assert_array_equal(again.fit(images.X).labels_, fitted.labels_)


def test_collapse_is_said_with_the_counts(tiny_net, images):
    """Without entropy, one class for all is the best answer."""
    with pytest.warns(CollapseWarning, match=r"rows per class: \[.*300") as caught:
        model = scan(tiny_net, entropy_weight=0.0, n_heads=1).fit(images.X)
    assert model.class_counts_.max() == 300
    assert str(model.class_counts_.tolist()) in str(caught[0].message)


def test_files_bring_the_same_classifier_back(fitted, tiny_net, images, tmp_path):
    path = write_scan(fitted, tmp_path / "deep" / "scan.safetensors")
    again = read_scan(scan(tiny_net), path)
    assert_array_equal(again.predict_proba(images.X), fitted.predict_proba(images.X))
    assert again.loss_ == fitted.loss_
    assert [p.name for p in path.parent.iterdir()] == ["scan.safetensors"]


# ---- with a prior for each domain ------------------------------------------------


def test_prior_of_each_domain_is_em(fitted, images):
    model = DomainPrior(fitted, temperature=1.0).fit(images.X, images.domains)
    proba = fitted.predict_proba(images.X)
    prior = np.mean([proba[images.domains == d].mean(axis=0) for d in range(4)], axis=0)
    assert_allclose(model.prior_, prior)
    slow = slow_shares(proba[images.domains == 2] / prior)
    assert_allclose(model.prevalence_[2], slow[model.order_], atol=2e-3)


def test_posterior_follows_from_prior_by_bayes(fitted, images):
    model = fitted.with_domain_prior(images.X, images.domains)
    power = fitted.predict_proba(images.X) ** (1 / model.temperature_)
    ratio = power / power.sum(axis=1, keepdims=True) / model.prior_
    joint = ratio[:, model.order_] * model.prevalence_[images.domains]
    wanted = joint / joint.sum(axis=1, keepdims=True)
    got = model.predict_proba(images.X, images.domains)
    assert_allclose(got, wanted, atol=1e-9)
    assert_array_equal(model.labels_, got.argmax(axis=1))


def test_temperature_is_chosen_by_the_likelihood_of_domains(fitted, images):
    """Timid probabilities mislead EM; the domains tell how timid they are."""
    chosen = fitted.with_domain_prior(images.X, images.domains)
    plain = DomainPrior(fitted, temperature=1.0).fit(images.X, images.domains)
    scores = [model.score(images.X, images.domains) for model in (chosen, plain)]
    assert scores[0] >= scores[1]
    right = [matched_accuracy(images.labels, m.labels_) for m in (chosen, plain)]
    assert right[0] >= right[1]
    errors = []
    for model in (chosen, plain):
        found = model.prevalence_
        found = found[:, match_rows(images.prevalence.T, found.T)]
        errors.append(np.abs(found - images.prevalence).mean())
    assert errors[0] < errors[1]


# ---- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"n_classes": 1}, ValueError, "n_classes must be a whole number from 2"),
        ({"n_heads": 0}, ValueError, "n_heads"),
        ({"epochs": -1}, ValueError, "epochs"),
        ({"learning_rate": -1}, ValueError, "learning_rate must be a number from 0"),
        ({"batch_size": 1.5}, ValueError, "batch_size must be a whole number from 1"),
        ({"threshold": 2}, ValueError, "threshold must be a number from 0 to 1, got 2"),
        ({"backbone": None}, TypeError, "backbone must be"),
    ],
)
def test_settings_that_make_no_sense(tiny_net, images, settings, kind, text):
    with pytest.raises(kind, match=text):
        scan(tiny_net).set_params(**settings).fit(images.X)


@pytest.mark.filterwarnings("ignore::shoal.exceptions.CollapseWarning")
def test_few_rows_have_few_neighbours(tiny_net, images):
    model = scan(tiny_net, n_neighbours=50, head_epochs=2).fit(images.X[:12])
    assert model.labels_.shape == (12,)
