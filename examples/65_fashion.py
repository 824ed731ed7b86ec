"""Clothes by shop: pictures as rows, and shops that stock different things.

2,000 pictures of Fashion-MNIST (T-shirts, trousers, coats, sneakers, bags) go to six
shops, each with a mix of its own; what is in a picture does not depend on the shop.
Their 30 first principal components are enough for shoal to find the five kinds of
clothes from the shops alone. Networks on the pixels themselves: 70_fashion_images.py.

    python examples/65_fashion.py
"""

import os
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

from shoal import DomainMixture
from shoal.probability import normalize_rows
from shoal_bench.beside import print_comparison
from shoal_bench.datasets.idx import read_idx

# Beside this file, as in the project; copied elsewhere, in SHOAL_DATA_DIR.
BESIDE = Path(__file__).parent / "data"
FOLDER = BESIDE if BESIDE.is_dir() else Path(os.environ.get("SHOAL_DATA_DIR", "."))
N_SHOPS = 6

rng = np.random.default_rng(0)
images = read_idx(FOLDER / "fashion_images.idx.gz")
kinds, labels = np.unique(
    read_idx(FOLDER / "fashion_labels.idx.gz"), return_inverse=True
)
stock = rng.dirichlet(np.full(len(kinds), 0.7), N_SHOPS)  # p_d(y), one row per shop
shop_of_kind = normalize_rows(stock.T)
shops = np.array([rng.choice(N_SHOPS, p=shop_of_kind[label]) for label in labels])

pixels = images.reshape(len(images), -1) / 255
components = PCA(30, random_state=0).fit_transform(pixels)
data = Bunch(X=components, domains=shops, labels=labels)
model = DomainMixture(len(kinds), random_state=0).fit(data.X, data.domains)
print_comparison(data, model)
print(model.diagnose(data.X, data.domains, random_state=0))
