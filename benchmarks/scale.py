"""20,000,000 rows x 20 features x 50 domains on one machine: time, memory, accuracy.

    python benchmarks/scale.py --folder FOLDER [--rows 20000000] [--keep]

Generates the rows in batches, then fits and classes the first 20, 5 and 1 million of
them, each in a process of its own with two workers. Peak memory is that of all its
processes together (proportional set sizes, looked at twice a second). Accuracy and
prevalences are held against the truth, against the best that anybody could do (the
true densities and prevalences), and against a fit of the sample alone. Writes
results/performance/scale.json after each size, goes on from there when it is called
again, writes the table scale.md and deletes the generated files in the end. On two idle
cores the whole takes four minutes. ``--pages`` only writes the table.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _measure import environment, write_json
from _pages import scale_page
from scipy.optimize import linear_sum_assignment

from shoal.io.extend import whole_file

RECORD = Path(__file__).parents[1] / "results" / "performance" / "scale.json"
FILE_ROWS = 500_000
N_FEATURES, N_DOMAINS, N_CLASSES = 20, 50, 10
SEPARATION = 0.8
GIB = 2**30
JUDGED_FILES = 2  # for what is compared row by row


# ---- the data --------------------------------------------------------------------


def world() -> tuple[np.ndarray, np.ndarray]:
    """Class means, and the class mix of each domain."""
    rng = np.random.default_rng(0)
    means = SEPARATION * rng.normal(size=(N_CLASSES, N_FEATURES))
    return means, rng.dirichlet(np.full(N_CLASSES, 0.5), N_DOMAINS)


def generate(folder: Path, n_rows: int) -> float:
    """Files of half a million rows each; the seconds that they took."""
    begun = time.perf_counter()
    means, prevalence = world()
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_rows // FILE_ROWS):
        path = folder / f"rows-{number:03d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        domains = rng.integers(N_DOMAINS, size=FILE_ROWS)
        cumulated = prevalence.cumsum(axis=1)[domains]
        true = (rng.random(FILE_ROWS)[:, None] > cumulated[:, :-1]).sum(axis=1)
        X = rng.standard_normal((FILE_ROWS, N_FEATURES), dtype=np.float32)
        X += means[true].astype(np.float32)
        frame = pd.DataFrame(X, columns=[f"x{i:02d}" for i in range(N_FEATURES)])
        frame["site"] = np.array([f"site{d:02d}" for d in range(N_DOMAINS)])[domains]
        frame["true"] = true.astype(np.int8)
        with whole_file(path) as temporary:
            frame.to_parquet(temporary, row_group_size=100_000)
    return time.perf_counter() - begun


def best_classes(X: np.ndarray, domains: np.ndarray) -> np.ndarray:
    """What the true densities and prevalences say."""
    means, prevalence = world()
    logits = X @ means.T - 0.5 * (means**2).sum(axis=1)
    return (logits + np.log(prevalence[domains])).argmax(axis=1)


# ---- one size, in a process of its own -------------------------------------------


def work(folder: Path, n_rows: int, out: Path, name: str) -> dict:
    """Fit and predict; runs in a child, which is watched."""
    from shoal import DDFA, DomainMixture, save, scale

    files = sorted(folder.glob("rows-*.parquet"))[: n_rows // FILE_ROWS]
    estimators = {
        "DomainMixture": (
            DomainMixture(N_CLASSES, search=False, random_state=0),
            200_000,
        ),
        "DDFA": (DDFA(N_CLASSES, discriminator="logistic", random_state=0), 50_000),
    }
    estimator, sample = estimators[name]
    options = {"domain": "site", "drop": ["true"], "sample": sample, "workers": 2}
    begun = time.perf_counter()
    model = scale.fit(estimator, files, checkpoint=out / "kept", **options)
    fitted = time.perf_counter()
    save(model, out / "model")
    result = {"fit_seconds": fitted - begun, "scale": model.scale_}
    if name == "DomainMixture":
        found = scale.predict(model, files, out / "classes", workers=2)
        result["predict_seconds"] = time.perf_counter() - fitted
        result["predicted_rows"] = found.n_rows
        begun = time.perf_counter()
        alone = scale.fit(
            estimator, files, checkpoint=out / "kept", passes=0, **options
        )
        save(alone, out / "alone")
    return result


def watched(command: list[str]) -> tuple[dict, float]:
    """Run a child; its last line as JSON, and the most memory its tree has held."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        peak = 0.0
        while child.poll() is None:
            peak = max(peak, sum(map(proportional, tree(child.pid))))
            time.sleep(0.4)
        assert child.stdout is not None
        lines = child.stdout.read().splitlines()
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}")
    return json.loads(lines[-1]), peak


def tree(root: int) -> list[int]:
    """A process and all its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(stat[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [one for one, parent in parents.items() if parent == pid]
    return found


def proportional(pid: int) -> float:
    """Memory of a process, pages shared with others divided among them; in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line[:4] == "Pss:")


# ---- judging ---------------------------------------------------------------------


