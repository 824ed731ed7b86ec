"""ImageNet-50 and FieldGuide with their published settings, on stand-in pictures."""

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

import shoal_bench.image_methods  # noqa: E402, F401
from shoal.vision import save_backbone  # noqa: E402
from shoal.vision._discriminator import VIEWS  # noqa: E402
from shoal.vision._nets import resnet  # noqa: E402
from shoal_bench import image_problems  # noqa: E402
from shoal_bench.datasets import known  # noqa: E402
from shoal_bench.grids import paper_specs  # noqa: E402
from shoal_bench.image_problems import Windowed, load_backbone, open_weights  # noqa: E402
from shoal_bench.methods import METHODS, find_method  # noqa: E402
from shoal_bench.problems import load_problem  # noqa: E402
from shoal_bench.published import PUBLISHED_SETTINGS  # noqa: E402
from shoal_bench.run import _method_settings, run  # noqa: E402
from shoal_bench.spec import Spec  # noqa: E402

# What keeps a run on a CPU short; all else is as published.
SHORT = {
    "scan": {"epochs": 1, "head_epochs": 1, "batch_size": 64},
    "scan_prior": {"epochs": 1, "head_epochs": 1, "batch_size": 64},
    "ddfa_si": {
        "epochs": 1,
        "scan_epochs": 0,
        "batch_size": 64,
        "learning_rates": "1e-4",
    },
    "ddfa_spi": {"epochs": 1, "batch_size": 64, "learning_rates": "1e-4"},
    "ddfa_ri": {"epochs": 1, "depth": 18, "batch_size": 64},
    "oracle": {"epochs": 1, "batch_size": 64, "learning_rates": "1e-3"},
    "ours_end_to_end": {"epochs": 1, "batch_size": 64, "n_components": 8},
}

# Asked in every run of the tests; the others every night.
QUICK = ("ddfa_ri", "ddfa_si")

