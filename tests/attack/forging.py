"""Forged models: saved ones that somebody changed who knows how digests are made.

A forger is a function of a :class:`Saved` model and a random generator that gives the
files of another one. :func:`forge` picks one of them; all renew sizes and digests.
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
from safetensors import numpy as safetensors
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
)
from tests.io import conftest as fitted

import shoal
from shoal.io.model._folder import canonical_digest

Files = dict[str, bytes]
Random = np.random.Generator


# ---- what is forged ------------------------------------------------------------------


def columns() -> Any:
    """A pipeline of many transformers, each with widths of its own."""
    return make_pipeline(
        ColumnTransformer(
            [
                ("bins", KBinsDiscretizer(3, quantile_method="linear"), [0]),
                ("power", PowerTransformer(), slice(1, 3)),
            ],
            remainder="passthrough",
        ),
        FeatureUnion(
            [
                ("kernel", Nystroem(n_components=4, random_state=0)),
                ("waves", RBFSampler(n_components=4, random_state=0)),
            ],
            n_jobs=1,
        ),
        QuantileTransformer(n_quantiles=5),
        PCA(3),
        PolynomialFeatures(2),
        CalibratedClassifierCV(GaussianNB(), cv=2, n_jobs=1),
    )


DISCRIMINATORS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(3, max_depth=2, n_jobs=1, random_state=0),
    "columns": columns,
    "dummy": lambda: DummyClassifier(strategy="prior"),
    "onehot": lambda: make_pipeline(
        KBinsDiscretizer(3, encode="ordinal", quantile_method="linear"),
        OneHotEncoder(handle_unknown="ignore"),
        LogisticRegression(),
    ),
}
# Kinds by the milliseconds that one takes to load: 2, 20 and 100.
PLAIN = ("mixture", "mixture_rbf", "merged", "discrete_words", "discrete_counts",
         "density", "counts")  # fmt: skip
WITH_PARTS = ("ddfa_logistic", "discrete_clusters", "forest", "columns", "dummy",
              "onehot")  # fmt: skip
LARGE = ("ddfa_mlp", "ddfa_boost", "images")


def fit(kind: str, n_rows: int = 80) -> fitted.Fitted:
    """A small fitted model of some kind."""
    X, domains = fitted.rows(n_rows)
    if kind == "density":
        model = shoal.DensityMixture(2, random_state=0)
        return fitted.Fitted(model.fit(X, domains), X, domains)
    if kind == "counts":
        counts = np.random.default_rng(0).poisson(np.exp(X).clip(0, 9))
        bags = shoal.CountMixture(2, n_components=2, random_state=0)
        return fitted.Fitted(bags.fit(counts, domains), counts, domains)
    if kind in DISCRIMINATORS:
        ddfa = shoal.DDFA(
            2, discriminator=DISCRIMINATORS[kind](), cross_fit=0, random_state=0
        )
        return fitted.Fitted(ddfa.fit(X, domains), X, domains)
    return fitted.fit(kind)


class Saved:
    """A saved model, and a folder in which copies of it are spoiled."""

    def __init__(self, given: fitted.Fitted, root: Path, kind: str = "") -> None:
        self.fitted, self.kind = given, kind
        self.origin = shoal.save(given.model, root / "origin")
        self.folder = root / "spoiled"
        self.files: Files = {
            path.relative_to(self.origin).as_posix(): path.read_bytes()
            for path in sorted(self.origin.rglob("*"))
            if path.is_file()
        }
        self.rows = given.X[:20]
        self.expected = given.model.predict_proba(self.rows)

    @property
    def manifest(self) -> Any:
        """A copy of the manifest, to be changed."""
        return json.loads(self.files["manifest.json"])

    def write(self, files: Files) -> Path:
        """A folder of these files."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is self.files.get(name):
                os.link(self.origin / name, path)  # as it was: large ones take time
            else:
                path.write_bytes(content)
        return self.folder


# ---- mutations of bytes --------------------------------------------------------------


def flip_bit(content: bytes, rng: Random) -> bytes:
    spoiled = bytearray(content)
    spoiled[rng.integers(len(spoiled))] ^= 1 << int(rng.integers(8))
    return bytes(spoiled)


