"""Reading, predicting and writing a Parquet file in bounded memory.

    OMP_NUM_THREADS=1 python benchmarks/io.py [--rows 5000000] [--batch-rows 65536]

A file of 20 float columns and a domain column is predicted by a model that was saved
and loaded, in a process of its own, as ``shoal predict`` does it. Measured:

- peak memory of that process, and what it holds after its imports alone;
- the seconds of each step (read, predict, fit scores, write) in multiples of the bare
  model's ``predict_proba`` on the same rows in memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from _measure import environment, memory_mib, timed, write_json

RECORD = "results/performance/io.json"
N_COLUMNS, N_CLASSES, N_DOMAINS = 20, 5, 8
ROW_GROUP = 1_048_576  # pyarrow's own choice
MIB = 2**20
LIMIT_GIB = 1.5


def main() -> None:
    """Make the data, run the child, print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch-rows", type=int, default=65_536)
    parser.add_argument("--record", default=RECORD)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        print(json.dumps(predict_file(args.child, args.batch_rows)))
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder), args.rows)
        command = [sys.executable, __file__, "--child", folder]
        command += ["--batch-rows", str(args.batch_rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    record = {
        "rows": args.rows,
        "columns": N_COLUMNS,
        "classes": N_CLASSES,
        "domains": N_DOMAINS,
        "batch_rows": args.batch_rows,
        "limit_gib": LIMIT_GIB,
        **json.loads(done.stdout),
        "environment": environment("pandas", "pyarrow"),
    }
    print(json.dumps(record, indent=1))
    write_json(args.record, record)


def make_data(folder: Path, n_rows: int) -> None:
    """A saved model and a file of rows like those it was fitted on."""
    import pandas as pd

    import shoal
    import shoal.io
    from shoal.datasets import make_latent_shift

    X, domains, _ = make_latent_shift(
        20_000,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        n_features=N_COLUMNS,
        separation=3.0,
        alpha=0.5,
        random_state=0,
    )
    frame = pd.DataFrame(X, columns=[f"x{index}" for index in range(N_COLUMNS)])
    frame["site"] = np.array([f"site {index}" for index in range(N_DOMAINS)])[domains]
    table = shoal.io.read(frame, domain="site")
    model = shoal.DomainMixture(N_CLASSES, search=False, random_state=0)
    model.fit(table.X, table.domains)
    shoal.save(model, folder / "model", schema=table.schema)
    write_rows(folder / "rows.parquet", frame, n_rows)


def write_rows(path: Path, frame: Any, n_rows: int) -> None:
    """Rows of the frame, drawn with noise, in row groups of a million."""
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, n_rows, ROW_GROUP):
        rows = frame.iloc[rng.integers(len(frame), size=min(ROW_GROUP, n_rows - first))]
        numbers = rows.drop(columns="site").to_numpy()
        noisy = numbers + 0.01 * rng.normal(size=numbers.shape)
        columns = dict(zip(rows.columns, noisy.T, strict=False))
        table = pyarrow.table({**columns, "site": rows["site"].to_numpy(dtype=object)})
        writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def predict_file(folder: Path, batch_rows: int) -> dict[str, Any]:
    """What a prediction costs, measured in this process."""
    import shoal
    from shoal.io import assign, batches, write_assignments

    model = shoal.load(folder / "model")
    source, target = folder / "rows.parquet", folder / "out.parquet"
    import_module("shoal.io._batches"), import_module("pyarrow.parquet")
    before = memory_mib("VmHWM")

    def tables() -> Any:
        return batches(source, model.schema_, batch_rows=batch_rows)

    def predict_and_write() -> None:
        write_assignments(target, assign(model, tables()))

    predict_and_write()
    peak = memory_mib("VmHWM")
    whole = timed(predict_and_write)
    size = target.stat().st_size
    read = timed(lambda: [None for _ in tables()])
    assigned = timed(lambda: [None for _ in assign(model, tables())])
    bare = bare_seconds(model, source, batch_rows)
    n_rows = bare["rows"]
    return {
        "peak_mib": peak,
        "after_imports_mib": before,
        "within_limit": peak < LIMIT_GIB * 1024,
        "output_mib": size / MIB,
        "bare_predict_seconds_per_million": 1e6 * bare["predict"] / n_rows,
        "in_bare_predictions": {
            "read": read / bare["predict"],
            "fit_score": bare["fit_score"] / bare["predict"],
            "read_and_assign": assigned / bare["predict"],
            "read_assign_and_write": whole / bare["predict"],
        },
        "rows_per_second": n_rows / whole,
    }


def bare_seconds(model: Any, source: Path, batch_rows: int) -> dict[str, float]:
    """Seconds of predict_proba and of fit scores on rows that are in memory."""
    from shoal.io import batches

    total = {"predict": 0.0, "fit_score": 0.0, "rows": 0.0}
    for table in batches(source, model.schema_, batch_rows=batch_rows):
        total["predict"] += timed(partial(model.predict_proba, table.X, table.domains))
        rows = model._check_rows(table.X)
        total["fit_score"] += timed(partial(model._familiarity, rows))
        total["rows"] += table.n_rows
    return total


if __name__ == "__main__":
    main()
