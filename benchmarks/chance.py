"""What one random NMF costs when all else is perfect.

    python benchmarks/chance.py --record results/bench/chance.json

DDFA as published, m = k, from a perfect discriminator and perfect clusters: q(d|x) is
the true q(d|y), and the table of clusters is the paper's own matrix of prevalences. All
that is left to chance is the random start of one NMF; the pseudo-inverse and the prior
of every domain come after it. For the paper's cells with as many domains as classes,
every one of its matrices (waves) and many seeds: the accuracy on infinitely many rows,
domains counted alike, and the error of the prevalences, after the best matching.
"""

import argparse
import json
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from shoal.exceptions import ShoalWarning
from shoal.probability import class_posterior, domain_given_class
from shoal.stages.adjust import adjust
from shoal.stages.factorize import Factorizer
from shoal_bench.meter import Meter, provenance
from shoal_bench.published import PAPER_ALPHAS, paper_prevalence

SQUARE = {"cifar20": 20, "cifar10": 10}
WAVES = range(5)

Array = np.ndarray[Any, Any]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--record", type=Path, help="JSON file to write")
    args = parser.parse_args(arguments)
    with Meter() as meter:
        lines = measure(args.seeds)
    if args.record:
        record = {
            "seeds": args.seeds,
            "cells": lines,
            "device": meter.device,
            **provenance(),
        }
        args.record.write_text(json.dumps(record, indent=1) + "\n")


def measure(n_seeds: int) -> list[dict[str, Any]]:
    """One line for each of the paper's matrices."""
    lines = []
    for (dataset, r), alpha, wave in product(SQUARE.items(), PAPER_ALPHAS, WAVES):
        truth = paper_prevalence(dataset, r, alpha, wave)
        runs = np.array([one_nmf(truth, seed) for seed in range(n_seeds)])
        (accuracy, error), (spread, _) = runs.mean(axis=0), runs.std(axis=0, ddof=1)
        lines.append(
            {
                "dataset": dataset,
                "n_domains": r,
                "alpha": alpha,
                "wave": wave,
                "accuracy": round(accuracy, 4),
                "accuracy_std": round(spread, 4),
                "prevalence_error": round(error, 4),
            }
        )
        print(*lines[-1].values(), flush=True)
    return lines


def one_nmf(truth: Array, seed: int) -> tuple[float, float]:
    """Accuracy and error of the prevalences from one random start."""
    r, k = truth.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)  # of what the matrix is like
        factors = Factorizer(k, method="nmf", random_state=seed).fit(truth)
    found = factors.class_given_domain_
    domains = domain_given_class(found)
    class_given_x = adjust(domain_given_class(truth), domains, method="pinv")
    shares = np.zeros((k, k))  # of rows, by true and found class
    for domain in range(r):
        posterior = class_posterior(
            class_given_x, domains, np.full(k, domain), found.mean(axis=0)
        )
        np.add.at(shares, (np.arange(k), posterior.argmax(axis=1)), truth[domain] / r)
    true, own = linear_sum_assignment(-shares)
    error = np.abs(found[:, own] - truth[:, true]).mean()
    return float(shares[true, own].sum()), float(error)


if __name__ == "__main__":
    main()
