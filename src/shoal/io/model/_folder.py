"""The folder of a model, of which nothing is believed: its budget and its signature."""

import hashlib
import hmac
import json
import math
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from shoal.exceptions import CodedError, ModelFileError
from shoal.io._files import (
    GIB,
    available_memory,
    digest,
    digest_json,
    sweep,
    writable,
    write_whole,
)
from shoal.io._notation import visible
from shoal.io._settings import LOADING, READING
from shoal.io._swap import is_unfinished

# ---- what loading may take: one account for memory, values, depth and files ----------
# A folder of a hundred kilobytes can ask for gigabytes: by zeros that unpack, by one
# array that is named a thousand times, by brackets. What is decoded is paid for first.


def damaged(text: str) -> ModelFileError:
    """The error of a model file that is not what it claims to be, in one line."""
    hint = "restore the model from a copy, or fit again"
    return ModelFileError("E135", visible(text), hint)


def most_bytes(on_disk: float) -> float:
    """Memory that a folder of so many bytes may take, and that there is."""
    allowed = LOADING.more_bytes + LOADING.bytes_per_byte * on_disk
    free = available_memory()
    return allowed if free is None else min(allowed, READING.room * free)


@dataclass
class Budget:
    """What is left for one load; whoever decodes something pays first."""

    n_bytes: float = field(default_factory=lambda: most_bytes(0))
    nodes: int = LOADING.nodes
    files: int = LOADING.files

    def pay_bytes(self, n_bytes: float) -> None:
        """Memory that is about to be taken."""
        self.n_bytes -= n_bytes
        if self.n_bytes < 0:
            raise damaged(
                "the model asks for more memory than its files can be worth or the "
                f"machine has free ({n_bytes / GIB:.2g} GiB in one piece)"
            )

    def pay_nodes(self, nodes: int) -> None:
        """Values and objects that are about to be made."""
        self.nodes -= nodes
        if self.nodes < 0:
            raise damaged(f"the model holds more than {LOADING.nodes:,} values")

    def pay_file(self, n_bytes: float) -> None:
        """A file that is about to be read."""
        self.files -= 1
        if self.files < 0:
            raise damaged(f"the model has more than {LOADING.files:,} files")
        self.pay_bytes(n_bytes)

    def pay_json(self, text: bytes) -> None:
        """What a JSON text becomes, judged before it is parsed."""
        parts = [each * text.count(sign) for sign, each in LOADING.json_bytes]
        self.pay_bytes(len(text) + sum(parts))

    def pay_array(self, shape: Iterable[int], itemsize: int) -> None:
        """An array; what has no length in one direction is paid by the others.

        A product with an array of 0 x 2^40 numbers has 2^40 of them.
        """
        sizes = [max(int(size), 1) for size in shape]
        n_bytes = float(itemsize)
        for size in sizes:
            n_bytes *= size
        self.pay_bytes(n_bytes)

    def pay_tree(self, tree: Any) -> int:
        """The values of a JSON tree, level by level; their number."""
        level, depth, total = [tree], 0, 0
        while level:
            depth, total = depth + 1, total + len(level)
            self.pay_nodes(len(level))
            if depth > LOADING.nesting:
                raise damaged(f"the model nests more than {LOADING.nesting} levels")
            level = [child for one in level for child in _children(one)]
        return total


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def check_widths(values: dict[str, Any]) -> None:
    """Raise where fitted attributes claim a width that nobody has computed with.

    scikit-learn makes room for ``n_classes_`` columns before it looks at any array.
    """
    for name, value in values.items():
        if not name.lstrip("_").startswith(("n_", "degree", "max_degree")):
            continue
        if "samples" in name or "iter" in name and "iteration" not in name:
            continue  # of rows and steps there may be any number
        kind = np.asarray(value).dtype.kind if not isinstance(value, str) else "U"
        if kind in "iu" and np.size(value) and np.max(value) > LOADING.widest:
            raise damaged(f"the model says that {name} is {np.max(value)}")
        if kind == "O" and isinstance(value, int):  # beyond 64 bits
            raise damaged(f"the model says that {name} has {len(str(value))} digits")


