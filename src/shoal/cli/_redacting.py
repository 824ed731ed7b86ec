"""``--redact``: no value that could point at somebody in anything that is written.

The report leaves out rows, ids, pictures, words and rare values by itself. What remains
is the model, which must know its domains, categories and words to class new rows: those
that few rows share lose their names or are not even used. Messages are told in full
where the catalogue calls their code safe; of all others only the title is said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError

if TYPE_CHECKING:
    from shoal.io import Table


def numbered_rows(tables: Iterable["Table"]) -> Iterator["Table"]:
    """The tables, rows known by their numbers in the source alone."""
    for table in tables:
        yield replace(table, ids=row_numbers(table))


def row_numbers(table: "Table") -> Any:
    """Numbers of the rows in their source, from 1."""
    import numpy as np

    places = np.arange(table.n_rows) if table.places is None else table.places
    return places + 1


def safe_source(source: dict[str, Any]) -> dict[str, Any]:
    """What is known of a file, without its name."""
    return {key: source[key] for key in ("fingerprint", "rows", "bytes")
            if key in source}  # fmt: skip


def without_rare_domains(table: "Table") -> "Table":
    """The table, domains of fewer than ten rows without their names."""
    import numpy as np

    from shoal.report._gather import RARE, RARE_DOMAIN

    names, codes, sizes = np.unique(
        np.asarray(table.domains).astype(str), return_inverse=True, return_counts=True
    )
    rare = sizes < RARE
    rule = table.schema.domain
    if rule is not None and rule.merged:  # thin ones, by their names
        rule = replace(rule, merged=(), into=None)
    if not rare.any():
        return replace(table, schema=replace(table.schema, domain=rule))
    hidden = [f"{RARE_DOMAIN} {index}" for index in range(len(names))]
    safe = np.where(rare, hidden, names).astype(object)
    domains = safe[codes]
    groups = table.groups and {
        safe[names == str(domain)][0]: group for domain, group in table.groups.items()
    }
    groups = groups and _safe_groups(groups, domains)
    rule = None if rule is None else replace(rule, kind="text")
    schema = replace(table.schema, domain=rule)
    return replace(table, domains=domains, groups=groups, schema=schema)


def _safe_groups(groups: dict[Any, str], domains: Any) -> dict[Any, str]:
    """The group of each domain, groups of fewer than ten rows without their names.

    The name of such a group says what those of its domains no longer say. It gets the
    number that the report gives it, that of its first domain.
    """
    import numpy as np

    from shoal.report._gather import RARE

    names, sizes = np.unique(domains.astype(str), return_counts=True)
    of_domain = np.array([groups[name] for name in names], dtype=object)
    safe = {}
    for group in set(of_domain):
        places = np.flatnonzero(of_domain == group)
        rare = sizes[places].sum() < RARE
        safe[group] = f"rare group {places[0]}" if rare else group
    return {domain: safe[group] for domain, group in groups.items()}


def without_rare_names(diagnosis: Any) -> Any:
    """The diagnosis, domains of fewer than ten rows without their names."""
    import numpy as np

    from shoal.analysis.diagnose import judge
    from shoal.report._gather import RARE, RARE_DOMAIN

    sizes = np.asarray(diagnosis.numbers["rows_per_domain"])
    names = [
        f"{RARE_DOMAIN} {index}" if size < RARE else str(name)
        for index, (name, size) in enumerate(zip(diagnosis.domains, sizes, strict=True))
    ]
    domains = np.array(names, dtype=object)
    return judge(diagnosis.numbers, domains, diagnosis.class_names)


def without_rare_values(table: "Table") -> "Table":
    """The table without columns that are named after a value of fewer than ten rows."""
    import numpy as np

    from shoal.report._gather import RARE

    if table.X is None or table.schema.n_columns is not None:
        return table  # columns of numbers are named after no value
    common = np.asarray((table.X != 0).sum(axis=0)).ravel() >= RARE
    schema, kept = _without_rare(table.schema, common)
    if not kept.any():
        raise CommandError(
            "E114",
            f"every value of the columns is shared by fewer than {RARE} rows",
            "fit without --redact, or group the values",
        )
    return replace(
        table, X=table.X[:, kept], schema=schema, feature_names=schema.feature_names
    )


def _without_rare(schema: Any, common: Any) -> tuple[Any, Any]:
    """The schema without rare words and categories, and which columns of X stay."""
    import numpy as np

    if schema.text is not None:
        words = zip(schema.vocabulary, common, strict=True)
        vocabulary = tuple(word for word, stays in words if stays)
        return replace(schema, vocabulary=vocabulary), common
    features, kept, start = [], np.ones(len(common), dtype=bool), 0
    for feature in schema.features:
        columns = slice(start, start + feature.width)
        start += feature.width
        if feature.kind == "category":
            kept[columns] = common[columns]
            levels = zip(feature.levels, common[columns], strict=True)
            left = tuple(level for level, stays in levels if stays)
            feature = replace(feature, levels=left)
        if feature.width:
            features.append(feature)
    return replace(schema, features=tuple(features)), kept
