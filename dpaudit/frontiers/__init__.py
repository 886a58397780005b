"""Privacy and utility together: claim, proved bound and usefulness of generators over epsilons."""

from __future__ import annotations

from dpaudit.frontiers.record import Frontier, FrontierPoint, frontier_schema
from dpaudit.frontiers.run import frontier, run_frontier
from dpaudit.frontiers.settings import FrontierSettings

__all__ = [
    "Frontier",
    "FrontierPoint",
    "FrontierSettings",
    "frontier",
    "frontier_schema",
    "run_frontier",
]
