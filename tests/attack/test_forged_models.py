"""Thousands of damaged and forged models: a ModelFileError or the same model.

Mutations that a disk or a careless hand makes must all be noticed, since every byte is
under a digest. A forger renews the digests: then the loaded model may be another one,
but loading must end in a ModelFileError or in a model that answers, never in another
exception, a hang, an allocation without bounds or a line of code run.
"""

import copy
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.attack.forging import Files, Saved, damage, fit, forge, pack, sign
from tests.io.conftest import Fitted

import shoal
from shoal.exceptions import ModelFileError
from shoal.io._notation import UNSEEN

KINDS = ("mixture", "ddfa_logistic", "merged", "discrete_words", "columns", "images")
N_DAMAGED = dict.fromkeys(KINDS, 200) | {"columns": 50, "images": 8}  # 45 MB
N_FORGED = dict.fromkeys(KINDS, 150) | {"columns": 40, "images": 8}


def load(saved: Saved, files: Files) -> Any:
    """The model, or the one error that there may be."""
    try:
        return shoal.load(saved.write(files))
    except ModelFileError as error:
        return error


def check_damaged(saved: Saved, files: Files) -> bool:
    """True if the damage was noticed; else the model must be the same."""
    found = load(saved, files)
    if isinstance(found, ModelFileError):
        assert found.code == "E135"
        assert not UNSEEN.search(str(found))
        return True
    assert_array_equal(found.predict_proba(saved.rows), saved.expected)
    return False


def check_forged(saved: Saved, files: Files) -> bool:
    """True if the forgery was noticed; else the model must answer."""
    found = load(saved, files)
    if isinstance(found, ModelFileError):
        assert found.code == "E135"
        assert not UNSEEN.search(str(found))
        assert not isinstance(found.__cause__, MemoryError)
        return True
    proba = found.predict_proba(saved.rows)
    assert proba.shape == (len(saved.rows), found.n_classes_)
    assert len(found.class_names_) == found.n_classes_
    return False


