"""The card of a saved model: what it is, in Markdown, for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

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
    if schema.get("text"):
        return [f"{len(schema.get('vocabulary', ()))} words of `{schema['text']}`."]
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
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
