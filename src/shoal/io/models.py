"""Fitted models as folders of JSON and safetensors."""

import json
from pathlib import Path
from typing import Any

from safetensors import numpy as safetensors

from shoal.exceptions import CodedError, ModelFileError
from shoal.io.atomic import whole_folder
from shoal.io.parts import dump_part, load_part
from shoal.io.values import Reader, Writer, damaged

__all__ = ["load", "read_manifest", "save"]

FORMAT = 1


def save(
    estimator: Any,
    path: Any,
    *,
    schema: Any = None,
    summary: dict[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write a fitted model to the folder ``path``."""
    path = Path(path)
    if path.exists() and not force:
        raise CodedError("E136", f'"{path}" already exists', "pass force=True")
    writer = Writer(dump_part)
    manifest = {
        "format": FORMAT,
        "class": type(estimator).__name__,
        "state": writer.state(estimator),
        "schema": schema.to_dict() if hasattr(schema, "to_dict") else schema,
        "summary": summary,
    }
    with whole_folder(path) as folder:
        (folder / "parts").mkdir()
        for name, content in writer.parts.items():
            (folder / name).write_bytes(content)
        safetensors.save_file(writer.arrays, folder / "arrays.safetensors")
        text = json.dumps(manifest, indent=1, allow_nan=False)
        (folder / "manifest.json").write_text(text, encoding="utf-8")
    return path


def read_manifest(path: Any) -> dict[str, Any]:
    """The manifest of a saved model."""
    folder = _model_folder(Path(path))
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def load(path: Any) -> Any:
    """The fitted model in a folder."""
    folder = _model_folder(Path(path))
    manifest = read_manifest(folder)
    if manifest["format"] > FORMAT:
        raise damaged(f"made by a newer format ({manifest['format']} > {FORMAT})")
    arrays = safetensors.load_file(folder / "arrays.safetensors")
    reader = Reader(arrays, lambda name: load_part((folder / name).read_bytes()))
    estimator = reader.restore(manifest["class"], manifest["state"])
    if manifest["schema"] is not None:
        estimator.schema_ = manifest["schema"]
    return estimator


def _model_folder(path: Path) -> Path:
    for folder in (path, path / "model"):
        if (folder / "manifest.json").is_file():
            return folder
    raise ModelFileError("E135", f'"{path}" is not a shoal model', "check the path")
