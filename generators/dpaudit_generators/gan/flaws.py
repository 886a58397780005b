"""What can be broken in DP-SGD on purpose, and what the noise depends on."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class GradientFlaw(StrEnum):
    """A way in which DP-SGD breaks its proof; each is named as the finding of a trace."""

    NOT_CLIPPED = "gradients-not-clipped"
    """Gradients are summed as they are."""
    PENALTY_NOT_CLIPPED = "gradient-part-not-clipped"
    """The gradient of the penalty, which reads the record too, is added after clipping."""
    NOT_SAMPLED = "batches-not-sampled"
    """Records are dealt to batches in turn, and the claim is that of independent sampling."""
    NOISE_SKIPPED = "gradient-noise-skipped"
    """Noise is added in the first step of each epoch only."""


class DpSgd(NamedTuple):
    """How a critic's gradients are protected.

    Attributes:
        rate: Probability that a record is in a batch.
        clip: Norm that no record's gradient exceeds.
        noise_multiplier: Standard deviation of the noise in units of `clip`.
        flaws: What is broken on purpose.
    """

    rate: float
    clip: float
    noise_multiplier: float
    flaws: frozenset[GradientFlaw] = frozenset()
