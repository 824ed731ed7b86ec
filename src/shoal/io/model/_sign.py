"""Signatures of models: who has the key knows that the model is from who had it.

Digests find damage, but whoever changes a model on purpose writes new ones. A signature
is a digest with a secret in it (HMAC-SHA256), of manifest.json, which has the digest of
every other file that is loaded. What lies beside the model in a run is not covered.
"""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from shoal.exceptions import CodedError, ModelFileError
from shoal.io._files import writable, write_whole
from shoal.io.model._folder import SIGNATURE, Folder, find_model, strict_json

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
