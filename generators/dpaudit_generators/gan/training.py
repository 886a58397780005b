"""The training loop of all GANs here, for M models at once; each is bit-identical to one alone.

Which real records a step of a critic reads is selected here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.gradients import (
    Objective,
    Pull,
    Scene,
    ShallowCritics,
    contributions,
    generator_slope,
    scene,
)
from dpaudit_generators.gan.settings import DpSgd, GanSettings, GradientFlaw
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.source import Head, NoiseSource, RecordSource, Streams
from dpaudit_generators.networks.stack import LANES, Adam, Generators, initial, padded

GAIN: Final = 2.0
"""Factor on the generator's last layer: spreads the first synthetic records over the bounds."""
_CPU: Final = torch.device("cpu")


class GanTrainee(NamedTuple):
    """What one model is trained on.

    Attributes:
        owned: Row numbers of its records.
        seed: Its seed; None draws everything from the system's entropy.
    """

    owned: IntArray
    seed: int | None


class GanStep(NamedTuple):
    """A step of the critics, before it is taken.

    Attributes:
        number: Its number, from 0.
        scene: What is public in it.
        selected: Row numbers of each model's real records.
        noise: The noise of each model [M, H * D + H]; None without privacy.
        total: The sum that the critics descend, with its noise [M, H * D + H].
    """

    number: int
    scene: Scene
    selected: Sequence[IntArray]
    noise: Tensor | None
    total: Tensor


class GanObserver(Protocol):
    """Follows a training without changing it."""

    def on_step(self, step: GanStep) -> None:
        """Called before each step of the critics."""
        ...


class TrainedGan(NamedTuple):
    """The networks of one trained model.

    Attributes:
        generator: Makes records.
        critic: The critic that it learnt from.
    """

    generator: Weights
    critic: Weights


