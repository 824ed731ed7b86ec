"""A cell biologist: the composition of eight donors, without annotating a cell.

Counts of 60 genes in 2,400 cells of four types (drawn here); donors differ in their mix
of types. Counts become log shares, classes become a column beside the cells, and the
table of counts per donor is what compositional tests take.

    python 03_cell_biologist.py
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
import pandas as pd

from shoal import DomainMixture
from shoal.metrics import matched_accuracy

rng = np.random.default_rng(0)
expression = rng.gamma(0.6, 2.0, size=(4, 60)) + 0.05  # mean counts of each type
mixes = rng.dirichlet([2, 2, 1, 1], 8)
types = np.concatenate([rng.choice(4, 300, p=mix) for mix in mixes])
counts = rng.poisson(expression[types])
obs = pd.DataFrame({"donor": np.repeat([f"donor{d}" for d in range(1, 9)], 300)})

depth = counts.sum(axis=1, keepdims=True)
X = np.log1p(1e3 * counts / np.maximum(depth, 1))
model = DomainMixture(4, search=False, random_state=0).fit(X, obs["donor"])

obs["shoal_class"] = [f"c{label}" for label in model.labels_]
print(pd.crosstab(obs["donor"], obs["shoal_class"]))
print("cells in the right type:", round(matched_accuracy(types, model.labels_), 3))

genes = [f"gene{number:02d}" for number in range(60)]
ax = model.plot_classes(X, obs["donor"], feature_names=genes)
ax.figure.savefig("03_cell_biologist.png", dpi=110)
