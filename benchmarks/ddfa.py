"""DDFA.fit against the scikit-learn calls it makes, in one run.

    OMP_NUM_THREADS=1 python benchmarks/ddfa.py [--rows 200000]

Every outermost fit, transform, predict or predict_proba of a scikit-learn class inside
the fit is timed; the ratio is the processor time of the whole fit to their sum. The
adjust stage, which is our own solver, is timed apart and counted with neither.
"""

import argparse
import time
from pathlib import Path

from _measure import environment, write_json
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from shoal import DDFA
from shoal import _rank as explained
from shoal.datasets import make_latent_shift
from shoal.stages import adjust

RECORD = Path(__file__).parents[1] / "results" / "performance" / "ddfa.json"


class Clock:
    """Processor time inside the calls it wraps, counted once when they nest."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = 0

    def wrap(self, owner: object, name: str) -> None:
        """Replace ``owner.name`` by a timed version of itself."""
        original = getattr(owner, name)

        def timed(*args, **kwargs):
            self.depth += 1
            begun = time.process_time()
            try:
                return original(*args, **kwargs)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.process_time() - begun

        setattr(owner, name, timed)


def main() -> None:
    """Measure, print and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    X, domains, _ = make_latent_shift(
        args.rows, n_classes=10, n_domains=30, n_features=30, random_state=0
    )
    library, own = Clock(), Clock()
    for owner, names in (
        (Pipeline, ("fit", "predict_proba")),
        (LogisticRegression, ("fit", "predict_proba")),
        (KMeans, ("fit", "predict")),
    ):
        for name in names:
            library.wrap(owner, name)
    own.wrap(adjust.Adjuster, "predict_proba")
    own.wrap(explained, "maximum_likelihood")
    begun = time.process_time()
    DDFA(10, discriminator="logistic", random_state=0).fit(X, domains)
    total = time.process_time() - begun
    record = {
        "rows": args.rows,
        "total_seconds": total,
        "library_seconds": library.seconds,
        "adjust_seconds": own.seconds,
        "ratio": (total - own.seconds) / library.seconds,
        "environment": environment(),
    }
    print(record)
    write_json(args.record, record)


if __name__ == "__main__":
    main()
