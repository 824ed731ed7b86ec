"""The four stages exactly as published, none of our corrections, for comparison."""

from importlib.util import find_spec
from typing import Any

from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.discriminate import Discriminator, EarlyStoppedMLP
from shoal.stages.factorize import Factorizer

# faiss trains k-means on at most this many points per centroid unless told otherwise,
# and the published code did not tell it.
FAISS_POINTS_PER_CENTROID = 256


def published_network() -> Pipeline:
    """A small network, trained as the paper trains its own from a random start.

    Adam at 0.001 without weight decay, batches of 32, all 100 epochs, of which the one
    with the best held-out loss is kept (DDFA (RI), Appendix D; the text says that
    training stops early, the published code did not). Two things differ: three layers
    of 64 units on standardized columns stand in for the residual network on pixels, and
    the step size does not decay by 0.97 an epoch, for which scikit-learn's Adam has no
    setting.
    """
    return make_pipeline(
        StandardScaler(),
        EarlyStoppedMLP(
            alpha=0.0,
            batch_size=32,
            learning_rate_init=1e-3,
            max_epochs=100,
            patience=None,
        ),
    )


def published_stages(
    n_classes: int,
    *,
    n_clusters: int | None = None,
    discriminator: Any = "mlp",
    random_state: Any = None,
) -> dict[str, Any]:
    """Arguments of :class:`shoal.DDFA` that make it the published method.

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
        "mlp" is :func:`published_network`; anything else as in
        :class:`~shoal.stages.discriminate.Discriminator`.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    dict of str to object
        ``DDFA(n_classes, **published_stages(n_classes))``.

    Examples
    --------
    >>> from shoal import DDFA
    >>> from shoal.stages.published import published_stages
    >>> DDFA(3, **published_stages(3)).adjuster
    'pinv'
    """
    if isinstance(discriminator, str) and discriminator == "mlp":
        discriminator = published_network()
    clustering: dict[str, Any] = {"n_init": 5, "max_iter": 100, "max_samples": None}
    if find_spec("faiss") is not None:
        clustering["engine"] = "faiss"
        clustering["max_points_per_centroid"] = FAISS_POINTS_PER_CENTROID
    return {
        "discriminator": Discriminator(
            discriminator,
            cross_fit=None,
            domain_weight="size",
            random_state=random_state,
        ),
        "discretizer": KMeansDiscretizer(
            n_classes if n_clusters is None else n_clusters,
            random_state=random_state,
            **clustering,
        ),
        "factorizer": Factorizer(method="nmf", allow_fewer=True),
        "adjuster": "pinv",
        "domain_weight": "size",
    }
