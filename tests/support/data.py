"""Small data that many tests need: clouds in domains, tables of sites, their files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Bunch

from shoal import DomainMixture
from shoal.datasets import draw_prevalence, make_latent_shift


def clouds(prevalence, n_samples=600, distance=5.0, seed=0):
    """Unit clouds on the corners of a simplex; rows, domains, labels."""
    prevalence = np.asarray(prevalence)
    rng = np.random.default_rng(seed)
    domains = np.sort(rng.integers(0, len(prevalence), n_samples))
    draws = rng.random(n_samples)[:, None] > prevalence.cumsum(axis=1)[domains]
    labels = np.minimum(draws.sum(axis=1), prevalence.shape[1] - 1)
    corners = distance * np.eye(prevalence.shape[1])
    return rng.normal(size=(n_samples, len(corners))) + corners[labels], domains, labels


def well_conditioned(rng, n_classes, n_domains):
    """Prevalences whose classes can be told apart."""
    seed = int(rng.integers(2**31))
    return draw_prevalence(n_classes, n_domains, 2, 25, random_state=seed)


def fitted_clouds(n_samples: int, **settings: Any) -> tuple[Bunch, DomainMixture]:
    """A problem of :func:`make_latent_shift` with its truth, and a quick fit to it."""
    bunch = make_latent_shift(n_samples, **settings, random_state=0, return_bunch=True)
    model = DomainMixture(settings["n_classes"], search=False, random_state=0)
    return bunch, model.fit(bunch.X, bunch.domains)


def site_table(n_rows: int = 60, **columns: Any) -> pd.DataFrame:
    """A small table that could be fitted: three sites, two measurements, and more."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "site": np.resize(["a", "b", "c"], n_rows),
            "size": rng.normal(size=n_rows).round(3),
            "mass": rng.normal(size=n_rows).round(3),
        }
    )
    return frame.assign(**columns)


def write_table(frame: pd.DataFrame, path: Path, chunk_rows: int | None = None) -> Path:
    """Write a table in the format that the file's name says; the path comes back.

    ``chunk_rows`` is the number of rows that formats in chunks put in each.
    """
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=chunk_rows)
    elif path.suffix in (".feather", ".arrow"):
        frame.to_feather(path, chunksize=chunk_rows)
    else:
        separator = "\t" if ".tsv" in path.suffixes else ","
        frame.to_csv(path, index=False, sep=separator)
    return path


class Says(ClassifierMixin, BaseEstimator):
    """A classifier that answers everything with one row of numbers."""

    def __init__(self, row=()):
        self.row = row

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.row, (len(X), 1))
