"""Class mixes from files: ``--prevalence`` of ``shoal predict``."""

import csv
import json
from pathlib import Path
from typing import Any

from shoal.cli.messages import CommandError

__all__ = ["read_mix"]

TOLERANCE = 1e-3


def read_mix(path: Path, names: list[str]) -> list[float]:
    """Share of each class, in the order of ``names``.

    Parameters
    ----------
    path : Path
        CSV with the columns class_id or class_name, and estimate; or a JSON object.
    names : list of str
        Of the classes; their ids are c0, c1, ...
    """
    shares = _read_json(path) if path.suffix == ".json" else _read_csv(path)
    ids = [f"c{index}" for index in range(len(names))]
    unknown = [key for key in shares if key not in ids and key not in names]
    if unknown:
        raise _unusable(path, f'names "{unknown[0]}", the classes are {_join(names)}')
    mix = [
        shares.get(name, shares.get(one)) for one, name in zip(ids, names, strict=True)
    ]
    for name, share in zip(names, mix, strict=True):
        if share is None:
            raise _unusable(path, f'has no share of "{name}"')
        if not 0 <= share <= 1:
            raise _unusable(path, f'gives "{name}" the share {share}, not from 0 to 1')
    total = sum(share for share in mix if share is not None)
    if abs(total - 1) > TOLERANCE:
        raise _unusable(path, f"has shares that add to {total:.4g}, not to 1")
    return [share / total for share in mix if share is not None]


def _read_json(path: Path) -> dict[str, float]:
    content = _parse(path, lambda: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(content, dict):
        raise _unusable(path, "is not an object of shares by class")
    return {str(key): _number(path, value) for key, value in content.items()}


def _read_csv(path: Path) -> dict[str, float]:
    def rows() -> list[dict[str, str]]:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    found = _parse(path, rows)
    columns = set(found[0]) if found else set()
    if "domain" in columns:
        found = _of_one_domain(path, found)
    key = next((name for name in ("class_id", "class_name") if name in columns), None)
    if key is None or "estimate" not in columns:
        raise _unusable(path, "lacks the columns class_id and estimate")
    shares = {row[key]: _number(path, row["estimate"]) for row in found}
    if len(shares) < len(found):
        raise _unusable(path, f"has several rows of one {key}")
    return shares


def _of_one_domain(path: Path, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of the only domain, or of the last one that `shoal adapt` added."""
    added = [row["domain"] for row in rows if row.get("flag") == "new"]
    rows = [row for row in rows if not added or row["domain"] == added[-1]]
    domains = list(dict.fromkeys(row["domain"] for row in rows))
    if len(domains) > 1:
        raise CommandError(
            "E163",
            f'"{path}" has the mixes of {len(domains)} domains: {_join(domains[:5])}'
            + ", ..." * (len(domains) > 5),
            "keep the rows of one of them, and the header",
        )
    return rows


def _parse(path: Path, read: Any) -> Any:
    try:
        return read()
    except FileNotFoundError as error:
        raise CommandError(
            "E101", f'no file or folder "{path}"', "check the path of --prevalence"
        ) from error
    except (OSError, ValueError, csv.Error) as error:
        raise _unusable(path, f"cannot be read: {error}") from error


def _number(path: Path, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise _unusable(path, f"has the share {value!r}, not a number") from error


def _join(names: list[str]) -> str:
    return ", ".join(names)


def _unusable(path: Path, text: str) -> CommandError:
    return CommandError(
        "E163", f'"{path}" {text}', "one share per class, see `shoal explain E163`"
    )
