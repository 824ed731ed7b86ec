"""The card of a saved model: what it is, in Markdown, for people."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

MOST_DOMAINS = 50

LIMITS = """\
- Classes are what shifts together between the domains. Whether they are the groups that
  you have in mind is for you to judge, from rows of each class.
- The shares of a domain add up to 100 %: when one rises, others fall.
- Every estimate rests on the assumption that a class looks the same in every domain.
  `shoal diagnose` looks for signs that it does not; it cannot prove that it does.
- Probabilities of rows unlike those of training mean little; `predict` reports a fit
  score for each row."""


def write_card(estimator: Any, manifest: Mapping[str, Any]) -> str:
    """Markdown from a fitted model and its manifest."""
    summary = manifest["summary"] or {}
    lines = [
        f"# {manifest['class']}: {manifest['n_classes']} classes in "
        f"{len(estimator.domains_)} domains",
        "",
        "A model of shoal: classes discovered in "
        "unlabeled rows of several domains, from the way their mix shifts.",
        "",
        *_facts(manifest, summary),
        "",
        *_verdict(summary, estimator.class_names_),
        "## Prevalence",
        "",
        "Share of each class in each domain, in percent.",
        "",
        *_prevalence(estimator),
        "",
        "## Columns",
        "",
        *_columns(manifest),
        "",
        "## Limits",
        "",
        LIMITS,
        "",
        "## Use",
        "",
        "```python",
        "import shoal",
        "",
        'model = shoal.load("path/to/this/folder")',
        "model.predict_proba(X, domains)",
        "```",
    ]
    return "\n".join(lines) + "\n"


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
    return ["## Verdict", "", f"**{word}** {_cell(sentences)}".rstrip(), ""]


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
