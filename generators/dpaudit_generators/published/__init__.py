"""Published PATE-GANs, re-created as switches on one trainer, to detect each deviation.

`mechanism` has the generator with switches and the six published ones, `recipes` the
deviations and the hyperparameters. They are only for audits and studies: to synthesise data, use
`dpaudit_generators.pate_gan`. Importing this package does not import torch; fitting and sampling
do.
"""

from __future__ import annotations

from dpaudit_generators.published.mechanism import (
    Borealis,
    Original,
    PublishedModel,
    Smartnoise,
    SwitchedPateGan,
    Synthcity,
    Turing,
    Updated,
)
from dpaudit_generators.published.recipes import Switch

__all__ = [
    "Borealis",
    "Original",
    "PublishedModel",
    "Smartnoise",
    "Switch",
    "SwitchedPateGan",
    "Synthcity",
    "Turing",
    "Updated",
]
