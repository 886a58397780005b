"""Noisy marginals along a tree: a private generator with an exact claim, a strong baseline."""

from __future__ import annotations

from dpaudit_generators.marginals.mechanism import Marginals
from dpaudit_generators.marginals.release import Structure, TreeBatch, TreeModel

__all__ = ["Marginals", "Structure", "TreeBatch", "TreeModel"]
