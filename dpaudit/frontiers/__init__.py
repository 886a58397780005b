"""Privacy and utility together: claim, lower bound and utility of generators over epsilons."""

from __future__ import annotations

from dpaudit.frontiers.plan import FrontierSettings
from dpaudit.frontiers.record import Frontier, FrontierPoint, frontier_schema
from dpaudit.frontiers.run import frontier, run_frontier

__all__ = [
    "Frontier",
    "FrontierPoint",
    "FrontierSettings",
    "frontier",
    "frontier_schema",
    "run_frontier",
]
