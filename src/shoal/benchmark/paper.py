"""The paper's method exactly as published, for comparison."""

from importlib.util import find_spec
from typing import Any

from shoal.ddfa import DDFA
from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.discriminate import Discriminator
from shoal.stages.factorize import Factorizer

__all__ = ["ddfa"]

# faiss trains k-means on at most this many points per centroid unless told otherwise,
# and the published code did not tell it.
FAISS_POINTS_PER_CENTROID = 256


def ddfa(
    n_classes: int,
    *,
    n_clusters: int | None = None,
    discriminator: Any = "mlp",
    check_identifiable: bool = True,
    random_state: Any = None,
) -> DDFA:
    """DDFA as published: none of our corrections.

    A discriminator that keeps its best held-out epoch and judges its own training rows
    (no out-of-fold q(d|x), no calibration, no weighting of domains); k-means with 100
    iterations and 5 restarts, by faiss and its subsample where faiss is installed, by
    scikit-learn on all rows otherwise; one NMF from a random start; the pseudo-inverse,
    clipped where the paper is silent.

    Parameters
    ----------
    n_classes : int
    n_clusters : int, default=None
        m; None takes m = n_classes, as the paper does with pretrained networks (with
        random initialization it takes three times as many). Fewer than ``n_classes``
        only warn, since Appendix G runs them.
    discriminator : str or classifier, default="mlp"
    check_identifiable : bool, default=True
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    DDFA
    """
    faiss = find_spec("faiss") is not None
    clustering: dict[str, Any] = {"n_init": 5, "max_iter": 100}
    if faiss:
        clustering["engine"] = "faiss"
        clustering["max_points_per_centroid"] = FAISS_POINTS_PER_CENTROID
    return DDFA(
        n_classes,
        discriminator=Discriminator(
            discriminator,
            cross_fit=None,
            domain_weight="size",
            random_state=random_state,
        ),
        discretizer=KMeansDiscretizer(
            n_classes if n_clusters is None else n_clusters,
            random_state=random_state,
            **clustering,
        ),
        factorizer=Factorizer(method="nmf", allow_fewer=True),
        adjuster="pinv",
        domain_weight="size",
        check_identifiable=check_identifiable,
        random_state=random_state,
    )
