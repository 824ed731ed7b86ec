"""Whether DDFA finds the truth with more rows, a better q(d|x), more clusters.

    OMP_NUM_THREADS=1 python benchmarks/tabular/consistency.py

The paper proves that the classes are identified and leaves open what the error does.
Here the truth is known: generated Gaussian problems (5 classes, 8 domains, 10 columns,
alpha 3), the same of each seed in all runs. One thing varies at a time; the others stay
at 3,000 rows a domain, the exact q(d|x), and 20 clusters:

- rows a domain;
- the error of q(d|x): a smooth random function with this deviation is added to its
  logarithms, another for each domain;
- the number of clusters m.

Writes results/tabular/consistency.json after every run. The purity is the share of the
commonest class in the clusters that were taken for anchors (labels score, no more).
"""

import argparse
import warnings

import numpy as np
from _record import Record, Run, options, spread
from rates import judge, power

from shoal import DDFA, DensityMixture, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.exceptions import ShoalWarning
from shoal.probability import normalize_rows
from shoal_bench import paper

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/consistency.py"
N_CLASSES, N_DOMAINS, N_COLUMNS = 5, 8, 10
TEST_ROWS = 20_000
USUAL = {"rows": 3_000, "noise": 0.0, "clusters": 20}
VARIED = {
    "rows": (100, 300, 1_000, 3_000, 10_000),
    "noise": (0.0, 0.03, 0.1, 0.3, 1.0),
    "clusters": (5, 10, 20, 50, 200, 1_000),
}
# Waves of this length (in standard deviations of a column) make the error of q(d|x).
WAVE = 3.0
N_WAVES = 200


def main() -> None:
    """Run what is missing."""
    parser: argparse.ArgumentParser = options(__doc__, "consistency", seeds=5)
    args = parser.parse_args()
    settings = {
        "problem": f"gaussian, {N_CLASSES} classes, {N_DOMAINS} domains, alpha 3",
        "usual": USUAL,
        "varied": VARIED,
    }
    key = ("seed", "varies", "value")
    record = Record(args.record, COMMAND, settings, key, summarize)
    record.fill(
        (
            (seed, varies, value)
            for seed in range(args.seeds)
            for varies, values in VARIED.items()
            for value in values
        ),
        measure,
    )


def measure(seed: int, varies: str, value: float) -> Run:
    """All methods on the problem of a seed, one thing not as usual."""
    chosen = {**USUAL, varies: value}
    problem = make_latent_shift(
        2_000,
        n_classes=N_CLASSES,
        n_domains=N_DOMAINS,
        n_features=N_COLUMNS,
        random_state=seed,
        return_bunch=True,
    ).problem
    test = problem.sample(TEST_ROWS, random_state=1)
    posterior = problem.posterior(test[0], test[1])
    X, domains, labels = problem.sample(chosen["rows"] * N_DOMAINS, random_state=2)
    q = inexact(problem, chosen["noise"], seed)
    m = chosen["clusters"]
    models = {
        "DDFA, anchors": DDFA(
            N_CLASSES, discriminator=q, discretizer=m, random_state=seed
        ),
        "DDFA as published": paper.ddfa(
            N_CLASSES, n_clusters=m, discriminator=q, random_state=seed
        ),
    }
    if varies == "rows":  # they ask for no q(d|x) and for no clusters
        models["DomainMixture, search=False"] = DomainMixture(
            N_CLASSES, search=False, confidence=0.0, random_state=seed
        )
        models["DensityMixture"] = DensityMixture(N_CLASSES, random_state=seed)
    fits = {}
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            model.fit(X, domains)
        fits[name] = judge(model, problem.prevalence, test, posterior)
        if isinstance(model, DDFA):
            fits[name]["anchor_purity"] = purity(model, q(X), labels)
    return {"seed": seed, "varies": varies, "value": value, "fits": fits}


def inexact(problem, noise: float, seed: int):
    """The exact q(d|x) but for a smooth error: a sum of waves of this deviation.

    Another function of the row for each domain, and the same in every run of a seed.
    """
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(N_COLUMNS, N_WAVES)) / WAVE
    phase = rng.uniform(0, 2 * np.pi, size=N_WAVES)
    height = rng.normal(size=(N_WAVES, N_DOMAINS)) * np.sqrt(2 / N_WAVES)

    def domain_given_x(X):
        error = noise * (np.cos(X @ direction + phase) @ height)
        return normalize_rows(problem.domain_given_x(X) * np.exp(error))

    return domain_given_x


def purity(model: DDFA, q, labels) -> float:
    """Share of the commonest class in the anchor clusters, mean over classes."""
    clusters = model.discretizer_.predict(q)
    shares = []
    for anchor in model.factorization_.anchors:
        inside = labels[clusters == anchor]
        if len(inside):
            shares.append(np.bincount(inside).max() / len(inside))
    return round(float(np.mean(shares)), 4)


def summarize(runs: list[Run]) -> list[dict]:
    """Mean and deviation over seeds of each curve; of rows, the log-log slope, too."""
    lines = []
    for varies in VARIED:
        some = [run for run in runs if run["varies"] == varies]
        values = sorted({run["value"] for run in some})
        names = dict.fromkeys(name for run in some for name in run["fits"])
        for name in names:
            for score in ("prevalence_error", "excess_error", "anchor_purity"):
                curve = [
                    spread(
                        run["fits"][name][score]
                        for run in some
                        if run["value"] == value and score in run["fits"][name]
                    )
                    for value in values
                    if any(score in run["fits"][name] for run in some)
                ]
                if not curve:
                    continue
                line = {"varies": varies, "method": name, "score": score}
                line |= {"values": values, "mean": [mean for mean, _ in curve]}
                line |= {"sd": [sd for _, sd in curve]}
                line["n_seeds"] = len(some) // len(values)
                means = line["mean"]
                if varies == "rows" and len(values) > 1 and min(means) > 0:
                    line["slope"] = round(power(values, means), 3)
                lines.append(line)
    return lines


if __name__ == "__main__":
    main()
