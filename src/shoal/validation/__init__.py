"""The one door through which X and domains enter an estimator.

Each check raises one clear line: the argument, the value got, the fix. Listed is what
an estimator of another package needs; ours take the rest from where it is.
"""

from shoal.validation._arguments import check_choice, check_real, check_whole
from shoal.validation._domains import check_domains, resolve_domain_weight, row_weights
from shoal.validation._rows import check_X, check_X_domains

__all__ = [
    "check_X",
    "check_X_domains",
    "check_choice",
    "check_domains",
    "check_real",
    "check_whole",
    "resolve_domain_weight",
    "row_weights",
]
