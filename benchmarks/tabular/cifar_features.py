"""DomainMixture on frozen self-supervised CIFAR features: the paper's 21 cells.

    SHOAL_DATA_DIR=... python benchmarks/tabular/cifar_features.py
    SHOAL_DATA_DIR=... python benchmarks/tabular/cifar_features.py --search

SHOAL_DATA_DIR/features holds cifar10_simclr_pca128.npz and cifar20_simclr_pca128.npz:
128 principal components of the features of a SimCLR network trained without labels,
50,000 training rows and then 10,000 test rows. The prevalences are the paper's own.
Cells run side by side, one thread each. Records already in
results/tabular/cifar_features.jsonl are not run again.
"""

import argparse
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from _record import FOLDER, append_line, deviation, read_lines
from joblib import Parallel, delayed

import shoal
from shoal import DomainMixture
from shoal.datasets import plan_domains, take
from shoal.exceptions import ShoalWarning
from shoal.metrics import match_classes, matched_accuracy, prevalence_error
from shoal_bench.published import (
    PAPER_ALPHAS,
    PAPER_DATASETS,
    paper_prevalence,
    paper_results,
)

CELLS = [
    (dataset, r, alpha)
    for dataset in ("cifar20", "cifar10")
    for r in PAPER_DATASETS[dataset].n_domains
    for alpha in PAPER_ALPHAS
]


def main() -> None:
    """Run the cells that have no record, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search", action="store_true", help="the searched fit")
    parser.add_argument("--waves", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--records", type=Path, default=FOLDER / "cifar_features.jsonl")
    parser.add_argument("--cells", nargs="*", help="such as cifar20-30-10")
    args = parser.parse_args()
    done = {key(record) for record in read_lines(args.records)}
    wanted = [
        (*cell, wave, args.search)
        for wave in args.waves
        for cell in CELLS
        if not args.cells or "{}-{}-{:g}".format(*cell) in args.cells
    ]
    missing = [run for run in wanted if run not in done]
    begun = time.perf_counter()
    found = Parallel(n_jobs=args.jobs, return_as="generator_unordered")(
        delayed(run_cell)(*run) for run in missing
    )
    for record in found:
        append_line(args.records, record)
        print(*key(record), f"{record['accuracy']:.4f} {record['seconds']:.1f} s",
              flush=True)  # fmt: skip
    print(f"{len(missing)} cells in {time.perf_counter() - begun:.0f} s")
    args.records.with_suffix(".md").write_text(markdown(read_lines(args.records)))


def features(dataset: str) -> tuple[np.ndarray, np.ndarray]:
    folder = Path(os.environ["SHOAL_DATA_DIR"]) / "features"
    with np.load(folder / f"{dataset}_simclr_pca128.npz") as data:
        return data["features"].astype(np.float32), data["labels"].astype(int)


def run_cell(dataset: str, r: int, alpha: float, wave: int, search: bool) -> dict:
    X, labels = features(dataset)
    prevalence = paper_prevalence(dataset, r, alpha, wave)
    splits = {"train": np.arange(50_000), "test": np.arange(50_000, 60_000)}
    plan = plan_domains(
        labels, prevalence, splits=splits, valid_share=0, random_state=wave
    )
    X_train, domains = take(plan, X, "train")
    X_test, domains_test = take(plan, X, "test")
    begun, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model = DomainMixture(
            prevalence.shape[1], by="shift", search=search, random_state=wave
        ).fit(X_train, domains)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    classes = model.predict(X_test, domains_test)
    truth = plan.labels(labels, "test")
    error = prevalence_error(
        prevalence, model.prevalence_, matching=match_classes(truth, classes)
    )
    return {
        "dataset": dataset,
        "n_domains": r,
        "alpha": alpha,
        "wave": wave,
        "search": search,
        "n_rows": len(X_train),
        "accuracy": matched_accuracy(truth, classes),
        "prevalence_error": error,
        "score": model.score(X_test, domains_test),
        "moves": len(model.move_gains_),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "shoal": shoal.__version__,
        "numpy": np.__version__,
    }


def key(record: dict) -> tuple:
    return tuple(record[n] for n in ("dataset", "n_domains", "alpha", "wave", "search"))


def published_best() -> dict[tuple, tuple[float, float]]:
    """Best accuracy and best trustworthy prevalence error over the paper's methods."""
    cells = defaultdict(list)
    for result in paper_results():
        cells[result.dataset, result.n_domains, result.alpha].append(result)
    return {
        cell: (
            max(r.accuracy for r in rows if r.accuracy is not None),
            min(
                r.prevalence_error
                for r in rows
                if r.prevalence_error is not None
                and "prevalence_error" not in r.doubtful
            ),
        )
        for cell, rows in cells.items()
    }


def markdown(records: list[dict]) -> str:
    best = published_best()
    cells = defaultdict(list)
    for record in records:
        cells[key(record)[:3], record["search"]].append(record)
    lines = [
        "Accuracy on test rows / mean absolute error of the prevalences; mean ±",
        "standard deviation (n - 1) over waves of the paper's matrices (their number).",
        "Best published: over all methods of the paper.",
        "",
        "| data | r | alpha | best published | search=False | searched |",
        "|---|---|---|---|---|---|",
    ]
    for cell in CELLS:
        dataset, r, alpha = cell
        accuracy, error = best[cell]
        ours = " | ".join(summary(cells.get((cell, search), [])) for search in (0, 1))
        title = PAPER_DATASETS[dataset].title
        lines.append(
            f"| {title} | {r} | {alpha:g} | {accuracy:.3f} / {error:.3f} | {ours} |"
        )
    return "\n".join(lines) + "\n"


def summary(records: list[dict]) -> str:
    if not records:
        return "not run"
    accuracy = [record["accuracy"] for record in records]
    error = np.mean([record["prevalence_error"] for record in records])
    waves = len(records)
    return (
        f"{np.mean(accuracy):.3f} ± {deviation(accuracy):.3f} / {error:.4f} ({waves})"
    )


if __name__ == "__main__":
    main()
