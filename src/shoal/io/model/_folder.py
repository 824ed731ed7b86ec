"""The folder of a model, of which nothing is believed."""

import json
import math
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from shoal.exceptions import ModelFileError
from shoal.io._files import digest, digest_json
from shoal.io._settings import LOADING
from shoal.io._swap import is_unfinished
from shoal.io.model._budget import Budget, damaged, most_bytes

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
