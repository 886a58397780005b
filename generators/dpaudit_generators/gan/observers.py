"""Observers of a training by DP-SGD: projections of its noisy sums, and the records of a trace.

The proof covers publishing the noisy sum of every step. An attacker who knows a record knows its
gradient in every step, because everything else it depends on is public, and so projects the sums
onto it (Nasr et al. 2021). These projections, added up over the steps, are the attack's features.
They follow from published sums, public settings and the record alone, so a training does not depend
on which record it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.recorder import Recorder
from dpaudit_generators.gan.gradients import contributions
from dpaudit_generators.gan.settings import DpSgd
from dpaudit_generators.gan.training import GanStep, batches_of_an_epoch

MOST_PHASES: Final = 32
"""Up to this many steps in an epoch, the sums over each of them are kept separately."""
_NAMES: Final = ("likeliest direction", "direction apart from others")
_SMALL: Final = 1e-12


def projection_names(protection: DpSgd) -> tuple[str, ...]:
    """Names of the numbers that `ProjectionLog.numbers` gives for each model."""
    phases = batches_of_an_epoch(protection.rate)
    phases = phases if 1 < phases <= MOST_PHASES else 0
    names = [
        f"noisy gradients, {name}: {what}"
        for name in _NAMES
        for what in (
            "sum of projections",
            "log-likelihood ratio",
            "largest projection",
            *(f"projections in step {step} of every {phases}" for step in range(1, phases + 1)),
        )
    ]
    return (*names, "mean square of the noisy sums")


class ProjectionLog:
    """Projects the noisy sums of M models on the gradients of one record.

    All other records are assumed to equal its opposite, with the expected number of them in a
    batch. Under that model a sum without the record is about normal in every direction. The first
    direction is the one in which the record shows most (a linear discriminant). The second is the
    part of its gradient that is orthogonal to that of the others: there their number does not
    matter.

    Args:
        pair: The record and its opposite, encoded with their ones [2, D].
        protection: How gradients are protected.
        batch: Expected number of records in a batch.
        models: Number M.
    """

    def __init__(self, pair: Tensor, protection: DpSgd, *, batch: int, models: int) -> None:
        self._pair, self._protection = pair[None].expand(models, -1, -1), protection
        self._batch, self._every = batch, batches_of_an_epoch(protection.rate)
        self._phases = np.zeros((2, models, self._every))
        self._ratios = np.zeros((2, models))
        self._largest = np.full((2, models), -np.inf)
        self._square = np.zeros(models)
        self._steps = 0

    def on_step(self, step: GanStep) -> None:
        """Adds the projections of a step."""
        parts = contributions(step.scene, self._pair, self._protection)
        both = sum(one.gradients.apart() * one.factors[..., None] for one in parts)
        assert isinstance(both, Tensor)
        own, other = both[:, 0], both[:, 1]
        noise = (self._protection.clip * self._protection.noise_multiplier) ** 2
        spread = self._batch * (1.0 - self._protection.rate)  # of the number of others
        common, length = _dot(own, other), _dot(other, other).clamp_min(_SMALL)
        centred = step.total - self._batch * other
        shares = (spread * common / (noise + spread * length), common / length)
        for place, share in enumerate(shares):
            direction = own - share[:, None] * other
            variance = noise * _dot(direction, direction) + spread * _dot(direction, other) ** 2
            deviation = variance.clamp_min(_SMALL).sqrt()
            seen = (_dot(centred, direction) / deviation).numpy()
            shift = (_dot(own, direction) / deviation).numpy()
            self._phases[place, :, step.number % self._every] += seen * shift
            self._largest[place] = np.maximum(self._largest[place], seen)
            self._ratios[place] += self._ratio(seen * shift - shift**2 / 2.0)
        self._square += _dot(step.total, step.total).numpy() / step.total.shape[1] / noise
        self._steps += 1

    def numbers(self) -> FloatArray:
        """The numbers named by `projection_names`, for each model [M, r]."""
        columns = []
        for phases, ratio, largest in zip(self._phases, self._ratios, self._largest, strict=True):
            columns += [phases.sum(-1), ratio, largest]
            if 1 < self._every <= MOST_PHASES:
                columns += list(phases.T)
        return np.stack([*columns, self._square / self._steps], axis=1)

    def _ratio(self, inside: FloatArray) -> FloatArray:
        """The log-likelihood ratio of a step, from that of a step with the record in its batch."""
        rate = self._protection.rate
        if rate == 1.0:
            return inside
        ratio: FloatArray = np.logaddexp(np.log1p(-rate), np.log(rate) + inside)
        return ratio


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(-1)


class GradientRecording:
    """Records a training of one model for `dpaudit trace`.

    Args:
        rows: The table, encoded with its ones.
        protection: How gradients are protected.
        recorder: Receives the records.
    """

    def __init__(self, rows: Tensor, protection: DpSgd, recorder: Recorder) -> None:
        self._rows, self._protection, self._recorder = rows, protection, recorder

    def on_step(self, step: GanStep) -> None:
        """Records a step: each record's gradient is computed again, by itself."""
        assert step.noise is not None
        rows = step.selected[0]
        clipped = added = np.empty(0)
        if len(rows):
            parts = contributions(step.scene, self._rows[rows][None], self._protection)
            norms = [one.gradients.norms() * one.factors for one in parts]
            clipped = norms[0][0].numpy()
            whole = torch.stack([one.gradients.apart() * one.factors[..., None] for one in parts])
            added = whole.sum(0).norm(dim=-1)[0].numpy() if len(parts) > 1 else clipped
        self._recorder.summed(rows, clipped=clipped, added=added, noise=step.noise[0].numpy())