@pytest.fixture(scope="module", params=KINDS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Saved:
    root = tmp_path_factory.mktemp(request.param)
    return Saved(fit(request.param), root, request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: Any) -> Saved:
    return Saved(fit("mixture"), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def boosted(tmp_path_factory: Any) -> Saved:
    return Saved(fit("ddfa_boost"), tmp_path_factory.mktemp("boosted"))


@pytest.fixture(autouse=True)
def _no_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever starts a process or reads a pickle during a load is a payload."""

    def forbidden(*arguments: Any, **options: Any) -> Any:
        raise SystemExit("a model file ran something")

    for name in ("os.system", "os.popen", "os.execv", "os.fork", "pickle.loads",
                 "pickle.load", "subprocess.Popen.__init__"):  # fmt: skip
        monkeypatch.setattr(name, forbidden)


# ---- the campaigns -------------------------------------------------------------------


def test_damage_is_noticed(saved: Saved) -> None:
    rng = np.random.default_rng(0)
    n_damaged = N_DAMAGED[saved.kind]
    noticed = sum(check_damaged(saved, damage(saved, rng)) for _ in range(n_damaged))
    # What is left over is damage that changes nothing, such as a piece of no length.
    assert noticed > 0.95 * n_damaged


def test_forgery_ends_well(saved: Saved) -> None:
    rng = np.random.default_rng(1)
    n_forged = N_FORGED[saved.kind]
    noticed = sum(check_forged(saved, forge(saved, rng)[1]) for _ in range(n_forged))
    # Most values matter; notes, versions and the like do not, and may be anything.
    assert 0.4 * n_forged < noticed < n_forged


def test_files_of_two_models_do_not_mix(plain: Saved, boosted: Saved) -> None:
    renamed = plain.fitted.model.set_names({"c0": "other"})
    other = Saved(Fitted(renamed, plain.fitted.X, None), plain.folder.parent / "other")
    for name in plain.files:
        for stranger in (boosted, other):
            if stranger.files.get(name) not in (None, plain.files[name]):
                mixed = plain.files | {name: stranger.files[name]}
                assert check_damaged(plain, mixed)


# ---- payloads one by one -------------------------------------------------------------


def skops_tree(module: str, name: str, loader: str, **content: Any) -> bytes:
    node = {"__class__": name, "__module__": module, "__loader__": loader, **content}
    tree = node | {"protocol": 2, "_skops_version": "0.16.0"}
    return pack({"schema.json": json.dumps(tree).encode()})


def text_node(text: str) -> dict[str, Any]:
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(text),
        "is_json": True,
    }


ARGUMENTS = {
    "__class__": "tuple",
    "__module__": "builtins",
    "__loader__": "TupleNode",
    "content": [text_node("touch owned")],
}


@pytest.mark.parametrize(
    "part",
    [
        skops_tree("os", "system", "FunctionNode", content={}),
        skops_tree("os", "system", "TypeNode"),
        skops_tree("subprocess", "Popen", "ConstructorFromReduceNode",
                   content=ARGUMENTS),
        skops_tree("subprocess", "Popen", "ObjectNode", content=ARGUMENTS),
        skops_tree("builtins", "eval", "FunctionNode", content={}),
        skops_tree("sklearn.preprocessing._function_transformer", "FunctionTransformer",
                   "ObjectNode"),
        skops_tree("sklearn.pipeline", "Pipeline", "MethodNode",
                   content={"func": "fit", "obj": ARGUMENTS}),
        skops_tree("operator", "methodcaller", "OperatorFuncNode", attrs=ARGUMENTS),
        skops_tree("sklearn.pipeline", "Pipeline", "EvilNode"),
        b"",
        b"PK\x05\x06" + bytes(18),
        b"not a zip archive",
        pack({}),
        pack({"schema.json": b"{}"}),
        pack({"schema.json": b"[" * 100_000}),
        pack({"schema.json": b"{}", "../../evil.npy": b""}),
        pack({"schema.json": b"{}", "1.npy": b"\x93NUMPY\x01\x00"}),
        pack({"schema.json": b"{}"}, zipfile.ZIP_BZIP2),
    ],
)  # fmt: skip
def test_payloads_in_parts(boosted: Saved, part: bytes) -> None:
    files = boosted.files | {"parts/0.skops": part}
    assert check_forged(boosted, sign(files, json.loads(files["manifest.json"])))
    assert not Path("owned").exists()


def test_zip_bomb(boosted: Saved) -> None:
    """Gigabytes packed into megabytes are refused by their headers alone."""
    bomb = pack({"schema.json": b"{}", "1.npy": bytes(300 * 2**20)})
    assert len(bomb) < 2**20
    files = boosted.files | {"parts/0.skops": bomb}
    assert check_forged(boosted, sign(files, json.loads(files["manifest.json"])))


@pytest.mark.parametrize("shape", ["(10000000000000,)", "(-1,)", "(1099511627776, 8)"])
def test_an_array_that_claims_to_be_huge(boosted: Saved, shape: str) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(io.BytesIO(boosted.files["parts/0.skops"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    first = next(name for name in members if name.endswith(".npy"))
    part = pack(members | {first: array + bytes(64)})
    files = boosted.files | {"parts/0.skops": part}
    assert check_forged(boosted, sign(files, json.loads(files["manifest.json"])))


def tree_parts(boosted: Saved) -> Iterator[tuple[str, str, Any]]:
    """Arrays of boosted trees: file, member, nodes."""
    for file, content in boosted.files.items():
        if file.endswith(".skops"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for name in archive.namelist():
                    if name.endswith(".npy"):
                        array = np.load(io.BytesIO(archive.read(name)))
                        if array.dtype.names and "feature_idx" in array.dtype.names:
                            yield file, name, array


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 0),
        ("left", 2**31),
        ("right", 10**6),
        ("feature_idx", -1),
        ("feature_idx", 10**6),
        ("is_categorical", 1),
    ],
)
def test_trees_that_point_outside(boosted: Saved, field: str, value: int) -> None:
    """Compiled code would follow these indices anywhere."""
    found = [one for one in tree_parts(boosted) if not one[2]["is_leaf"][0]]
    assert found
    file, member, nodes = found[0]
    nodes[field][0] = value
    buffer = io.BytesIO()
    np.save(buffer, nodes)
    with zipfile.ZipFile(io.BytesIO(boosted.files[file])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    files = boosted.files | {file: pack(members | {member: buffer.getvalue()})}
    assert check_forged(boosted, sign(files, json.loads(files["manifest.json"])))


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "parts/../../secret", "parts/x.skops", "C:\\x", ""],
)
def test_paths_outside_the_folder(plain: Saved, name: str) -> None:
    manifest = json.loads(plain.files["manifest.json"])
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    manifest["model"]["state"]["features_"] = {"$part": name}
    assert check_forged(plain, sign(plain.files, manifest))


def test_pipes_and_devices_are_not_read(plain: Saved) -> None:
    folder = plain.write(plain.files)
    for name in ("arrays.safetensors", "classes.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(ModelFileError, match="not a file of a sensible size"):
            shoal.load(folder)
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")
        with pytest.raises(ModelFileError, match="not a file of a sensible size"):
            shoal.load(folder)
        (folder / name).unlink()
        (folder / name).write_bytes(plain.files[name])


@pytest.mark.parametrize("text", [
    b'{"format": NaN}',
    b'{"format": Infinity}',
    b'{"format": 1, "format": 1}',
    b'{"format": 1e400}',
    b'{"format": true}',
    b'{"format": 1}',
    b'{"format": -1}',
    b"[1]",
    b"null",
    b"\xff\xfe",
    b"",
    b'{"format": 1, "x": ' + b"[" * 100_000,
    b'{"format": ' + b"9" * 10_000 + b"}",
])  # fmt: skip
def test_manifests_that_are_none(plain: Saved, text: bytes) -> None:
    assert check_forged(plain, plain.files | {"manifest.json": text})


def test_a_method_cannot_be_hidden(plain: Saved) -> None:
    manifest = json.loads(plain.files["manifest.json"])
    for key in ("predict_proba", "_class_given_x", "__class__", "__dict__", "fit_"):
        forged = copy.deepcopy(manifest)
        forged["model"]["state"][key] = "hidden"
        noticed = check_forged(plain, sign(plain.files, forged))
        assert noticed == (key != "fit_")
