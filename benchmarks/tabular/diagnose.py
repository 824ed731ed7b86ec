"""Calibrate the verdicts of ``diagnose`` on generated problems.

    OMP_NUM_THREADS=1 python benchmarks/tabular/diagnose.py
    SHOAL_DATA_DIR=... python benchmarks/tabular/diagnose.py --cases penguins hawks ...

Every case is generated, fitted and diagnosed with seeds 0, 1, ...; labels are used for
the accuracy beside the verdict only. Clean cases should be "clear", planted violations
should not be, with a finding that names them. Records already in
results/tabular/diagnose.json are not run again; delete them to repeat. ``--quick`` fits
with search=False (fixed penalties, features given) instead of the defaults.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _record import FOLDER, versions
from sklearn.exceptions import ConvergenceWarning

from shoal.analysis.diagnose import THRESHOLDS
from shoal.datasets import (
    load_activities,
    load_asteroids,
    load_hawks,
    load_penguins,
    load_portal_rodents,
    load_thyroid,
    make_latent_shift,
)
from shoal.exceptions import ShoalWarning
from shoal.io.extend import write_whole
from shoal.metrics import matched_accuracy
from shoal.mixture import DomainMixture

RECORDS = FOLDER / "diagnose.json"


@dataclass(frozen=True)
class Case:
    """A problem: how to make it, what to fit, and which findings would name it.

    ``role`` is "clean", "violation", "reported" (no verdict required) or "real".
    """

    role: str
    n_seeds: int
    n_classes: int
    options: dict[str, Any] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    n_rows: int = 6000
    quick: dict[str, Any] = field(default_factory=dict)
    load: Callable[[], Any] | None = None


BUMPS = {"expansion": "rbf", "ridge": 1e-4}
CHANGED = ("misfit", "gain-kept", "alike")
NOT_RICH = ("rank", "condition", "starts")
CASES = {
    "gaussian k10 r20": Case("clean", 16, 10, {"kind": "gaussian"}),
    "gaussian k5 r8": Case(
        "clean", 12, 5, {"kind": "gaussian", "n_classes": 5, "n_domains": 8}, (), 4000
    ),
    "multimodal k5 r10": Case(
        "clean",
        12,
        5,
        {"kind": "multimodal", "n_classes": 5, "n_domains": 10},
        quick=BUMPS,
    ),
    "xor k4 r8": Case("clean", 12, 4, {"kind": "xor"}, (), 4000, quick=BUMPS),
    "gaussian k10 r10": Case("reported", 6, 10, {"kind": "gaussian", "n_domains": 10}),
    "drift .25": Case("reported", 10, 10, {"kind": "drift", "drift": 0.25}, CHANGED),
    "drift .5": Case("violation", 10, 10, {"kind": "drift"}, CHANGED),
    "drift 1": Case("violation", 10, 10, {"kind": "drift", "drift": 1.0}, CHANGED),
    "k 7 for 10": Case("violation", 10, 7, {"kind": "gaussian"}, CHANGED),
    "no shift": Case("violation", 10, 10, {"kind": "no_shift"}, ("E138",)),
    "weak shift": Case(
        "violation",
        10,
        10,
        {"alpha": 300.0, "max_condition": None},
        ("E138", "rank"),
    ),
    "r 6 for k 10": Case("violation", 10, 10, {"kind": "few_domains"}, ("E112",)),
    "rank 6 of 10": Case("violation", 10, 10, {"kind": "rank_deficient"}, NOT_RICH),
    "overlap": Case("violation", 10, 10, {"kind": "overlap"}, ("anchors", "rank")),
    "leak": Case("violation", 10, 10, {"kind": "leak"}, ("W121",)),
    "thin": Case("violation", 10, 10, {"kind": "thin"}, ("W111",)),
    "penguins": Case("real", 5, 3, load=load_penguins),
    "hawks": Case("real", 3, 3, load=load_hawks),
    "thyroid": Case("real", 3, 5, load=load_thyroid),
    "asteroids": Case("real", 3, 3, load=load_asteroids),
    "rodents": Case("real", 3, 4, load=load_portal_rodents),
    "activities": Case("real", 3, 6, load=load_activities),
}


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    generated = [name for name, case in CASES.items() if case.load is None]
    parser.add_argument("--cases", nargs="*", default=generated)
    parser.add_argument("--seeds", type=int, help="at most this many of each case")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args()
    records = []
    if args.records.exists():
        records = json.loads(args.records.read_text())["records"]
    fit = "quick" if args.quick else "default"
    done = {(r["case"], r["fit"], r["seed"]) for r in records}
    for name in args.cases:
        n_seeds = min(CASES[name].n_seeds, args.seeds or CASES[name].n_seeds)
        for seed in range(n_seeds):
            if (name, fit, seed) in done:
                continue
            records.append(run(name, fit, seed))
            show(records[-1])
            write(args.records, records)
    write(args.records, records)


def run(name: str, fit: str, seed: int) -> dict[str, Any]:
    """Generate or load, fit, diagnose."""
    case = CASES[name]
    if case.load is not None:
        data = case.load()
        X, domains, labels = data.X, data.domains, data.labels
    else:
        X, domains, labels = make_latent_shift(
            case.n_rows, random_state=seed, **case.options
        )
    settings = {"search": False, **case.quick} if fit == "quick" else {"by": "shift"}
    model = DomainMixture(
        case.n_classes, check_identifiable=False, random_state=seed, **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, domains)
    begun = time.process_time()
    diagnosis = model.diagnose(X, domains, random_state=seed)
    seconds = time.process_time() - begun
    raised = [f.code for f in diagnosis.findings if f.status != "ok"]
    failed = [f.code for f in diagnosis.findings if f.status == "fail"]
    return {
        "case": name,
        "fit": fit,
        "seed": seed,
        "verdict": diagnosis.verdict,
        "raised": raised,
        "failed": failed,
        "accuracy": round(matched_accuracy(labels, model.labels_), 4),
        "cpu_seconds": round(seconds, 2),
        "numbers": key_numbers(diagnosis.to_dict()["numbers"]),
    }


def key_numbers(numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers that thresholds are set on, rounded."""
    null = numbers["misfit_null"]
    kept = {
        "gain": numbers["gain"],
        "guesser": numbers["guesser"],
        "gain_null_max": max(numbers["gain_null"]),
        "gain_through": numbers["gain_through"],
        "gain_kept": numbers["gain_kept"],
        "gain_lost_sure": numbers["gain_lost_sure"],
        "misfit": numbers["misfit"],
        "misfit_null": null["mean"],
        "misfit_sure": (numbers["misfit"] - null["mean"]) / max(null["sd"], 1e-12),
        "anchor_median": float(np.median(numbers["anchor_share"])),
        "anchor_smallest": min(numbers["anchor_share"]),
        "largest_domain_share": max(numbers["largest_domain_share"]),
        "smallest_domain": min(numbers["rows_per_domain"]),
        "best_column": max(numbers["naming_columns"].values()),
    }
    for name in (
        "unexplained", "shift", "shift_sure", "worst_class_shift", "worst_class_sure",
        "condition", "rank", "own_agreement", "restart_excess", "restart_agreement",
        "expected_accuracy", "repeated_rows",
    ):  # fmt: skip
        kept[name] = numbers[name]
    return {name: rounded(value) for name, value in kept.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Verdicts of each case and kind of fit; shares over clean and violated ones."""
    table: dict[str, Any] = {}
    for fit in ("default", "quick"):
        per_case = {}
        for name, case in CASES.items():
            mine = [r for r in records if (r["case"], r["fit"]) == (name, fit)]
            if mine:
                per_case[name] = one_case(case, mine)
        clean = [c for c in per_case.values() if c["role"] == "clean"]
        if per_case:
            table[fit] = {"cases": per_case}
        if clean:
            n = sum(c["n"] for c in clean)
            alarms = n - sum(c["verdicts"].get("clear", 0) for c in clean)
            table[fit] |= {"clean problems": n, "false alarms": alarms}
    return table


def one_case(case: Case, records: list[dict[str, Any]]) -> dict[str, Any]:
    verdicts = [r["verdict"] for r in records]
    raised = sorted({code for r in records for code in r["raised"]})
    result = {
        "role": case.role,
        "n": len(records),
        "verdicts": {v: verdicts.count(v) for v in sorted(set(verdicts))},
        "raised": {c: sum(c in r["raised"] for r in records) for c in raised},
        "accuracy": rounded(float(np.mean([r["accuracy"] for r in records]))),
        "cpu_seconds": rounded(float(np.mean([r["cpu_seconds"] for r in records]))),
    }
    if case.expected:
        named = sum(bool(set(r["raised"]) & set(case.expected)) for r in records)
        result |= {"expected": case.expected, "flagged": named / len(records)}
    return result


def write(path: Path, records: list[dict[str, Any]]) -> None:
    content = {
        "command": "OMP_NUM_THREADS=1 python benchmarks/tabular/diagnose.py",
        "versions": versions(),
        "thresholds": asdict(THRESHOLDS),
        "summary": summary(records),
        "records": records,
    }
    head = json.dumps({**content, "records": []}, indent=1)
    lines = ",\n".join(json.dumps(record) for record in records)
    text = head.replace('"records": []', f'"records": [\n{lines}\n]')
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text + "\n")


def show(record: dict[str, Any]) -> None:
    print(
        f"{record['case']:18} {record['fit']} seed {record['seed']}: "
        f"{record['verdict']} {','.join(record['raised'])} accuracy "
        f"{record['accuracy']} in {record['cpu_seconds']} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
