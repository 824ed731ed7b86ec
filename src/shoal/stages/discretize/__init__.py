"""Discretize: from points f(x) to clusters c(x), the second stage (Algorithm 1).

Three ways: k-means (as published), the point masses of the proof of Theorem 2, and
clusters that are given. Points are rows of q(d|x), or of any other representation.
"""

from shoal.stages.discretize._kmeans import KMeansDiscretizer, assign_to_centers, kmeans
from shoal.stages.discretize._masses import (
    GivenClusters,
    PointMassDiscretizer,
    assign_to_masses,
    find_point_masses,
)

__all__ = [
    "GivenClusters",
    "KMeansDiscretizer",
    "PointMassDiscretizer",
    "assign_to_centers",
    "assign_to_masses",
    "find_point_masses",
    "kmeans",
]
