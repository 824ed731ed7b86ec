"""Methods on pixels: every one answers a tiny problem, and labels change nothing."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from shoal.vision._backbone import save_backbone  # noqa: E402
from shoal.vision._discriminator import ImageDiscriminator  # noqa: E402
from shoal.vision._nets import resnet  # noqa: E402
from shoal_bench import paper  # noqa: E402
from shoal_bench.image_kept import trained_scan  # noqa: E402
from shoal_bench.image_problems import random_weights, with_pool  # noqa: E402
from shoal_bench.methods import find_method  # noqa: E402
from shoal_bench.problems import Source  # noqa: E402
from shoal_bench.run import score  # noqa: E402
from shoal_bench.spec import Spec  # noqa: E402

SETTINGS = {
    "ours_end_to_end": {"epochs": 1, "batch_size": 64, "consistency": 0.5},
    "scan": {"epochs": 1, "head_epochs": 2},
    "scan_prior": {"epochs": 1, "head_epochs": 2},
    "ddfa_si": {
        "epochs": 1,
        "scan_epochs": 0,
        "batch_size": 64,
        "learning_rates": "1e-4",
    },
    "ddfa_spi": {
        "epochs": 1,
        "batch_size": 64,
        "stages": "best",
        "learning_rates": "1e-4",
    },
    "ddfa_ri": {"epochs": 1, "depth": 18, "batch_size": 64},
    "oracle": {"epochs": 1, "batch_size": 64, "learning_rates": "1e-3"},
}

pytestmark = [
    pytest.mark.filterwarnings("ignore::shoal.exceptions.ShoalWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """Two classes of striped images, 8 x 8, in the two domains of a paper's matrix."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "weights").mkdir()
    torch.manual_seed(0)
    save_backbone(resnet(18), folder / "weights" / "simclr_resnet18_gauss2.safetensors")
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=360)
    images = rng.integers(0, 120, size=(360, 8, 8, 3))
    images[labels == 1, ::2] += 120
    spec = Spec("gauss2", 3, 3, wave=0, method="scan")
    source = Source(images.astype(np.uint8), labels, 240)
    return with_pool(spec, source, folder)


def test_the_pool_leaves_out_what_is_of_no_class(problem):
    """SCAN of the pairs sees their images alone, all of them, and no test image."""
    labels = np.repeat([0, 1, -1, 0, 1], [100, 90, 50, 40, 40])
    images = np.arange(320, dtype=np.uint8)[:, None, None, None]
    spec = Spec("gauss2", 3, 3, wave=0, method="scan")
    made = with_pool(spec, Source(images, labels, 240), problem.folder)
    np.testing.assert_array_equal(made.pool, images[:190])


@pytest.mark.parametrize("name", SETTINGS)
def test_every_method_answers(problem, name):
    method = find_method(name)
    answer = method.answer(problem, 0, **SETTINGS[name])
    assert answer.classes.shape == problem.domains_test.shape
    assert set(answer.classes) <= {0, 1}
    np.testing.assert_allclose(answer.prevalence.sum(axis=1), 1)
    metrics, _ = score(answer, problem.truth, method.entry.labelled)
    assert 0 < metrics["accuracy"] <= 1


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "oracle"])
def test_labels_do_not_reach_methods(problem, name, tmp_path):
    """With shuffled truth, and nothing kept of the first run, nothing changes."""
    shutil.copytree(problem.folder / "weights", tmp_path / "weights")
    truth = problem.truth
    rng = np.random.default_rng(1)
    other = replace(
        problem,
        folder=tmp_path,
        truth=replace(
            truth,
            labels=rng.permutation(truth.labels),
            labels_test=rng.permutation(truth.labels_test),
            prevalence=rng.permutation(truth.prevalence),
        ),
    )
    settings = SETTINGS[name]
    first, second = (
        find_method(name).answer(given, 0, **settings) for given in (problem, other)
    )
    np.testing.assert_array_equal(first.classes, second.classes)
    np.testing.assert_array_equal(first.prevalence, second.prevalence)


