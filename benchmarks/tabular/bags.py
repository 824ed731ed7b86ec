"""Bags of words of one topic each: classes, mixes and what their intervals are worth.

    OMP_NUM_THREADS=1 python benchmarks/tabular/bags.py

Three to six topics (Dirichlet .3 over 400 words) in two to three times as many domains
(mixes of Dirichlet 1), 60 to 250 bags a domain of 20 to 160 words each; words of a bag
come together: its shares are Dirichlet of `together` times those of its topic (infinite
where words are independent). Compared: CountMixture, for which a bag is the unit, and
DiscreteMixture, for which a word is, with the number of classes given. Labels enter
only the scoring. `coverage` is how many of the 90% intervals of CountMixture hold the
mix that the bags were drawn from.
"""

import warnings

import numpy as np
from _record import Record, Run, mean, options

from shoal import CountMixture, DiscreteMixture
from shoal.analysis._resample import match_by_rows
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 python benchmarks/tabular/bags.py"
LEVEL, N_WORDS = 0.9, 400
TOGETHER = (np.inf, 100.0)


def main() -> None:
    """Run what is missing; the file is rewritten after every problem."""
    parser = options(__doc__, "bags", problems=8, first=100, resamples=60)
    args = parser.parse_args()
    settings = {"n_resamples": args.resamples, "level": LEVEL, "n_words": N_WORDS}
    record = Record(args.record, COMMAND, settings, ("seed", "together"), summarize)
    seeds = range(args.first, args.first + args.problems)
    wanted = [(seed, str(one)) for seed in seeds for one in TOGETHER]
    record.fill(wanted, lambda *one: run_once(*one, args.resamples))


def make_bags(seed: int, together: float) -> tuple[np.ndarray, ...]:
    """Bags, their domains and topics, and the mix of every domain."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 7))
    n_domains = int(rng.integers(2 * k, 3 * k + 1))
    topics = rng.dirichlet(np.full(N_WORDS, 0.3), size=k)
    mixes = rng.dirichlet(np.ones(k), size=n_domains)
    domains = np.repeat(np.arange(n_domains), rng.integers(60, 251, n_domains))
    labels = np.array([rng.choice(k, p=mixes[one]) for one in domains])
    shares = topics[labels]
    if np.isfinite(together):
        shares = rng.gamma(np.maximum(together * shares, 1e-9))
        shares /= shares.sum(axis=1, keepdims=True)
    sizes = rng.integers(20, 161, len(labels))
    X = np.array([rng.multinomial(n, p) for n, p in zip(sizes, shares, strict=True)])
    return X.astype(float), domains, labels, mixes


def run_once(seed: int, together: str, n_resamples: int) -> Run:
    """Both estimators on one problem."""
    X, domains, labels, mixes = make_bags(seed, float(together))
    k = mixes.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CountMixture(k, random_state=seed).fit(X, domains)
        found = model.bootstrap(
            X, domains, n_resamples=n_resamples, level=LEVEL, random_state=seed
        )
        words = DiscreteMixture(k, input="counts", random_state=seed).fit(X, domains)
        verdict = model.diagnose(X, domains, random_state=seed).verdict
    truth = mixes[:, match_by_rows(labels, model.labels_, k)]
    held = (found.low <= truth) & (truth <= found.high)
    return {
        "seed": seed,
        "together": together,
        "n_classes": k,
        "n_rows": len(labels),
        "accuracy": {
            "CountMixture": matched_accuracy(labels, model.labels_),
            "DiscreteMixture": matched_accuracy(labels, words.labels_),
        },
        "spoke": None if model.route_ is None else model.route_.by,
        "verdict": verdict,
        "coverage": float(held.mean()),
        "error": float(np.abs(model.prevalence_ - truth).mean()),
    }


def summarize(runs: list[Run]) -> list[dict]:
    """Means over problems, by how words of a bag come together."""
    lines = []
    for together in dict.fromkeys(run["together"] for run in runs):
        mine = [run for run in runs if run["together"] == together]
        right = [run for run in mine if run["accuracy"]["CountMixture"] >= 0.95]
        lines.append(
            {
                "together": together,
                "problems": len(mine),
                "accuracy": {
                    name: mean([run["accuracy"][name] for run in mine])
                    for name in mine[0]["accuracy"]
                },
                "at_least_.95": len(right),
                "coverage": mean([run["coverage"] for run in mine]),
                "error": mean([run["error"] for run in mine]),
                "verdicts": {
                    word: sum(run["verdict"] == word for run in mine)
                    for word in ("clear", "caution", "do not use")
                },
            }
        )
    return lines


if __name__ == "__main__":
    main()
