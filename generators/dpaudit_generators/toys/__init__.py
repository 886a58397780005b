"""Generators whose privacy is known exactly: an audit is calibrated on them."""

from __future__ import annotations

from dpaudit_generators.toys.histogram import HistogramModel, LaplaceHistogram
from dpaudit_generators.toys.marginals import GaussianMarginals, MarginalsModel
from dpaudit_generators.toys.planted import (
    Copycat,
    CopycatModel,
    RandomisedResponse,
    RepeatedRecord,
)
from dpaudit_generators.toys.uniform import NullGenerator, UniformModel

__all__ = [
    "Copycat",
    "CopycatModel",
    "GaussianMarginals",
    "HistogramModel",
    "LaplaceHistogram",
    "MarginalsModel",
    "NullGenerator",
    "RandomisedResponse",
    "RepeatedRecord",
    "UniformModel",
]
