"""Thyroid patients by referring clinic: mostly healthy everywhere, a hard case.

Five clinics, three diagnoses, five hormones. Most patients of every clinic have no
finding, and those differ a little between clinics: the assumption holds only roughly.

    SHOAL_DATA_DIR=... python examples/40_thyroid.py
"""

from shoal import DomainMixture
from shoal.datasets import load_thyroid
from shoal_bench.beside import print_comparison

data = load_thyroid()
model = DomainMixture(3, random_state=0).fit(data.X, data.domains)
print_comparison(data, model)
print(model.diagnose(data.X, data.domains, random_state=0))
