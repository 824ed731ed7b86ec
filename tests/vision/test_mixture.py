"""ImageMixture: its frozen start, its fall-back, its contract, its bad input."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from numpy.testing import assert_allclose, assert_array_equal  # noqa: E402

from shoal import DDFA, DomainMixture  # noqa: E402
from shoal.exceptions import (  # noqa: E402
    DomainMissingError,
    IdentifiabilityWarning,
)
from shoal.metrics import matched_accuracy  # noqa: E402
from shoal.probability import class_posterior  # noqa: E402
from shoal.vision._encode import encode  # noqa: E402
from shoal.vision._finetune import fine_tune  # noqa: E402
from shoal.vision._images import ImageSet, normalize  # noqa: E402
from shoal.vision._mixture import ImageMixture  # noqa: E402
from shoal.vision._mixture_net import (  # noqa: E402
    MixtureNet,  # noqa: E402
    as_linear,
    refit_part,
)
from shoal.vision._rows import SplitRows, hold_out  # noqa: E402
from shoal.vision._settings import FineTuning  # noqa: E402
from support import (  # noqa: E402
    DomainProblem,
    domain_checks,
    make_domain_problem,
    parametrize_with_domain_checks,
)
from support.battery import fitted_state  # noqa: E402

QUICK = FineTuning(epochs=1, batch_size=64)


def mixture(net, **settings):
    given = {"fine_tuning": QUICK, "device": "cpu", "random_state": 0, **settings}
    return ImageMixture(3, backbone=net, **given)


@pytest.fixture(scope="module")
def frozen(tiny_net, images):
    return mixture(tiny_net, fine_tuning=None).fit(images.X, images.domains)


# ---- the frozen solution ---------------------------------------------------------


@pytest.mark.parametrize("n_components", [None, 5])
def test_frozen_is_domain_mixture_on_unit_features(tiny_net, images, n_components):
    model = mixture(tiny_net, fine_tuning=None, n_components=n_components)
    model.fit(images.X, images.domains)
    units = encode(copy.deepcopy(tiny_net), images.X, device="cpu")
    assert_allclose(np.linalg.norm(units, axis=1), 1, rtol=1e-5)
    Z = units if n_components is None else model.projection_.transform(units)
    same = DomainMixture(
        3, search=False, scale="global", expansion="linear",
        random_state=model.frozen_.random_state,
    ).fit(Z.astype(np.float32), images.domains)  # fmt: skip
    assert_array_equal(model.prevalence_, same.prevalence_)
    assert_array_equal(model.labels_, same.labels_)
    assert model.head_ is model.frozen_
    assert matched_accuracy(images.labels, model.labels_) > 0.9


@pytest.mark.parametrize("n_components", [None, 5])
def test_network_begins_as_the_frozen_solution(tiny_net, images, n_components):
    """Before the first step: same q(y|x) and q(d|y), whatever stood in between."""
    model = mixture(tiny_net, fine_tuning=None, n_components=n_components)
    model.fit(images.X, images.domains)
    linear = as_linear(model.frozen_, model.frozen_.weights_, model.projection_)
    T = model.frozen_.domain_given_class_
    net = MixtureNet(copy.deepcopy(model.backbone_), linear, T).eval()
    with torch.no_grad():
        x = ImageSet(images.X, "cpu").batch(torch.arange(50))
        g = torch.softmax(net(normalize(x)), dim=1).numpy()
        log_T = net.log_T.numpy()
    wanted = model._class_given_x(model._check_rows(images.X[:50]))
    assert_allclose(g, wanted, atol=1e-5)
    assert_allclose(np.exp(log_T), T, atol=1e-6)


def test_a_feature_that_never_fires_is_no_obstacle(tiny_net, images):
    dead = copy.deepcopy(tiny_net)
    with torch.no_grad():
        dead.body[4].bias[0] = -100.0
        dead.body[4].weight[0] = 0.0
    model = mixture(dead, n_components=None).fit(images.X, images.domains)
    assert model.frozen_.varying_.sum() == tiny_net.n_features - 1
    assert matched_accuracy(images.labels, model.labels_) > 0.8


def test_refit_on_a_part_ignores_the_rest(frozen, images, seed):
    """Garbage in the held-out rows does not move what is fitted to the others."""
    features = frozen._check_rows(images.X)
    train, valid = hold_out(images.domains, 0.2, np.random.default_rng(seed))
    spoiled = features.copy()
    spoiled[valid] = 99
    first, second = (
        refit_part(frozen.frozen_, Z, images.domains, train)
        for Z in (features, spoiled)
    )
    assert_array_equal(first.weights, second.weights)
    assert_array_equal(first.domain_given_class, second.domain_given_class)


def test_only_linear_mixtures_become_layers(tiny_net, images):
    curved = DomainMixture(search=False, expansion="quadratic", scale="global")
    model = mixture(tiny_net, mixture=curved, n_components=3)
    with pytest.raises(ValueError, match="expansion='quadratic'"):
        model.fit(images.X, images.domains)
    model.set_params(fine_tuning=None).fit(images.X, images.domains)


def test_what_is_to_be_tuned_is_fitted_so_that_it_can_be(tiny_net, images):
    """Few images for the features: components would be chosen, which are no layer."""
    few = np.random.default_rng(0).permutation(len(images.X))[:150]
    given = DomainMixture(search=False)
    kept = mixture(tiny_net, mixture=given, fine_tuning=None, n_components=None)
    kept.fit(images.X[few], images.domains[few])
    assert kept.frozen_.features_.expansion == "components"
    tuned = mixture(tiny_net, mixture=given, n_components=None)
    tuned.fit(images.X[few], images.domains[few])
    assert tuned.frozen_.features_.expansion == "linear"


# ---- fine-tuning -----------------------------------------------------------------


def same_predictions(first, second, images):
    assert_array_equal(first.prevalence_, second.prevalence_)
    assert_array_equal(first.labels_, second.labels_)
    assert_array_equal(
        first.predict_proba(images.X, images.domains),
        second.predict_proba(images.X, images.domains),
    )


@pytest.mark.parametrize(
    ("settings", "doubt"),
    [
        (FineTuning(epochs=1, batch_size=64, head_rate=1e30), 0.0),  # diverges
        (FineTuning(epochs=1, batch_size=64, backbone_rate=30.0), 0.0),  # destroys
        (QUICK, np.inf),  # would have to be certain
    ],
    ids=["diverged", "worse", "doubted"],
)
def test_falls_back_to_the_frozen_solution_exactly(
    tiny_net, images, frozen, settings, doubt
):
    model = mixture(tiny_net, fine_tuning=settings, doubt=doubt)
    model.fit(images.X, images.domains)
    assert not model.fine_tuned_
    same_predictions(model, frozen, images)
    for name, weight in tiny_net.state_dict().items():
        torch.testing.assert_close(model.backbone_.state_dict()[name], weight)


def test_fine_tuning_finds_what_frozen_features_hide(tiny_net, make_images, seed):
    """Where filters are nearly alike, features blur; then the network has to move."""
    images = make_images(1500, noise=80.0)
    blurred = copy.deepcopy(tiny_net)
    with torch.no_grad():
        filters = blurred.body[3].weight
        filters.copy_(filters.mean(dim=0, keepdim=True) + 0.3 * filters)
    before = mixture(blurred, fine_tuning=None, valid_share=0.25, random_state=seed)
    before.fit(images.X, images.domains)
    tuning = FineTuning(
        epochs=6,
        batch_size=64,
        backbone_rate=2e-3,
        self_label=0.0,
        view="none",
        average=0.9,
    )
    model = before.tune(images.X, images.domains, tuning)
    assert model.fine_tuned_
    gain, error = model.gain_
    assert gain > 2 * error > 0
    old, new = (matched_accuracy(images.labels, m.labels_) for m in (before, model))
    assert old < 0.95
    assert new > 0.98
    assert model.held_out_["fine-tuned 0.0"] == max(model.held_out_.values())
    curve = [record["held_out"] for record in model.history_]
    assert max(curve) == pytest.approx(model.held_out_["fine-tuned 0.0"])


def test_prevalence_is_the_mean_posterior_of_the_tuned_network(tiny_net, images):
    model = mixture(tiny_net, doubt=-np.inf).fit(images.X, images.domains)
    assert model.fine_tuned_
    head, Z = model.head_, model._check_rows(images.X)
    g = head._class_given_x(Z)
    again = class_posterior(g, model.domain_given_class_, images.domains)
    mean = np.array([again[images.domains == d].mean(axis=0) for d in range(4)])
    # one EM step from the network's own q(d|y): near, and nearer than chance
    assert np.abs(mean - model.prevalence_).mean() < 0.02


def test_best_setting_and_start_win_by_held_out_likelihood(tiny_net, images):
    settings = [FineTuning(epochs=1, batch_size=64, backbone_rate=30.0), QUICK]
    model = mixture(tiny_net, fine_tuning=settings, n_starts=2, doubt=-np.inf)
    model.fit(images.X, images.domains)
    scores = model.held_out_
    assert set(scores) == {
        f"{kind} {start}" for start in range(2) for kind in ("frozen",)
    } | {f"fine-tuned {start}.{index}" for start in range(2) for index in range(2)}
    best = max(v for k, v in scores.items() if k.startswith("fine"))
    frozen_best = max(v for k, v in scores.items() if k.startswith("frozen"))
    assert model.gain_[0] == pytest.approx(best - frozen_best, abs=1e-9)


def test_rows_held_out_are_never_trained_on(tiny_net, images, frozen):
    """Spoiled held-out images leave every weight as it was."""
    features = frozen._check_rows(images.X)
    train, valid = hold_out(images.domains, 0.2, np.random.default_rng(0))
    part = refit_part(frozen.frozen_, features, images.domains, train)
    linear = as_linear(frozen.frozen_, part.weights, frozen.projection_)
    spoiled = images.X.copy()
    spoiled[valid] = 0
    found = []
    for X in (images.X, spoiled):
        rows = SplitRows.of(ImageSet(X, "cpu"), images.domains, None, train, valid)
        net = MixtureNet(copy.deepcopy(tiny_net), linear, part.domain_given_class)
        tuned = fine_tune(net, rows, FineTuning(epochs=1, batch_size=64, average=0.0))
        found.append((tuned.records[0]["loss"], tuned.start.each))
    assert found[0][0] == found[1][0]
    assert not np.array_equal(found[0][1], found[1][1])


def test_told_to_stop_it_keeps_that_epoch(tiny_net, images, frozen):
    """Also where held-out rows would have chosen another."""
    linear = as_linear(frozen.frozen_, frozen.frozen_.weights_, frozen.projection_)
    every = np.arange(len(images.X))
    rows = SplitRows.of(ImageSet(images.X, "cpu"), images.domains, None, every, every)
    wild = FineTuning(epochs=3, batch_size=64, backbone_rate=1.0)
    found = {}
    for until in (None, 2):
        net = MixtureNet(copy.deepcopy(tiny_net), linear, frozen.domain_given_class_)
        found[until] = fine_tune(net, rows, wild, until=until)
    assert found[None].epoch == 0
    assert found[2].epoch == 2
    assert len(found[2].records) == 2


def test_refit_has_seen_all_images(tiny_net, images):
    models = [
        mixture(
            tiny_net,
            doubt=-np.inf,
            refit=refit,
            fine_tuning=FineTuning(
                epochs=2, batch_size=64, self_label=0.0, view="flip", head_rate=1e-2
            ),
        ).fit(images.X, images.domains)
        for refit in (False, True)
    ]
    assert models[0].gain_ == models[1].gain_
    assert models[0].held_out_ == models[1].held_out_
    assert not np.array_equal(models[0].prevalence_, models[1].prevalence_)


@pytest.mark.parametrize("frozen_statistics", [True, False])
def test_frozen_statistics_stay_and_trained_ones_move(
    tiny_net, images, frozen, frozen_statistics
):
    linear = as_linear(frozen.frozen_, frozen.frozen_.weights_, frozen.projection_)
    net = MixtureNet(
        copy.deepcopy(tiny_net),
        linear,
        frozen.domain_given_class_,
        freeze_statistics=frozen_statistics,
    ).train()
    net(normalize(ImageSet(images.X, "cpu").batch(torch.arange(64))))
    before, after = (n.body[1].running_mean for n in (tiny_net, net.backbone))
    assert torch.equal(before, after) == frozen_statistics


def test_tuning_later_is_the_same_as_fitting_at_once(tiny_net, images, frozen):
    settings = [QUICK, FineTuning(epochs=2, batch_size=64, consistency=1.0)]
    kept = copy.deepcopy(frozen.predict_proba(images.X, images.domains))
    later = copy.copy(frozen).set_params(doubt=-np.inf)
    later = later.tune(images.X, images.domains, settings)
    at_once = mixture(tiny_net, fine_tuning=settings, doubt=-np.inf)
    same_predictions(later, at_once.fit(images.X, images.domains), images)
    assert later.fine_tuned_
    assert not frozen.fine_tuned_
    assert_array_equal(frozen.predict_proba(images.X, images.domains), kept)
    with pytest.raises(ValueError, match="begins at a frozen fit"):
        later.tune(images.X, images.domains, settings)
    with pytest.raises(ValueError, match="rows of fit"):
        frozen.tune(images.X[:9], images.domains[:9], settings)


def test_a_tune_of_other_rows_leaves_the_next_one_alone(tiny_net, images):
    """What was refitted for some rows and some share is not taken for others."""
    model = mixture(tiny_net, fine_tuning=None).fit(images.X, images.domains)
    alone = pickle.loads(pickle.dumps(model)).tune(images.X, images.domains, QUICK)
    shuffled = np.random.default_rng(0).permutation(images.domains)
    model.tune(images.X, shuffled, QUICK)
    model.tune(images.X[::-1], images.domains[::-1], QUICK)
    copy.copy(model).set_params(valid_share=0.4).tune(images.X, images.domains, QUICK)
    after = model.tune(images.X, images.domains, QUICK)
    assert after.held_out_ == alone.held_out_
    same_predictions(after, alone, images)


def test_several_tunes_share_one_refit(tiny_net, images, monkeypatch):
    refits = []

    def counted(*given):
        refits.append(given)
        return refit_part(*given)

    monkeypatch.setattr("shoal.vision._finetune.refit_part", counted)
    model = mixture(tiny_net, fine_tuning=None, n_starts=2)
    model.fit(images.X, images.domains)
    for epochs in (1, 2):
        model.tune(images.X, images.domains, FineTuning(epochs=epochs, batch_size=64))
    assert len(refits) == 2


def test_tune_wants_the_domain_of_every_row_of_fit(tiny_net, images):
    model = mixture(tiny_net, fine_tuning=None).fit(images.X, images.domains)
    with pytest.raises(ValueError, match="the single value 1; pass the rows of fit"):
        model.tune(images.X, 1, QUICK)
    with pytest.raises(ValueError, match="the single value None; pass the rows"):
        model.tune(images.X, None, QUICK)
    with pytest.raises(ValueError, match="domains has 300 rows of 0, fit had 75"):
        model.tune(images.X, np.zeros(300, dtype=int), QUICK)
    with pytest.raises(ValueError, match="X has 9 rows, fit had 300"):
        model.tune(images.X[:9], images.domains[:9], QUICK)
    del model._counts  # as after a load
    with pytest.raises(ValueError, match="domains has 0 rows of 1, fit had some"):
        model.tune(images.X, np.zeros(300, dtype=int), QUICK)


def test_a_label_planted_in_the_data_changes_nothing(tiny_net, images):
    """Labels that travel with the array, true or shuffled, are not looked at."""

    class Labelled(np.ndarray):
        labels = None

    rng = np.random.default_rng(0)
    models = []
    for labels in (images.labels, rng.permutation(images.labels), None):
        X = images.X.view(Labelled)
        X.labels = labels
        models.append(mixture(tiny_net).fit(X, images.domains))
        assert X.labels is labels  # they came along
    for other in models[1:]:
        same_predictions(models[0], other, images)


# ---- contract --------------------------------------------------------------------


def image_problem():
    """The battery's own problem as colours: one column red, the other green."""
    plain = make_domain_problem(2)
    pixels = np.full((len(plain.X), 4, 4, 3), 60)
    pixels[..., :2] = np.clip(25 * (plain.X + 2), 0, 255)[:, None, None, :]
    flat = pixels.reshape(len(pixels), -1).astype(np.uint8)
    return DomainProblem(flat, plain.domains)


