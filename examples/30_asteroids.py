"""Asteroids by decade of discovery: telescopes changed what was found, not the orbits.

Seventeen decades, three populations, three elements of the orbit. The mix moves a great
deal and what a population looks like hardly: what shoal asks for.

    SHOAL_DATA_DIR=... python examples/30_asteroids.py
"""

from shoal import DomainMixture
from shoal.datasets import load_asteroids
from shoal_bench.beside import print_comparison

data = load_asteroids()
model = DomainMixture(3, random_state=0).fit(data.X, data.domains)
print_comparison(data, model)
print(model.diagnose(data.X, data.domains, random_state=0))
