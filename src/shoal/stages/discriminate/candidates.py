"""From what the user wrote to classifiers that can be fitted."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from shoal.stages.discriminate.auto import AUTO_CANDIDATES, worth_trying
from shoal.stages.discriminate.crossfit import takes_sample_weight
from shoal.stages.discriminate.named import named_discriminator
from shoal.stages.discriminate.oracle import OracleDiscriminator

__all__ = [
    "check_classifier",
    "is_choice",
    "is_given",
    "list_candidates",
    "needs_all_columns",
    "with_seeds",
]

Array = np.ndarray[Any, Any]


def is_choice(estimator: Any) -> bool:
    """Tell whether ``estimator`` leaves a choice: "auto" or a list."""
    return isinstance(estimator, (list, tuple)) or (
        isinstance(estimator, str) and estimator == "auto"
    )


def is_given(estimator: Any) -> bool:
    """Tell whether ``estimator`` is used as it is: frozen, or a function."""
    if isinstance(estimator, (FrozenEstimator, OracleDiscriminator)):
        return True
    return callable(estimator) and not hasattr(estimator, "fit")


def needs_all_columns(discriminator: Any) -> bool:
    """Tell whether a model knows columns by their place, so that none may be left out.

    It was fitted elsewhere, or reads rows as images (``needs_all_columns``).
    """
    model = getattr(discriminator, "estimator", discriminator)
    reads_images = bool(getattr(model, "needs_all_columns", False))
    return is_given(discriminator) or is_given(model) or reads_images


def check_classifier(estimator: Any) -> None:
    """Raise unless ``estimator`` is a classifier that can state q(d|x)."""
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        raise TypeError(
            "estimator must be 'auto', a short name, a scikit-learn classifier (an "
            f"object, not its class) or a callable, got {estimator!r}"
        )
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"{name} has no predict_proba, and a discriminator must state q(d|x); "
            f"wrap it, CalibratedClassifierCV({name}(...)), or choose another"
        )
    for key, value in estimator.get_params().items():
        if key.split("__")[-1] == "class_weight" and value is not None:
            raise ValueError(
                f"{key}={value!r} of {name} would change the shares of domains behind "
                "domain_weight's back; leave it None and set domain_weight"
            )


def with_seeds(estimator: Any, seed: int) -> Any:
    """Return a clone in which every ``random_state`` that was None is ``seed``."""
    copy = clone(estimator)
    unset = [
        key
        for key, value in copy.get_params().items()
        if key.split("__")[-1] == "random_state" and value is None
    ]
    return copy.set_params(**dict.fromkeys(unset, seed))


def list_candidates(
    estimator: Any,
    shape: tuple[int, int],
    counts: Array,
    *,
    weighted: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Unfitted classifiers by name, from simple to flexible.

    Parameters
    ----------
    estimator : str, classifier or list of them
    shape : tuple (n_samples, n_features)
        "auto" leaves out what does not suit a table of this size.
    counts : ndarray of shape (n_domains,)
        Rows of each domain.
    weighted : bool, default=False
        Whether the rows have weights; "auto" then leaves out what cannot use them.
    seed : int, default=0
        For every ``random_state`` that is None.
    """
    automatic = isinstance(estimator, str) and estimator == "auto"
    if automatic:
        wanted: list[Any] = [n for n in AUTO_CANDIDATES if worth_trying(n, *shape)]
    else:
        wanted = list(estimator) if is_choice(estimator) else [estimator]
    if not wanted:
        raise ValueError("estimator is an empty list; name at least one candidate")
    made: dict[str, Any] = {}
    for entry in wanted:
        model = named_discriminator(entry, counts) if isinstance(entry, str) else entry
        check_classifier(model)
        if weighted and automatic and not takes_sample_weight(model):
            continue
        name = entry if isinstance(entry, str) else type(entry).__name__
        if name in made:
            name = f"{name} {len(made) + 1}"
        made[name] = with_seeds(model, seed)
    return made
