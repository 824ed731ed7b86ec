"""Numbers, arrays and tables as what JSON knows."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["plain", "write_json"]


def plain(value: Any) -> Any:
    """Lists, dicts, numbers and strings; what is not a finite number becomes None."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # arrays and scalars of numpy
        return plain(value.tolist())
    return str(value)


def write_json(path: Path, content: Any) -> None:
    """A JSON file for people and programs: indented, floats in full, no NaN."""
    text = json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