def judge(folder: Path, out: Path, n_rows: int) -> dict:
    """Accuracy and prevalences against the truth; one file in memory at a time."""
    from shoal import load

    files = sorted(folder.glob("rows-*.parquet"))[: n_rows // FILE_ROWS]
    written = sorted((out / "classes").glob("part-*.parquet"))
    confusion = np.zeros((N_CLASSES, N_CLASSES))
    truth = np.zeros((N_DOMAINS, N_CLASSES))
    for data, predicted in zip(files, written, strict=True):
        rows = pd.read_parquet(data, columns=["site", "true"])
        classes = pd.read_parquet(predicted, columns=["class"])["class"]
        np.add.at(confusion, (rows["true"], classes.str[1:].astype(int)), 1)
        np.add.at(truth, (rows["site"].str[4:].astype(int), rows["true"]), 1)
    truth /= truth.sum(axis=1, keepdims=True)
    matched = linear_sum_assignment(-confusion)
    result = {"accuracy_all_rows": confusion[matched].sum() / confusion.sum()}
    models = {"all rows": load(out / "model"), "sample alone": load(out / "alone")}
    rows = pd.concat(map(pd.read_parquet, files[:JUDGED_FILES]))
    X = rows.filter(regex=r"^x\d").to_numpy()
    for name, model in models.items():
        classes = model.predict(X, rows["site"])
        table = np.zeros((N_CLASSES, N_CLASSES))
        np.add.at(table, (rows["true"], classes), 1)
        known, own = linear_sum_assignment(-table)
        apart = np.abs(truth[:, known] - model.prevalence_[:, own])
        result[name] = {
            "accuracy": table[known, own].sum() / len(rows),
            "prevalence_error_mean": apart.mean(),
            "prevalence_error_largest": apart.max(),
        }
    sites = rows["site"].str[4:].astype(int).to_numpy()
    result["best accuracy"] = float((best_classes(X, sites) == rows["true"]).mean())
    result["judged rows"] = len(rows)
    return result


def main() -> None:
    """Generate, measure each size, write the record, delete what was generated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--pages", action="store_true", help="only the table")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", default="DomainMixture", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work is not None:
        done = work(args.folder, args.rows, args.work, args.model)
        print(json.dumps(done))
        return
    if args.pages:
        write_page(args.record)
        return
    if args.folder is None:
        parser.error("--folder is where 1.6 GB of rows will be")
    record = json.loads(args.record.read_text()) if args.record.exists() else empty()
    seconds = generate(args.folder, args.rows)
    if not record["sizes"]:
        record["data"]["generate_seconds"] = seconds
    sizes = [n for n in (20_000_000, 5_000_000, 1_000_000) if n <= args.rows]
    for n_rows in sizes:
        if str(n_rows) not in record["sizes"]:
            record["sizes"][str(n_rows)] = measure(args, n_rows, "DomainMixture")
            record["memory"] = memory(record["sizes"])
            write_json(args.record, record)
            print(n_rows, record["memory"], flush=True)
    if "DDFA" not in record:
        record["DDFA"] = {"rows": sizes[0], **measure(args, sizes[0], "DDFA")}
        write_json(args.record, record)
    write_page(args.record)
    if not args.keep:
        shutil.rmtree(args.folder)


def empty() -> dict:
    """A record without any size."""
    return {
        "command": "python benchmarks/scale.py --folder FOLDER",
        "environment": environment("pandas", "pyarrow"),
        "data": {"features": N_FEATURES, "domains": N_DOMAINS, "classes": N_CLASSES,
                 "values": "float32", "generate_seconds": None},
        "workers": 2,
        "seconds": "wall; on a machine shared with other work, upper bounds",
        "estimators": "DomainMixture(10, search=False), sample of 200,000; DDFA(10, "
        "discriminator='logistic'), sample of 50,000",
        "sizes": {},
    }  # fmt: skip


def write_page(path: Path) -> None:
    """Write the table beside the record."""
    page = scale_page(json.loads(path.read_text()))
    path.with_suffix(".md").write_text(page + "\n")


def measure(args: argparse.Namespace, n_rows: int, name: str) -> dict:
    out = args.folder / f"out-{n_rows}-{name}"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, __file__, "--folder", str(args.folder), "--rows",
               str(n_rows), "--work", str(out), "--model", name]  # fmt: skip
    result, peak = watched(command)
    result["peak_gib"] = peak / GIB
    result["commit"] = commit()
    if name == "DomainMixture":
        result["truth"] = judge(args.folder, out, n_rows)
    shutil.rmtree(out)
    return result


def commit() -> str:
    """Which version was measured."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def memory(sizes: dict) -> dict:
    """How the peak grows: GiB for a million rows more, and the log-log slope."""
    if len(sizes) < 2:
        return {}
    rows = np.array([float(n) for n in sizes])
    peak = np.array([one["peak_gib"] for one in sizes.values()])
    return {
        "gib_per_million_rows": np.polyfit(rows / 1e6, peak, 1)[0],
        "log_slope": np.polyfit(np.log(rows), np.log(peak), 1)[0],
        "largest_gib": peak.max(),
    }


if __name__ == "__main__":
    main()
