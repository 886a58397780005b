"""GANs whose networks have one hidden layer: without privacy, and with a critic trained by DP-SGD.

Many of them are trained together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
import pandas as pd

from dpaudit.account import dp_sgd_claim, dp_sgd_curve, dp_sgd_noise_multiplier
from dpaudit.errors import SettingsError
from dpaudit.model.claim import CurveClaim, PrivacyClaim
from dpaudit.model.encoding import encode, values_of, width
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_0, POSITIVE, check_number
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit_generators.batches import (
    TableGenerator,
    TracedGenerator,
    claim_of_model,
    kept_rows,
    record_bounds,
    whole_table,
)
from dpaudit_generators.gan.settings import DpSgd, GanLoss, GanSettings, GradientFlaw
from dpaudit_generators.networks.model import NetworkBatch, NetworkModel, logits

if TYPE_CHECKING:
    from torch import Tensor

    from dpaudit.plugins.recorder import Recorder
    from dpaudit_generators.gan.training import GanObserver

_CACHED: Final = 2**18
"""Models that are trained together should hold at most this many numbers in a step."""
_MOST_AT_ONCE: Final = 256


class GanModel(NetworkModel):
    """A trained generator network with leaky rectifiers, and its critic."""

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The critic's output for each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.
        """
        from dpaudit_generators.networks.source import Head

        encoded = encode(rows, self.schema).clip(0.0, 1.0)
        return logits(self.critic, encoded[:, Head(self.schema).order])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models."""
        from dpaudit_generators.networks.source import Head, sample

        schema = models[0].schema
        weights = [model.weights for model in models]
        rows = sample(weights, Head(schema), [()] * len(weights), n, seeds=seeds)
        return np.stack([values_of(mine.astype(np.float64), schema) for mine in rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedGan(GanSettings, TableGenerator[GanModel]):
    """A GAN of which many models are trained together.

    Attributes:
        schema: The public schema; bounds and categories come from it alone.
    """

    schema: Schema

    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    @property
    def models_at_once(self) -> int:
        """How many models train fastest together."""
        columns = width(self.schema) + 1
        held = 4 * self.batch * (columns + self.critic_hidden) + 2 * self.critic_hidden * columns
        return max(1, min(_MOST_AT_ONCE, _CACHED // held))

    def encoded(self, data: pd.DataFrame) -> Tensor:
        """Records as networks take them; a value beyond the bounds counts as the bound.

        Args:
            data: A table with the schema's columns.

        Returns:
            Rows [n, D] with a column of ones.
        """
        import torch

        from dpaudit_generators.networks.source import Head
        from dpaudit_generators.networks.stack import with_ones

        rows = np.clip(encode(data, self.schema), 0.0, 1.0)
        return with_ones(torch.from_numpy(rows[:, Head(self.schema).order]))

    def _models(
        self,
        data: pd.DataFrame,
        jobs: Sequence[Job],
        *,
        loss: GanLoss,
        penalty: float = 0.0,
        protection: DpSgd | None = None,
        observers: Sequence[GanObserver] = (),
    ) -> list[GanModel]:
        """Trains a model for each job; the arguments are those of `training.train`."""
        from dpaudit_generators.gan.training import GanTrainee, train
        from dpaudit_generators.networks.source import Head

        trained = train(
            self.encoded(data),
            [GanTrainee(kept_rows(job, len(data)), job.seed) for job in jobs],
            head=Head(self.schema),
            settings=self,
            loss=loss,
            penalty=penalty,
            protection=protection,
            observers=observers,
        )
        return [
            GanModel(schema=self.schema, weights=weights, critic=critic)
            for weights, critic in trained
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Gan(StackedGan):
    """A generative adversarial network (Goodfellow et al. 2014): its epsilon is infinite.

    The critic learns to distinguish records from synthetic ones, on minibatches drawn with
    replacement; the generator follows it (the non-saturating loss). Nothing is clipped and no noise
    is added, so nothing is claimed: an audit states the claim that it is to refute.

    Attributes:
        claim: None: nothing is claimed.
    """

    claim: ClassVar[None] = None

    def train(self, data: pd.DataFrame, jobs: Sequence[Job]) -> NetworkBatch[GanModel]:
        """As `fit_many`, on a table whose columns are the schema's."""
        return NetworkBatch(tuple(self._models(data, jobs, loss=GanLoss.CROSS_ENTROPY)))


