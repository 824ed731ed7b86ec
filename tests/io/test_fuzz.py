"""Thousands of damaged and forged models: a ModelFileError or the same model.

Mutations that a disk or a careless hand makes must all be noticed, since every byte is
under a digest. A forger renews the digests: then the loaded model may be another one,
but loading must end in a ModelFileError or in a model that answers, never in another
exception, a hang, an allocation without bounds or a line of code run.
"""

import copy
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.io.conftest import Fitted, fit

import shoal
from shoal.exceptions import ModelFileError
from shoal.io.model._models import canonical_digest

KINDS = ("mixture", "ddfa_logistic", "merged", "discrete_words", "ddfa_boost", "images")
N_DAMAGED = dict.fromkeys(KINDS, 400) | {"images": 60}  # 45 MB each
N_FORGED = dict.fromkeys(KINDS, 300) | {"ddfa_boost": 60, "images": 60}
N_SLOW = 20_000


class Saved:
    """A saved model, and a folder in which copies of it are spoiled."""

    def __init__(self, fitted: Fitted, root: Path, kind: str = "") -> None:
        self.fitted, self.kind = fitted, kind
        self.origin = shoal.save(fitted.model, root / "origin")
        self.folder = root / "spoiled"
        self.files = {
            path.relative_to(self.origin).as_posix(): path.read_bytes()
            for path in sorted(self.origin.rglob("*"))
            if path.is_file() and path.name != "README.md"
        }
        self.rows = fitted.X[:20]
        self.expected = fitted.model.predict_proba(self.rows)

    def write(self, files: dict[str, bytes]) -> Path:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is self.files.get(name):
                os.link(self.origin / name, path)  # as it was: large ones take time
            else:
                path.write_bytes(content)
        return self.folder

    def load(self, files: dict[str, bytes]) -> Any:
        """The model, or the one error that there may be."""
        try:
            return shoal.load(self.write(files))
        except ModelFileError as error:
            return error

    def check_damaged(self, files: dict[str, bytes]) -> bool:
        """True if the damage was noticed; else the model must be the same."""
        found = self.load(files)
        if isinstance(found, ModelFileError):
            assert found.code == "E135"
            assert "\n" not in str(found)
            return True
        assert_array_equal(found.predict_proba(self.rows), self.expected)
        return False

    def check_forged(self, files: dict[str, bytes]) -> bool:
        """True if the forgery was noticed; else the model must answer."""
        found = self.load(files)
        if isinstance(found, ModelFileError):
            assert found.code == "E135"
            return True
        proba = found.predict_proba(self.rows)
        assert proba.shape == (len(self.rows), found.n_classes_)
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


# ---- mutations -----------------------------------------------------------------------


def flip_bit(content: bytes, rng: np.random.Generator) -> bytes:
    spoiled = bytearray(content)
    spoiled[rng.integers(len(spoiled))] ^= 1 << int(rng.integers(8))
    return bytes(spoiled)


def truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def insert(content: bytes, rng: np.random.Generator) -> bytes:
    place = int(rng.integers(len(content)))
    extra = rng.integers(256, size=int(rng.integers(1, 9)), dtype=np.uint8).tobytes()
    return content[:place] + extra + content[place:]


def swap_pieces(content: bytes, rng: np.random.Generator) -> bytes:
    first, second = sorted(rng.integers(len(content), size=2).tolist())
    return content[second:] + content[first:second] + content[:first]


def zero_piece(content: bytes, rng: np.random.Generator) -> bytes:
    first, second = sorted(rng.integers(len(content), size=2).tolist())
    return content[:first] + bytes(second - first) + content[second:]


