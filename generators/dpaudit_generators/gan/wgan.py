"""Wasserstein GANs with gradient penalty that draw a record for a label; no privacy claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode, values_of, width
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_0, POSITIVE, check_number
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit_generators.batches import TableGenerator, kept_rows, shares_of
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.networks.model import (
    Activation,
    NetworkBatch,
    NetworkModel,
    Weights,
    perceptron,
)

_CACHED: Final = 2**19
"""Models that are trained together should hold at most this many numbers in a step."""
_MOST_AT_ONCE: Final = 64


_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805
"""The constants of SELU."""


def selu(values: FloatArray) -> FloatArray:
    """SELU (Klambauer et al. 2017), the activation of all networks here."""
    below = _ALPHA * np.expm1(np.minimum(values, 0.0))
    found: FloatArray = _SCALE * np.where(values > 0.0, values, below)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalGanModel(NetworkModel):
    """A trained generator network with SELU that takes the label as input, and its critic.

    Attributes:
        proportions: Proportions of the label's classes among the records; empty without a label.
    """

    proportions: tuple[float, ...]

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The critic's output for each row [n], without clipping and noise.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.source import Head

        head = Head(self.schema, given=len(self.proportions) > 0)
        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return perceptron(self.critic, encoded[:, head.order], selu)[1][:, 0]

    def parameters(self) -> FloatArray:
        """All weights of generator and critic, and the proportions, flat."""
        return np.concatenate([super().parameters(), self.proportions])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models, a label first and then a record for it."""
        schema = models[0].schema
        proportions = [model.proportions for model in models]
        weights = [model.weights for model in models]
        rows = sample_encoded(weights, schema, proportions, n, seeds=seeds)
        return np.stack([values_of(mine, schema) for mine in rows])


def sample_encoded(
    weights: Sequence[Weights],
    schema: Schema,
    proportions: Sequence[Sequence[float]],
    n: int,
    *,
    seeds: Sequence[int | None],
) -> FloatArray:
    """Draws encoded records [M, n, width] from generator networks with SELU.

    Args:
        weights: The weights of each model.
        schema: The schema of their records.
        proportions: For each model, the proportions of the label's classes, or none.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
    """
    from dpaudit_generators.networks.source import Head, sample

    head = Head(schema, given=len(proportions[0]) > 0)
    rows = sample(weights, head, proportions, n, seeds=seeds, activation=Activation.SELU)
    return rows.astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class WganGp(GanSettings, TableGenerator[ConditionalGanModel]):
    """A conditional Wasserstein GAN with gradient penalty: its epsilon is infinite.

    The generator of Triastcyn and Faltings 2018 (section 5.2), after Gulrajani et al. 2017, with
    dense layers instead of convolutions. Both networks have SELU. A label is drawn
    in the proportions of the table, and the generator network takes it as an input; the critic sees
    whole records. Where the schema names no label with categories, all columns are generated.

    Nothing is claimed: an audit states the claim that it is to refute.

    Attributes:
        schema: The public schema; bounds and categories come from it alone.
        critic_hidden: Width of each of the critic's two hidden layers.
        penalty: Weight of the gradient penalty.
        claim: None: nothing is claimed.

    Raises:
        SettingsError: If a setting is out of range.
    """

    schema: Schema
    rounds: int = 100
    batch: int = 64
    noise_width: int = 31
    generator_hidden: Sequence[int] = (63,)
    critic_hidden: int = 32
    learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    betas: Sequence[float] = (0.0, 0.9)
    penalty: float = 10.0

    claim: ClassVar[None] = None
    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("penalty", self.penalty, AT_LEAST_0)

    @property
    def noisy_layer(self) -> tuple[float, float] | None:
        """Largest norm of the critic's last hidden layer, and its noise; None for neither."""
        return None

    @property
    def models_at_once(self) -> int:
        """How many models train fastest together."""
        columns = width(self.schema) + 1
        held = 4 * self.batch * (columns + 2 * self.critic_hidden)
        held += 2 * self.critic_hidden * (columns + self.critic_hidden)
        return max(1, min(_MOST_AT_ONCE, _CACHED // held))

    def train(self, data: pd.DataFrame, jobs: Sequence[Job]) -> NetworkBatch[ConditionalGanModel]:
        """As `fit_many`, on a table whose columns are the schema's."""
        from dpaudit_generators.gan.selu_training import train_wgans
        from dpaudit_generators.gan.training import GanTrainee
        from dpaudit_generators.networks.source import Head

        head = Head(self.schema, given=self._has_classes)
        rows = np.clip(encode(data, self.schema), 0.0, 1.0)[:, head.order]
        trainees = [GanTrainee(kept_rows(job, len(data)), job.seed) for job in jobs]
        labels = rows[:, head.width - head.classes :]
        # Equal shares if no record has a class; none without classes.
        proportions = [tuple(shares_of(labels[own.owned].sum(0)).tolist()) for own in trainees]
        trained = train_wgans(
            rows,
            trainees,
            proportions,
            head=head,
            settings=self,
            penalty=self.penalty,
            noisy_layer=self.noisy_layer,
        )
        return NetworkBatch(
            tuple(
                ConditionalGanModel(
                    schema=self.schema,
                    weights=weights,
                    critic=critic,
                    proportions=shares,
                )
                for (weights, critic), shares in zip(trained, proportions, strict=True)
            )
        )

    @property
    def _has_classes(self) -> bool:
        return any(
            column.name == self.schema.label and not column.kind.numeric
            for column in self.schema.columns
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class WganGpDpCritic(WganGp):
    """A `wgan-gp` whose critic has a noisy layer: the "DP critic" of Triastcyn and Faltings 2018.

    The critic's last hidden layer is clipped to a norm and gets Gaussian noise (section 4.1 there)
    whenever it reads a record. As the paper says, this protects the critic's output and not the
    generator, whose gradient goes through the critic's weights; it claims no differential privacy,
    and neither is any claimed here.

    Attributes:
        clip: Norm that the last hidden layer does not exceed.
        noise: Standard deviation of the noise on each of its numbers.

    Raises:
        SettingsError: If a setting is out of range.
    """

    clip: float = 1.0
    noise: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("clip", self.clip, POSITIVE)
        check_number("noise", self.noise, AT_LEAST_0)

    @property
    def noisy_layer(self) -> tuple[float, float]:
        """Largest norm of the critic's last hidden layer, and its noise."""
        return self.clip, self.noise
