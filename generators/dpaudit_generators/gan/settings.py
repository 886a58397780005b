"""The public constants of a training, and how DP-SGD protects it or is broken on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from dpaudit_generators.batches import check_network_settings

_COUNTS: Final = ("rounds", "critic_steps", "batch", "noise_width", "critic_hidden")
_RATES: Final = ("learning_rate", "critic_learning_rate")


@dataclass(frozen=True, kw_only=True)
class GanSettings:
    """Sizes, numbers of steps and rates: constants that do not depend on any private table.

    Attributes:
        rounds: Steps of the generator.
        critic_steps: Steps of the critic before each step of the generator.
        batch: Synthetic records in a minibatch, and real ones (for DP-SGD, their expected number).
        noise_width: Dimension of the generator's normal noise.
        generator_hidden: Widths of the generator's hidden layers.
        critic_hidden: Width of the critic's one hidden layer.
        learning_rate: Learning rate of the generator (Adam).
        critic_learning_rate: Learning rate of the critic.
        betas: Adam's decay rates of the two moments, of both networks.

    Raises:
        SettingsError: If a setting is out of range.
    """

    rounds: int = 60
    critic_steps: int = 5
    batch: int = 32
    noise_width: int = 15
    generator_hidden: Sequence[int] = (31,)
    critic_hidden: int = 16
    learning_rate: float = 2e-3
    critic_learning_rate: float = 5e-3
    betas: Sequence[float] = (0.5, 0.9)

    def __post_init__(self) -> None:
        check_network_settings(self, counts=_COUNTS, layers=("generator_hidden",), rates=_RATES)

    @property
    def steps(self) -> int:
        """Total number of steps of the critic."""
        return self.rounds * self.critic_steps


class GanLoss(StrEnum):
    """What the critic learns."""

    CROSS_ENTROPY = "cross-entropy"
    """Cross-entropy of real and synthetic records (Goodfellow et al. 2014)."""
    WASSERSTEIN = "wasserstein"
    """Mean score of synthetic minus real records (Arjovsky, Chintala and Bottou 2017)."""


class GradientFlaw(StrEnum):
    """A way in which DP-SGD breaks its proof; each is named as the finding of a trace."""

    NOT_CLIPPED = "gradients-not-clipped"
    """Gradients are summed as they are."""
    PENALTY_NOT_CLIPPED = "gradient-part-not-clipped"
    """The gradient of the penalty, which reads the record too, is added after clipping."""
    NOT_SAMPLED = "batches-not-sampled"
    """Records are dealt to batches in turn, but the claim assumes independent sampling."""
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
