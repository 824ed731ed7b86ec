"""Whether to trust a model, asked of a sample of a data set of any size."""

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.analysis.diagnose import with_columns
from shoal.analysis.diagnose._findings import find_all
from shoal.analysis.diagnose._result import Diagnosis, verdict_of
from shoal.exceptions import ModelFileError
from shoal.io.source._options import Options
from shoal.scale._parts import PART_ROWS
from shoal.scale._rows import domains_of, known_rule, schema_of, without_gaps
from shoal.scale._running import Progress, begin
from shoal.scale._sampling import SAMPLE, count_domains, draw_rows
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]


def diagnose(
    model: Any,
    data: Any,
    *,
    sample: int = SAMPLE,
    n_permutations: int = 10,
    seed: int = 0,
    drop_missing_domain: bool = False,
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    checkpoint: Any = None,
    progress: Progress | None = None,
    part_rows: int = PART_ROWS,
) -> Diagnosis:
    """Ask whether the classes should be trusted, of a stated sample of all rows.

    Rows of each domain are counted exactly; everything else is asked of the sample.
    Rows that occur in several domains are seldom both in it: few are found.

    Parameters
    ----------
    model : fitted estimator
        With ``schema_``, as of :func:`shoal.scale.fit` or :func:`shoal.load`.
    data, engine, address, workers, checkpoint, progress, part_rows
        As in :func:`shoal.scale.fit`.
    sample : int, default=200000
        Rows to look at, spread evenly over the domains.
    n_permutations : int, default=10
        As in :func:`shoal.analysis.diagnose.diagnose`.
    seed : int, default=0
        Of the sample and of all chance.
    drop_missing_domain : bool, default=False

    Returns
    -------
    Diagnosis

    Warns
    -----
    ShoalWarning
        What was noticed about the rows.
    """
    check_whole(2, sample=sample, n_permutations=n_permutations)
    where = engine, address, workers, checkpoint, progress, part_rows
    with begin(data, *where) as running:
        schema = schema_of(model, running.data.columns)
        rule = known_rule(schema, running.data.columns)
        options = Options(
            domain=rule.column,
            na=schema.missing,
            drop_missing_domain=drop_missing_domain,
            seed=seed,
        )
        domains = count_domains(running, options, rule)
        columns = list(dict.fromkeys([*schema.needed, str(rule.column)]))
        frame, _ = draw_rows(
            running,
            columns,
            sample,
            seed=seed,
            missing=schema.missing,
            domains=domains,
        )
    unseen = set(domains.names.tolist()) - set(model.domains_.tolist())
    if unseen:
        raise ModelFileError(
            "E134",
            f'the model has not seen "{min(map(str, unseen))}"',
            "`shoal adapt` first",
        )
    frame, noticed = without_gaps(schema, frame)
    names, codes = domains_of(frame[rule.column], rule, schema.missing)
    told = np.array(names)[codes]
    X = schema.encode(frame, noticed)
    running.keep([*domains.messages, *noticed])
    running.warn()
    found = model.diagnose(X, told, n_permutations=n_permutations, random_state=seed)
    found = with_columns(found, schema.feature_names)
    return with_sizes(found, domains.sizes)


def with_sizes(found: Diagnosis, sizes: Array) -> Diagnosis:
    """A diagnosis of a sample, its findings judged by the rows of all data."""
    numbers = {
        **found.numbers,
        "n_rows": int(sizes.sum()),
        "rows_per_domain": np.asarray(sizes, dtype=int),
    }
    findings = tuple(find_all(numbers, found.domains, found.class_names))
    return replace(
        found, verdict=verdict_of(findings), findings=findings, numbers=numbers
    )