class ColourNet(torch.nn.Module):
    """Six colours, averaged over the image."""

    n_features = 6

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.mix = torch.nn.Conv2d(3, 6, 1)

    def features(self, x):
        return torch.relu(self.mix(x)).mean(dim=(2, 3))


@parametrize_with_domain_checks(
    [
        ImageMixture(
            2,
            backbone=ColourNet(),
            image_shape=(4, 4, 3),
            fine_tuning=QUICK,
            device="cpu",
            random_state=0,
        )
    ],
    problem=image_problem(),
)
def test_domain_contract(estimator, check):
    check(estimator)
    assert fitted_state(estimator) == {}  # a copy was looked at


def test_the_battery_is_not_empty():
    assert len(domain_checks()) == 24


@pytest.fixture(scope="module", params=[-np.inf, np.inf], ids=["tuned", "frozen"])
def fitted(request, tiny_net, images):
    model = mixture(tiny_net, doubt=request.param)
    return model.fit(images.X, images.domains)


def test_adapt_finds_the_mix_of_a_domain(fitted, images):
    inside = images.domains == 1
    found = fitted.adapt(images.X[inside], random_state=0)
    assert_allclose(found.prevalence, fitted.prevalence_[1], atol=0.05)
    assert found.fit_score > 0.7
    strange = np.zeros((20, 6, 6, 3), dtype=np.uint8)
    strange[:, :3] = 255
    assert fitted.adapt(strange, random_state=0).fit_score < found.fit_score
    proba = found.predict_proba(images.X[:5])
    assert_allclose(proba.sum(axis=1), 1)


