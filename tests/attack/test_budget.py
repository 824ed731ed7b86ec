"""Small folders that ask for much, one by one; and signatures."""

import json
import os
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attack import forging
from tests.attack.forging import Saved, fit, sign

import shoal
from shoal.cli import main
from shoal.exceptions import CodedError, ModelFileError
from shoal.io._notation import UNSEEN
from shoal.io._settings import LOADING
from shoal.io.model import _folder
from shoal.io.model._folder import Budget, Folder, check_classes, check_widths
from shoal.io.model._models import LoadedParts, read_manifest
from shoal.io.model._values import Reader, Writer

KEY = b"a secret that nobody else knows"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: Any) -> Saved:
    return Saved(fit("mixture"), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def forest(tmp_path_factory: Any) -> Saved:
    return Saved(fit("forest"), tmp_path_factory.mktemp("forest"))


def refused(saved: Saved, files: forging.Files) -> str:
    """What is said of a folder that is not loaded."""
    with pytest.raises(ModelFileError) as raised:
        shoal.load(saved.write(files))
    assert raised.value.code == "E135"
    assert not UNSEEN.search(str(raised.value))
    return str(raised.value)


# ---- one account ---------------------------------------------------------------------


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("swell", "told"),
    [
        (forging.one_member_often, "asks for more memory"),
        (forging.laughter, "two objects that pass for one"),
        (forging.deep_brackets, "nests more than|recursion"),
        (forging.many_rows, "8 rows to be tried on"),
    ],
)
def test_what_swells_is_refused(plain: Saved, swell: Any, told: str):
    assert re.search(told, refused(plain, swell(plain, rng())))


def test_one_part_named_thousands_of_times_is_one(plain: Saved):
    """Made once; what it costs to use it is paid each time."""
    files = forging.one_part_often(plain, rng())
    found = shoal.load(plain.write(files)).extra_
    assert len(found) > 500
    assert all(one is found[0] for one in found)
    folder = Folder(plain.folder)
    folder.expect(folder.manifest()["files"])
    parts = LoadedParts(folder)
    parts("parts/7.skops")
    before = folder.budget.nodes
    parts("parts/7.skops")
    assert 0 < folder.budget.nodes < before
    folder.budget.nodes = 0
    with pytest.raises(ModelFileError, match="more than 4,000,000 values"):
        parts("parts/7.skops")


def test_arrays_are_made_once():
    writer = Writer(lambda part: b"")
    node = writer.encode(np.arange(5.0), "x")
    budget = Budget()
    reader = Reader(writer.arrays, lambda name: None, budget)
    before = budget.n_bytes
    first, second = reader.decode([node, dict(node)])
    assert first is second
    assert before - budget.n_bytes == 40
    assert reader.decode({**node, "dtype": "<f4"}).dtype == np.float32
    assert before - budget.n_bytes == 60
    budget.n_bytes = 19
    with pytest.raises(ModelFileError, match="asks for more memory"):
        reader.decode({**node, "dtype": ">f4"})


def test_what_has_no_length_is_paid_by_its_width():
    with pytest.raises(ModelFileError, match="asks for more memory"):
        Budget().pay_array((0, 2**40), 8)
    Budget().pay_array((0,), 8)


def test_json_is_paid_before_it_is_parsed():
    """As much as Python takes for it, or more, whatever it is made of."""
    for text in ("[],", "{},", '{"":{}},', '"ab",', "1e1,"):
        content = ("[" + text * 20_000 + "0]").encode()
        budget = Budget(1e12)
        budget.pay_json(content)
        tracemalloc.start()
        json.loads(content, object_pairs_hook=dict)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.05 * (1e12 - budget.n_bytes)


def test_no_more_than_the_machine_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_folder, "available_memory", lambda: 1e6)
    with pytest.raises(ModelFileError, match="machine has free"):
        Budget().pay_bytes(1e6)
    monkeypatch.setattr(_folder, "available_memory", lambda: None)
    Budget().pay_bytes(1e6)


def test_files_are_counted():
    budget = Budget()
    for _ in range(LOADING.files):
        budget.pay_file(0)
    with pytest.raises(ModelFileError, match="more than 1,000 files"):
        budget.pay_file(0)