def check_classes(values: dict[str, Any]) -> None:
    """Raise for more classes than can be computed with, in one of shoal's objects."""
    for name, value in values.items():
        n_classes = _n_classes(name, value)
        if n_classes > LOADING.classes:
            raise damaged(f"the model has {n_classes:,} classes ({name})")


def _n_classes(name: str, value: Any) -> int:
    """How many classes an attribute speaks of; 0 if of none."""
    plain, shape = name.strip("_"), getattr(value, "shape", ())
    if plain == "n_classes" and isinstance(value, int):
        return value
    if shape and plain.endswith("given_class"):
        return int(shape[0])
    if shape and (plain.startswith("class_given") or plain == "prevalence"):
        return int(shape[-1])
    return 0


def one_job(values: dict[str, Any]) -> None:
    """Set ``n_jobs`` to one: a file does not decide how many processes start."""
    if values.get("n_jobs") is not None:
        values["n_jobs"] = 1


# ---- the folder ----------------------------------------------------------------------

FORMAT = 1
SIGNATURE = "signature.json"
ALONE = ("manifest.json", "arrays.safetensors", "classes.json", "README.md")
KNOWN_NAME = re.compile(r"parts/\d{1,6}\.skops|" + "|".join(map(re.escape, ALONE[1:])))


class Folder:
    """Files of one folder, each read once, none larger than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expected: dict[str, Any] = {}
        self._manifest: bytes | None = None
        self.budget = Budget(most_bytes(sum(self._sizes())))

    def _sizes(self) -> Iterator[int]:
        parts = sorted(islice(self.path.glob("parts/*.skops"), LOADING.files))
        for path in (*(self.path / name for name in ALONE), *parts):
            if path.is_file():
                yield path.stat().st_size

    def expect(self, files: Any) -> None:
        """Remember size and fingerprint of each file, as the manifest has them."""
        for name, facts in files.items():
            if not KNOWN_NAME.fullmatch(name):
                raise damaged(f"the manifest names a file that is not allowed: {name}")
            self._expected[name] = (facts["bytes"], facts["sha256"])

    def read(self, name: str) -> bytes:
        """Content of a file; an error unless it is what the manifest says."""
        expected = self._expected.get(name)
        if expected is None and name not in (ALONE[0], SIGNATURE):
            raise damaged(f"the manifest does not list {name}")
        path = self.path / name
        try:
            facts = path.stat()
        except OSError as error:
            raise damaged(f'"{self.path}" lacks {name}') from error
        if not stat.S_ISREG(facts.st_mode):  # a pipe or a device could be read for ever
            raise damaged(f"{name} is not a file of a sensible size")
        if expected is not None and facts.st_size != expected[0]:
            raise damaged(f"{name} has {facts.st_size} bytes instead of {expected[0]}")
        self.budget.pay_file(facts.st_size)
        content = path.read_bytes()
        if expected and digest(content) != expected[1]:
            raise damaged(f"{name} was changed after it was saved")
        return content

    @property
    def manifest_text(self) -> bytes:
        """Content of manifest.json: what was signed is what is loaded."""
        if self._manifest is None:
            self._manifest = self.read("manifest.json")
        return self._manifest

    def manifest(self) -> dict[str, Any]:
        """What manifest.json says, checked to be whole."""
        manifest = strict_json(self.manifest_text, self.budget)
        number = manifest.get("format") if isinstance(manifest, dict) else None
        if type(number) is not int or number < FORMAT:
            raise damaged(f'"{self.path}" is not a shoal model')
        if number > FORMAT:
            raise ModelFileError(
                "E135",
                f'"{self.path}" was made by a newer format ({number} > {FORMAT})',
                "upgrade shoal",
            )
        if manifest.get("digest") != canonical_digest(manifest):
            raise damaged(
                f'"{self.path}" was changed after it was saved (manifest.json)'
            )
        return manifest


def find_model(path: Path) -> Path:
    """The model's folder: the path itself, or ``model/`` of a run."""
    for folder in (path, path.absolute().parent):
        if is_unfinished(folder):
            raise ModelFileError(
                "E135",
                f'"{folder}" is being replaced, or was when a command was stopped',
                "wait, or let a command such as `shoal name RUN --list` finish that",
            )
    for folder in (path, path / "model"):
        if (folder / "manifest.json").is_file():
            return folder
    what = "is not a shoal model" if path.exists() else "does not exist"
    raise ModelFileError(
        "E135", f'"{path}" {what}', "pass the folder that `shoal fit` or save wrote"
    )