def test_oracle_learns_what_labels_say(problem):
    answer = find_method("oracle").answer(
        problem, 0, epochs=3, batch_size=32, learning_rates="1e-3"
    )
    metrics, _ = score(answer, problem.truth, labelled=True)
    assert metrics["accuracy"] > 0.9
    assert set(answer.notes["losses"]) == {"0.001"}


def test_scan_is_trained_once(problem):
    """The second call reads the file that the first wrote, and says the same."""
    first = trained_scan(problem, 7, epochs=0, head_epochs=1)
    files = list((problem.folder / "scan").glob("*seed7*"))
    assert len(files) == 1
    second = trained_scan(problem, 7, epochs=0, head_epochs=1)
    assert not hasattr(second, "history_")
    np.testing.assert_array_equal(
        first.predict_proba(problem.X_test), second.predict_proba(problem.X_test)
    )


def test_discriminator_is_trained_once(problem):
    """Other stages, m and starts go on from the q(d|x) that the first run kept."""
    settings = {"epochs": 1, "batch_size": 64, "learning_rates": "3e-4"}
    answer = find_method("ddfa_spi").answer
    first = answer(problem, 3, **settings)
    assert "kept" not in first.notes
    files = set((problem.folder / "discriminators").iterdir())
    again = answer(problem, 3, **settings)
    assert again.notes == {**first.notes, "kept": True}
    np.testing.assert_array_equal(first.classes, again.classes)
    same = answer(problem, 3, **settings, stage_seed=3)
    np.testing.assert_array_equal(first.prevalence, same.prevalence)
    elsewhere = answer(problem, 3, **settings, stage_seed=4)
    assert not np.array_equal(first.prevalence, elsewhere.prevalence)
    others = [{"stages": "best"}, {"stages": "anchored"}, {"clustered": "published"}]
    for other in [*others, {"n_clusters": 5}, {"stage_seed": 4}]:
        found = answer(problem, 3, **settings, **other)
        assert found.notes["held_out_loss"] == first.notes["held_out_loss"]
    assert set((problem.folder / "discriminators").iterdir()) == files
    answer(problem, 4, **settings)
    assert len(set((problem.folder / "discriminators").iterdir()) - files) == 1


def test_anchored_stages_take_every_cluster_for_a_class(problem, tmp_path):
    """With m = k SPA leaves the clusters as they are: prevalences are their shares."""
    shutil.copytree(problem.folder / "weights", tmp_path / "weights")
    alone = replace(problem, folder=tmp_path)
    settings = {"epochs": 1, "batch_size": 64, "learning_rates": "3e-4"}
    answer = find_method("ddfa_spi").answer
    published, anchored = (
        answer(alone, 3, **settings, stages=stages).prevalence
        for stages in ("published", "anchored")
    )
    assert np.abs(anchored - published).max() > 1e-3
    (kept,) = (tmp_path / "discriminators").iterdir()
    q = np.load(kept)["q"]
    k = problem.n_classes
    model = paper.ddfa(k, discriminator=lambda rows: rows, random_state=3)
    clusters = model.fit(q, problem.domains).discretizer_.predict(q)
    shares = np.array(
        [
            np.bincount(clusters[problem.domains == domain], minlength=k)
            for domain in np.unique(problem.domains)
        ]
    )
    shares = shares / shares.sum(axis=1, keepdims=True)
    shares, anchored = (found[:, np.argsort(found[0])] for found in (shares, anchored))
    np.testing.assert_allclose(anchored, shares, atol=1e-6)