def test_bootstrap_diagnose_names_and_merge(fitted, images):
    X, domains = images.X, images.domains
    intervals = fitted.bootstrap(X, domains, n_resamples=4, random_state=0)
    assert (intervals.low <= fitted.prevalence_ + 1e-9).all()
    assert intervals.co_assignment.mean() > 0.8
    named = fitted.set_names(["down", "across", "none"])
    diagnosis = named.diagnose(X, domains, n_permutations=2, random_state=0)
    assert diagnosis.class_names == ["down", "across", "none"]
    assert fitted.class_names_ == ["c0", "c1", "c2"]
    merged = fitted.merge(0, 1)
    whole = fitted.predict_proba(X, domains)
    both = [len(group) == 2 for group in merged.groups].index(True)
    assert_allclose(merged.predict_proba(X, domains)[:, both], whole[:, :2].sum(axis=1))
    assert merged.bootstrap(X, domains, n_resamples=2).prevalence.shape == (4, 2)


def test_pickles_and_copies_predict_alike(fitted, images):
    wanted = fitted.predict_proba(images.X, images.domains)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert_array_equal(twin.predict_proba(images.X, images.domains), wanted)
    assert all(p.device.type == "cpu" for p in fitted.backbone_.parameters())


def test_grey_images_are_repeated_and_rows_unfolded(tiny_net, images):
    grey = images.X[..., 0]
    settings = {"fine_tuning": None}
    flat = mixture(tiny_net, image_shape=(6, 6), **settings)
    models = [
        mixture(tiny_net, **settings).fit(grey, images.domains),
        mixture(tiny_net, **settings).fit(grey[..., None], images.domains),
        mixture(tiny_net, **settings).fit(
            np.repeat(grey[..., None], 3, axis=3), images.domains
        ),
        flat.fit(grey.reshape(len(grey), -1).astype(float), images.domains),
    ]
    for other in models[1:]:
        assert_array_equal(models[0].prevalence_, other.prevalence_)
    assert [m.n_features_in_ for m in models] == [36, 36, 108, 36]


