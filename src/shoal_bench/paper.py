"""The paper's method exactly as published, for comparison."""

from typing import Any

from shoal.ddfa import DDFA
from shoal.stages.published import published_stages


def ddfa(
    n_classes: int,
    *,
    n_clusters: int | None = None,
    discriminator: Any = "mlp",
    check_identifiable: bool = True,
    random_state: Any = None,
) -> DDFA:
    """DDFA as published: none of our corrections.

    Parameters
    ----------
    n_classes : int
    n_clusters : int, default=None
    discriminator : str or classifier, default="mlp"
        As in :func:`shoal.stages.published.published_stages`, which says what differs
        from the defaults.
    check_identifiable : bool, default=True
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    DDFA
    """
    return DDFA(
        n_classes,
        check_identifiable=check_identifiable,
        random_state=random_state,
        **published_stages(
            n_classes,
            n_clusters=n_clusters,
            discriminator=discriminator,
            random_state=random_state,
        ),
    )
