"""A clinician: how the mix of conditions differs between clinics, and at a new one.

Six clinics, three conditions that nobody has diagnosed, five blood values (drawn here,
so that the truth is known). A seventh clinic sends 80 patients: its mix comes with an
interval.

    python 02_clinician.py
"""

import matplotlib

matplotlib.use("agg")

import numpy as np

from shoal import DomainMixture

rng = np.random.default_rng(0)
NORMAL = np.array([14.0, 7.0, 90.0, 140.0, 1.0])  # Hb, leukocytes, glucose, Na, CRP
SPREAD = np.array([1.2, 1.5, 12.0, 3.0, 0.5])
CONDITIONS = NORMAL + np.array([[0, 0, 0, 0, 0], [-4, 1, 5, 0, 1], [0, 5, 10, -2, 3]])


def patients(mix, n):
    """Blood values of the patients of a clinic with this mix of conditions."""
    condition = rng.choice(3, n, p=mix)
    return CONDITIONS[condition] + SPREAD * rng.normal(size=(n, 5)), condition


mixes = rng.dirichlet([2, 1, 1], 6)
clinics = [patients(mix, 250) for mix in mixes]
X = np.concatenate([values for values, _ in clinics])
clinic = np.repeat([f"clinic {c}" for c in "ABCDEF"], 250)

model = DomainMixture(3, random_state=0).fit(X, clinic)
print(model.diagnose(X, clinic, random_state=0).verdict, "is the verdict")

values, truth = patients([0.2, 0.6, 0.2], 80)
new = model.adapt(values, random_state=0)
order = [
    int(np.argmax(np.bincount(model.predict(C[None]), minlength=3))) for C in CONDITIONS
]
for name, index in zip(("healthy", "anaemia", "infection"), order, strict=True):
    print(f"{name:10} {new.prevalence[index]:4.0%}, 90% interval "
          f"{new.low[index]:4.0%} to {new.high[index]:4.0%}")  # fmt: skip
print("in truth  ", np.round(np.bincount(truth, minlength=3) / len(truth), 2))

names = ["haemoglobin", "leukocytes", "glucose", "sodium", "CRP"]
ax = model.plot_classes(X, clinic, feature_names=names)
ax.figure.savefig("02_clinician.png", dpi=110)