@dataclass(frozen=True, kw_only=True, eq=False)
class DpGan(StackedGan, TracedGenerator[GanModel]):
    """A Wasserstein GAN with gradient penalty, its critic trained by DP-SGD (Abadi et al. 2016).

    The proof, in the order of the code: a step takes each record into its batch independently, with
    a public rate (`training.poisson_batches`). What a record adds to the step's sum, the gradient
    of the critic's loss with the penalty, depends on it and on what is public (`gradients`),
    and its norm is at most `clip`. Gaussian noise is added to the sum, an empty one too, and it is
    divided by the public `batch` (`training`). The number of records is used nowhere. Everything
    else, generator and synthetic records, follows from the noisy sums. Their number is public, so
    the cost is that of dp-accounting's privacy loss distributions for adding or removing one
    record.

    The noise is that of floating-point numbers (double precision), as in all common libraries of
    DP-SGD; the proof is about real ones.

    Attributes:
        epsilon: The privacy budget, which sets the noise; the claim is at most 0.1 % below.
        delta: The delta of the budget.
        rate: Probability that a record is in a batch. `batch` is the expected number in one, for
            tables of the size that the settings are made for.
        clip: Norm that no record's gradient exceeds.
        penalty: Weight of the gradient penalty.
        curve: Whether to claim the cost at every delta at once, a privacy curve: a claim that
            audits with few models can nearly reach.
        flaws: What is broken on purpose; the claim is then false.
        target: A record, a table of one row, on whose gradients `released` projects the noisy sums;
            an audit gives its own. No training depends on it.

    Raises:
        SettingsError: If a setting is out of range or no noise suits the budget.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    rate: float = 0.05
    clip: float = 1.0
    penalty: float = 10.0
    curve: bool = False
    flaws: Sequence[GradientFlaw] = ()
    target: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("clip", self.clip, POSITIVE)
        check_number("penalty", self.penalty, AT_LEAST_0)
        given = (self.flaws,) if isinstance(self.flaws, str) else tuple(self.flaws)
        for flaw in given:
            if flaw not in list(GradientFlaw):
                raise SettingsError(f"flaws has {flaw!r}: use {', '.join(GradientFlaw)}")
        object.__setattr__(self, "flaws", tuple(map(GradientFlaw, given)))
        _ = self.claim  # validates the budget, and is pickled along: no trial computes it again

    @cached_property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise in units of `clip`; does not depend on data."""
        return dp_sgd_noise_multiplier(
            epsilon=self.epsilon, delta=self.delta, steps=self.steps, rate=self.rate
        )

    @cached_property
    def claim(self) -> PrivacyClaim | CurveClaim:
        """What the noise proves, for adding or removing one record."""
        steps, rate, noise = self.steps, self.rate, self.noise_multiplier
        claim: PrivacyClaim | CurveClaim
        if self.curve:
            claim = dp_sgd_curve(steps=steps, rate=rate, noise_multiplier=noise)
        else:
            claim = dp_sgd_claim(steps=steps, rate=rate, noise_multiplier=noise, delta=self.delta)
        if not self.flaws:
            return claim
        broken = ", ".join(self.flaws)
        return replace(claim, source=f"false on purpose ({broken}); else {claim.source}")

    @property
    def protection(self) -> DpSgd:
        """How gradients are protected."""
        return DpSgd(self.rate, self.clip, self.noise_multiplier, frozenset(self.flaws))

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the projections of the noisy sums on the target; none without a target."""
        from dpaudit_generators.gan.training import projection_names

        return () if self.target is None else projection_names(self.protection)

    def fixes(self) -> dict[str, DpGan]:
        """The same generator without each of its flaws."""
        return {
            flaw.value: replace(self, flaws=tuple(one for one in self.flaws if one != flaw))
            for flaw in self.flaws
        }

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""
        from dpaudit_generators.gan.training import GradientRecording

        constants = {
            "batch": self.batch,
            "sampling_rate": self.rate,
            "clip": self.clip,
            "noise_multiplier": self.noise_multiplier,
            "gradient_penalty": self.penalty,
        }
        for name, value in constants.items():
            recorder.constant(name, value)
        record_bounds(self.schema, recorder)
        recording = GradientRecording(self.encoded(data), self.protection, recorder)
        model = self.train(data, [whole_table(seed)], recording)[0]
        return model.sample(n_rows, seed=seed)

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], observer: GanObserver | None = None
    ) -> NetworkBatch[GanModel]:
        """As `fit_many`, on a table whose columns are the schema's, followed by an observer."""
        from dpaudit_generators.gan.training import ProjectionLog
        from dpaudit_generators.toys import opposite

        log = None
        if self.target is not None:
            record = self.schema.canonical(self.target)
            pair = pd.concat([record, opposite(record, self.schema)], ignore_index=True)
            log = ProjectionLog(
                self.encoded(pair), self.protection, batch=self.batch, models=len(jobs)
            )
        models = self._models(
            data,
            jobs,
            loss=GanLoss.WASSERSTEIN,
            penalty=self.penalty,
            protection=self.protection,
            observers=[follower for follower in (log, observer) if follower is not None],
        )
        numbers = [()] * len(models) if log is None else [tuple(row) for row in log.numbers()]
        return NetworkBatch(
            tuple(
                replace(
                    model,
                    claim=claim_of_model(self.claim, seed=job.seed),
                    released_numbers=released,
                )
                for model, job, released in zip(models, jobs, numbers, strict=True)
            )
        )
