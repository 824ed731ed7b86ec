"""Run the tabular panel and write its records and table.

    SHOAL_DATA_DIR=... python benchmarks/tabular/panel.py

Records already in results/tabular/panel.jsonl are not run again; delete a line to
repeat it. One process, one thread: run with OMP_NUM_THREADS=1.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from _record import FOLDER, append_line, deviation, read_lines, versions

from shoal_bench.panel import METHODS, PROBLEMS, run_method


def main() -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--records", type=Path, default=FOLDER / "panel.jsonl")
    args = parser.parse_args()
    for seed in args.seeds:
        for name in args.problems:
            # read again each time: two processes may share the file
            done = {key(record) for record in read_lines(args.records)}
            missing = [m for m in args.methods if (name, m, seed) not in done]
            if not missing:
                continue
            problem = PROBLEMS[name](seed)
            for method in missing:
                record = {"problem": name, "method": method, "seed": seed}
                record |= run_method(method, problem, seed) | versions()
                append_line(args.records, record)
                shown = f"{record['accuracy']:.4f}  {record['seconds']:.1f} s"
                print(f"{name:16} {method:22} seed {seed}: {shown}", flush=True)
    args.records.with_suffix(".md").write_text(markdown(read_lines(args.records)))


def key(record: dict) -> tuple[str, str, int]:
    return record["problem"], record["method"], record["seed"]


def markdown(records: list[dict]) -> str:
    """Accuracy as mean ± standard deviation over seeds, prevalence error below it."""
    cells = defaultdict(list)
    for record in records:
        cells[record["problem"], record["method"]].append(record)
    methods = [m for m in METHODS if any(key[1] == m for key in cells)]
    lines = [
        "Accuracy on held-out rows (penguins: on the fitted rows), mean ± standard",
        "deviation (n - 1) over seeds, then the mean absolute prevalence error.",
        "",
        f"| problem (seeds) | {' | '.join(methods)} |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for problem in PROBLEMS:
        row = []
        seeds = 0
        for method in methods:
            got = cells.get((problem, method), [])
            seeds = max(seeds, len(got))
            row.append(cell(got))
        lines.append(f"| {problem} ({seeds}) | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def cell(records: list[dict]) -> str:
    if not records:
        return "not run"
    accuracy = [r["accuracy"] for r in records]
    text = f"{np.mean(accuracy):.3f} ± {deviation(accuracy):.3f}"
    errors = [
        r["prevalence_error"] for r in records if r["prevalence_error"] is not None
    ]
    return text + (f" / {np.mean(errors):.4f}" if errors else "")


if __name__ == "__main__":
    main()