def truncate(content: bytes, rng: Random) -> bytes:
    return content[: int(rng.integers(len(content)))]


def insert(content: bytes, rng: Random) -> bytes:
    place = int(rng.integers(len(content)))
    extra = rng.integers(256, size=int(rng.integers(1, 9)), dtype=np.uint8).tobytes()
    return content[:place] + extra + content[place:]


def swap_pieces(content: bytes, rng: Random) -> bytes:
    first, second = sorted(rng.integers(len(content), size=2).tolist())
    return content[second:] + content[first:second] + content[:first]


def zero_piece(content: bytes, rng: Random) -> bytes:
    first, second = sorted(rng.integers(len(content), size=2).tolist())
    return content[:first] + bytes(second - first) + content[second:]


MUTATIONS: list[Callable[[bytes, Random], bytes]] = [
    flip_bit,
    truncate,
    insert,
    swap_pieces,
    zero_piece,
]


def pick(items: Any, rng: Random) -> Any:
    """One of several, each as likely."""
    return items[int(rng.integers(len(items)))]


def damage(saved: Saved, rng: Random) -> Files:
    """One file changed by accident: no digest is renewed."""
    name = pick(sorted(saved.files), rng)
    return saved.files | {name: pick(MUTATIONS, rng)(saved.files[name], rng)}


# ---- digests made anew ---------------------------------------------------------------


def sign(files: Files, manifest: Any) -> Files:
    """Renew sizes and digests, as a forger would; new files are listed."""
    if isinstance(manifest, dict):
        listed = manifest.get("files")
        if isinstance(listed, dict):
            for name in files:
                if name.startswith("parts/"):
                    listed.setdefault(name, {})
            for name, facts in listed.items():
                if name in files and isinstance(facts, dict):
                    facts["bytes"] = len(files[name])
                    facts["sha256"] = hashlib.sha256(files[name]).hexdigest()
        manifest["digest"] = canonical_digest(manifest)
    return files | {"manifest.json": json.dumps(manifest).encode()}


def pack(members: Files, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


def unpack(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# ---- trees of JSON with something odd in them ----------------------------------------

DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]

ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1e308,
    2**28,
    2**31,
    2**62,
    10**9,
    10**30,
    "",
    "x" * 50,
    "a\nb\x1b[2J\x07",
    "../../etc/passwd",
    [],
    {},
    [[[]]],
    DEEP,
    [0] * 5000,
    {"$array": "a0", "dtype": "<f8"},
    {"$array": "a0", "dtype": "|O"},
    {"$array": "none", "dtype": "<f8"},
    {"$text": ["a"], "shape": [1], "dtype": "<U100000000"},
    {"$text": ["a"] * 5000, "shape": [5000], "dtype": "<U90000"},
    {"$text": ["a"], "shape": [10**12], "dtype": "<U1"},
    {"$objects": [], "shape": [10**12]},
    {"$objects": [], "shape": [2**40, 0]},
    {"$scalar": "<f8", "value": "text"},
    {"$scalar": "<i8", "value": 2**40},
    {"$scalar": "<U999999999", "value": "a"},
    {"$object": "Popen", "state": {"args": "touch /tmp/owned"}},
    {"$object": "FeatureMap", "state": {"__class__": 1}},
    {"$object": "Novelty", "state": {}},
    {"$part": "../manifest.json"},
    {"$part": "/etc/passwd"},
    {"$part": "parts/0.skops"},
    {"$pipeline": [{"$tuple": ["x", {"$part": "parts/0.skops"}]}] * 3000,
     "transform_input": None},
    {"$dict": [[{"$dict": []}, 1]]},
    {"$dict": [[1]]},
    {"$float": "eval"},
    {"$tuple": "abc"},
    {"$bytes": "zz"},
    {"$dtype": "|V99999999999"},
    {"$random_state": ["MT19937", [1], 0, 0, 0.0]},
    {"$unknown": 1},
]  # fmt: skip


