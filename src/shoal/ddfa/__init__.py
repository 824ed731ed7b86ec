"""DDFA: the four stages of the paper."""

from shoal.ddfa._estimator import DDFA

__all__ = ["DDFA"]
