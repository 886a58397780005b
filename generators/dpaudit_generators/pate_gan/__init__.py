"""PATE-GAN (Jordon, Yoon and van der Schaar 2019) with a proof that holds.

Algorithm 1 of the paper, corrected where implementations break its premises: every constant is
public, records are dealt by a keyed hash, each teacher has a random stream of its own, noisy votes
are draws from a public table with an exact account, and the budget is checked before each label. By
default the records that teachers judge are drawn from noisy marginals, and the student weights
them; `start=noise` trains the paper's generator network. `mechanism` has the generator, `teachers`
is the only module that trains on real records.
Importing this package does not import torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.pate_gan.mechanism import PateGan
from dpaudit_generators.pate_gan.model import Origin, PateGanBatch, PateGanModel
from dpaudit_generators.pate_gan.releases import Bounds, Proportions
from dpaudit_generators.pate_gan.settings import PUBLISHED, TrainingSettings

__all__ = [
    "PUBLISHED",
    "Bounds",
    "Origin",
    "PateGan",
    "PateGanBatch",
    "PateGanModel",
    "Proportions",
    "TrainingSettings",
]
