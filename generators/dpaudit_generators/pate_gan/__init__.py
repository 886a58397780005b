"""PATE-GAN (Jordon, Yoon and van der Schaar 2019) with a valid proof.

Algorithm 1 of the paper, corrected where implementations violate its premises: every constant is
public, a keyed hash assigns records to teachers, each teacher has its own random stream, noisy
votes are draws from a public table with exact accounting, and the budget is checked before each
label. `from_noise` has the paper's generator. `mechanism` has one whose records are drawn from
noisy marginals instead of a generator network, and weighted by the student, and the
common parts; `training.Teachers` alone trains on real records. Importing this package does
not import torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.pate_gan.from_noise import Bounds, PateGan, Proportions
from dpaudit_generators.pate_gan.mechanism import PateGanMarginals
from dpaudit_generators.pate_gan.model import PateGanModel
from dpaudit_generators.pate_gan.settings import PUBLISHED, TrainingSettings

__all__ = [
    "PUBLISHED",
    "Bounds",
    "PateGan",
    "PateGanMarginals",
    "PateGanModel",
    "Proportions",
    "TrainingSettings",
]