pytestmark = [
    pytest.mark.filterwarnings("ignore::shoal.exceptions.ShoalWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def settings_of(dataset, method, **chosen):
    spec = Spec(dataset, 50 if dataset == "imagenet50" else 28, 3, 0, method,
                settings=chosen)  # fmt: skip
    usual = find_method(method)
    return {**usual.settings, **_method_settings(usual, spec)}


def test_settings_are_the_published_ones():
    """Appendix D, where it differs from CIFAR; what a spec says stands above it."""
    assert settings_of("fieldguide2", "ddfa_spi")["epochs"] == 30
    assert settings_of("fieldguide28", "ddfa_spi")["epochs"] == 60
    assert settings_of("cifar20", "ddfa_spi")["epochs"] == 25
    assert settings_of("fieldguide2", "scan")["learning_rate"] == 0.001
    assert settings_of("fieldguide28", "scan_prior")["learning_rate"] == 0.01
    assert settings_of("fieldguide28", "ddfa_si")["scan_learning_rate"] == 0.01
    assert settings_of("fieldguide2", "ddfa_ri")["n_clusters"] == 10
    assert settings_of("fieldguide28", "ddfa_ri")["n_clusters"] is None
    assert settings_of("imagenet50", "ddfa_si")["backbone"] == "moco_resnet50"
    assert settings_of("imagenet50", "ddfa_si")["n_clusters"] is None  # 50 classes
    assert settings_of("fieldguide2", "ddfa_spi", epochs=2)["epochs"] == 2


def test_published_settings_exist_and_name_no_spec_anew():
    """Every setting is one of its method; the grid's specs stay without settings."""
    for methods in PUBLISHED_SETTINGS.values():
        for method, settings in methods.items():
            assert set(settings) <= set(find_method(method).settings)
    assert not any(spec.settings for spec in paper_specs())


def test_views_and_the_middle_make_windows_of_the_image():
    """Shifted by up to a sixteenth, the middle 7/8 is any window and never padding."""
    side, window = 32, 28
    x = torch.arange(side * side, dtype=torch.float).view(1, 1, side, side) + 1
    view = VIEWS["window"](side)
    seen = []

    class Recorder(image_problems.Backbone):
        n_features = 1

        def features(self, x):
            seen.append(x)
            return x.mean(dim=(1, 2, 3))[:, None]

    net = Windowed(Recorder(), window)
    many = x.expand(400, -1, -1, -1)
    net.features(view(many, torch.Generator().manual_seed(0)))
    net.features(x)
    windows = {
        tuple(x[0, 0, top : top + window, left : left + window].flatten().tolist())
        for top in range(side - window + 1)
        for left in range(side - window + 1)
    }
    mirrored = {
        tuple(np.flip(np.reshape(w, (window, window)), 1).ravel().tolist())
        for w in windows
    }
    drawn = {tuple(image.flatten().tolist()) for image in seen[0]}
    assert drawn <= windows | mirrored
    assert len(drawn & windows) == len(drawn & mirrored) == 25  # each at least once
    torch.testing.assert_close(seen[1][0, 0], x[0, 0, 2:30, 2:30])


@pytest.fixture
def small(monkeypatch):
    """Pictures of 36 pixels, windows of 32."""
    monkeypatch.setattr(image_problems, "RESIZED", 36)
    monkeypatch.setattr(image_problems, "WINDOW", 32)
    image_problems._load_images.cache_clear()
    yield
    image_problems._load_images.cache_clear()


def write_pictures(folder, level, count, first=0):
    """Pictures of one brightness and some noise, of two shapes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(level)
    for number in range(count):
        shape = (20, 26, 3) if number % 2 else (24, 24, 3)
        picture = np.clip(level + rng.normal(0, 8, size=shape), 0, 255)
        Image.fromarray(picture.astype(np.uint8)).save(folder / f"{number}.png")


def write_weights(folder, name, depth, stem):
    torch.manual_seed(0)
    place = folder / "weights" / f"{name}.safetensors"
    place.parent.mkdir(exist_ok=True)
    save_backbone(resnet(depth, stem=stem), place)


@pytest.fixture
def fieldguide(tmp_path, monkeypatch, small):
    monkeypatch.setattr(known, "SPECIES_IMAGES", 50)
    monkeypatch.setattr(known, "SPECIES_TEST", 10)
    for species, level in (("atlas", 60), ("comma", 180)):
        write_pictures(tmp_path / "fieldguide" / species, level, 50)
    write_weights(tmp_path, "simclr_resnet18_fieldguide2", 18, "cifar")
    return tmp_path


def test_networks_of_pictures_see_their_middle(fieldguide):
    problem = load_problem(Spec("fieldguide2", 2, 3, 0, "scan"), "images", fieldguide)
    assert problem.X.shape[1:] == (36, 36, 3)
    net = open_weights(problem, "simclr_resnet18")
    whole = load_backbone(
        fieldguide / "weights" / "simclr_resnet18_fieldguide2.safetensors"
    )
    x = torch.randn(2, 3, 36, 36)
    with torch.no_grad():
        torch.testing.assert_close(net.features(x), whole.features(x[:, :, 2:34, 2:34]))


def answered(dataset, r, method, folder):
    record = run(
        Spec(dataset, r, 0.5, 0, method, settings=SHORT[method]), data_dir=folder
    )
    k = 50 if dataset == "imagenet50" else 2
    assert np.shape(record["prevalence"]) == (r, k)
    np.testing.assert_allclose(np.sum(record["prevalence"], axis=1), 1, atol=1e-4)
    assert 1 / k <= record["metrics"]["accuracy"] <= 1


def test_every_method_on_pixels_is_asked():
    assert set(SHORT) == {name for name, entry in METHODS.items()
                          if entry.view == "images"}  # fmt: skip


@pytest.mark.parametrize(
    "method",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in SHORT
    ],
)
def test_fieldguide(fieldguide, method):
    answered("fieldguide2", 2, method, fieldguide)


@pytest.fixture
def imagenet(tmp_path, small):
    for number, name in enumerate(known.IMAGENET50):
        write_pictures(tmp_path / "imagenet" / "train" / name, 5 * number, 20)
        write_pictures(tmp_path / "imagenet" / "val" / name, 5 * number, 12)
    write_weights(tmp_path, "moco_resnet50_imagenet50", 50, "imagenet")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("method", SHORT)
def test_imagenet50(imagenet, method):
    answered("imagenet50", 50, method, imagenet)
