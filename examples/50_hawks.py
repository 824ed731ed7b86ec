"""Hawks by year: the mix hardly moves, so the years carry almost no information.

Twelve years, three species, five measurements. The species look the same every year,
as they should, but so does their mix: k-means, which ignores the years, does better.

    SHOAL_DATA_DIR=... python examples/50_hawks.py
"""

from shoal import DomainMixture
from shoal.datasets import load_hawks
from shoal_bench.beside import print_comparison

data = load_hawks()
model = DomainMixture(3, random_state=0).fit(data.X, data.domains)
print_comparison(data, model)
print(model.diagnose(data.X, data.domains, random_state=0))
