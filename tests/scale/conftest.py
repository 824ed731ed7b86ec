"""Small data sets cut into many parts."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shoal import DDFA, DomainMixture, scale
from shoal.datasets import make_latent_shift

pytest.importorskip("pyarrow")

PART_ROWS = 1_500


@dataclass
class World:
    """Rows on disk, and the truth about them."""

    folder: Path
    frame: pd.DataFrame
    features: list[str]
    prevalence: np.ndarray

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        return self.frame[self.features].to_numpy()


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> World:
    """12,000 rows of 5 sites in two files of several row groups."""
    bunch = make_latent_shift(
        12_000,
        n_classes=3,
        n_domains=5,
        n_features=4,
        separation=1.6,
        alpha=1.0,
        domain_sizes=[1, 2, 3, 4, 5],
        random_state=0,
        return_bunch=True,
    )
    features = [f"x{column}" for column in range(4)]
    frame = pd.DataFrame(bunch.X, columns=features)
    frame["site"] = np.array(["a", "b", "c", "d", "e"])[bunch.domains]
    frame = frame.sample(frac=1, random_state=0, ignore_index=True)
    folder = tmp_path_factory.mktemp("rows")
    frame.iloc[:7_000].to_parquet(folder / "first.parquet", row_group_size=700)
    frame.iloc[7_000:].to_parquet(folder / "second.parquet", row_group_size=900)
    return World(folder, frame, features, bunch.prevalence)


@pytest.fixture(params=["mixture", "ddfa"])
def estimator(request):
    """Both models that learn from a sample."""
    if request.param == "mixture":
        return DomainMixture(3, search=False, random_state=0)
    return DDFA(3, discriminator="logistic", cross_fit=3, random_state=0)


@pytest.fixture(scope="session")
def model(world):
    """A model that says which columns it takes."""
    return scale.fit(
        DomainMixture(3, search=False, random_state=0),
        world.folder, domain="site", sample=2_000, passes=1, workers=1,
    )  # fmt: skip