def test_number_of_classes_can_be_chosen(tiny_net, images):
    model = mixture(tiny_net, fine_tuning=None).set_params(n_classes=None)
    model.fit(images.X, images.domains)
    assert model.n_classes_ == model.frozen_.n_classes_ >= 2


# ---- bad input -------------------------------------------------------------------


def test_one_image_in_a_domain(tiny_net, images):
    domains = images.domains.copy()
    domains[0] = 9
    with pytest.warns(IdentifiabilityWarning, match='domain "9" has one image'):
        model = mixture(tiny_net).fit(images.X, domains)
    assert model.domains_.tolist() == [0, 1, 2, 3, 9]
    assert_allclose(model.prevalence_.sum(axis=1), 1)


def test_too_few_rows_to_hold_any_out_stay_frozen(tiny_net, images):
    model = mixture(tiny_net, valid_share=0.01).fit(images.X[:40], images.domains[:40])
    assert not model.fine_tuned_
    assert model.held_out_ == {}


@pytest.mark.parametrize(
    ("X", "kind", "text"),
    [
        ([np.zeros((6, 6, 3), np.uint8), np.zeros((5, 6, 3), np.uint8)] * 4,
         ValueError, "several sizes"),
        (np.zeros((8, 6, 6, 3)), TypeError, "must be uint8"),
        (np.zeros((8, 3, 6, 6), np.uint8), ValueError, "height, width, 3"),
        (np.zeros((8, 108), np.uint8), ValueError, "image_shape"),
        (np.zeros((1, 6, 6, 3), np.uint8), ValueError, "1 image"),
        (np.zeros((0, 6, 6, 3), np.uint8), ValueError, "got shape \\(0, 6, 6, 3\\)"),
    ],
)  # fmt: skip
def test_images_that_are_none_are_refused(tiny_net, X, kind, text):
    with pytest.raises(kind, match=text):
        mixture(tiny_net).fit(X, np.arange(len(X)) % 2)


