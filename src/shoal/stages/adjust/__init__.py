"""Adjust: from q(d|x) and q(d|y) to q(y|x), the last stage (Algorithm 2).

Each row of q(d|x) is a mixture of the rows of ``domain_given_class``, and its weights
are the distribution over classes that we want::

    domain_given_x (n, r)  =  class_given_x (n, k)  @  domain_given_class (k, r)

With estimated tables no weights fit exactly. The three solvers differ in what they do
then: :func:`pseudo_inverse` is as published and may leave the simplex,
:func:`simplex_least_squares` takes the nearest mixture, :func:`maximum_likelihood` the
one under which the domains are most probable (the most accurate in our measurements,
above all when there are many classes).

A ``domain_weight`` other than equal needs no argument here: it is already inside
``domain_given_class`` (see :func:`shoal.probability.domain_given_class`) and must be
the one that ``domain_given_x`` was corrected to.
"""

from shoal.stages.adjust._estimator import Adjuster, adjust
from shoal.stages.adjust._methods import (
    maximum_likelihood,
    pseudo_inverse,
    simplex_least_squares,
)

__all__ = [
    "Adjuster",
    "adjust",
    "maximum_likelihood",
    "pseudo_inverse",
    "simplex_least_squares",
]
