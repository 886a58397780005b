"""The training loop of all GANs here, for M models at once; each is bit-identical to one alone.

Which real records a step of a critic reads is selected here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import Recorder
from dpaudit.seeds import rng_of
from dpaudit_generators.gan.gradients import (
    Pull,
    Scene,
    ShallowCritics,
    contributions,
    dot,
    generator_loss,
    scene,
)
from dpaudit_generators.gan.settings import DpSgd, GanLoss, GanSettings, GradientFlaw
from dpaudit_generators.networks.model import Activation, Architecture, Descent, Layer, Weights
from dpaudit_generators.networks.source import Head, RecordSource, Streams
from dpaudit_generators.networks.stack import LANES, Adam, Networks, draw_weights

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


GanObserver: TypeAlias = Callable[[GanStep], None]
"""Follows a training without changing it: called before each step of the critics."""


class _CriticTrainer:
    """The critics of M models, and the steps that they take."""

    def __init__(
        self,
        rows: Tensor,
        trainees: Sequence[GanTrainee],
        *,
        width: int,
        settings: GanSettings,
        loss: GanLoss,
        penalty: float,
        protection: DpSgd | None,
    ) -> None:
        self._rows, self._protection = rows, protection
        self._loss, self._penalty = loss, penalty
        self._batch, self._hidden, self._width = settings.batch, settings.critic_hidden, width
        seeds = [trainee.seed for trainee in trainees]
        layers = Layer(width, settings.critic_hidden), Layer(settings.critic_hidden, 1)
        start = [draw_weights(layers, rng_of(seed, "critic weights")) for seed in seeds]
        hidden = np.zeros((len(start), settings.critic_hidden, rows.shape[1]))
        # In whole vectors, so that each model takes the same steps as alone.
        last = np.zeros((len(start), -(-settings.critic_hidden // LANES) * LANES))
        for mine, own, weights in zip(hidden, last, start, strict=True):
            mine[:, :width], own[: self._hidden] = weights[0][0].T, weights[2][0, :, 0]
        trained = torch.from_numpy(hidden), torch.from_numpy(last)
        self.critics = ShallowCritics(trained[0], trained[1][:, : self._hidden], width)
        self._step = Adam(trained, Descent(settings.critic_learning_rate, settings.betas))
        self._batches = [_batches(trainee, settings, protection) for trainee in trainees]
        self._noise = [rng_of(seed, "gradient noise") for seed in seeds]
        self._size = -(-(settings.batch + settings.batch // 4) // LANES) * LANES
        self._number = 0

    def step(self, fakes: Tensor, mixing: Tensor, observers: Sequence[GanObserver]) -> None:
        """Takes one step, on synthetic records [M, n, D]."""
        seen = scene(self.critics, fakes, mixing, self._loss, self._penalty)
        selected = [next(batches) for batches in self._batches]
        sums, noise, divisor = self._sum(seen, selected), None, torch.tensor(float(self._batch))
        if self._protection is not None:
            noise = self._drawn(self._protection)
            sums = Pull(*(own + more for own, more in zip(sums, self._parts(noise), strict=True)))
        for observer in observers:
            observer(GanStep(self._number, seen, selected, noise, sums.flat()))
        beyond = -self._hidden % LANES
        self._step(
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
            for each in contributions(seen.of(going), rows, self._protection):
                own_sums = each.gradients.summed(each.factors * there)
                for whole, own in zip(sums, own_sums, strict=True):
                    whole.index_add_(0, going, own)
            part += 1

    def _drawn(self, protection: DpSgd) -> Tensor:
        """Gaussian noise of each model, flat; 0 in padding."""
        hidden, inputs = self._hidden, self._width + 1
        every = batches_of_an_epoch(protection.rate)
        if GradientFlaw.NOISE_SKIPPED in protection.flaws and self._number % every:
            return torch.zeros(len(self._noise), hidden * self._rows.shape[1] + hidden).double()
        scale = protection.clip * protection.noise_multiplier
        padding = np.zeros((hidden, self._rows.shape[1] - inputs))
        each = []
        for rng in self._noise:
            drawn = scale * rng.standard_normal(hidden * inputs + hidden)
            weights = np.concatenate([drawn[:-hidden].reshape(hidden, inputs), padding], axis=1)
            each.append(np.concatenate([weights.reshape(-1), drawn[-hidden:]]))
        return torch.from_numpy(np.stack(each))

    def _parts(self, flat: Tensor) -> Pull:
        return Pull(
            flat[:, : -self._hidden].reshape(self.critics.hidden.shape), flat[:, -self._hidden :]
        )


def _batches(
    trainee: GanTrainee, settings: GanSettings, protection: DpSgd | None
) -> Iterator[IntArray]:
    """Row numbers of the records of every step of one model, in order; perhaps none."""
    owned, seed = trainee
    if protection is None:
        return uniform_batches(owned, batch=settings.batch, seed=seed)
    if GradientFlaw.NOT_SAMPLED in protection.flaws:
        return dealt_batches(owned, batches=batches_of_an_epoch(protection.rate))
    return poisson_batches(owned, rate=protection.rate, seed=seed)


def train(
    rows: Tensor,
    trainees: Sequence[GanTrainee],
    *,
    head: Head,
    settings: GanSettings,
    loss: GanLoss,
    penalty: float,
    protection: DpSgd | None = None,
    observers: Sequence[GanObserver] = (),
) -> list[tuple[Weights, Weights]]:
    """Trains critic and generator of each model.

    Under a protection only the noisy sums of `_CriticTrainer.step` depend on records: weights,
    synthetic records and all else follow from them and from public numbers.

    Args:
        rows: Encoded records that all models share [n, D], as `with_ones` gives them.
        trainees: The records that each model is trained on.
        head: Gives generated records the form of real ones.
        settings: The public constants.
        loss: What the critics minimise.
        penalty: Weight of the gradient penalty; 0 for none.
        protection: How their gradients are protected; None for no privacy.
        observers: Follow every step.

    Returns:
        The weights of generator and critic of each model.
    """
    seeds = [trainee.seed for trainee in trainees]
    critics = _CriticTrainer(
        torch.nn.functional.pad(rows, (0, 0, 0, 1)),  # row -1, where there is none
        trainees,
        width=head.width,
        settings=settings,
        loss=loss,
        penalty=penalty,
        protection=protection,
    )
    generators = Networks.drawn(
        seeds,
        "generator weights",
        Architecture(hidden=settings.generator_hidden, activation=Activation.LEAKY),
        Layer(settings.noise_width, head.inputs),
        Descent(settings.learning_rate, settings.betas),
        gain=GAIN,
    )
    streams, nothing = Streams(seeds, "training", device=_CPU), [()] * len(seeds)
    source = RecordSource(
        generators, streams, head, nothing, width=settings.noise_width, device=_CPU
    )
    read = settings.critic_steps * settings.batch

    def missed(records: Tensor) -> Tensor:
        return generator_loss(critics.critics, records.double(), loss)

    for _ in range(settings.rounds):
        drawn = source.draw(read + settings.batch)
        mixing = streams.uniform(settings.critic_steps)
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        fakes = source.records(drawn.part(slice(read))).double()
        for step, own in enumerate(torch.split(fakes, settings.batch, dim=1)):
            critics.step(own.contiguous(), mixing[:, step], observers)
        source.learn(drawn.part(slice(read, None)), missed)
    return list(zip(generators.weights(), critics.weights(), strict=True))


def poisson_batches(owned: IntArray, *, rate: float, seed: int | None) -> Iterator[IntArray]:
    """Takes each record with a public probability, independently of all else.

    Args:
        owned: Row numbers of the model's records.
        rate: The probability.
        seed: The model's seed; None draws from the system's entropy.
    """
    rng = rng_of(seed, "batches")
    while True:
        yield owned[rng.random(len(owned)) < rate]


def dealt_batches(owned: IntArray, *, batches: int) -> Iterator[IntArray]:
    """Takes records in turn, the same batches in every epoch: a flaw if the claim assumes chance.

    Args:
        owned: Row numbers of the model's records.
        batches: Batches of an epoch.
    """
    return cycle([owned[start::batches] for start in range(batches)])


def uniform_batches(owned: IntArray, *, batch: int, seed: int | None) -> Iterator[IntArray]:
    """Takes a fixed number of records with replacement, as training without privacy does.

    Args:
        owned: Row numbers of the model's records.
        batch: Number of records in a batch.
        seed: The model's seed; None draws from the system's entropy.
    """
    rng = rng_of(seed, "batches")
    while True:
        yield owned[rng.integers(len(owned), size=batch)] if len(owned) else owned


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

    The proof covers publishing the noisy sum of every step. An attacker who knows a record knows
    its gradient in every step, because everything else it depends on is public, and so projects the
    sums onto it (Nasr et al. 2021). These projections, added up over the steps, are the attack's
    features. They follow from published sums, public settings and the record alone, so a training
    does not depend on which record it is.

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

    def __call__(self, step: GanStep) -> None:
        """Adds the projections of a step."""
        parts = contributions(step.scene, self._pair, self._protection)
        both = sum(part.gradients.apart() * part.factors[..., None] for part in parts)
        assert isinstance(both, Tensor)
        own, other = both[:, 0], both[:, 1]
        noise = (self._protection.clip * self._protection.noise_multiplier) ** 2
        spread = self._batch * (1.0 - self._protection.rate)  # of the number of others
        common, length = dot(own, other), dot(other, other).clamp_min(_SMALL)
        centred = step.total - self._batch * other
        shares = (spread * common / (noise + spread * length), common / length)
        for place, share in enumerate(shares):
            direction = own - share[:, None] * other
            variance = noise * dot(direction, direction) + spread * dot(direction, other) ** 2
            deviation = variance.clamp_min(_SMALL).sqrt()
            seen = (dot(centred, direction) / deviation).numpy()
            shift = (dot(own, direction) / deviation).numpy()
            self._phases[place, :, step.number % self._every] += seen * shift
            self._largest[place] = np.maximum(self._largest[place], seen)
            self._ratios[place] += self._ratio(seen * shift - shift**2 / 2.0)
        self._square += dot(step.total, step.total).numpy() / step.total.shape[1] / noise
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


class GradientRecording:
    """Records a training of one model for `dpaudit trace`.

    Args:
        rows: The table, encoded with its ones.
        protection: How gradients are protected.
        recorder: Receives the records.
    """

    def __init__(self, rows: Tensor, protection: DpSgd, recorder: Recorder) -> None:
        self._rows, self._protection, self._recorder = rows, protection, recorder

    def __call__(self, step: GanStep) -> None:
        """Records a step: each record's gradient is computed again, by itself."""
        assert step.noise is not None
        rows = step.selected[0]
        clipped = added = np.empty(0)
        if len(rows):
            parts = contributions(step.scene, self._rows[rows][None], self._protection)
            norms = [part.gradients.norms() * part.factors for part in parts]
            clipped = norms[0][0].numpy()
            whole = torch.stack(
                [part.gradients.apart() * part.factors[..., None] for part in parts]
            )
            added = whole.sum(0).norm(dim=-1)[0].numpy() if len(parts) > 1 else clipped
        self._recorder.summed(rows, clipped=clipped, added=added, noise=step.noise[0].numpy())
