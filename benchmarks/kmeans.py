"""K-means over all rows, over a stated sample, in mini-batches: time and accuracy.

    OMP_NUM_THREADS=1 python benchmarks/kmeans.py

The points are q(d|x) of a logistic discriminator on 1,000,000 x 30 rows, 30 domains and
10 classes (``--sizes geometric``: domains from 1 to 100 in size). Every way of
finding the centres is followed by the same steps: all rows are assigned, counted and
factorized, and the rows of a sample adjusted. What counts is the accuracy at the end,
and the processor time of k-means with the assignment. Resumable: what the record has is
not measured again. About ten minutes on one
core.
"""

import argparse
import json
import time
import warnings
from itertools import product
from pathlib import Path
from statistics import mean

import numpy as np
from _measure import ROOT, environment, write_json
from _pages import kmeans_page
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score

from shoal.datasets import make_latent_shift
from shoal.exceptions import SubsampleWarning
from shoal.metrics import matched_accuracy, prevalence_error
from shoal.probability import class_posterior, cluster_given_domain
from shoal.stages.adjust import maximum_likelihood
from shoal.stages.discretize import assign_to_centers, kmeans
from shoal.stages.discriminate import Discriminator
from shoal.stages.factorize import factorize

RECORD = "results/performance/kmeans.json"
N_CLASSES, N_DOMAINS, N_FEATURES = 10, 30, 30
SCORED_ROWS = 50_000
TRAINING_ROWS = 100_000
ALL_ROWS = "all rows"
SAMPLES = (10_000, 30_000, 100_000)
BATCHES = (16_384,)


def main() -> None:
    """Measure what the record lacks, print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sizes", nargs="+", default=["equal"])
    parser.add_argument("--record", type=Path, default=ROOT / RECORD)
    args = parser.parse_args()
    record = {"rows": args.rows, "runs": [], "environment": environment()}
    if args.record.exists():
        record |= json.loads(args.record.read_text())
    done = {key_of(run) for run in record["runs"]}
    for sizes, seed in product(args.sizes, args.seeds):
        wanted = [
            {"sizes": sizes, "seed": seed, "clusters": m, "way": way}
            for m, way in product(args.clusters, WAYS)
        ]
        if all(key_of(run) in done for run in wanted):
            continue
        problem = Problem(args.rows, sizes, seed)
        reference: dict[int, np.ndarray] = {}
        for run in wanted:
            if key_of(run) not in done:
                run |= measure(problem, run, reference)
                record["runs"].append(run)
                print(run, flush=True)
                record["summary"] = summarize(record["runs"])
                write_json(args.record, record)
    page = kmeans_page(record)
    args.record.with_suffix(".md").write_text(page + "\n")
    print(page)


def key_of(run: dict) -> tuple:
    """What makes two runs the same."""
    return run["sizes"], run["seed"], run["clusters"], run["way"]


class Problem:
    """Square roots of q(d|x), where k-means works, and the truth to score against."""

    def __init__(self, n_rows: int, sizes: str, seed: int) -> None:
        drawn = make_latent_shift(
            n_rows,
            n_classes=N_CLASSES,
            n_domains=N_DOMAINS,
            n_features=N_FEATURES,
            domain_sizes=None if sizes == "equal" else sizes,
            random_state=seed,
            return_bunch=True,
        )
        rng = np.random.default_rng(seed)
        rows = rng.choice(n_rows, min(TRAINING_ROWS, n_rows), replace=False)
        model = Discriminator("logistic", cross_fit=None, random_state=seed)
        model.fit(drawn.X[rows], drawn.domains[rows])
        self.points = model.predict_proba(drawn.X)
        self.codes, self.prevalence = drawn.domains, drawn.prevalence
        self.scored = rng.choice(n_rows, min(SCORED_ROWS, n_rows), replace=False)
        self.labels = drawn.labels[self.scored]

    def score(self, clusters: np.ndarray, n_clusters: int, seed: int) -> dict:
        """Accuracy and prevalence error of the classes that follow from clusters."""
        table = cluster_given_domain(clusters, self.codes, n_clusters, N_DOMAINS)
        found = factorize(table, N_CLASSES, method="spa", random_state=seed)
        T = found.domain_given_class
        g = maximum_likelihood(self.points[self.scored], T)
        labels = class_posterior(g, T, self.codes[self.scored]).argmax(axis=1)
        return {
            "accuracy": matched_accuracy(self.labels, labels),
            "prevalence_error": prevalence_error(
                self.prevalence, found.class_given_domain
            ),
        }


def all_rows(problem: Problem, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return kmeans(
        problem.points, m, metric="hellinger", max_samples=None, random_state=seed
    )


def sampled(max_samples: int):
    """K-means on a stated sample."""

    def run(problem: Problem, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SubsampleWarning)
            return kmeans(
                problem.points,
                m,
                metric="hellinger",
                max_samples=max_samples,
                random_state=seed,
            )

    return run


def in_batches(batch_size: int):
    """scikit-learn's mini-batches over all rows, same restarts."""

    def run(problem: Problem, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        roots = np.sqrt(problem.points)
        solver = MiniBatchKMeans(m, batch_size=batch_size, n_init=5, random_state=seed)
        centers = solver.fit(roots).cluster_centers_
        return centers, assign_to_centers(roots, centers)

    return run


WAYS = {
    ALL_ROWS: all_rows,
    **{f"sample of {n}": sampled(n) for n in SAMPLES},
    **{f"mini-batches of {n}": in_batches(n) for n in BATCHES},
}


def measure(problem: Problem, run: dict, reference: dict[int, np.ndarray]) -> dict:
    """Time of one way, and what follows from its clusters."""
    m, seed = run["clusters"], run["seed"]
    begun = time.process_time()
    centers, clusters = WAYS[run["way"]](problem, m, seed)
    seconds = time.process_time() - begun
    if run["way"] == ALL_ROWS:
        reference[m] = clusters[problem.scored]
    roots = np.sqrt(problem.points[problem.scored])
    apart = roots - centers[clusters[problem.scored]]
    result = {
        "seconds": seconds,
        "spread": float((apart**2).sum(axis=1).mean()),
        **problem.score(clusters, len(centers), seed),
    }
    if m in reference:
        same = adjusted_rand_score(reference[m], clusters[problem.scored])
        result["agreement"] = same
    return result


def summarize(runs: list[dict]) -> list[dict]:
    """Each way against all rows: time saved and accuracy lost, over seeds."""
    whole = {key_of(run)[:3]: run for run in runs if run["way"] == ALL_ROWS}
    rows = []
    kinds = dict.fromkeys((run["sizes"], run["clusters"], run["way"]) for run in runs)
    for sizes, m, way in kinds:
        group = [
            (run, whole[key_of(run)[:3]])
            for run in runs
            if (run["sizes"], run["clusters"], run["way"]) == (sizes, m, way)
            and key_of(run)[:3] in whole
        ]
        lost = [base["accuracy"] - run["accuracy"] for run, base in group]
        rows.append(
            {
                "sizes": sizes,
                "clusters": m,
                "way": way,
                "seeds": len(group),
                "seconds": mean(run["seconds"] for run, _ in group),
                "faster": mean(base["seconds"] / run["seconds"] for run, base in group),
                "accuracy": mean(run["accuracy"] for run, _ in group),
                "accuracy_lost": mean(lost),
                "most_lost": max(lost),
                "prevalence_error": mean(run["prevalence_error"] for run, _ in group),
                "spread": mean(run["spread"] / base["spread"] for run, base in group),
            }
        )
    return rows


if __name__ == "__main__":
    main()
