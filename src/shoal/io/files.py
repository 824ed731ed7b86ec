"""The files of a model folder: found, bounded, compared with what they should be."""

import hashlib
import json
import re
import stat
from pathlib import Path
from typing import Any

from shoal.exceptions import ModelFileError
from shoal.io.values import damaged

__all__ = ["Folder", "canonical_digest", "find_model", "strict_json"]

KNOWN_NAME = re.compile(r"arrays\.safetensors|classes\.json|parts/\d{1,6}\.skops")
MIB = 2**20
# The most that a file of each kind may hold, checked before it is read.
LIMITS = {".json": 256 * MIB, ".safetensors": 8192 * MIB, ".skops": 2048 * MIB}


class Folder:
    """Files of one folder, each read once, none larger than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expected: dict[str, Any] = {}

    def expect(self, files: Any) -> None:
        """Remember size and fingerprint of each file, as the manifest has them."""
        for name, facts in files.items():
            if not KNOWN_NAME.fullmatch(name):
                raise damaged(f"the manifest names a file that is not allowed: {name}")
            self._expected[name] = (facts["bytes"], facts["sha256"])

    def read(self, name: str) -> bytes:
        """Content of a file; an error unless it is what the manifest says."""
        expected = self._expected.get(name)
        if expected is None and name != "manifest.json":
            raise damaged(f"the manifest does not list {name}")
        path = self.path / name
        try:
            facts = path.stat()
        except OSError as error:
            raise damaged(f'"{self.path}" lacks {name}') from error
        # A pipe or a device could be read for ever.
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LIMITS[path.suffix]:
            raise damaged(f"{name} is not a file of a sensible size")
        if expected is not None and facts.st_size != expected[0]:
            raise damaged(f"{name} has {facts.st_size} bytes instead of {expected[0]}")
        content = path.read_bytes()
        if expected and hashlib.sha256(content).hexdigest() != expected[1]:
            raise damaged(f"{name} was changed after it was saved")
        return content


def find_model(path: Path) -> Path:
    """The model's folder: the path itself, or ``model/`` of a run."""
    for folder in (path, path / "model"):
        if (folder / "manifest.json").is_file():
            return folder
    what = "is not a shoal model" if path.exists() else "does not exist"
    raise ModelFileError(
        "E135", f'"{path}" {what}', "pass the folder that `shoal fit` or save wrote"
    )


def strict_json(content: bytes) -> Any:
    """JSON without NaN, without infinity and without a key that occurs twice."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            object_pairs_hook=_no_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(f"a JSON file of the model cannot be read ({error})") from error


def canonical_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its own digest, whatever its white space."""
    content = {key: value for key, value in manifest.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content
