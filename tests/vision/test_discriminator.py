"""ImageDiscriminator: a classifier of domains that DDFA can use."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from numpy.testing import assert_allclose, assert_array_equal  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402

from shoal import DDFA, DiscreteMixture  # noqa: E402
from shoal.exceptions import DomainMissingError, IdentifiabilityWarning  # noqa: E402
from shoal.metrics import matched_accuracy  # noqa: E402
from shoal.probability import mean_log_likelihood  # noqa: E402
from shoal.stages.discriminate import Discriminator  # noqa: E402
from shoal.vision._discriminator import ImageDiscriminator  # noqa: E402
from shoal.vision._images import ImageSet, normalize  # noqa: E402
from shoal.vision._nets import resnet  # noqa: E402
from shoal.vision._rows import hold_out, settle_norms  # noqa: E402
from shoal.vision.augment import Identity, RandomResizedCrop  # noqa: E402
from shoal_bench.methods import supervised_classes  # noqa: E402
from shoal_bench.problems import Problem, Truth  # noqa: E402


def discriminator(net, **settings):
    given = {
        "epochs": 12,
        "batch_size": 50,
        "learning_rate": 1e-2,
        "view": "none",
        "device": "cpu",
        "random_state": 0,
    }
    return ImageDiscriminator(net, **{**given, **settings})


@pytest.fixture(scope="module")
def fitted(tiny_net, images):
    names = np.array(["ant", "bee", "cat", "dog"])
    return discriminator(tiny_net).fit(images.X, names[images.domains])


def test_contract_of_a_classifier(fitted, images):
    assert fitted.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    proba = fitted.predict_proba(images.X)
    assert proba.shape == (300, 4)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(fitted.predict(images.X), fitted.classes_[proba.argmax(axis=1)])
    assert fitted.features(images.X).shape == (300, 12)
    assert fitted.score(images.X, fitted.classes_[images.domains]) > -np.log(4)


def test_it_learns_the_posterior_of_domains(fitted, images):
    """Near what the true classes tell of the domain, and better than guessing."""
    T = images.prevalence / images.prevalence.sum(axis=0)
    best = -mean_log_likelihood(T[:, images.labels].T, images.domains)
    assert best < fitted.held_out_loss_ + 0.1
    assert fitted.held_out_loss_ < np.log(4) - 0.1


def test_the_best_epoch_is_kept(fitted, tiny_net, images):
    losses = [record["held_out_loss"] for record in fitted.history_]
    assert len(losses) == 12
    assert fitted.held_out_loss_ == min(losses)
    assert fitted.best_epoch_ == 1 + int(np.argmin(losses))
    rates = [record["learning_rate"] for record in fitted.history_]
    assert_allclose(np.array(rates[1:]) / rates[:-1], 0.97)
    # and its weights are those that predict: the loss comes out again
    seed = int(np.random.RandomState(0).randint(2**31 - 1, size=2)[0])
    _, valid = hold_out(images.domains, 0.1, np.random.default_rng(seed))
    assert_array_equal(fitted.held_out_rows_, valid)
    proba = fitted.predict_proba(images.X[valid])
    own = proba[np.arange(len(valid)), images.domains[valid]]
    assert -np.log(own).mean() == pytest.approx(fitted.held_out_loss_, rel=1e-4)


def test_of_several_learning_rates_the_best_is_kept(tiny_net, images):
    model = discriminator(tiny_net, learning_rate=(1e-6, 1e-2), epochs=4)
    model.fit(images.X, images.domains)
    assert set(model.losses_) == {1e-6, 1e-2}
    assert model.learning_rate_ == 1e-2
    assert model.held_out_loss_ == min(model.losses_.values())


def test_initialization_is_the_backbone_and_it_is_left_alone(tiny_net, images):
    before = copy.deepcopy(tiny_net.state_dict())
    model = discriminator(tiny_net, learning_rate=1e-9, epochs=1)
    model.fit(images.X, images.domains)
    for name, weight in tiny_net.named_parameters():
        torch.testing.assert_close(weight, before[name])
        got = dict(model.net_.backbone.named_parameters())[name]
        torch.testing.assert_close(got, weight, atol=1e-6, rtol=1e-4)


def test_random_initialization_with_dropout():
    model = ImageDiscriminator("resnet18-cifar", dropout=0.25, device="cpu")
    model.classes_ = np.arange(3)
    net = model._make_net(0)
    rates = {m.p for m in net.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.25}
    with_head = ImageDiscriminator(resnet(18, n_outputs=7), device="cpu")
    with_head.classes_ = np.arange(3)
    assert with_head._make_net(0).backbone.fc is None


def test_a_given_backbone_gets_the_dropout_too():
    model = ImageDiscriminator(resnet(18), dropout=0.25, device="cpu")
    model.classes_ = np.arange(3)
    modules = model._make_net(0).modules()
    assert {m.p for m in modules if isinstance(m, torch.nn.Dropout)} == {0.25}
    assert {m.p for m in model.backbone.modules() if hasattr(m, "p")} == {0.0}


def test_with_dropout_norms_are_those_of_the_network_as_it_is_used(images):
    model = discriminator(None, dropout=0.5, epochs=1).fit(images.X, images.domains)
    twin = copy.deepcopy(model.net_)
    rows = torch.arange(len(images.X))
    settle_norms(twin, [normalize(ImageSet(images.X, "cpu").batch(rows))])
    for (name, got), (_, wanted) in zip(
        model.net_.named_buffers(), twin.named_buffers(), strict=True
    ):
        if name.endswith("running_var"):  # a tenth of the rows was held out
            assert (got / wanted).log().abs().mean() < 0.2, name


def test_norms_of_the_training_are_left_as_they_are(images):
    """They follow what dropout did: not the statistics of the network as it is used."""
    settings = {"dropout": 0.5, "epochs": 2}
    published, ours = (
        discriminator(None, norms=norms, **settings).fit(images.X, images.domains)
        for norms in ("training", "anew")
    )
    learned = [[r["loss"] for r in m.history_] for m in (published, ours)]
    assert learned[0] == learned[1]  # in training mode norms go by the batch
    assert published.held_out_loss_ != ours.held_out_loss_
    counts = {
        name: int(value)
        for name, value in published.net_.named_buffers()
        if name.endswith("num_batches_tracked")
    }
    steps = 270 // 50  # of an epoch; a tenth of the rows is held out
    assert set(counts.values()) == {published.best_epoch_ * steps}


def test_without_dropout_norms_are_those_of_the_training(tiny_net, images):
    settings = {"epochs": 2, "dropout": 0.0}
    first, second = (
        discriminator(tiny_net, norms=norms, **settings).fit(images.X, images.domains)
        for norms in ("training", "anew")
    )
    assert_array_equal(first.predict_proba(images.X), second.predict_proba(images.X))


def test_views_are_those_of_the_training(fitted, tiny_net, images):
    """What the network says of views made by hand, from the same seed."""
    clean = fitted.predict_view(images.X, random_state=0)  # view="none" changes nothing
    assert_allclose(clean, fitted.predict_proba(images.X), atol=1e-6)
    model = discriminator(tiny_net, view="crop", epochs=1)
    model.fit(images.X, images.domains)
    got = model.predict_view(images.X, random_state=3)
    assert_allclose(got.sum(axis=1), 1)
    assert_array_equal(got, model.predict_view(images.X, random_state=3))
    assert np.abs(got - model.predict_view(images.X, random_state=4)).max() > 1e-3
    seed = np.random.RandomState(3).randint(2**31 - 1)
    generator = torch.Generator().manual_seed(int(seed))
    crop = RandomResizedCrop((0.08, 1.0), flip=0.5)
    pixels = crop(torch.from_numpy(images.X).permute(0, 3, 1, 2) / 255, generator)
    with torch.no_grad():
        wanted = torch.softmax(model.net_(normalize(pixels)), dim=1)
    assert_allclose(got, wanted.numpy(), atol=1e-5)


def test_seeds_clones_pickles(fitted, tiny_net, images):
    again = clone(fitted).fit(images.X, fitted.classes_[images.domains])
    assert_array_equal(again.predict_proba(images.X), fitted.predict_proba(images.X))
    twin = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(twin.predict_proba(images.X), fitted.predict_proba(images.X))


def test_weights_of_rows_move_the_shares(tiny_net, images):
    """Where one domain weighs ten times, it is ten times as likely a priori."""
    weight = np.where(images.domains == 0, 10.0, 1.0)
    model = discriminator(tiny_net).fit(images.X, images.domains, sample_weight=weight)
    plain = discriminator(tiny_net).fit(images.X, images.domains)
    heavy, light = (m.predict_proba(images.X)[:, 0].mean() for m in (model, plain))
    assert heavy > light + 0.3
    assert_allclose(model.domain_weight_, np.array([10, 1, 1, 1]) / 13)


# ---- in DDFA ---------------------------------------------------------------------


def test_plugs_into_ddfa_with_folds_and_calibration(tiny_net, images):
    """Flattened rows; a frame of constant pixels is part of every image."""
    framed = images.X.copy()
    framed[:, 0], framed[:, -1] = 0, 0
    flat = framed.reshape(len(framed), -1).astype(np.float32)
    network = discriminator(tiny_net, image_shape=(6, 6, 3), random_state=None)
    model = DDFA(
        3,
        discriminator=network,
        cross_fit=3,
        calibration="temperature",
        random_state=0,
    ).fit(flat, images.domains)
    assert matched_accuracy(images.labels, model.labels_) > 0.85
    calibration = model.discriminator_.calibration_
    assert calibration.loss_after <= calibration.loss_before
    assert_array_equal(model.predict(flat, images.domains), model.labels_)


def test_frozen_in_a_discriminator(fitted, tiny_net, images):
    flat = images.X.reshape(len(images.X), -1).astype(np.float32)
    network = discriminator(tiny_net, image_shape=(6, 6, 3))
    network.fit(flat, images.domains)
    stage = Discriminator(FrozenEstimator(network)).fit(flat, images.domains)
    assert_array_equal(stage.domain_given_x_, network.predict_proba(images.X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("representation", ["identity", "pca", "ica"])
def test_naive_variants_cluster_its_features(fitted, images, representation):
    """Appendix H: the map is fitted once, so that clusters carry over to new rows."""
    features = fitted.features(images.X)
    model = DiscreteMixture(3, representation=representation, random_state=0)
    model.fit(features[:200], images.domains[:200])
    found = model.predict(features[200:], images.domains[200:])
    assert matched_accuracy(images.labels[200:], found) > 0.6


# ---- the supervised ceiling ------------------------------------------------------


def test_oracle_is_bayes_with_the_true_prevalence(tiny_net, images):
    network = discriminator(tiny_net)

    def answer(prevalence):
        truth = Truth(images.labels, images.labels, prevalence)
        rows = images.X, images.domains
        return supervised_classes(network, Problem(3, *rows, *rows, truth))

    found = answer(images.prevalence)
    proba = network.predict_proba(images.X)
    share = np.bincount(images.labels) / 300
    wanted = (proba / share * images.prevalence[images.domains]).argmax(axis=1)
    assert_array_equal(found, wanted)
    assert np.mean(found == images.labels) > 0.9
    assert 1 not in answer(np.tile([0.5, 0.0, 0.5], (4, 1)))


# ---- bad input -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"view": "heavy"}, ValueError, "view must be"),
        ({"backbone": torch.nn.Linear(2, 2)}, TypeError, "backbone must be"),
        ({"learning_rate": []}, ValueError, "must be one number or more, got \\[\\]"),
        ({"learning_rate": [1e-3, -1]}, ValueError, "number above 0, got -1"),
        ({"learning_rate": [[1e-3], 1e-2]}, ValueError, "above 0, got \\[0.001\\]"),
        ({"norms": "frozen"}, ValueError, "one of 'anew', 'training', got 'frozen'"),
        ({"dropout": 2}, ValueError, "dropout must be a number from 0 to 1, got 2"),
        ({"dropout": 1}, ValueError, "dropout must be below 1, got 1"),
        ({"learning_rate": "fast"}, ValueError, "number above 0, got 'fast'"),
        ({"epochs": 1.5}, ValueError, "epochs must be a whole number from 1, got 1.5"),
        ({"decay": 0}, ValueError, "decay must be a number above 0, 1 at most, got 0"),
        ({"head_factor": -1}, ValueError, "head_factor must be a number from 0, got"),
        ({"learning_rate": 1e30}, ValueError, "learning_rate=1e\\+30 is too large"),
        ({"valid_share": 0.0}, ValueError, "valid_share"),
        ({"valid_share": 0.001}, ValueError, "holds out none"),
    ],
)
def test_settings_that_make_no_sense(tiny_net, images, settings, kind, text):
    with pytest.raises(kind, match=text):
        discriminator(tiny_net).set_params(**settings).fit(images.X, images.domains)


def test_views_may_be_objects_and_domains_must_be_there(tiny_net, images):
    discriminator(tiny_net, view=Identity(), epochs=1).fit(images.X, images.domains)
    with pytest.raises(DomainMissingError, match="where each image"):
        discriminator(tiny_net).fit(images.X)
    with pytest.raises(ValueError, match="one class"):
        discriminator(tiny_net).fit(images.X, np.zeros(300))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_absent_cuda_is_said(tiny_net, images):
    with pytest.raises(ValueError, match="device='cuda' is not here"):
        discriminator(tiny_net, device="cuda").fit(images.X, images.domains)


def test_no_signal_is_said_by_ddfa(tiny_net, images):
    flat = images.X.reshape(len(images.X), -1).astype(np.float32)
    network = discriminator(tiny_net, image_shape=(6, 6, 3), epochs=1)
    noise = np.random.default_rng(0).permutation(images.domains)
    with pytest.warns(IdentifiabilityWarning, match="cannot be told apart"):
        DDFA(2, discriminator=network, cross_fit=2, random_state=0).fit(flat, noise)