@pytest.mark.parametrize(
    "values",
    [
        {"n_classes_": 2**28},
        {"n_trees_per_iteration_": 2**28},
        {"_n_out_full": 2**40},
        {"n_classes_": np.array([2, 2**28])},
        {"n_outputs_": 2**70},
        {"_max_degree": 10**7},
    ],
)
def test_widths_that_nobody_has(values: dict[str, Any]):
    with pytest.raises(ModelFileError, match="the model says that"):
        check_widths(values)


def test_widths_and_counts_that_people_have():
    check_widths(
        {
            "n_samples_seen_": 10**9,
            "n_iter_": 10**7,
            "n_features_in_": 200_000,
            "n_components": 0.95,
            "n_jobs": None,
            "n_bins_": np.array([3, 5]),
            "kind": 2**40,
        }
    )
    check_classes({"n_classes_": 200, "prevalence_": np.ones((10_000, 200))})


@pytest.mark.parametrize("name", ["domain_given_class_", "prevalence_", "n_classes_"])
def test_more_classes_than_can_be_computed_with(name: str):
    tables = {"domain_given_class_": np.ones((1001, 2)), "n_classes_": 1001,
              "prevalence_": np.ones((2, 1001))}  # fmt: skip
    with pytest.raises(ModelFileError, match="has 1,001 classes"):
        check_classes({name: tables[name]})


# ---- what is called ------------------------------------------------------------------


def test_a_file_does_not_say_how_many_processes_start(forest: Saved, plain: Saved):
    found = shoal.load(forest.write(forging.many_jobs(forest, rng())))
    assert found.discriminator_.estimator_.n_jobs == 1
    manifest = plain.manifest
    manifest["model"]["params"]["n_jobs"] = 27
    assert shoal.load(plain.write(sign(dict(plain.files), manifest))).n_jobs == 1
    assert shoal.load(plain.origin).n_jobs is None


@pytest.mark.parametrize("place", [625, -1, 2**31 - 1])
def test_a_random_state_that_points_outside(plain: Saved, place: int):
    """C would read there."""
    manifest = plain.manifest
    keys = {"$text": [], "shape": [0], "dtype": "<U1"}
    writer = Writer(lambda part: b"")
    state = list(np.random.RandomState(0).get_state(legacy=True))
    state[2] = place
    keys = writer.encode(tuple(state), "x")
    arrays = forging.safetensors.load(plain.files["arrays.safetensors"])
    keys["$tuple"][1]["$array"] = "keys"
    arrays["keys"] = writer.arrays["a0"]
    files = plain.files | {"arrays.safetensors": forging.safetensors.save(arrays)}
    manifest["model"]["params"]["random_state"] = {"$random_state": keys}
    told = refused(plain, sign(files, manifest))
    assert "points outside of itself" in told or "damaged" in told


@pytest.mark.parametrize("outputs", ["1000000000", "-1", "0", "true", '"x"'])
def test_a_tree_with_outputs_that_are_not_there(forest: Saved, outputs: str):
    """scikit-learn would read as many numbers behind an array of one."""
    name = next(one for one in forest.files if "TreeNode" in _tree(forest, one))
    members = forging.unpack(forest.files[name])
    tree = json.loads(members["schema.json"])
    for path in forging.places(tree):
        node = forging.at(tree, path)
        if isinstance(node, dict) and node.get("__loader__") == "TreeNode":
            node["__reduce__"]["args"]["content"][2]["content"] = outputs
    members["schema.json"] = json.dumps(tree).encode()
    files = forest.files | {name: forging.pack(members)}
    told = refused(forest, sign(files, forest.manifest))
    assert "no such outputs" in told or "two objects" in told


def _tree(saved: Saved, name: str) -> str:
    if not name.endswith(".skops"):
        return ""
    return forging.unpack(saved.files[name])["schema.json"].decode()


# ---- what is refused at once ---------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, True, 1.0, None, "1"])
def test_formats_that_never_were(plain: Saved, number: Any):
    manifest = plain.manifest | {"format": number}
    assert "is not a shoal model" in refused(plain, sign(dict(plain.files), manifest))


