"""The default fit beside GaussianMixture(n_init=10), on tables of 3,000 rows by 16.

    SHOAL_DATA_DIR=... python benchmarks/tabular/speed.py

Each fit runs in a process of its own, with OMP_NUM_THREADS=1 and without it, the number
of classes given. All times are processor time, of all threads: those that only wait for
each other are counted.
"""

import json
import os
import subprocess
import sys
import time
import warnings

import numpy as np
from _real import TABLES, Table
from _record import Record, Run, options, spread
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from shoal import DomainMixture
from shoal.datasets import make_latent_shift

COMMAND = "SHOAL_DATA_DIR=... python benchmarks/tabular/speed.py"
DATA = ("pendigits", "beans", "generated")


def main() -> None:
    """Run what is missing; with ``--once DATA``, time one table and print it."""
    parser = options(__doc__, "speed")
    parser.add_argument("--once", choices=DATA)
    args = parser.parse_args()
    if args.once:
        print(json.dumps(seconds(args.once)))
        return
    record = Record(args.record, COMMAND, {"n_init": 10}, ("data",), summarize)
    record.fill([(name,) for name in DATA], run_once)


def run_once(name: str) -> Run:
    """One table, in two processes."""
    free = {key: v for key, v in os.environ.items() if key != "OMP_NUM_THREADS"}
    one, many = (
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--once", name],
                env=env,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for env in (free | {"OMP_NUM_THREADS": "1"}, free)
    )
    return {
        "data": name,
        "n_cores": os.cpu_count(),
        "gmm": one["gmm"],
        "shoal": one["shoal"],
        "shoal_without_omp": many["shoal"],
        "times_gmm": round(one["shoal"] / one["gmm"], 2),
        "without_omp": round(many["shoal"] / one["shoal"], 2),
    }


def seconds(name: str) -> dict:
    """Processor seconds of both fits."""
    table = load(name)
    n_classes = len(np.unique(table.labels))
    gmm = GaussianMixture(n_classes, n_init=10, random_state=0)
    X = StandardScaler().fit_transform(table.X)
    model = DomainMixture(n_classes, random_state=0)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, fit in (
            ("gmm", lambda: gmm.fit(X)),
            ("shoal", lambda: model.fit(table.X, table.domains)),
        ):
            begun = time.process_time()
            fit()
            found[method] = round(time.process_time() - begun, 2)
    return found


def load(name: str) -> Table:
    """A drawn table, or one of six Gaussian classes in twelve domains."""
    if name in TABLES:
        return TABLES[name](0)
    return Table(
        *make_latent_shift(
            3000, n_classes=6, n_domains=12, n_features=16, random_state=0
        )
    )


def summarize(runs: list[Run]) -> dict:
    """Mean and spread of the ratios over tables."""
    return {
        name: spread([run[name] for run in runs])
        for name in ("times_gmm", "without_omp")
    }


if __name__ == "__main__":
    main()
