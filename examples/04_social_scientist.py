"""A social scientist: milieus of a survey, and where they live.

Answers are words, scales and numbers (drawn here for three milieus in seven regions). A
DataFrame is read as a file would be: categories become columns of their own, and the
answers that tell a milieu apart are named.

    python 04_social_scientist.py
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
import pandas as pd

from shoal import DomainMixture
from shoal.io import read

rng = np.random.default_rng(0)
mixes = rng.dirichlet([1.5, 1.5, 1.5], 7)
milieu = np.concatenate([rng.choice(3, 220, p=mix) for mix in mixes])
region = np.repeat(["North", "East", "South", "West", "Coast", "City", "Hills"], 220)
reads = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]])
typical = np.array([[7.5, 61, 2700], [5.0, 45, 2200], [2.5, 31, 1600]])
answers = typical[milieu] + [1.5, 9, 400] * rng.normal(size=(len(milieu), 3))
survey = pd.DataFrame(answers.round(), columns=["trust", "age", "income"])
survey["news"] = [rng.choice(["paper", "tv", "web"], p=reads[m]) for m in milieu]
survey["region"] = region

table = read(survey, domain="region")
model = DomainMixture(3, search=False, random_state=0).fit(table.X, table.domains)
print(pd.DataFrame(model.prevalence_, model.domains_).round(2))
print(model.diagnose(table.X, table.domains, random_state=0).verdict, "is the verdict")

ax = model.plot_classes(table.X, table.domains, feature_names=table.feature_names)
ax.figure.savefig("04_social_scientist.png", dpi=110)
