"""Activities by phone user: do not use.

Thirty people did the same six activities for the same time, each in their own way.
There is no shift of the mix to learn from, and a strong shift of how a class looks:
shoal finds people, not activities. The example is here for the verdict.

    SHOAL_DATA_DIR=... python examples/60_activities.py
"""

from shoal import DomainMixture
from shoal.datasets import load_activities
from shoal_bench.beside import print_comparison

data = load_activities()
model = DomainMixture(6, random_state=0).fit(data.X, data.domains)
print_comparison(data, model)
print(model.diagnose(data.X, data.domains, random_state=0))
