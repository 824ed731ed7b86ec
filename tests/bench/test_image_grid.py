"""A grid on images, end to end on the CPU: run, killed, resumed, tabulated."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

torch = pytest.importorskip("torch")

import shoal_bench.image_methods  # noqa: E402, F401
from shoal.vision._backbone import save_backbone  # noqa: E402
from shoal.vision._nets import resnet  # noqa: E402
from shoal_bench.datasets import known as images_known  # noqa: E402
from shoal_bench.grids import GRIDS  # noqa: E402
from shoal_bench.image_problems import open_weights  # noqa: E402
from shoal_bench.markdown import markdown  # noqa: E402
from shoal_bench.methods import METHODS  # noqa: E402
from shoal_bench.problems import load_problem  # noqa: E402
from shoal_bench.run import run_missing  # noqa: E402
from shoal_bench.spec import Spec  # noqa: E402
from shoal_bench.store import Store  # noqa: E402
from shoal_bench.tables import summarize  # noqa: E402

PER_CLASS = 16
SETTINGS = {
    "ours_end_to_end": {"epochs": 0, "n_components": 8},
    "scan": {"epochs": 0, "head_epochs": 1},
}
SPECS = [
    Spec("pairs2", 3, 3, wave, method, settings=SETTINGS[method])
    for wave, method in ((0, "ours_end_to_end"), (1, "ours_end_to_end"), (0, "scan"))
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    """CIFAR-100's binary layout, made small, and a network that nobody trained."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    # every fine class once, and the first two of superclasses 8 and 18 more often
    often = np.isin(np.arange(100), [40, 41, 90, 91])
    fine = np.repeat(np.arange(100), np.where(often, PER_CLASS, 1))
    pixels = rng.integers(0, 100, size=(len(fine), 3072))
    pixels[fine % 2 == 1, :1024] += 150  # the second of each pair is red
    records = np.column_stack([fine // 5, fine, pixels]).astype(np.uint8)
    (folder / "cifar-100-binary").mkdir()
    for split in ("train", "test"):
        (folder / "cifar-100-binary" / f"{split}.bin").write_bytes(records.tobytes())
    for kind, count in (("coarse", 20), ("fine", 100)):
        names = "".join(f"{kind}{number}\n" for number in range(count))
        (folder / "cifar-100-binary" / f"{kind}_label_names.txt").write_text(names)
    (folder / "weights").mkdir()
    torch.manual_seed(0)
    name = "simclr_resnet18_cifar100.safetensors"
    save_backbone(resnet(18), folder / "weights" / name)
    return folder


RUNNER = """
import json, sys
from shoal_bench.run import run_missing
from shoal_bench.spec import Spec
from shoal_bench.store import Store
specs = [Spec.from_dict(content) for content in json.loads(sys.argv[1])]
run_missing(specs, Store(sys.argv[2]), data_dir=sys.argv[3])
"""


def test_grid_kill_resume_table(data_dir, tmp_path):
    store = Store(tmp_path / "store")
    described = json.dumps([spec.to_dict() for spec in SPECS])
    arguments = [sys.executable, "-c", RUNNER, described, store.folder, data_dir]
    victim = subprocess.Popen(arguments)
    while not store.records() and victim.poll() is None:
        time.sleep(0.05)
    victim.send_signal(signal.SIGKILL)
    victim.wait(timeout=10)
    before = set(store.records())
    assert before

    tally = run_missing(SPECS, store, data_dir=data_dir, where="processes", workers=1)
    assert set(tally.known) == before
    assert store.failures() == {}
    assert set(store.records()) == {spec.name for spec in SPECS}
    for record in store.records().values():
        assert 0.5 <= record["metrics"]["accuracy"] <= 1
        assert np.shape(record["prevalence"]) == (3, 2)
        assert "torch" in record["versions"]

    text = markdown(summarize(SPECS, store.records()), "pairs")
    assert "not run" not in text
    assert "| SCAN, epochs=0, head_epochs=1 | " in text


def test_features_of_a_backbone_are_centred_on_the_training_rows(data_dir):
    script = Path(__file__).parents[2] / "benchmarks" / "vision" / "features.py"
    chosen = ["--datasets", "cifar20", "--backbone", "simclr_resnet18"]
    chosen += ["--kind", "small", "--components", "8", "--device", "cpu"]
    asked = [sys.executable, script, "--data", data_dir, *chosen]
    subprocess.run(asked, check=True)
    with np.load(data_dir / "features" / "cifar20_small.npz") as written:
        assert written["features"].shape == (2 * (100 + 4 * (PER_CLASS - 1)), 8)
        assert written["n_train"] == len(written["features"]) // 2
        assert len(written["labels"]) == len(written["features"])
        train = written["features"][: written["n_train"]].astype(float)
    assert abs(train.mean(axis=0)).max() < 1e-3
    covariance = np.cov(train.T)
    assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-4)


@pytest.mark.parametrize("grid", GRIDS)
def test_every_run_of_a_grid_can_be_made_where_its_data_are(grid, tmp_path):
    """Without any data, all that is missing are files: no run is refused as such."""
    pairs = {(spec.dataset, METHODS[spec.method].view): spec
             for spec in GRIDS[grid].specs()}  # fmt: skip
    for (dataset, view), spec in pairs.items():
        if not dataset.startswith(("gauss", "fashion")):
            with pytest.raises(FileNotFoundError):
                load_problem(spec, view, tmp_path)


@pytest.fixture
def fieldguide(tmp_path, monkeypatch) -> Path:
    """Two species of dark and of bright pictures, 10 of 50 set aside."""
    monkeypatch.setattr(images_known, "SPECIES_IMAGES", 50)
    monkeypatch.setattr(images_known, "SPECIES_TEST", 10)
    for species, value in (("atlas", 20), ("comma", 200)):
        (tmp_path / "fieldguide" / species).mkdir(parents=True)
        for number in range(50):
            picture = np.full((8, 8, 3), value, dtype=np.uint8)
            file = tmp_path / "fieldguide" / species / f"{number}.png"
            Image.fromarray(picture).save(file)
    return tmp_path


def test_data_sets_in_folders_are_problems_too(fieldguide):
    spec = Spec("fieldguide2", 2, 3, 0, "scan")
    problem = load_problem(spec, "images", fieldguide)
    assert problem.pool.shape == (80, 256, 256, 3)
    bright = problem.X.mean(axis=(1, 2, 3)) > 100
    np.testing.assert_array_equal(bright, problem.truth.labels)
    bright = problem.X_test.mean(axis=(1, 2, 3)) > 100
    np.testing.assert_array_equal(bright, problem.truth.labels_test)


def test_weights_say_which_network_they_are_of(fieldguide):
    problem = load_problem(Spec("fieldguide2", 2, 3, 0, "scan"), "images", fieldguide)
    net = resnet(34, stem="imagenet")
    place = fieldguide / "weights" / "moco_fieldguide2.safetensors"
    place.parent.mkdir()
    save_backbone(net, place, {"depth": 34, "stem": "imagenet"})
    opened = open_weights(problem, "moco")
    assert (opened.net.depth, opened.net.stem) == (34, "imagenet")
    with pytest.raises(FileNotFoundError, match="simclr_resnet18_fieldguide2"):
        open_weights(problem, "simclr_resnet18")
