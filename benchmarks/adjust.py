"""Measure how fast the constrained solvers of adjust are, and how exact.

    python benchmarks/adjust.py --rows 1000000

Compares the pseudo-inverse, simplex least squares and maximum likelihood with a loop
of scipy.optimize.nnls (one more equation asks for a sum of 1), which is timed on a
sample of the rows and scaled linearly. One thread for all unless --threads says more.
Two problems: "flat" draws q(d|y) uniformly; "sparse" derives it from prevalences drawn
as in the paper (Dirichlet(3 / k) per domain), so that it is full of near-zeros.
"""

import argparse
from functools import partial

import numpy as np
from _measure import environment, peak_bytes, take_turns, write_json
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from shoal.probability import domain_given_class, normalize_rows
from shoal.stages.adjust import (
    maximum_likelihood,
    pseudo_inverse,
    simplex_least_squares,
)

SUM_WEIGHT = 10.0  # of the equation "sum = 1" in the nnls loop


def make_problem(kind, n_rows, n_domains, n_classes, dtype):
    """Noisy mixtures of the classes: each probability is off by about a half."""
    rng = np.random.default_rng(0)
    if kind == "flat":
        table = rng.dirichlet(np.ones(n_domains), n_classes)
    else:
        prevalence = rng.dirichlet(np.full(n_classes, 3 / n_classes), n_domains)
        table = domain_given_class(prevalence)
    points = np.empty((n_rows, n_domains), dtype)
    for block in np.array_split(points, max(1, n_rows // 50_000)):
        block[:] = rng.dirichlet(np.full(n_classes, 0.3), len(block)) @ table
        block *= np.exp(0.5 * rng.standard_normal(block.shape))
        block /= block.sum(axis=1, keepdims=True)
    return points, table


def nnls_loop(points, table):
    system = np.vstack([table.T, np.full(len(table), SUM_WEIGHT)])
    targets = np.column_stack([points, np.full(len(points), SUM_WEIGHT)])
    return normalize_rows([nnls(system, target)[0] for target in targets])


def largest_gap(points, table, answer, kind):
    """Largest duality gap of a row, in blocks."""
    worst = 0.0
    for start in range(0, len(points), 50_000):
        f, g = (a[start : start + 50_000].astype(float) for a in (points, answer))
        if kind == "likelihood":
            mixed = np.maximum(g @ table, 1e-300)
            slope = np.where(f < 1e-12, 0, f / mixed) @ table.T
        else:
            slope = (f - g @ table) @ table.T
        gap = slope.max(axis=1) - (g * slope).sum(axis=1)
        worst = max(worst, float(gap.max()))
    return worst


def measure(kind, args):
    shape = args.rows, args.domains, args.classes
    points, table = make_problem(kind, *shape, args.dtype)
    sample = points[: args.sample]
    solvers = {
        "pseudo-inverse": (pseudo_inverse, {}, None),
        "simplex, gap 1e-7": (simplex_least_squares, {"tol": 1e-7}, "squares"),
        "simplex (default)": (simplex_least_squares, {}, "squares"),
        "likelihood, gap 1e-5": (maximum_likelihood, {"tol": 1e-5}, "likelihood"),
        "likelihood (default)": (maximum_likelihood, {}, "likelihood"),
    }
    runs = {
        name: partial(solve, points, table, **options)
        for name, (solve, options, _) in solvers.items()
    }
    loop = {"nnls loop": partial(nnls_loop, sample, table)}
    seconds = take_turns(loop | runs, args.repeats)
    scale = len(points) / len(sample)
    base = scale * seconds["nnls loop"].process
    gap = largest_gap(sample, table, nnls_loop(sample, table), "squares")
    rows = [["nnls loop", scale * seconds["nnls loop"].wall, base, gap, None]]
    for name, (_, _, gap_kind) in solvers.items():
        gap = gap_kind and largest_gap(points, table, runs[name](), gap_kind)
        memory = peak_bytes(runs[name]) / points.nbytes
        rows.append([name, *seconds[name], gap, memory])
    pinv = seconds["pseudo-inverse"].process
    keys = ("solver", "wall_s", "process_s", "largest_gap", "peak_memory_per_input")
    return [
        dict(zip(keys, row, strict=True))
        | {"faster_than_nnls": base / row[2], "slower_than_pinv": row[2] / pinv}
        for row in rows
    ]


def show(kind, table):
    print(f"\n{kind:22} wall s  CPU s  nnls/this  this/pinv  largest gap  memory/input")
    for row in table:
        gap, memory = row["largest_gap"], row["peak_memory_per_input"]
        print(
            f"{row['solver']:20} {row['wall_s']:8.2f} {row['process_s']:6.2f} "
            f"{row['faster_than_nnls']:10.1f} {row['slower_than_pinv']:10.1f} "
            f"{'' if gap is None else f'{gap:.1e}':>12} "
            f"{'' if memory is None else f'{memory:.2f}':>13}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--domains", type=int, default=30)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--sample", type=int, default=10_000, help="rows for nnls")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    parser.add_argument("--out", default="results/performance/adjust.json")
    args = parser.parse_args()
    args.sample = min(args.sample, args.rows)
    record = {"settings": vars(args), "environment": environment()}
    record["note"] = f"nnls timed on {args.sample} rows, scaled; ratios of CPU time"
    with threadpool_limits(args.threads):
        for kind in ("flat", "sparse"):
            record[kind] = measure(kind, args)
            show(kind, record[kind])
    print(f"\n{record['note']}; {write_json(args.out, record)}")


if __name__ == "__main__":
    main()
