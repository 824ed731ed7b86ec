"""Whether trees of classes find planted hierarchies, and what they say of olive oils.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/tree.py

"pairs": six generated classes in three pairs; halves of a pair shift a little against
each other, pairs a lot. They lie "near" each other, or "crossed": the halves of a pair
far apart, beside those of others, so that only the shift tells who belongs to whom.
"shift" is crossed as well, and fits with fewer classes are told apart by shift alone.
Right is a tree whose cut at three is the three pairs. Beside it: joining classes by the
distance of their means (Ward's) instead. "olive": 572 oils of nine areas in three
regions, dealt to twelve domains by area; the tree of the nine classes of a
`DensityMixture`, cut at three, is scored by the regions beside a free fit with three
classes, and beside the best that any grouping of these nine classes could reach. Labels
only score. Seconds of processor time stand beside those of the fit alone. Writes
results/tabular/tree.json.
"""

import json
import time
from itertools import product

import numpy as np
from _real import deal_rows, read
from _record import Record, Run, mean, options, spread
from scipy.cluster.hierarchy import fcluster, linkage

import shoal
from shoal.metrics import matched_accuracy

COMMAND = "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/tabular/tree.py"
KINDS = ("near", "crossed", "shift")
N_PAIRS, N_DOMAINS, N_ROWS = 3, 12, 250

Array = np.ndarray


def main() -> None:
    """Run what is missing, and print the summary."""
    parser = options(__doc__, "tree", seeds=3, olive=3)
    args = parser.parse_args()
    settings = {"n_pairs": N_PAIRS, "n_domains": N_DOMAINS, "n_rows": N_ROWS}
    record = Record(args.record, COMMAND, settings, ("kind", "seed"), summarize)
    record.fill(product(KINDS, range(args.seeds)), run_pairs)
    record.fill((("olive", seed) for seed in range(args.olive)), run_olive)
    record.write()
    print(json.dumps(summarize(record.runs), indent=1))


# ---- generated pairs -----------------------------------------------------------------


def draw(kind: str, seed: int) -> tuple[Array, Array, Array]:
    """Rows, domains and classes; classes 2 p and 2 p + 1 are a pair."""
    rng = np.random.default_rng([52, KINDS.index(kind), seed])
    pairs = rng.dirichlet(np.full(N_PAIRS, 0.8), size=N_DOMAINS)
    halves = rng.beta(2, 2, size=(N_DOMAINS, N_PAIRS))
    mixes = np.stack([pairs * halves, pairs * (1 - halves)], axis=2)
    mixes = mixes.reshape(N_DOMAINS, -1)
    domains = np.repeat(np.arange(N_DOMAINS), N_ROWS)
    y = (rng.random((len(domains), 1)) > mixes[domains].cumsum(axis=1)).sum(axis=1)
    angle = 2 * np.pi * np.arange(N_PAIRS) / N_PAIRS
    places = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    # where the two halves of each pair lie: together, or each with half of another
    home = np.arange(2 * N_PAIRS) // 2
    if kind != "near":
        home[1::2] = (home[1::2] + 1) % N_PAIRS
    centres = places[home] + 1.6 * (np.arange(2 * N_PAIRS) % 2)[:, None] * [1.0, 1.0]
    return centres[y] + 0.6 * rng.normal(size=(len(y), 2)), domains, y


def run_pairs(kind: str, seed: int) -> Run:
    """The fit of six classes, its tree, and Ward's."""
    X, domains, y = draw(kind, seed)
    begun = time.process_time()
    model = shoal.DomainMixture(2 * N_PAIRS, random_state=seed)
    model = model.fit(X, domains)
    fitting = time.process_time() - begun
    begun = time.process_time()
    fits = None
    if kind == "shift":
        fewer = range(2, 2 * N_PAIRS)
        fits = [
            shoal.DomainMixture(k, by="shift", random_state=seed).fit(X, domains)
            for k in fewer
        ]
    tree = shoal.class_tree(model, X, domains, fits=fits)
    growing = time.process_time() - begun
    used, label = np.unique(model.labels_, return_inverse=True)
    means = np.array([X[model.labels_ == c].mean(axis=0) for c in used])
    ward = fcluster(linkage(means, "ward"), N_PAIRS, "maxclust")[label]
    cut = tree.cut(N_PAIRS)
    return {
        "kind": kind,
        "seed": seed,
        "by": model._told_apart().split(":")[0],
        "accuracy": tidy(matched_accuracy(y, model.labels_)),
        "cut": tidy(matched_accuracy(y // 2, cut.predict(X, domains))),
        "ward": tidy(matched_accuracy(y // 2, ward)),
        "agreement": tidy(mean(one.agreement for one in tree.splits)),
        "seconds": tidy(growing),
        "seconds_of_fit": tidy(fitting),
    }


# ---- olive oils ----------------------------------------------------------------------


def run_olive(kind: str, seed: int) -> Run:
    """Nine classes, cut at three, beside three classes found at once."""
    frame = read("olive")
    area = np.unique(frame["area"], return_inverse=True)[1]
    region = np.unique(frame["label"], return_inverse=True)[1]
    which, domains = deal_rows(area, 12, 1.5, 572, seed)
    X = frame.drop(columns=["label", "area"]).to_numpy(float)[which]
    begun = time.process_time()
    model = shoal.DensityMixture(9, random_state=seed).fit(X, domains)
    fitting = time.process_time() - begun
    begun = time.process_time()
    tree = shoal.class_tree(model, X, domains)
    growing = time.process_time() - begun
    free = shoal.DensityMixture(3, random_state=seed).fit(X, domains)
    truth = region[which]
    own = [np.bincount(truth[model.labels_ == c], minlength=3) for c in range(9)]
    return {
        "kind": kind,
        "seed": seed,
        "rows": len(X),
        "accuracy": tidy(matched_accuracy(area[which], model.labels_)),
        "cut": tidy(matched_accuracy(truth, tree.cut(3).predict(X, domains))),
        "free": tidy(matched_accuracy(truth, free.labels_)),
        "best": tidy(sum(one.max() for one in own) / len(X)),
        "agreement": tidy(mean(one.agreement for one in tree.splits)),
        "seconds": tidy(growing),
        "seconds_of_fit": tidy(fitting),
    }


def tidy(value: float) -> float:
    """Four digits."""
    return round(float(value), 4)


def summarize(runs: list[Run]) -> dict:
    """Means and deviations by kind; a cut above .9 counts as right."""
    found = {}
    for kind in dict.fromkeys(run["kind"] for run in runs):
        own = [run for run in runs if run["kind"] == kind]
        known = [name for name in own[0] if name not in ("kind", "seed", "rows", "by")]
        found[kind] = {
            "runs": len(own),
            **{name: spread(run[name] for run in own) for name in known},
            "right": mean(run["cut"] > 0.9 for run in own),
        }
    return found


if __name__ == "__main__":
    main()
