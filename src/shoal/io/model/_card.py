"""What stands beside a model: a card for people, a probe as its own witness."""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from shoal.exceptions import UnseenWordWarning
from shoal.io._notation import visible
from shoal.io._settings import LOADING
from shoal.io.model._folder import damaged

# ---- the card, in Markdown, for people -----------------------------------------------

CARD = Path(__file__).parent / "card.md"
MOST_DOMAINS = 50


def write_card(estimator: Any, manifest: Mapping[str, Any]) -> str:
    """Markdown from a fitted model and its manifest."""
    summary = manifest["summary"] or {}
    n_classes, n_domains = manifest["n_classes"], len(estimator.domains_)
    parts = {
        "facts": _facts(manifest, summary),
        "verdict": _verdict(summary, estimator.class_names_),
        "prevalence": _prevalence(estimator),
        "columns": _columns(manifest),
    }
    return CARD.read_text(encoding="utf-8").format(
        title=f"{manifest['class']}: {n_classes} classes in {n_domains} domains",
        **{name: "\n".join(lines) for name, lines in parts.items()},
    )


def _facts(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    source = summary.get("source")
    source = source if isinstance(source, Mapping) else {}
    paths = source.get("paths") or [source.get("path") or ""]
    facts = {
        "saved": manifest["created"],
        "seed": manifest["seed"],
        "rows": source.get("rows") or summary.get("rows"),
        "data": ", ".join(PurePath(path).name for path in paths),
        "fingerprint of the data": source.get("fingerprint"),
        "encoder": source.get("encoder"),
        "versions": ", ".join(
            f"{name} {number}" for name, number in manifest["versions"].items()
        ),
        "format": manifest["format"],
    }
    return [f"- **{name}**: {_cell(value)}" for name, value in facts.items() if value
            or value == 0]  # fmt: skip


def _verdict(summary: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What the diagnosis said, in its own words; classes under their names."""
    verdict = summary.get("verdict")
    if not verdict:
        return []
    told = verdict if isinstance(verdict, Mapping) else {"word": verdict}
    sentences = " ".join(map(str, told.get("sentences", ())))
    for index, name in enumerate(names):
        sentences = sentences.replace(f"{{c{index}}}", name)
    word = _cell(told.get("word", ""))
    return ["## Verdict", "", f"**{word}** {_cell(sentences)}".rstrip(), "", ""]


def _prevalence(estimator: Any) -> list[str]:
    names = estimator.class_names_
    shown = list(zip(estimator.domains_.tolist(), estimator.prevalence_, strict=True))
    rows = [
        [domain, *(f"{100 * share:.1f}" for share in shares)]
        for domain, shares in shown[:MOST_DOMAINS]
    ]
    more = len(shown) - MOST_DOMAINS
    note = [f"\nand {more} more domains"] if more > 0 else []
    return _table(["domain", *names], rows) + note


def _columns(manifest: Mapping[str, Any]) -> list[str]:
    schema = manifest["schema"]
    if not isinstance(schema, Mapping):
        return [f"{manifest['n_features']} numbers a row; saved without a schema."]
    if schema.get("encoder"):
        return [f"{_cell(schema['text'])}, encoded by {_cell(schema['encoder'])}."]
    if schema.get("text"):
        return [
            f"{len(schema.get('vocabulary', ()))} words of {_cell(schema['text'])}."
        ]
    if not schema.get("features"):
        return [f"A matrix with {manifest['n_features']} columns."]
    rows = [
        [
            one["name"],
            one["kind"],
            ", ".join(one["levels"][:8]),
            "" if one["fill"] is None else one["fill"],
        ]
        for one in schema["features"]
    ]
    return _table(["column", "kind", "values", "if missing"], rows)


def _table(header: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines]


def _cell(value: Any) -> str:
    """Text that cannot break a table or become markup."""
    text = visible(str(value)).replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("[", "\\[").replace("<", "&lt;").replace("`", "'")


# ---- made-up rows that show whether a loaded model is as it was ----------------------

Array = np.ndarray[Any, Any]

N_ROWS = 8
# Other processors and libraries round differently, and a network's layers add it up.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
OF_A_NETWORK = 1e-2


def make_probe(estimator: Any) -> dict[str, Any] | None:
    """Rows and their probabilities, pooled and in the first domain.

    None for a model whose rows cannot be made up.
    """
    rows = estimator._origin._probe_rows(N_ROWS)
    if rows is None:
        return None
    with estimator._origin._probing(), _unwarned():
        return {
            "rows": rows,
            "pooled": estimator.predict_proba(rows),
            "in_first": estimator.predict_proba(rows, _first_domain(estimator)),
        }


def check_probe(estimator: Any, probe: Any) -> None:
    """Raise unless the model gives the stored probabilities."""
    if probe is None:
        if estimator._origin._probe_rows(N_ROWS) is not None:
            raise damaged("the model has no rows to be tried on, and must have some")
        return
    rows = probe["rows"]
    if len(rows) != N_ROWS or np.size(rows) > N_ROWS * LOADING.widest:
        raise damaged(f"the model must have {N_ROWS} rows to be tried on")
    with estimator._origin._probing(), _unwarned():
        pairs = [
            (estimator.predict_proba(rows), probe["pooled"]),
            (
                estimator.predict_proba(rows, _first_domain(estimator)),
                probe["in_first"],
            ),
        ]
    absolute = OF_A_NETWORK if estimator._origin._takes_images else ABSOLUTE
    for got, stored in pairs:
        if got.shape != np.shape(stored) or not np.all(
            np.isclose(got, stored, rtol=RELATIVE, atol=absolute)
        ):
            raise damaged("the model gives other probabilities than when it was saved")


def _first_domain(estimator: Any) -> Any:
    # One per row: a tuple alone would not pass for one domain.
    return np.repeat(estimator.domains_[:1], N_ROWS)


@contextmanager
def _unwarned() -> Iterator[None]:
    """Let made-up rows hold words that fit has not seen: they are nobody's rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWordWarning)
        yield


# ---- names and merges of classes, remembered so that they can be undone --------------


def rename(estimator: Any, names: Any) -> Any:
    """``estimator.set_names(names)``, remembered."""
    renamed = estimator.set_names(names)
    before, after = list(estimator.class_names_), list(renamed.class_names_)
    step = {"step": "rename", "before": before, "after": after}
    return _remember(estimator, renamed, step)


def merge(estimator: Any, classes: Sequence[Any], name: str | None = None) -> Any:
    """``estimator.merge(*classes, name=name)``, remembered."""
    merged = estimator.merge(*classes, name=name)
    step = {
        "step": "merge",
        "groups": [[int(index) for index in group] for group in merged.groups],
        "before": list(estimator.class_names_),
        "after": list(merged.class_names_),
    }
    return _remember(estimator, merged, step)


def undo(estimator: Any) -> Any:
    """The estimator before the last step; a ValueError if there was none.

    A merge gives back the classes that it merged, under the names they had.
    """
    history = list(getattr(estimator, "class_history_", []))
    if not history:
        raise ValueError("nothing to undo: no class was renamed or merged")
    last = history.pop()
    origin = estimator.estimator if last["step"] == "merge" else estimator
    earlier = copy.copy(origin)  # names of old models would be refused today
    earlier.class_names_ = list(last["before"])
    return _inherit(estimator, earlier, history)


def _remember(before: Any, after: Any, step: dict[str, Any]) -> Any:
    history = [*getattr(before, "class_history_", []), step]
    return _inherit(before, after, history)


def _inherit(before: Any, after: Any, history: list[Any]) -> Any:
    after = copy.copy(after)
    after.class_history_ = history
    if hasattr(before, "schema_"):
        after.schema_ = before.schema_
    return after
