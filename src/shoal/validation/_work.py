"""Settings that every estimator has: switches, threads and seeds."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from shoal.validation._domains import is_whole
from shoal.validation._kinds import shown


def check_flag(**given: Any) -> None:
    """Refuse switches, given by name, that are neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")


def check_work(settings: dict[str, Any]) -> None:
    """Refuse an ``n_jobs`` or a ``random_state`` that is none, where there is one."""
    n_jobs, seed = settings.get("n_jobs"), settings.get("random_state")
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number but 0 (-1: all cores), got "
            f"{shown(n_jobs)}"
        )
    try:
        check_random_state(seed)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, a whole number from 0 to 2**32 - 1 or a "
            f"numpy RandomState, got {shown(seed)}"
        ) from error
