"""Generative adversarial networks: with a proof by DP-SGD, and without any.

`training` trains M models of one shape together, each bit-identical to one alone; `gradients` has
the critic's gradients record by record in closed form. `selu_training` does so for networks of more
layers with automatic gradients and no proof. Importing this package does not import
torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.gan.settings import GradientFlaw
from dpaudit_generators.gan.shallow import DpGan, Gan, GanModel
from dpaudit_generators.gan.wgan import ConditionalGanModel, WganGp, WganGpDpCritic

__all__ = [
    "ConditionalGanModel",
    "DpGan",
    "Gan",
    "GanModel",
    "GradientFlaw",
    "WganGp",
    "WganGpDpCritic",
]