MOST_NODES = 300_000


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


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place of a tree."""
    for key in path:
        tree = tree[key]
    return tree


def edit(tree: Any, rng: Random) -> Any:
    """Change, remove, repeat or move one place of a JSON tree, which is kept."""
    tree = copy.deepcopy(tree)
    everywhere = [path for path in places(tree) if path]
    path = pick(everywhere, rng)
    parent, key = at(tree, path[:-1]), path[-1]
    kind = int(rng.integers(6))
    if kind == 0:
        del parent[key]
    elif kind == 1:
        parent[key] = copy.deepcopy(at(tree, pick(everywhere, rng)))
    elif kind == 2 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif kind == 3:
        # numbers become large ones wherever they stand
        numbers = [one for one in everywhere if type(at(tree, one)) is int]
        if numbers:
            place = pick(numbers, rng)
            value = pick([0, -1, 2**20, 2**28, 2**31, 2**40, 2**62], rng)
            at(tree, place[:-1])[place[-1]] = value
    elif kind == 4 and isinstance(parent[key], list):
        # the forger itself has no more memory than the load that it attacks
        most = 1 + MOST_NODES // sum(1 for _ in places(parent[key]))
        times = min(int(rng.integers(2, 2000)), most)
        parent[key] = [copy.deepcopy(one) for _ in range(times) for one in parent[key]]
    else:
        parent[key] = copy.deepcopy(pick(ODD_VALUES, rng))
    return tree


# ---- forgers -------------------------------------------------------------------------


def of_manifest(saved: Saved, rng: Random) -> Files:
    return sign(dict(saved.files), edit(saved.manifest, rng))


def of_model(saved: Saved, rng: Random) -> Files:
    """Only what is fitted, several times over."""
    manifest = saved.manifest
    for _ in range(int(rng.integers(1, 4))):
        manifest["model"] = edit(manifest["model"], rng)
    return sign(dict(saved.files), manifest)


def of_classes(saved: Saved, rng: Random) -> Files:
    classes = edit(json.loads(saved.files["classes.json"]), rng)
    files = saved.files | {"classes.json": json.dumps(classes).encode()}
    return sign(files, saved.manifest)


def of_bytes(saved: Saved, rng: Random) -> Files:
    """A mutation under new digests."""
    name = pick(sorted(set(saved.files) - {"manifest.json"}), rng)
    changed = pick(MUTATIONS, rng)(saved.files[name], rng)
    return sign(saved.files | {name: changed}, saved.manifest)


def of_arrays(saved: Saved, rng: Random) -> Files:
    """An array of another shape, type or content, in a file that is as it should be."""
    arrays = safetensors.load(saved.files["arrays.safetensors"])
    name = pick(sorted(arrays), rng)
    array = arrays[name].copy()
    size = int(rng.integers(1, 4000))
    forms: list[Callable[[], Any]] = [
        lambda: array.ravel(),
        lambda: array.T.copy(),
        lambda: array[None],
        lambda: array.reshape(-1)[:0],
        lambda: np.zeros((2**40, 0)),
        lambda: np.zeros((0, 2**28)),
        lambda: np.zeros((size, size // 8 + 1), dtype=array.dtype),
        lambda: np.full_like(array, np.nan if array.dtype.kind == "f" else 1),
        lambda: (array.astype(float) * -1e300).astype(array.dtype, casting="unsafe"),
        lambda: np.repeat(array, size, axis=0) if array.ndim else array,
        lambda: array.astype(np.float32 if array.dtype.kind == "f" else np.uint8),
    ]
    with np.errstate(all="ignore"):
        arrays[name] = np.ascontiguousarray(pick(forms, rng)())
    files = saved.files | {"arrays.safetensors": safetensors.save(arrays)}
    return sign(files, saved.manifest)


def of_parts(saved: Saved, rng: Random) -> Files:
    """The tree of a skops file, or one of its arrays."""
    names = [name for name in saved.files if name.endswith(".skops")]
    if not names:
        return of_model(saved, rng)
    name = pick(names, rng)
    members = unpack(saved.files[name])
    if rng.random() < 0.7:
        tree = json.loads(members["schema.json"])
        for _ in range(int(rng.integers(1, 3))):
            tree = pick([edit, edit_content], rng)(tree, rng)
        members["schema.json"] = json.dumps(tree).encode()
    else:
        member = pick(sorted(members), rng)
        members[member] = pick(MUTATIONS, rng)(members[member], rng)
    return sign(saved.files | {name: pack(members)}, saved.manifest)


def edit_content(tree: Any, rng: Random) -> Any:
    """Another number, text or id in a node of skops."""
    tree = copy.deepcopy(tree)
    found = [one for one in places(tree) if one and one[-1] in ("content", "__id__")]
    leaves = [one for one in found if not isinstance(at(tree, one), (dict, list))]
    if leaves:
        path = pick(leaves, rng)
        values = ["-1", "0", "1", "1000", str(2**28), str(2**40), "1e999", "NaN", "[]",
                  '"x"', "true", "[" * 400, "{}"]  # fmt: skip
        value = pick(values, rng) if path[-1] == "content" else at(
            tree, pick([one for one in leaves if one[-1] == "__id__"] or [path], rng)
        )  # fmt: skip
        at(tree, path[:-1])[path[-1]] = value
    return tree


def of_swelling(saved: Saved, rng: Random) -> Files:
    """A small folder that asks for much: one of the ways that were found, or worse."""
    return pick(SWELLINGS, rng)(saved, rng)


FORGERS: dict[str, Callable[[Saved, Random], Files]] = {
    "manifest": of_manifest,
    "model": of_model,
    "classes": of_classes,
    "bytes": of_bytes,
    "arrays": of_arrays,
    "parts": of_parts,
    "swelling": of_swelling,
}
SHARES = np.array([21, 23, 6, 10, 15, 24, 1]) / 100


def forge(saved: Saved, rng: Random) -> tuple[str, Files]:
    """The name of a forger and its files."""
    name = str(rng.choice(list(FORGERS), p=SHARES))
    return name, FORGERS[name](saved, rng)


# ---- small folders that ask for much -------------------------------------------------


def scaler(extra: dict[str, Any] | None = None) -> Files:
    """Members of a skops file that is a fitted StandardScaler."""
    import skops.io
    from sklearn.preprocessing import StandardScaler

    members = unpack(skops.io.dumps(StandardScaler().fit(np.eye(3))))
    return members | (extra or {})


def one_array_often(saved: Saved, rng: Random) -> Files:
    """One array, named again and again under ever another type."""
    arrays = safetensors.load(saved.files["arrays.safetensors"])
    arrays["big"] = np.zeros(int(rng.integers(1, 8)) * 10**6, dtype=np.uint8)
    manifest = saved.manifest
    types = [f"{order}{kind}" for order in "<>" for kind in ("f8", "i8", "u8", "f4")]
    many = [{"$array": "big", "dtype": pick(types, rng)} for _ in range(500)]
    manifest["model"].setdefault("state", {})["extra_"] = many
    files = saved.files | {"arrays.safetensors": safetensors.save(arrays)}
    return sign(files, manifest)


def one_part_often(saved: Saved, rng: Random) -> Files:
    """One part of a few kilobytes, named thousands of times."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10**6))
    members = scaler()
    first = next(name for name in members if name.endswith(".npy"))
    part = pack(members | {first: buffer.getvalue()})
    count = int(rng.integers(500, 5000))
    manifest = saved.manifest
    many = [{"$part": "parts/7.skops"}] * count
    manifest["model"].setdefault("state", {})["extra_"] = many
    return sign(saved.files | {"parts/7.skops": part}, manifest)


