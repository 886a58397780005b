"""Generative adversarial networks: with a proof by DP-SGD, and without any.

`training` trains M models of one shape together, each bit-identical to one alone; `gradients` has
the critic's gradients record by record in closed form. Importing this package does not import
torch; fitting and sampling do.
"""

from __future__ import annotations

from dpaudit_generators.gan.dp_gan import DpGan
from dpaudit_generators.gan.flaws import GradientFlaw
from dpaudit_generators.gan.model import GanBatch, GanModel
from dpaudit_generators.gan.plain import Gan

__all__ = ["DpGan", "Gan", "GanBatch", "GanModel", "GradientFlaw"]
