"""Penguins by island: the smallest honest success.

Three islands, three species, 342 birds. Two of the species breed on one island each, so
the diagnosis asks to look at them: a class that lives in one domain could be that
domain's instrument. Here it is a species.

    python examples/10_penguins.py
"""

from shoal import DomainMixture
from shoal.datasets import load_penguins
from shoal_bench.beside import print_comparison

data = load_penguins()
model = DomainMixture(random_state=0).fit(data.X, data.domains)
print_comparison(data, model)

intervals = model.bootstrap(data.X, data.domains, n_resamples=100, random_state=0)
print(intervals.to_pandas().round(3).to_string(index=False))
print(model.diagnose(data.X, data.domains, random_state=0))
