"""The bars: each stage and each predict against the bare library calls, in one run.

    OMP_NUM_THREADS=1 python benchmarks/bars.py [--only predict stages profile]

Everything on 1,000,000 x 30 rows, 30 domains, 10 classes. Candidates take turns, and
the smallest processor time of each counts. "Bare" is what the library asks of a user:
arrays in, arrays out, no checks, no order of rows, no classes in canonical order. The
whole takes about six minutes on one core. ``--as before`` keeps what was measured
under another heading, to compare two states of the code.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from cProfile import Profile
from functools import partial
from pathlib import Path
from pstats import Stats
from typing import Any

import numpy as np
from _measure import ROOT, environment, take_turns, write_json
from _pages import bars_page
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.cluster import contingency_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DDFA, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.probability import cluster_given_domain
from shoal.stages.adjust import SOLVERS, Adjuster
from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.discriminate import Discriminator
from shoal.stages.factorize import Factorizer

RECORD = "results/performance/bars.json"
N_CLASSES, N_DOMAINS, N_FEATURES = 10, 30, 30
# Models that only predict are fitted on so many rows.
TRAINING_ROWS = 30_000
PROFILED_ROWS = 200_000


def main() -> None:
    """Measure the parts asked for, write the record after each, print it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--as", dest="heading", default="now")
    parser.add_argument("--record", type=Path, default=ROOT / RECORD)
    args = parser.parse_args()
    record: dict[str, Any] = {}
    if args.record.exists():
        record = json.loads(args.record.read_text())
    record["environment"] = environment()
    measured = record.setdefault(args.heading, {})
    measured["rows"] = args.rows
    X, domains, _ = draw(args.rows)
    for name in args.only:
        measured[name] = PARTS[name](X, domains, args.repeats)
        print(name, json.dumps(measured[name], indent=1), flush=True)
        write_json(args.record, record)
    if "now" in record:
        args.record.with_suffix(".md").write_text(bars_page(record) + "\n")