class _CriticTrainer:
    """The critics of M models, and the steps that they take."""

    def __init__(
        self,
        rows: Tensor,
        trainees: Sequence[GanTrainee],
        *,
        width: int,
        settings: GanSettings,
        objective: Objective,
        protection: DpSgd | None,
    ) -> None:
        self._rows, self._objective, self._protection = rows, objective, protection
        self._batch, self._hidden, self._width = settings.batch, settings.critic_hidden, width
        seeds = [trainee.seed for trainee in trainees]
        layers = [width, settings.critic_hidden, 1]
        start = [initial(1, layers, rng_of(seed, "critic weights")) for seed in seeds]
        hidden = np.zeros((len(start), settings.critic_hidden, rows.shape[1]))
        # In whole vectors, so that each model takes the same steps as alone.
        last = np.zeros((len(start), -(-settings.critic_hidden // LANES) * LANES))
        for mine, own, weights in zip(hidden, last, start, strict=True):
            mine[:, :width], own[: self._hidden] = weights[0][0].T, weights[2][0, :, 0]
        trained = torch.from_numpy(hidden), torch.from_numpy(last)
        self.critics = ShallowCritics(trained[0], trained[1][:, : self._hidden], width)
        self._adam = Adam(trained, rate=settings.critic_learning_rate, betas=settings.betas)
        self._selections = [_selection(one, settings, protection) for one in trainees]
        self._noise = [rng_of(seed, "gradient noise") for seed in seeds]
        self._size = -(-(settings.batch + settings.batch // 4) // LANES) * LANES
        self._number = 0

    def step(self, fakes: Tensor, mixing: Tensor, observers: Sequence[GanObserver]) -> None:
        """Takes one step, on synthetic records [M, n, D]."""
        seen = scene(self.critics, fakes, mixing, self._objective)
        selected = [selection.next() for selection in self._selections]
        sums, noise, divisor = self._sum(seen, selected), None, torch.tensor(float(self._batch))
        if self._protection is not None:
            noise = self._drawn(self._protection)
            sums = Pull(*(own + more for own, more in zip(sums, self._parts(noise), strict=True)))
        for observer in observers:
            observer.on_step(GanStep(self._number, seen, selected, noise, sums.flat()))
        beyond = -self._hidden % LANES
        self._adam.step(
            [sums.hidden / divisor, torch.nn.functional.pad(sums.last / divisor, (0, beyond))]
        )
        self._number += 1

    def weights(self) -> list[Weights]:
        """The critic of each model, W1, b1, W2, b2."""
        width = self._width
        return [
            tuple(
                np.ascontiguousarray(part, dtype=np.float32)[None]
                for part in (
                    hidden[:, :width].T,
                    hidden[:, width][None],
                    last[:, None],
                    np.zeros((1, 1)),
                )
            )
            for hidden, last in zip(*(part.numpy() for part in self.critics[:2]), strict=True)
        ]

    def _sum(self, seen: Scene, selected: Sequence[IntArray]) -> Pull:
        """The sum of the selected records' contributions.

        Batches are taken in parts of a public size; nearly all have one part.
        """
        sums = Pull(torch.zeros_like(seen.critics.hidden), torch.zeros_like(seen.critics.last))
        part = 0
        while True:
            models, matrix = slots(selected, size=self._size, part=part)
            if len(models) == 0:
                return sums
            going = torch.from_numpy(models)
            there = torch.from_numpy(matrix >= 0).double()
            rows = self._rows[torch.from_numpy(matrix)]
            for one in contributions(seen.of(going), rows, self._protection):
                for whole, own in zip(sums, one.gradients.summed(one.factors * there), strict=True):
                    whole.index_add_(0, going, own)
            part += 1

    def _drawn(self, protection: DpSgd) -> Tensor:
        """Gaussian noise of each model, flat; 0 in padding."""
        hidden, inputs = self._hidden, self._width + 1
        noise = np.zeros((len(self._noise), hidden * self._rows.shape[1] + hidden))
        every = batches_of_an_epoch(protection.rate)
        if GradientFlaw.NOISE_SKIPPED in protection.flaws and self._number % every:
            return torch.from_numpy(noise)
        scale = protection.clip * protection.noise_multiplier
        for mine, rng in zip(noise, self._noise, strict=True):
            drawn = scale * rng.standard_normal(hidden * inputs + hidden)
            mine[:-hidden].reshape(hidden, -1)[:, :inputs] = drawn[:-hidden].reshape(hidden, -1)
            mine[-hidden:] = drawn[-hidden:]
        return torch.from_numpy(noise)

    def _parts(self, flat: Tensor) -> Pull:
        return Pull(
            flat[:, : -self._hidden].reshape(self.critics.hidden.shape), flat[:, -self._hidden :]
        )


def _selection(
    trainee: GanTrainee, settings: GanSettings, protection: DpSgd | None
) -> BatchSelection:
    owned, seed = trainee
    if protection is None:
        return UniformSelection(owned, batch=settings.batch, seed=seed)
    if GradientFlaw.NOT_SAMPLED in protection.flaws:
        return DealtSelection(owned, batches=batches_of_an_epoch(protection.rate))
    return PoissonSelection(owned, rate=protection.rate, seed=seed)


@torch.inference_mode()
def train(
    rows: Tensor,
    trainees: Sequence[GanTrainee],
    *,
    head: Head,
    settings: GanSettings,
    objective: Objective,
    protection: DpSgd | None = None,
    observers: Sequence[GanObserver] = (),
) -> list[TrainedGan]:
    """Trains critic and generator of each model.

    Under a protection only the noisy sums of `_CriticTrainer.step` depend on records: weights,
    synthetic records and all else follow from them and from public numbers.

    Args:
        rows: Encoded records that all models share [n, D], as `with_ones` gives them.
        trainees: The records that each model is trained on.
        head: Gives generated records the form of real ones.
        settings: The public constants.
        objective: What the critics minimise.
        protection: How their gradients are protected; None for no privacy.
        observers: Follow every step.

    Returns:
        The networks of each model.
    """
    seeds = [trainee.seed for trainee in trainees]
    critics = _CriticTrainer(
        torch.nn.functional.pad(rows, (0, 0, 0, 1)),  # row -1, where there is none
        trainees,
        width=head.width,
        settings=settings,
        objective=objective,
        protection=protection,
    )
    layers = [settings.noise_width, *settings.generator_hidden, head.inputs]
    generators = Generators(
        [initial(1, layers, rng_of(seed, "generator weights"), gain=GAIN) for seed in seeds],
        rate=settings.learning_rate,
        betas=settings.betas,
    )
    source = RecordSource(generators, head)
    streams = Streams(seeds, "training", device=_CPU)
    noise = NoiseSource(streams, head, [()] * len(seeds), width=settings.noise_width, device=_CPU)
    read = settings.critic_steps * settings.batch
    for _ in range(settings.rounds):
        drawn = noise.draw(read + settings.batch)
        mixing = streams.uniform(settings.critic_steps)
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        fakes = source.generate(drawn.part(slice(read)))[1].records.double()
        for step, own in enumerate(torch.split(fakes, settings.batch, dim=1)):
            critics.step(own.contiguous(), mixing[:, step], observers)
        values, generated = source.generate(drawn.part(slice(read, None)))
        slope = generator_slope(critics.critics, generated.records.double(), objective.loss)
        source.train(values, generated, slope.float())
    return [TrainedGan(*both) for both in zip(generators.weights(), critics.weights(), strict=True)]


def with_ones(rows: FloatArray) -> Tensor:
    """Rows [n, width] with a column of ones, and padding to whole vectors, double precision."""
    n, width = rows.shape
    whole = np.zeros((n, padded(width)))
    whole[:, :width] = rows
    whole[:, width] = 1.0
    return torch.from_numpy(whole)


class BatchSelection(Protocol):
    """Selects the records of every step of one model, in order."""

    def next(self) -> IntArray:
        """Row numbers of the next step's records; perhaps none."""
        ...


class PoissonSelection:
    """Takes each record with a public probability, independently of all else.

    Args:
        owned: Row numbers of the model's records.
        rate: The probability.
        seed: The model's seed; None draws from the system's entropy.
    """

    def __init__(self, owned: IntArray, *, rate: float, seed: int | None) -> None:
        self._owned, self._rate = owned, rate
        self._rng = rng_of(seed, "batches")

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        return self._owned[self._rng.random(len(self._owned)) < self._rate]


class DealtSelection:
    """Takes records in turn, the same batches in every epoch: a flaw if the claim assumes chance.

    Args:
        owned: Row numbers of the model's records.
        batches: Batches of an epoch.
    """

    def __init__(self, owned: IntArray, *, batches: int) -> None:
        self._owned, self._batches, self._step = owned, batches, -1

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        self._step += 1
        return self._owned[self._step % self._batches :: self._batches]


class UniformSelection:
    """Takes a fixed number of records with replacement, as training without privacy does.

    Args:
        owned: Row numbers of the model's records.
        batch: Number of records in a batch.
        seed: The model's seed; None draws from the system's entropy.
    """

    def __init__(self, owned: IntArray, *, batch: int, seed: int | None) -> None:
        self._owned, self._batch, self._rng = owned, batch, rng_of(seed, "batches")

    def next(self) -> IntArray:
        """Row numbers of the next step's records."""
        if len(self._owned) == 0:
            return self._owned
        return self._owned[self._rng.integers(len(self._owned), size=self._batch)]


def batches_of_an_epoch(rate: float) -> int:
    """Steps in which a record is expected once, rounded up."""
    return math.ceil(1.0 / rate)


def slots(selected: Sequence[IntArray], *, size: int, part: int) -> tuple[IntArray, IntArray]:
    """A part of the selected rows of M models, in a matrix.

    Args:
        selected: Row numbers of each model.
        size: Columns of the matrix, a public constant: rounding must not depend on other models.
        part: Number of the part, from 0.

    Returns:
        The models that have rows in this part [g], and their rows [g, size], -1 where none is left.
    """
    cut = [rows[part * size : (part + 1) * size] for rows in selected]
    models = [model for model, rows in enumerate(cut) if len(rows)]
    matrix = np.full((len(models), size), -1, dtype=np.int64)
    for mine, model in zip(matrix, models, strict=True):
        mine[: len(cut[model])] = cut[model]
    return np.array(models, dtype=np.int64), matrix
