"""A researcher: methods side by side where the truth is known, and honest intervals.

Three problems drawn with known classes and mixes: accuracy after matching, error of the
prevalences, and how often a 90% interval holds the truth.

    python 05_researcher.py
"""

import matplotlib

matplotlib.use("agg")

import numpy as np

from shoal import DDFA, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.metrics import match_classes, matched_accuracy, true_prevalence

METHODS = {
    "DomainMixture": lambda k, s: DomainMixture(k, search=False, random_state=s),
    "DDFA": lambda k, s: DDFA(k, random_state=s),
}
reached = {name: [] for name in METHODS}
covered = []
for seed in range(3):
    X, domains, labels = make_latent_shift(
        1500, n_classes=3, n_domains=6, separation=1.5, random_state=seed
    )
    for name, make in METHODS.items():
        model = make(3, seed).fit(X, domains)
        reached[name].append(matched_accuracy(labels, model.labels_))
        if name == "DomainMixture":
            truth, known, _ = true_prevalence(labels, domains)
            drawn = model.bootstrap(X, domains, n_resamples=40, random_state=seed)
            places = [
                list(known).index(label)
                for label in (match_classes(labels, model.labels_)[c] for c in range(3))
            ]
            held = (drawn.low <= truth[:, places]) & (truth[:, places] <= drawn.high)
            covered.append(held.mean())
            picture = drawn
for name, values in reached.items():
    print(f"{name:14} accuracy {np.mean(values):.3f} ± {np.std(values):.3f}")
print(f"90% intervals hold the truth in {np.mean(covered):.0%} of the cells")

model.plot_prevalence(picture).figure.savefig("05_researcher.png", dpi=110)