def draw(n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the problem of all bars."""
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray] = make_latent_shift(
        n_rows,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        n_features=N_FEATURES,
        random_state=0,
    )
    return drawn


def against(
    ours: Callable[[], Any], bare: Callable[[], Any], repeats: int
) -> dict[str, float]:
    """Times of both and their ratio, above 1 where ours takes longer."""
    best = take_turns({"ours": ours, "bare": bare}, repeats)
    return {
        "ours_seconds": best["ours"].process,
        "bare_seconds": best["bare"].process,
        "ratio": best["ours"].process / best["bare"].process,
        "throughput": best["bare"].process / best["ours"].process,
    }


# ---- predict -------------------------------------------------------------------------


def predict(X: np.ndarray, domains: np.ndarray, repeats: int) -> dict:
    """Labels from fitted models against the arithmetic they cannot avoid."""
    few = np.random.default_rng(0).permutation(len(X))[:TRAINING_ROWS]
    mixture = DomainMixture(N_CLASSES, search=False, random_state=0)
    mixture.fit(X[few], domains[few])
    W = np.ascontiguousarray(mixture.weights_[:, :-1].T)
    bare = partial(lambda: softmax(X @ W, axis=1))
    result = {
        "DomainMixture.predict(X)": against(
            lambda: mixture.predict(X), bare, 4 * repeats
        ),
        "DomainMixture.predict(X, domains)": against(
            lambda: mixture.predict(X, domains), bare, 4 * repeats
        ),
    }
    model = DDFA(N_CLASSES, discriminator="logistic", random_state=0)
    model.fit(X[few], domains[few])
    for name, solve in SOLVERS.items():
        model.adjuster_ = Adjuster(name).fit(model.domain_given_class_)

        def by_hand(solve: Callable[..., np.ndarray] = solve) -> np.ndarray:
            q = model.discriminator_.estimator_.predict_proba(X)
            return solve(q, model.domain_given_class_)

        turns = repeats if name == "pinv" else min(repeats, 3)
        found = against(lambda: model.predict(X), by_hand, turns)
        result[f"DDFA.predict(X), {name}"] = found
    return result


# ---- stages --------------------------------------------------------------------------


def stages(X: np.ndarray, domains: np.ndarray, repeats: int) -> dict:
    """Each stage against the library call it wraps."""
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    ours = Discriminator("logistic", cross_fit=None, domain_weight="size")

    def fit_bare() -> np.ndarray:
        return classifier.fit(X, domains).predict_proba(X)

    result = {
        "discriminate, fit": against(lambda: ours.fit(X, domains), fit_bare, 2),
        "discriminate, predict_proba": against(
            lambda: ours.predict_proba(X),
            lambda: ours.estimator_.predict_proba(X),
            repeats,
        ),
    }
    q = ours.predict_proba(X)
    result |= discretize_stage(q, repeats)
    clusters = KMeansDiscretizer(
        2 * N_CLASSES, n_init=1, max_samples=None, random_state=0
    )
    labels = clusters.fit(q).labels_
    result |= factorize_stage(labels, domains, repeats)
    T = np.random.default_rng(0).dirichlet(np.ones(N_DOMAINS), N_CLASSES)

    def pinv() -> np.ndarray:
        g = np.maximum(q @ np.linalg.pinv(T), 0)
        return g / g.sum(axis=1, keepdims=True)

    adjuster = Adjuster("pinv").fit(T)
    result["adjust, pinv"] = against(lambda: adjuster.predict_proba(q), pinv, repeats)
    return result


def discretize_stage(q: np.ndarray, repeats: int) -> dict:
    """K-means with one restart: more restarts take as much longer on both sides."""
    ours = KMeansDiscretizer(2 * N_CLASSES, n_init=1, max_samples=None, random_state=0)
    bare = KMeans(2 * N_CLASSES, n_init=1, max_iter=100, random_state=0)
    return {
        "discretize, fit": against(lambda: ours.fit(q), lambda: bare.fit(q), 2),
        "discretize, predict": against(
            lambda: ours.predict(q), lambda: bare.predict(q), repeats
        ),
    }


def factorize_stage(labels: np.ndarray, domains: np.ndarray, repeats: int) -> dict:
    """Counting is over rows, the factorization itself over a table of 30 x 20."""
    count = partial(cluster_given_domain, labels, domains, 2 * N_CLASSES, N_DOMAINS)
    table = count()
    ours = Factorizer(N_CLASSES, method="nmf", random_state=0)
    bare = NMF(N_CLASSES, init="random", max_iter=ours_max_iter(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return {
            "factorize, counts": against(
                count, lambda: contingency_matrix(domains, labels), repeats
            ),
            "factorize, nmf": against(
                lambda: ours.fit(table),
                lambda: bare.fit_transform(table),
                5 * repeats,
            ),
        }


def ours_max_iter() -> int:
    """Return the iterations that our NMF asks scikit-learn for."""
    from inspect import signature

    from shoal.stages.factorize._iterative import nmf

    return int(signature(nmf).parameters["max_iter"].default)


# ---- profile -------------------------------------------------------------------------


def profile(X: np.ndarray, domains: np.ndarray, repeats: int) -> dict:
    """Return the three largest hot spots of fits (200,000 rows) and of calls (all)."""
    few = np.random.default_rng(0).permutation(len(X))[:PROFILED_ROWS]
    models = {
        "DDFA": DDFA(N_CLASSES, discriminator="logistic", random_state=0),
        "DomainMixture": DomainMixture(N_CLASSES, random_state=0),
    }
    result = {}
    for name, model in models.items():
        result[f"{name}.fit"] = hot_spots(lambda m=model: m.fit(X[few], domains[few]))
        result[f"{name}.predict"] = hot_spots(lambda m=model: m.predict(X))
    classifier = models["DDFA"].discriminator_
    result["discriminate, predict_proba"] = hot_spots(
        lambda: classifier.predict_proba(X)
    )
    q = classifier.predict_proba(X)
    kmeans = KMeansDiscretizer(2 * N_CLASSES, n_init=1, random_state=0).fit(q[few])
    result["discretize, predict"] = hot_spots(lambda: kmeans.predict(q))
    return result


def hot_spots(run: Callable[[], Any], n_spots: int = 3) -> dict:
    """Functions with the most time of their own."""
    profiler = Profile(time.process_time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profiler.runcall(run)
    stats = Stats(profiler)
    own = {
        f"{Path(file).stem}.{function}": times[2]
        for (file, _, function), times in stats.stats.items()  # type: ignore[attr-defined]
    }
    total = stats.total_tt  # type: ignore[attr-defined]
    largest = sorted(own, key=lambda spot: -own[spot])[:n_spots]
    return {
        "seconds": total,
        "largest": [
            {"spot": spot, "seconds": own[spot], "share": own[spot] / total}
            for spot in largest
        ],
    }


PARTS = {"predict": predict, "stages": stages, "profile": profile}

if __name__ == "__main__":
    main()