def test_flattened_rows_must_be_whole_images(tiny_net, images):
    flat = images.X.reshape(len(images.X), -1).astype(float)
    model = mixture(tiny_net, image_shape=(6, 6, 3))
    with pytest.raises(ValueError, match="107 columns.* needs 108"):
        model.fit(flat[:, 1:], images.domains)
    with pytest.raises(ValueError, match="0 to 255, all finite, got -1"):
        model.fit(np.where(flat == flat.max(), -1, flat), images.domains)
    with pytest.raises(ValueError, match="all finite"):
        model.fit(np.where(flat == flat.max(), np.nan, flat), images.domains)


def test_other_sizes_and_missing_domains_at_predict(fitted, tiny_net, images):
    with pytest.raises(ValueError, match="4 x 6 pixels, fit has seen 6 x 6"):
        fitted.predict(images.X[:, :4])
    with pytest.raises(DomainMissingError, match="where each image"):
        mixture(tiny_net).fit(images.X)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_absent_cuda_is_said(tiny_net, images):
    with pytest.raises(ValueError, match="device='cuda' is not here.*'cpu'"):
        mixture(tiny_net, device="cuda").fit(images.X, images.domains)


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"backbone": None}, TypeError, "backbone must be a path"),
        ({"backbone": torch.nn.Linear(2, 2)}, TypeError, "features"),
        ({"backbone": 5}, TypeError, "backbone must be a path.*got 5"),
        ({"fine_tuning": "yes"}, TypeError, "fine_tuning must be"),
        ({"fine_tuning": 5}, TypeError, "fine_tuning must be.*got 5"),
        ({"fine_tuning": [QUICK, 5]}, TypeError, "fine_tuning must be"),
        ({"fine_tuning": FineTuning(epochs=0)}, ValueError, "fine_tuning has epochs=0"),
        ({"mixture": DDFA()}, TypeError, "mixture must be a DomainMixture.*got DDFA"),
        ({"mixture": DomainMixture(expansion="rbf")}, ValueError,
         "expansion='rbf', which cannot be fine-tuned; pass"),
        ({"n_classes": "many"}, ValueError, "n_classes must be a whole number from 2"),
        ({"domain_weight": "even"}, ValueError, "domain_weight"),
        ({"n_starts": 0}, ValueError, "n_starts"),
        ({"n_components": 0}, ValueError, "n_components"),
        ({"valid_share": 1.5}, ValueError, "valid_share"),
        ({"valid_share": 1}, ValueError, "valid_share must lie between 0 and 1, got 1"),
        ({"valid_share": "a"}, ValueError, "valid_share must lie .*, got 'a'"),
        ({"doubt": "x"}, ValueError, "doubt must be a number, such as 1.0, got 'x'"),
        ({"doubt": np.nan}, ValueError, "doubt must be a number.* got nan"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense(
    tiny_net, images, monkeypatch, settings, kind, text
):
    """Said before anything is computed."""
    monkeypatch.setattr("shoal.vision._mixture.encode", None)
    with pytest.raises(kind, match=text):
        mixture(tiny_net).set_params(**settings).fit(images.X, images.domains)


def test_fine_tunings_that_make_no_sense():
    with pytest.raises(ValueError, match="view"):
        FineTuning(view="weak")
    with pytest.raises(ValueError, match="second_view"):
        FineTuning(second_view="weak")
    with pytest.raises(ValueError, match="batch_norm"):
        FineTuning(batch_norm="eval")
    with pytest.raises(ValueError, match="average"):
        FineTuning(average=1.0)
    with pytest.raises(ValueError, match="head_rate must be a number from 0, got -1"):
        FineTuning(head_rate=-1)
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        FineTuning(threshold=2)
    with pytest.raises(ValueError, match="epochs must be a whole number from 0"):
        FineTuning(epochs=-1)