def test_numbers_beyond_numbers(plain: Saved):
    text = plain.files["manifest.json"].replace(b'"summary": null', b'"summary": 1e999')
    assert text != plain.files["manifest.json"]
    assert "1e999 is more than a number can be" in refused(
        plain, plain.files | {"manifest.json": text}
    )


def test_a_model_without_rows_to_be_tried_on(plain: Saved):
    manifest = plain.manifest | {"probe": None}
    assert "must have some" in refused(plain, sign(dict(plain.files), manifest))


def test_the_card_is_under_the_digest(plain: Saved):
    card = plain.files["README.md"].replace(b"east", b"EAST")
    assert "README.md was changed" in refused(plain, plain.files | {"README.md": card})
    manifest = plain.manifest
    del manifest["files"]["README.md"]  # as the first models were
    shoal.load(plain.write(sign(dict(plain.files), manifest)))


def test_names_in_errors_move_no_cursor(plain: Saved):
    manifest = plain.manifest
    manifest["model"]["class"] = "a\n\x1b[2Jb\x00"
    told = refused(plain, sign(dict(plain.files), manifest))
    assert r"a\n\u001b[2Jb\u0000" in told


# ---- signatures ----------------------------------------------------------------------


@pytest.fixture
def signed(plain: Saved, tmp_path: Path) -> Path:
    path = shoal.save(plain.fitted.model, tmp_path / "model")
    assert shoal.io.sign(path, KEY) == path / "signature.json"
    return path


def test_a_signed_model(signed: Path, tmp_path: Path, plain: Saved):
    (tmp_path / "key").write_bytes(KEY + b"\r\n")
    for key in (KEY, tmp_path / "key", str(tmp_path / "key")):
        found = shoal.load(signed, key=key).predict_proba(plain.rows)
        np.testing.assert_array_equal(found, plain.expected)
    shoal.load(signed)
    with pytest.raises(ModelFileError, match="was not signed with this key"):
        shoal.load(signed, key=KEY[::-1])


def test_a_forged_model_is_told_from_a_signed_one(signed: Path, plain: Saved):
    """The forger renews all digests, and cannot make the signature anew."""
    manifest = read_manifest(signed)
    manifest["seed"] = 7
    content = sign({}, manifest)["manifest.json"]
    (signed / "manifest.json").write_bytes(content)
    shoal.load(signed)
    with pytest.raises(ModelFileError, match="changed since"):
        shoal.load(signed, key=KEY)
    (signed / "signature.json").unlink()
    with pytest.raises(ModelFileError, match="is not signed"):
        shoal.load(signed, key=KEY)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"signature": 7}', '{"signature": "é"}']
)
def test_signatures_that_are_none(signed: Path, text: str):
    (signed / "signature.json").write_text(text)
    with pytest.raises(ModelFileError):
        shoal.load(signed, key=KEY)


def test_a_damaged_model_is_not_signed(signed: Path):
    with (signed / "classes.json").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelFileError, match=r"classes\.json has"):
        shoal.io.sign(signed, KEY)


def test_keys_that_are_none(signed: Path, tmp_path: Path):
    with pytest.raises(CodedError, match="the key has 5 bytes") as raised:
        shoal.load(signed, key=b"short")
    assert raised.value.code == "E002"
    with pytest.raises(CodedError, match="cannot read the key") as raised:
        shoal.io.sign(signed, tmp_path / "absent")
    assert raised.value.code == "E101"


def test_the_command_signs_and_checks(signed: Path, tmp_path: Path, capsys: Any):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    os.remove(signed / "signature.json")

    def code(*arguments: str) -> int:
        with pytest.raises(SystemExit) as end:
            main(["sign", str(signed), *arguments])
        return int(end.value.code or 0)

    assert code("--key", str(key), "--check") == 6
    assert "is not signed" in capsys.readouterr().err
    assert code("--key", str(key)) == 0
    assert "signature.json" in capsys.readouterr().out
    assert code("--key", str(key), "--check") == 0
    assert "was signed with this key" in capsys.readouterr().out
    assert code() == 2
    assert "--key FILE" in capsys.readouterr().err