def test_clusters_can_be_made_of_views(problem, tmp_path):
    """As published: of a random view of each image, those held out clean."""
    alone = replace(problem, folder=tmp_path)
    settings = {**SETTINGS["ddfa_ri"], "view": "crop", "norms": "training"}
    answer = find_method("ddfa_ri").answer
    clean = answer(alone, 3, **settings)
    views = answer(alone, 3, **settings, clustered="published")
    assert views.notes["kept"]
    assert np.abs(views.prevalence - clean.prevalence).max() > 1e-4
    (kept,) = (tmp_path / "discriminators").iterdir()
    found = np.load(kept)
    assert 0 < len(found["held_out"]) < len(problem.X) / 5
    seen = found["q_view"].copy()
    seen[found["held_out"]] = found["q"][found["held_out"]]
    differs = np.abs(seen - found["q"]).max(axis=1) > 1e-9
    np.testing.assert_array_equal(np.flatnonzero(~differs), np.sort(found["held_out"]))
    model = paper.ddfa(
        problem.n_classes, n_clusters=6, discriminator=lambda q: q, random_state=3
    )
    model.fit(seen, problem.domains)
    np.testing.assert_array_equal(views.prevalence, model.prevalence_)
    wanted = model.predict(found["q_test"], problem.domains_test)
    np.testing.assert_array_equal(views.classes, wanted)
    answer(alone, 3, **(settings | {"norms": "anew"}))
    assert len([*(tmp_path / "discriminators").iterdir()]) == 2  # another network


def test_random_weights_can_be_drawn_as_published(problem, tmp_path):
    """Torch's own: uniform, up to one over the square root of a convolution's inputs"""
    drawn = random_weights(18, 3)
    for name, module in drawn.named_modules():
        if isinstance(module, torch.nn.Conv2d):
            n_inputs = module.weight[0].numel()
            largest = float(module.weight.detach().abs().max())
            assert 0.95 < largest * n_inputs**0.5 <= 1, name
    again, other = random_weights(18, 3), random_weights(18, 4)
    torch.testing.assert_close(drawn.state_dict(), again.state_dict())
    assert not torch.equal(drawn.conv1.weight, other.conv1.weight)
    # and they are what the method starts from
    alone, found = replace(problem, folder=tmp_path), {}
    settings = {**SETTINGS["ddfa_ri"], "learning_rates": "1e-9", "dropout": 0.0}
    for start in ("he", "torch"):
        before = set(tmp_path.glob("discriminators/*"))
        find_method("ddfa_ri").answer(alone, 3, **settings, start=start)
        (kept,) = set(tmp_path.glob("discriminators/*")) - before
        found[start] = np.load(kept)["q"]
    assert np.abs(found["he"] - found["torch"]).max() > 1e-4
    given = ImageDiscriminator(
        drawn, epochs=1, batch_size=64, learning_rate=1e-9, random_state=3
    )
    q = given.fit(problem.X, problem.domains).predict_proba(problem.X)
    np.testing.assert_allclose(found["torch"], q, atol=1e-5)


def test_scan_is_not_asked_for_a_kept_discriminator(problem, tmp_path):
    """Its q(d|x) is enough: other starts on it need neither SCAN nor weights."""
    answer = find_method("ddfa_si").answer
    first = answer(problem, 0, **SETTINGS["ddfa_si"])
    shutil.copytree(problem.folder / "discriminators", tmp_path / "discriminators")
    elsewhere = replace(problem, folder=tmp_path)
    again = answer(elsewhere, 0, **SETTINGS["ddfa_si"])
    assert again.notes["kept"]
    np.testing.assert_array_equal(first.classes, again.classes)
    assert not (tmp_path / "scan").exists()


def test_unknown_stages_and_absent_weights_are_named(problem):
    with pytest.raises(ValueError, match="clustered must be one of"):
        find_method("ddfa_spi").answer(problem, 0, clustered="clear")
    with pytest.raises(ValueError, match="start must be one of"):
        find_method("ddfa_ri").answer(problem, 0, start="cold")
    with pytest.raises(ValueError, match="stages must be one of"):
        find_method("ddfa_spi").answer(problem, 0, stages="paper", epochs=1)
    with pytest.raises(ValueError, match="chooses n_clusters itself, got 5"):
        find_method("ddfa_ri").answer(problem, 0, stages="best", n_clusters=5)
    with pytest.raises(FileNotFoundError, match="nowhere_gauss2"):
        find_method("scan").answer(problem, 0, backbone="nowhere")