def many_parts(saved: Saved, rng: Random) -> Files:
    """As many parts as there can be files, each of which swells."""
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2 * 10**6))
    members = scaler()
    first = next(name for name in members if name.endswith(".npy"))
    part = pack(members | {first: buffer.getvalue()})
    count = int(rng.integers(50, 200))
    files = saved.files | {f"parts/{100 + n}.skops": part for n in range(count)}
    manifest = saved.manifest
    many = [{"$part": f"parts/{100 + n}.skops"} for n in range(count)]
    manifest["model"].setdefault("state", {})["extra_"] = many
    return sign(files, manifest)


def one_member_often(saved: Saved, rng: Random) -> Files:
    """A part whose tree names one of its arrays again and again."""
    members = scaler()
    tree = json.loads(members["schema.json"])
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10**6))
    members["99.npy"] = buffer.getvalue()
    node = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": "99.npy",
    }
    tree["content"]["content"]["mean_"] = _list([node] * 1000)
    members["schema.json"] = json.dumps(tree).encode()
    manifest = saved.manifest
    manifest["model"].setdefault("state", {})["extra_"] = {"$part": "parts/7.skops"}
    return sign(saved.files | {"parts/7.skops": pack(members)}, manifest)


def _list(content: list[Any]) -> dict[str, Any]:
    return {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": content,
    }


