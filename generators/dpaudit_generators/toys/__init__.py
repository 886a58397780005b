"""Generators with exactly known privacy, for calibrating audits."""

from __future__ import annotations

from dpaudit_generators.toys.counts import (
    GaussianMarginals,
    LaplaceHistogram,
    MarginalsModel,
)
from dpaudit_generators.toys.planted import (
    Copycat,
    CopycatModel,
    Dawdler,
    NullGenerator,
    RandomisedResponse,
    RepeatedRecord,
    UniformModel,
)

__all__ = [
    "Copycat",
    "CopycatModel",
    "Dawdler",
    "GaussianMarginals",
    "LaplaceHistogram",
    "MarginalsModel",
    "NullGenerator",
    "RandomisedResponse",
    "RepeatedRecord",
    "UniformModel",
]
