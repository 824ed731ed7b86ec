"""Trapped rodents by plot and by year: experiments move the mix of species.

Two measurements of four species. Plots are treatments that keep some species out; years
are the desert's own. Animals are caught again and again, so rows are not independent.

    python examples/20_rodents.py
"""

from pathlib import Path

from shoal import DomainMixture
from shoal.datasets import load_portal_rodents
from shoal_bench.beside import print_comparison

# Beside this file, as in the project; copied elsewhere, in SHOAL_DATA_DIR.
BESIDE = Path(__file__).parent / "data"
FOLDER = BESIDE if BESIDE.is_dir() else None

for domains in ("plot", "year"):
    data = load_portal_rodents(FOLDER, domains=domains, max_rows=6000, random_state=0)
    model = DomainMixture(4, random_state=0).fit(data.X, data.domains)
    print(f"--- domains are {domains}s")
    print_comparison(data, model)
    print(model.diagnose(data.X, data.domains, random_state=0))
