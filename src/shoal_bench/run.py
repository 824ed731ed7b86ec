"""Run a spec, score it, and run whole grids of them into a store."""

import math
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from shoal.engine import Failure, Outcome, map_runs
from shoal.metrics import (
    adjusted_rand,
    match_classes,
    matched_accuracy,
    normalized_mutual_information,
    prevalence_error,
)
from shoal_bench.meter import Meter, provenance
from shoal_bench.methods import Answer, Method, find_method
from shoal_bench.problems import Truth, load_problem
from shoal_bench.published import PUBLISHED_SETTINGS
from shoal_bench.spec import Spec
from shoal_bench.store import Claim, Store

Record = dict[str, Any]

SCHEMA = "shoal-bench/1"
# Settings that describe the problem; all others are the method's.
PROBLEM_SETTINGS = frozenset({"features"})
DIGITS = 6


def run(spec: Spec, data_dir: str | os.PathLike[str] | None = None) -> Record:
    """Run a spec and score what its method answers.

    Apart from what it cost, the record is a function of the spec (on one machine).

    Parameters
    ----------
    spec : Spec
    data_dir : path or None, default=None
        Folder of the data; None: the environment variable ``SHOAL_DATA_DIR``.

    Returns
    -------
    dict
        For JSON: ``name``, ``spec``, ``seed``, ``metrics``, ``prevalence`` (predicted,
        one column per class), ``matching`` (pairs of class and label), ``notes`` of
        the method, ``warnings``, ``n_rows``, ``n_test_rows``, ``seconds`` and
        ``peak_mib`` of fitting and predicting, ``gpu_mib``, ``device``, ``versions``,
        ``revision``, ``finished``.
    """
    method = find_method(spec.method)
    settings = _method_settings(method, spec)
    problem = load_problem(spec, method.entry.view, data_dir)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Meter(gpu=method.entry.view == "images") as meter:
            answer = method.answer(problem, spec.seed, **settings)
    metrics, matching = score(answer, problem.truth, method.entry.labelled)
    return {
        "schema": SCHEMA,
        "name": spec.name,
        "spec": spec.to_dict(),
        "seed": spec.seed,
        "metrics": metrics,
        "prevalence": _rounded(answer.prevalence),
        "matching": [[c, label] for c, label in sorted(matching.items())],
        "notes": _plain(answer.notes),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
        "n_rows": len(problem.domains),
        "n_test_rows": len(problem.domains_test),
        "seconds": meter.seconds,
        "peak_mib": meter.peak_mib,
        "gpu_mib": meter.gpu_mib,
        "device": meter.device,
        **provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def score(
    answer: Answer, truth: Truth, labelled: bool = False
) -> tuple[dict[str, float | None], dict[int, int]]:
    """Metrics of an answer, and the label that each class is matched to.

    Classes are matched once, on the test rows; the same matching gives the prevalence
    error, as in the paper. The classes of a ``labelled`` method are labels.
    """
    labels, classes = truth.labels_test, np.asarray(answer.classes)
    if labelled:
        matching = {label: label for label in range(truth.prevalence.shape[1])}
    else:
        matching = match_classes(labels, classes)
    metrics: dict[str, float | None] = {
        "accuracy": matched_accuracy(labels, classes, matching=matching),
        "prevalence_error": None,
        "adjusted_rand": adjusted_rand(labels, classes),
        "mutual_information": normalized_mutual_information(labels, classes),
    }
    if answer.prevalence is not None:
        metrics["prevalence_error"] = prevalence_error(
            truth.prevalence, answer.prevalence, matching=matching
        )
    return metrics, {int(c): int(label) for c, label in matching.items()}


def _rounded(table: Any) -> list[list[float]] | None:
    """Six decimals are far below any error of a prevalence, and a third of the disk."""
    if table is None:
        return None
    return [[round(float(value), DIGITS) for value in row] for row in table]


def _plain(value: Any) -> Any:
    """As JSON has it: no numpy, and nothing that is not a number where one should be.

    A note that is not finite must not keep the whole record from being stored.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _method_settings(method: Method, spec: Spec) -> dict[str, Any]:
    """What a spec sets, beside what is published for its data set."""
    chosen = {k: v for k, v in spec.options.items() if k not in PROBLEM_SETTINGS}
    unknown = set(chosen) - set(method.settings)
    if unknown:
        raise ValueError(
            f"settings of {spec.method!r} may be "
            f"{sorted({*method.settings, *PROBLEM_SETTINGS})}, got {sorted(unknown)}"
        )
    return {**PUBLISHED_SETTINGS.get(spec.dataset, {}).get(spec.method, {}), **chosen}


# ---- grids -----------------------------------------------------------------------


@dataclass
class Tally:
    """What became of the specs of one call, by name.

    Attributes
    ----------
    done, failed : list of str
        Run by this call.
    known : list of str
        Done before.
    failed_before : list of str
        Failed before, and not tried again.
    elsewhere : list of str
        Being run by another process.
    seconds : float
    """

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    failed_before: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_missing(
    specs: Iterable[Spec],
    store: Store,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    on_result: Callable[[Spec, Record], None] | None = None,
    **where: Any,
) -> Tally:
    """Run every spec that has no record yet, and keep each record as it comes.

    Parameters
    ----------
    specs : iterable of Spec
    store : Store
        Several processes may fill one store: each trial is claimed as it starts.
    data_dir : path or None, default=None
    retry_failed : bool, default=False
        Also run specs that failed before.
    on_result : callable, default=None
        Called with the spec and its record; that of a failure has ``"failure"``.
    **where
        ``where``, ``address``, ``workers``, ``gpu_share``: see
        :func:`shoal.engine.map_runs`.

    Returns
    -------
    Tally
    """
    tally, claims = Tally(), dict[str, Claim]()
    begun = time.perf_counter()

    def keep(outcome: Outcome) -> None:
        spec, record = outcome.item, outcome.value
        if outcome.failure is None:
            store.add(record)
            tally.done.append(spec.name)
        else:
            record = _failed_record(spec, outcome.failure)
            store.add_failure(record)
            tally.failed.append(spec.name)
        claims.pop(spec.name).close()
        if on_result is not None:
            on_result(spec, record)

    try:
        waiting = _claimed(specs, store, tally, claims, retry_failed)
        map_runs(partial(run, data_dir=data_dir), waiting, on_result=keep, **where)
    finally:
        for claim in claims.values():
            claim.close()
    tally.seconds = time.perf_counter() - begun
    return tally


def _claimed(
    specs: Iterable[Spec],
    store: Store,
    tally: Tally,
    claims: dict[str, Claim],
    retry_failed: bool,
) -> Iterator[Spec]:
    """Specs to run, each claimed when a worker is free to take it."""
    failed = set() if retry_failed else set(store.failures())
    for spec in specs:
        if spec.name in store:
            tally.known.append(spec.name)
        elif spec.name in failed:
            tally.failed_before.append(spec.name)
        else:
            claim = store.claim(spec)
            if claim is None:
                done = spec.name in store
                (tally.known if done else tally.elsewhere).append(spec.name)
                continue
            claims[spec.name] = claim
            yield spec


def _failed_record(spec: Spec, failure: Failure) -> Record:
    return {
        "schema": SCHEMA,
        "name": spec.name,
        "spec": spec.to_dict(),
        "failure": {
            "kind": failure.kind,
            "text": failure.text,
            "traceback": failure.traceback,
        },
        **provenance(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
