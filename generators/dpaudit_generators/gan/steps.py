"""What each real record adds to a step of the critics: its gradient, clipped or not."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import torch
from torch import Tensor

from dpaudit_generators.gan.flaws import DpSgd, GradientFlaw
from dpaudit_generators.gan.gradients import (
    Pull,
    RecordGradients,
    ShallowCritics,
    both,
    by_rows,
    look,
    loss_gradients,
    penalty_gradients,
    pull,
)
from dpaudit_generators.networks.slices import logistic


class GanLoss(StrEnum):
    """What the critic learns."""

    CROSS_ENTROPY = "cross-entropy"
    """To tell real records from synthetic ones (Goodfellow et al. 2014)."""
    WASSERSTEIN = "wasserstein"
    """To score real records higher (Arjovsky, Chintala and Bottou 2017)."""


class Objective(NamedTuple):
    """What the critic minimises.

    Attributes:
        loss: The loss.
        penalty: Weight of the gradient penalty; 0 for none.
    """

    loss: GanLoss
    penalty: float


class Scene(NamedTuple):
    """What is public in a step and the same for every real record.

    Attributes:
        critics: The critics.
        shared: The mean gradient over the synthetic minibatch.
        point: What enters the rectifiers at the point from which the penalty looks [M, 1, H].
        mixing: How near to the record the penalty looks [M].
        objective: What the critics minimise.
    """

    critics: ShallowCritics
    shared: Pull
    point: Tensor
    mixing: Tensor
    objective: Objective

    def of(self, models: Tensor) -> Scene:
        """That of some models."""
        shared = Pull(*(whole[models] for whole in self.shared))
        critics = self.critics.of(models)
        return Scene(critics, shared, self.point[models], self.mixing[models], self.objective)


class Contribution(NamedTuple):
    """A part of what records add to the sum.

    Attributes:
        gradients: The gradients.
        factors: By which each is multiplied [M, n].
    """

    gradients: RecordGradients
    factors: Tensor


def scene(critics: ShallowCritics, fakes: Tensor, mixing: Tensor, objective: Objective) -> Scene:
    """What a synthetic minibatch [M, n, D] means for a step."""
    side = look(critics, fakes)
    weights = _uncertainty(-side.value, objective.loss) / fakes.shape[1]
    return Scene(critics, pull(fakes, side, weights), side.before[:, :1], mixing, objective)


def contributions(scene: Scene, rows: Tensor, protection: DpSgd | None) -> tuple[Contribution, ...]:
    """What real records [M, n, D] add to the sum, each by itself.

    A record's contribution depends on that record and on what is public, on no other record: this
    is what makes its norm the sensitivity of the sum.
    """
    side = look(scene.critics, rows)
    weights = _uncertainty(side.value, scene.objective.loss)
    gradients = loss_gradients(rows, side, weights, scene.shared)
    ones = torch.ones_like(side.value)
    if scene.objective.penalty > 0.0:
        critics, _, point, mixing, (_, weight) = scene
        penalty = penalty_gradients(critics, rows, side, point, mixing, weight)
        if protection is not None and GradientFlaw.PENALTY_NOT_CLIPPED in protection.flaws:
            return (_clipped(gradients, protection, ones), Contribution(penalty, ones))
        gradients = both(gradients, penalty)
    return (_clipped(gradients, protection, ones),)


def generator_slope(critics: ShallowCritics, fakes: Tensor, loss: GanLoss) -> Tensor:
    """The gradient of the generator's loss with respect to its records [M, n, D].

    The loss is the mean of -f, or of log(1 + exp(-f)) for a critic that learns a cross-entropy.
    """
    side = look(critics, fakes)
    weights = _uncertainty(side.value, loss) / fakes.shape[1]
    return -by_rows(critics, side.slope * weights[..., None])


def _clipped(gradients: RecordGradients, protection: DpSgd | None, ones: Tensor) -> Contribution:
    if protection is None or GradientFlaw.NOT_CLIPPED in protection.flaws:
        return Contribution(gradients, ones)
    return Contribution(gradients, (protection.clip / gradients.norms()).clamp_max_(1.0))


def _uncertainty(values: Tensor, loss: GanLoss) -> Tensor:
    """How much an output counts: always 1, or the probability that the critic is wrong."""
    return torch.ones_like(values) if loss is GanLoss.WASSERSTEIN else logistic(-values)
