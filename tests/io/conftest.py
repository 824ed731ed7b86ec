"""Small fitted models of every kind, made once, and the rows they were fitted on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.datasets import make_latent_shift


@dataclass(frozen=True)
class Fitted:
    """A fitted model and rows that it can be asked about."""

    model: Any
    X: Any
    domains: Any


def rows(n_rows: int = 400) -> tuple[Any, Any]:
    X, domains, _ = make_latent_shift(
        n_rows,
        n_classes=3,
        n_domains=4,
        n_features=3,
        separation=4.0,
        alpha=0.5,
        random_state=0,
    )
    return X, np.array(["north", "south", "east", "west"])[domains]


def fit(name: str) -> Fitted:
    X, domains = rows()
    counts = np.random.default_rng(0).poisson([[3, 1, 0, 2], [0, 2, 4, 1]] * 4, (8, 4))
    words = np.array([["a", "x"], ["b", "x"], ["c", "y"], ["a", "y"]], dtype=object)
    of_words = words[np.random.default_rng(1).integers(4, size=200)]
    mixture = shoal.DomainMixture(3, search=False, random_state=0)
    if name == "mixture":
        return Fitted(mixture.fit(X, domains), X, domains)
    if name == "mixture_rbf":
        rbf = shoal.DomainMixture(3, search=False, expansion="rbf", random_state=0)
        return Fitted(rbf.fit(X, domains), X, domains)
    if name == "mixture_discriminator":
        given = {"search": False, "expansion": "discriminator", "random_state": 0}
        return Fitted(shoal.DomainMixture(3, **given).fit(X, domains), X, domains)
    if name.startswith("ddfa_"):
        ddfa = shoal.DDFA(3, discriminator=name[5:], random_state=0)
        return Fitted(ddfa.fit(X, domains), X, domains)
    if name == "discrete_words":
        sites = (of_words[:, 0] == words[0, 0]) + np.arange(200) % 2
        return Fitted(
            shoal.DiscreteMixture(2, random_state=0).fit(of_words, sites),
            of_words,
            sites,
        )
    if name == "discrete_counts":
        sites = np.arange(8)
        return Fitted(
            shoal.DiscreteMixture(2, input="counts", random_state=0).fit(counts, sites),
            counts,
            sites,
        )
    if name == "discrete_clusters":
        discrete = shoal.DiscreteMixture(3, representation="pca", random_state=0)
        return Fitted(discrete.fit(X, domains), X, domains)
    if name == "merged":
        merged = mixture.fit(X, domains).merge("c0", "c2", name="both")
        return Fitted(merged.set_names({"c1": "other"}), X, domains)
    if name == "images":
        return _fit_images()
    raise ValueError(name)


def _fit_images() -> Fitted:
    """Stripes of two kinds in three domains, by a ResNet with random weights."""
    torch = pytest.importorskip("torch")
    from shoal.vision._mixture import ImageMixture
    from shoal.vision._nets import resnet

    rng = np.random.default_rng(0)
    sites = np.arange(90) % 3
    kinds = rng.random(90) < np.array([0.2, 0.5, 0.8])[sites]
    stripes = np.indices((8, 8))[kinds.astype(int)] % 2
    noise = rng.integers(90, size=(90, 8, 8, 3))
    pixels = (100 * stripes[..., None] + noise).astype(np.uint8)
    torch.manual_seed(0)
    model = ImageMixture(
        2,
        backbone=resnet(18),
        n_components=8,
        fine_tuning=None,
        device="cpu",
        random_state=0,
    )
    return Fitted(model.fit(pixels, sites), pixels, sites)


NAMES = (
    "mixture",
    "mixture_rbf",
    "mixture_discriminator",
    "ddfa_logistic",
    "ddfa_boost",
    "ddfa_mlp",
    "discrete_words",
    "discrete_counts",
    "discrete_clusters",
    "merged",
    "images",
)


@pytest.fixture(scope="session")
def all_fitted() -> dict[str, Fitted]:
    return {}


@pytest.fixture(params=NAMES)
def fitted(request: pytest.FixtureRequest, all_fitted: dict[str, Fitted]) -> Fitted:
    if request.param not in all_fitted:
        all_fitted[request.param] = fit(request.param)
    return all_fitted[request.param]


@pytest.fixture(scope="session")
def mixture() -> Fitted:
    return fit("mixture")


@pytest.fixture
def folder(tmp_path: Path, mixture: Fitted) -> Path:
    """A saved model that a test may spoil."""
    return shoal.save(mixture.model, tmp_path / "model")
