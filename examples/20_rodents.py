"""Trapped rodents by plot and by year: experiments move the mix of species.

Two measurements of four species. Plots are treatments that keep some species out; years
are the desert's own. Animals are caught again and again, so rows are not independent.

    python examples/20_rodents.py
"""

from pathlib import Path

from shoal import DomainMixture
from shoal.datasets import load_portal_rodents
from shoal_bench.beside import print_comparison

FILE = Path(__file__).parent / "data" / "portal_rodent_2016-03-10.csv.xz"

for domains in ("plot", "year"):
    data = load_portal_rodents(FILE, domains=domains, max_rows=6000, random_state=0)
    model = DomainMixture(4, random_state=0).fit(data.X, data.domains)
    print(f"--- domains are {domains}s")
    print_comparison(data, model)
    print(model.diagnose(data.X, data.domains, random_state=0))