MUTATIONS: list[Callable[[bytes, np.random.Generator], bytes]] = [
    flip_bit,
    truncate,
    insert,
    swap_pieces,
    zero_piece,
]

ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    "",
    "x" * 50,
    "../../etc/passwd",
    [],
    {},
    [[[]]],
    {"$array": "a0", "dtype": "<f8"},
    {"$array": "a0", "dtype": "|O"},
    {"$array": "none", "dtype": "<f8"},
    {"$text": ["a"], "shape": [1], "dtype": "<U100000000"},
    {"$text": ["a"], "shape": [10**12], "dtype": "<U1"},
    {"$objects": [], "shape": [10**12]},
    {"$scalar": "<f8", "value": "text"},
    {"$scalar": "<U999999999", "value": "a"},
    {"$object": "Popen", "state": {"args": "touch /tmp/owned"}},
    {"$object": "FeatureMap", "state": {"__class__": 1}},
    {"$object": "Novelty", "state": {}},
    {"$part": "../manifest.json"},
    {"$part": "/etc/passwd"},
    {"$part": "parts/0.skops"},
    {"$dict": [[{"$dict": []}, 1]]},
    {"$dict": [[1]]},
    {"$float": "eval"},
    {"$tuple": "abc"},
    {"$bytes": "zz"},
    {"$dtype": "|V99999999999"},
    {"$random_state": ["MT19937", [1], 0, 0, 0.0]},
    {"$unknown": 1},
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON tree."""
    yield path
    items: Any = ()
    if isinstance(node, dict):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    for key, item in items:
        yield from places(item, (*path, key))


def edit(node: Any, rng: np.random.Generator) -> Any:
    """Change, remove, repeat or move one place of a JSON tree."""
    tree = copy.deepcopy(node)
    everywhere = [path for path in places(tree) if path]
    path = everywhere[int(rng.integers(len(everywhere)))]
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    kind = int(rng.integers(4))
    if kind == 0:
        del parent[path[-1]]
    elif kind == 1:
        other = everywhere[int(rng.integers(len(everywhere)))]
        value = node
        for key in other:
            value = value[key]
        parent[path[-1]] = copy.deepcopy(value)
    elif kind == 2 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[path[-1]]))
    else:
        parent[path[-1]] = copy.deepcopy(ODD_VALUES[int(rng.integers(len(ODD_VALUES)))])
    return tree


def sign(files: dict[str, bytes], manifest: Any) -> dict[str, bytes]:
    """Renew sizes and digests, as a forger would."""
    if isinstance(manifest, dict):
        manifest = copy.deepcopy(manifest)
        listed = manifest.get("files")
        for name, facts in listed.items() if isinstance(listed, dict) else ():
            if name in files and isinstance(facts, dict):
                facts["bytes"] = len(files[name])
                facts["sha256"] = hashlib.sha256(files[name]).hexdigest()
        manifest["digest"] = canonical_digest(manifest)
    return files | {"manifest.json": json.dumps(manifest).encode()}


def forge(saved: Saved, rng: np.random.Generator) -> dict[str, bytes]:
    files = dict(saved.files)
    manifest = json.loads(files["manifest.json"])
    names = sorted(files)
    name = names[int(rng.integers(len(names)))]
    if name == "manifest.json" or rng.random() < 0.3:
        manifest = edit(manifest, rng)
    elif name.endswith(".json"):
        files[name] = json.dumps(edit(json.loads(files[name]), rng)).encode()
    elif name.endswith(".skops") and rng.random() < 0.8:
        files[name] = forge_part(files[name], rng)
    else:
        mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        files[name] = mutation(files[name], rng)
    return sign(files, manifest)


def forge_part(content: bytes, rng: np.random.Generator) -> bytes:
    """Edit the tree of a skops file, or one of its arrays, and pack it again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    name = names[int(rng.integers(len(names)))]
    if rng.random() < 0.5:
        tree = edit(json.loads(members["schema.json"]), rng)
        members["schema.json"] = json.dumps(tree).encode()
    else:
        members[name] = MUTATIONS[int(rng.integers(len(MUTATIONS)))](members[name], rng)
    return pack(members)


def pack(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


# ---- the campaigns -------------------------------------------------------------------


def damage(saved: Saved, rng: np.random.Generator) -> dict[str, bytes]:
    names = sorted(saved.files)
    name = names[int(rng.integers(len(names)))]
    mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
    return saved.files | {name: mutation(saved.files[name], rng)}


def test_damage_is_noticed(saved: Saved) -> None:
    rng = np.random.default_rng(0)
    n_damaged = N_DAMAGED[saved.kind]
    noticed = sum(saved.check_damaged(damage(saved, rng)) for _ in range(n_damaged))
    # What is left over is damage that changes nothing, such as a piece of no length.
    assert noticed > 0.95 * n_damaged


def test_forgery_ends_well(saved: Saved) -> None:
    rng = np.random.default_rng(1)
    n_forged = N_FORGED[saved.kind]
    noticed = sum(saved.check_forged(forge(saved, rng)) for _ in range(n_forged))
    # Most values matter; notes, versions and the like do not, and may be anything.
    assert 0.4 * n_forged < noticed < n_forged


@pytest.mark.slow
def test_thousands_more(saved: Saved) -> None:
    rng = np.random.default_rng(2)
    for _ in range(N_SLOW // len(KINDS) // (10 if saved.kind == "images" else 1)):
        saved.check_damaged(damage(saved, rng))
        saved.check_forged(forge(saved, rng))


def test_files_of_two_models_do_not_mix(plain: Saved, boosted: Saved) -> None:
    renamed = plain.fitted.model.set_names({"c0": "other"})
    other = Saved(Fitted(renamed, plain.fitted.X, None), plain.folder.parent / "other")
    for name in plain.files:
        for stranger in (boosted, other):
            if stranger.files.get(name) not in (None, plain.files[name]):
                mixed = plain.files | {name: stranger.files[name]}
                assert plain.check_damaged(mixed)


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
    assert boosted.check_forged(sign(files, json.loads(files["manifest.json"])))
    assert not Path("owned").exists()


def test_zip_bomb(boosted: Saved) -> None:
    """Gigabytes packed into megabytes are refused by their headers alone."""
    bomb = pack({"schema.json": b"{}", "1.npy": bytes(300 * 2**20)})
    assert len(bomb) < 2**20
    files = boosted.files | {"parts/0.skops": bomb}
    assert boosted.check_forged(sign(files, json.loads(files["manifest.json"])))


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
    assert boosted.check_forged(sign(files, json.loads(files["manifest.json"])))


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
    assert boosted.check_forged(sign(files, json.loads(files["manifest.json"])))


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "parts/../../secret", "parts/x.skops", "C:\\x", ""],
)
def test_paths_outside_the_folder(plain: Saved, name: str) -> None:
    manifest = json.loads(plain.files["manifest.json"])
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    manifest["model"]["state"]["features_"] = {"$part": name}
    assert plain.check_forged(sign(plain.files, manifest))


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
    assert plain.check_forged(plain.files | {"manifest.json": text})


def test_a_method_cannot_be_hidden(plain: Saved) -> None:
    manifest = json.loads(plain.files["manifest.json"])
    for key in ("predict_proba", "_class_given_x", "__class__", "__dict__", "fit_"):
        forged = copy.deepcopy(manifest)
        forged["model"]["state"][key] = "hidden"
        noticed = plain.check_forged(sign(plain.files, forged))
        assert noticed == (key != "fit_")