def strict_json(content: bytes, budget: Budget) -> Any:
    """JSON without NaN, without infinity and without a key that occurs twice."""
    budget.pay_json(content)
    try:
        tree = json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_no_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(f"a JSON file of the model cannot be read ({error})") from error
    budget.pay_tree(tree)
    return tree


def canonical_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its own digest, whatever its white space."""
    return digest_json({key: manifest[key] for key in manifest if key != "digest"})


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is more than a number can be")
    return number


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


# ---- signatures: who has the key knows that the model is from who had it -------------
# Digests find damage, but whoever changes a model on purpose writes new ones. A
# signature is a digest with a secret in it (HMAC-SHA256), of manifest.json, which has
# the digest of every other file that is loaded. What lies beside the model in a run is
# not covered.

ALGORITHM = "hmac-sha256"
# As many bytes as nobody guesses.
SHORTEST_KEY = 16


def sign(path: Any, key: Any) -> Path:
    """Sign a saved model, so that ``shoal.load(path, key=key)`` knows whose it is.

    A model that is saved again, such as by `shoal name`, must be signed again.

    Parameters
    ----------
    path : path
        The model's folder, or that of the run it belongs to.
    key : bytes or path
        A secret of at least 16 bytes, or the file that holds it; the end of its last
        line does not count.

    Returns
    -------
    pathlib.Path
        The signature, signature.json in the model's folder.
    """
    secret, folder = read_key(key), Folder(find_model(Path(path)))
    manifest = folder.manifest()
    folder.expect(manifest["files"])
    for name in manifest["files"]:
        folder.read(name)
    content = {"algorithm": ALGORITHM, "signature": _signature(folder, secret)}
    target = folder.path / SIGNATURE
    with writable(target):
        sweep(target)
        write_whole(target, json.dumps(content, indent=1) + "\n", durable=True)
    return target


def check_signature(folder: Folder, secret: bytes) -> None:
    """Raise unless the manifest of a model was signed with this key."""
    hint = "take the key that it was signed with, or do not use it; `shoal sign` signs"
    if not (folder.path / SIGNATURE).exists():
        raise ModelFileError("E135", f'"{folder.path}" is not signed', hint)
    content = strict_json(folder.read(SIGNATURE), folder.budget)
    stored = content.get("signature") if isinstance(content, dict) else None
    expected = _signature(folder, secret)
    if not isinstance(stored, str) or not hmac.compare_digest(
        stored.encode("utf-8", "replace"), expected.encode()
    ):
        text = f'"{folder.path}" was not signed with this key, or changed since'
        raise ModelFileError("E135", text, hint)


def read_key(key: Any) -> bytes:
    """The secret itself, from bytes or from a file."""
    if not isinstance(key, bytes):
        try:
            key = Path(key).read_bytes().rstrip(b"\r\n")
        except OSError as error:
            reason = error.strerror or str(error)
            raise CodedError(
                "E101",
                f'cannot read the key "{key}": {reason}',
                "give the file that holds it; `openssl rand -hex 32` makes one",
            ) from error
    if len(key) < SHORTEST_KEY:
        raise CodedError(
            "E002",
            f"the key has {len(key)} bytes, and must have {SHORTEST_KEY} or more",
            "`openssl rand -hex 32` makes one",
        )
    return bytes(key)


def _signature(folder: Folder, secret: bytes) -> str:
    return hmac.new(secret, folder.manifest_text, hashlib.sha256).hexdigest()
