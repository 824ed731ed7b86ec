"""Mixes in the order of time: smoothed, with the points where they change."""

from shoal.analysis.trend._times import times_of
from shoal.analysis.trend._trend import ChangePoint, MixTrend, trend

__all__ = ["ChangePoint", "MixTrend", "times_of", "trend"]
