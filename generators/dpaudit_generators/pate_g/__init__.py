"""PATE-G: teachers label public rows with noise, and a GAN's critic learns from few labels.

Importing this package does not import torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.pate_g.mechanism import PateG, PateGModel

__all__ = ["PateG", "PateGModel"]
