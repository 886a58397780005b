"""PATE-GAN (Jordon, Yoon and van der Schaar 2019) with a proof that holds.

Algorithm 1 of the paper, corrected where implementations break its premises: every constant is
public, records are dealt by a keyed hash, each teacher has a random stream of its own, noisy votes
are draws from a public table with an exact account, and the budget is checked before each label.
`from_noise` has the paper's generator. `from_marginals` has one whose records are drawn from noisy
marginals in place of a generator network, and weighted by the student. `mechanism` has what both
share, `teachers` is the only module that trains on real records.
Importing this package does not import torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.pate_gan.from_marginals import PateGanMarginals
from dpaudit_generators.pate_gan.from_noise import PateGan
from dpaudit_generators.pate_gan.model import PateGanBatch, PateGanModel
from dpaudit_generators.pate_gan.releases import Bounds, Proportions
from dpaudit_generators.pate_gan.settings import PUBLISHED, TrainingSettings

__all__ = [
    "PUBLISHED",
    "Bounds",
    "PateGan",
    "PateGanBatch",
    "PateGanMarginals",
    "PateGanModel",
    "Proportions",
    "TrainingSettings",
]
