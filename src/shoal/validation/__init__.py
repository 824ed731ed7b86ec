"""The one door through which X and domains enter an estimator.

Each check raises one clear line: the argument, the value got, the fix.
"""

from shoal.validation._arguments import (
    check_choice,
    check_flag,
    check_real,
    check_whole,
    check_work,
    is_whole,
)
from shoal.validation._domains import (
    check_domains,
    check_n_classes,
    check_sample_weight,
    encode_column,
    encode_domains,
    is_scalar,
    resolve_domain_weight,
    row_weights,
)
from shoal.validation._rows import check_X, check_X_domains, is_sparse, varying_columns

__all__ = [
    "check_X",
    "check_X_domains",
    "check_choice",
    "check_domains",
    "check_flag",
    "check_n_classes",
    "check_real",
    "check_sample_weight",
    "check_whole",
    "check_work",
    "encode_column",
    "encode_domains",
    "is_scalar",
    "is_sparse",
    "is_whole",
    "resolve_domain_weight",
    "row_weights",
    "varying_columns",
]