def laughter(saved: Saved, rng: Random) -> Files:
    """Lists of lists that refer to each other: ten to the thirtieth of them."""
    members = scaler()
    tree = json.loads(members["schema.json"])
    lists = [_list([]) | {"__id__": 1}]
    for number in range(2, 32):
        compact = {"__id__": number - 1}
        full = _list([]) | compact
        ref = compact if rng.random() < 0.5 else full
        lists.append(_list([ref] * 10) | {"__id__": number})
    tree["content"]["content"]["mean_"] = _list(lists)
    members["schema.json"] = json.dumps(tree).encode()
    manifest = saved.manifest
    manifest["model"].setdefault("state", {})["extra_"] = {"$part": "parts/7.skops"}
    return sign(saved.files | {"parts/7.skops": pack(members)}, manifest)


def brackets(saved: Saved, rng: Random) -> Files:
    """Megabytes of empty lists and objects, which take thirty times as much."""
    text = pick(["[],", "{},", '{"":{}},', '"ab",'], rng)
    many = "[" + text * (int(rng.integers(1, 30)) * 10**5 // len(text)) + "0]"
    manifest = json.dumps(saved.manifest)
    return saved.files | {
        "manifest.json": (manifest[:-1] + f', "many": {many}}}').encode()
    }


def deep_brackets(saved: Saved, rng: Random) -> Files:
    depth = int(rng.integers(100, 20_000))
    deep = pick(["[" * depth + "]" * depth, '{"$tuple":[' * depth + "]}" * depth], rng)
    text = json.dumps(saved.manifest)
    return saved.files | {"manifest.json": (text[:-1] + f', "deep": {deep}}}').encode()}


def many_jobs(saved: Saved, rng: Random) -> Files:
    """Whatever has ``n_jobs`` is to start hundreds of them."""
    number = pick([-1, 27, 500, 10**6], rng)
    files, manifest = dict(saved.files), saved.manifest
    for path in list(places(manifest)):
        if path and path[-1] == "n_jobs":
            at(manifest, path[:-1])["n_jobs"] = number
    for name in files:
        if name.endswith(".skops"):
            members = unpack(files[name])
            tree = json.loads(members["schema.json"])
            for path in list(places(tree)):
                if path and path[-1] == "n_jobs":
                    at(tree, path)["content"] = str(number)
            members["schema.json"] = json.dumps(tree).encode()
            files[name] = pack(members)
    return sign(files, manifest)


def many_merges(saved: Saved, rng: Random) -> Files:
    """Merges of merges, each with tables of classes by classes."""
    manifest = saved.manifest
    model, count = manifest["model"], int(rng.integers(2, 60))
    classes = manifest["n_classes"]
    for _ in range(count):
        groups = [[one] for one in range(classes)]
        names = [f"c{one}" for one in range(classes)]
        model = {"class": "MergedClasses", "groups": groups, "names": names,
                 "estimator": model}  # fmt: skip
    manifest["model"], manifest["class"] = model, "MergedClasses"
    return sign(dict(saved.files), manifest)


def many_rows(saved: Saved, rng: Random) -> Files:
    """More rows to be tried on than there should be, or none."""
    manifest = saved.manifest
    if rng.random() < 0.3:
        manifest["probe"] = None
        return sign(dict(saved.files), manifest)
    arrays = safetensors.load(saved.files["arrays.safetensors"])
    arrays["many"] = np.zeros((10**6, 3), dtype=np.uint8)
    many = {"$array": "many", "dtype": "<f8"}
    manifest["probe"] = {
        "$dict": [[key, many] for key in ("rows", "pooled", "in_first")]
    }
    files = saved.files | {"arrays.safetensors": safetensors.save(arrays)}
    return sign(files, manifest)


SWELLINGS: list[Callable[[Saved, Random], Files]] = [
    one_array_often,
    one_part_often,
    many_parts,
    one_member_often,
    laughter,
    brackets,
    deep_brackets,
    many_jobs,
    many_merges,
    many_rows,
]
