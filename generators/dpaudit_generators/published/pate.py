"""PATE-GAN's training loop for M models at once, with any deviations that are on.

Votes become labels with the noise that PATE prescribes or another, and a moments accountant decides
when a training stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.account import Mechanism, vote_table
from dpaudit.account.moments import Deviation, algorithm_1_moments, data_independent_moments
from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Layer, Weights
from dpaudit_generators.networks.stack import Networks
from dpaudit_generators.published.recipes import EQUAL_PARTS, Recipe, Switch
from dpaudit_generators.published.source import Feed, PublishedRecordSource
from dpaudit_generators.published.student import Likeness, ShownRecords, Students
from dpaudit_generators.published.teachers import (
    LogisticTeachers,
    NetworkTeachers,
    Partition,
    bank,
)
from dpaudit_generators.published.trainee import (
    Form,
    PublishedSettings,
    PublishedTrainee,
    TrainedAndShown,
)


def train(
    trainees: Sequence[PublishedTrainee],
    *,
    form: Form,
    recipe: Recipe,
    settings: PublishedSettings,
    recorder: Recorder | None = None,
) -> list[TrainedAndShown]:
    """Trains M models; each is bit-identical to training alone.

    A model's networks no longer change once its accountant stops it.

    Args:
        trainees: What each model is trained on; all of one shape.
        form: The form of the records.
        recipe: The hyperparameters.
        settings: The public constants.
        recorder: Records the training of the first model.

    Returns:
        The generator and the student of each model, and what its student was trained on.
    """
    return _Training(trainees, form, recipe, settings, recorder).run()


class Made(NamedTuple):
    """Generated records.

    Attributes:
        records: The records with their ones [M, n, padded(width)].
        hints: Their conditions [M, n, hints].
    """

    records: Tensor
    hints: Tensor


class _Training:
    """The state of a training of M models."""

    def __init__(
        self,
        trainees: Sequence[PublishedTrainee],
        form: Form,
        recipe: Recipe,
        settings: PublishedSettings,
        recorder: Recorder | None,
    ) -> None:
        seeds = [trainee.seed for trainee in trainees]
        self._trainees, self._form, self._recipe = trainees, form, recipe
        self._settings, self._recorder = settings, recorder
        self._partitions = [Partition(trainee, recipe, settings) for trainee in trainees]
        self._teachers = self._make_teachers()
        generators = Networks.drawn(
            seeds,
            "generator weights",
            recipe.generator,
            Layer(recipe.noise_width + form.given + form.hints, form.made),
            recipe.descent._replace(norm=recipe.norm),
            start=recipe.start,
        )
        self._source = PublishedRecordSource(generators, form, recipe)
        self._student = Students(seeds, form=form, recipe=recipe)
        self._feed = Feed(seeds, "training", form=form, recipe=recipe, inputs=recipe.inputs)
        self._labeller = Labeller(seeds, settings)
        self._accountant = Accountant(len(trainees), settings, moments=recipe.moments)
        self._real = {
            reader: _Rows(trainees, f"rows of the {reader}")
            for reader, switch in (
                (Reader.STUDENT, Switch.STUDENT_SEES_REAL_ROWS),
                (Reader.GENERATOR, Switch.GENERATOR_SEES_REAL_ROWS),
            )
            if switch in settings.switches
        }
        self._likeness = Likeness(form)
        self._shown = ShownRecords(
            len(trainees), width=form.width, hints=form.hints, iterations=settings.iterations
        )
        self._going = np.ones(len(trainees), dtype=np.bool_)
        self._finished: dict[int, tuple[Weights, Weights]] = {}
        self._batch = settings.batch

    def _make_teachers(self) -> NetworkTeachers | LogisticTeachers:
        """The teachers: networks or regressions."""
        settings, recipe = self._settings, self._recipe
        switches = settings.switches
        if Switch.TEACHERS_REFITTED not in switches:
            return NetworkTeachers(
                self._trainees, self._partitions, recipe=recipe, batch=settings.batch
            )
        first = self._partitions[0].parts[0]
        return LogisticTeachers(
            self._trainees,
            self._partitions,
            whole=not EQUAL_PARTS.isdisjoint(switches) and len(first) > 0,
            draws=recipe.teacher_steps * settings.batch,
        )

    def run(self) -> list[TrainedAndShown]:
        """Trains until no model may go on."""
        settings, recorder = self._settings, self._recorder
        if recorder is not None:
            recorder.constant("teachers", settings.teachers)
            recorder.constant("batch", settings.batch)
            recorder.constant("gamma", settings.gamma)
            if self._recipe.penalty:
                recorder.constant("gradient_penalty", self._recipe.penalty)
            scale = 1.0 / settings.gamma
            recorder.promised(vote_table(Mechanism.NOISY_MAX, settings.teachers, scale))
        for iteration in range(settings.iterations):
            if not self._may_go_on(self._accountant.may_begin(self._batch)):
                break
            if iteration:
                for partition in self._partitions:
                    partition.next_iteration()
            self._iteration(iteration)
        self._keep([i for i in range(len(self._trainees)) if i not in self._finished])
        return [
            (*self._finished[model], self._shown.of(model)) for model in range(len(self._trainees))
        ]

    def _may_go_on(self, may: BoolArray) -> bool:
        """Keeps the weights of models that stop, and returns whether any other model goes on."""
        self._keep(np.flatnonzero(self._going & ~may).tolist())
        self._going &= may
        return bool(self._going.any())

    def _keep(self, models: Sequence[int]) -> None:
        made, students = self._source.networks.weights(models), self._student.weights(models)
        self._finished |= dict(zip(models, zip(made, students, strict=True), strict=True))

    def _iteration(self, number: int) -> None:
        if self._recorder is not None:
            self._recorder.iteration()
        self._teachers.train(self._generated(self._teachers.fakes).records, self._recorder)
        for _ in range(self._recipe.rounds):
            fakes, hints = self._generated(self._recipe.student_steps * self._batch)
            ones = self._teachers.votes(fakes)
            for start in range(0, fakes.shape[1], self._batch):
                if not self._may_go_on(self._accountant.may_buy(self._batch)):
                    return
                part = slice(start, start + self._batch)
                labels = self._labelled(ones[:, part])
                real = self._drawn(Reader.STUDENT)
                self._student.train(fakes[:, part], hints[:, part], labels, real)
                self._show(number, Made(fakes[:, part], hints[:, part]), labels, real)
            self._train_generator()

    def _labelled(self, ones: IntArray) -> IntArray:
        """Labels that the student is trained on; labels that are not charged are discarded."""
        labels = self._labeller.label(ones)
        accountant, before = self._accountant, self._accountant.spent()
        queries = accountant.charge(ones, labels.values, going=self._going)
        if self._recorder is not None:
            self._recorder.noise(labels.noise[0], on=labels.on)
            self._recorder.voted(ones[0], labels.values[0])
            if queries[0]:
                self._recorder.charged(
                    int(queries[0]),
                    before=float(before[0]),
                    after=float(accountant.spent()[0]),
                    moments=accountant.moments[0],
                )
        return np.where(queries[:, None] > 0, labels.values, 0)

    def _show(self, number: int, fakes: Made, labels: IntArray, real: Tensor | None) -> None:
        """Records the training data of students that still learn."""
        parts = [(fakes.records, torch.from_numpy(labels))]
        if real is not None:
            parts.append((real, torch.ones(real.shape[:2])))
        for records, wanted in parts:
            self._shown.add(records, wanted, hints=fakes.hints, iteration=number, going=self._going)

    def _train_generator(self) -> None:
        fakes, hints = self._made(self._batch)
        loss = self._student.missed(fakes, hints)
        real = self._drawn(Reader.GENERATOR)
        if real is not None:
            # As a loss whose gradient with respect to the records is this slope.
            loss = loss + (fakes * self._likeness.slope(fakes.detach(), real, hints)).sum()
        self._source.networks.descend(loss)

    def _drawn(self, reader: Reader) -> Tensor | None:
        """Private records for a network that wrongly sees them, if there is one."""
        if reader not in self._real:
            return None
        return self._real[reader].draw(self._batch, reader, self._recorder)

    def _generated(self, n: int) -> Made:
        with torch.no_grad():
            return self._made(n)

    def _made(self, n: int) -> Made:
        """Makes n records of each model."""
        noise, given, gumbel = self._feed.noise(n), self._feed.labels(n), self._feed.gumbel(n)
        hints = noise[..., :0]
        if self._recorder is not None:
            self._recorder.fed(Stage.TRAINING, noise[0].double().numpy())
        if self._form.hints:
            hints, chosen = self._feed.conditions([trainee.hints for trainee in self._trainees], n)
            if self._recorder is not None:
                self._recorder.read(Reader.CONDITIONS, self._trainees[0].positions[chosen[0]])
        return Made(self._source(noise, given, hints, gumbel), hints)


class _Rows:
    """Private records for networks that should see none, drawn from one stream of each model."""

    def __init__(self, trainees: Sequence[PublishedTrainee], purpose: str) -> None:
        self._trainees = trainees
        self._bank, self._starts = bank(trainees)
        self._rngs = [rng_of(trainee.seed, purpose) for trainee in trainees]

    def draw(self, n: int, reader: Reader, recorder: Recorder | None) -> Tensor:
        """Draws records [M, n, padded(width)]."""
        rows = [
            rng.integers(len(trainee.records), size=n)
            for rng, trainee in zip(self._rngs, self._trainees, strict=True)
        ]
        if recorder is not None:
            recorder.read(reader, self._trainees[0].positions[rows[0]])
        places = np.stack([start + row for start, row in zip(self._starts, rows, strict=True)])
        return self._bank[torch.from_numpy(places)]


_TIE: Final = 0.5


class Labels(NamedTuple):
    """Released labels of M models.

    Attributes:
        values: Labels 0 or 1, [M, n].
        noise: The noise draws that protect the votes, [M, draws].
        on: What the noise was added to.
    """

    values: IntArray
    noise: FloatArray
    on: NoiseOn


class Labeller:
    """Draws noisy labels for M models, each from its own stream.

    Without switches, a label is the larger of two counts, each with Laplace noise of scale
    1 / gamma (Papernot et al. 2017, section 2.1).

    Args:
        seeds: One for each model; None means the system's entropy.
        settings: The public constants.
    """

    def __init__(self, seeds: Sequence[int | None], settings: PublishedSettings) -> None:
        self._rngs = [rng_of(seed, "label noise") for seed in seeds]
        self._k, self._deviation = settings.teachers, settings.deviation
        gamma, switches = settings.gamma, settings.switches
        self._scale = gamma if Switch.NOISE_SCALE_INVERTED in switches else 1.0 / gamma
        self._normal = Switch.NOISE_GAUSSIAN_ON_LABELS in switches
        self._one = Switch.ONE_NOISE_CHARGED_AS_TWO in switches

    def label(self, ones: IntArray) -> Labels:
        """Draws labels.

        Args:
            ones: How many teachers voted 1 [M, n].
        """
        n = ones.shape[1]
        if self._normal:
            noise = np.stack([self._deviation * rng.standard_normal(n) for rng in self._rngs])
            noisy = (ones > self._k / 2) + noise
            return Labels((noisy > _TIE).astype(np.int64), noise, NoiseOn.LABELS)
        draws = n if self._one else 2 * n
        noise = np.stack([rng.laplace(scale=self._scale, size=draws) for rng in self._rngs])
        if self._one:
            chosen = ones + noise > self._k / 2
        else:
            chosen = ones + noise[:, :n] > (self._k - ones) + noise[:, n:]
        return Labels(chosen.astype(np.int64), noise, NoiseOn.VOTES)


_DEVIATIONS: Final = {
    Switch.ACCOUNTANT_MISSING_LOG: Deviation.MISSING_LOG,
    Switch.ACCOUNTANT_EXPONENT_SLIP: Deviation.EXPONENT_SLIP,
}


class Accountant:
    """The accounts of M models.

    The charges depend on the votes, so they must not decide when the training stops. Without
    `Switch.BUDGET_EXCEEDED` a batch is released if its largest possible cost plus the largest
    possible cost of all batches before it is within the budget. Both are public.

    Args:
        models: Number M of models.
        settings: The public constants.
        moments: Number L of moments.
    """

    def __init__(self, models: int, settings: PublishedSettings, *, moments: int) -> None:
        gamma, switches = settings.gamma, settings.switches
        self._orders = np.arange(1, moments + 1, dtype=np.float64)
        ones = np.arange(settings.teachers + 1)
        self._cost = algorithm_1_moments(  # [k + 1, L]: the cost of a query, by its votes
            np.stack([settings.teachers - ones, ones], axis=-1),
            gamma=gamma,
            moments=self._orders,
            deviations=frozenset(_DEVIATIONS[s] for s in _DEVIATIONS if s in switches),
        )
        self._most = data_independent_moments(gamma=gamma, moments=self._orders)
        self.moments = np.zeros((models, moments))
        """Log moments 1..L of everything charged to each model [M, L]."""
        self._reserved = np.zeros(models, dtype=np.int64)  # queries, each at its largest cost
        self._epsilon, self._inverse = settings.epsilon, settings.inverse
        self._late = Switch.BUDGET_EXCEEDED in switches
        self._free = Switch.QUERIES_NOT_ACCOUNTED in switches

    def may_begin(self, queries: int) -> BoolArray:
        """Whether each model may begin an iteration with this many labels per batch [M]."""
        if self._late:
            return self.spent() < self._epsilon
        return self._room(queries)

    def may_buy(self, queries: int) -> BoolArray:
        """Whether each model may release this many labels within an iteration [M]."""
        return np.ones(len(self.moments), dtype=np.bool_) if self._late else self._room(queries)

    def charge(self, ones: IntArray, labels: IntArray, *, going: BoolArray) -> IntArray:
        """Charges for a batch of labels.

        Args:
            ones: How many teachers voted 1 [M, n].
            labels: The labels [M, n].
            going: Whether each model still trains [M]; the others are not charged.

        Returns:
            Number of labels of each model that were charged [M].
        """
        n = labels.shape[1]
        queries = np.where(going, n, 0)
        if self._free:
            queries = np.where(labels.sum(axis=1) >= n / 2, 0, queries)
        counts = np.stack([np.bincount(votes, minlength=len(self._cost)) for votes in ones])
        cost = (counts[:, :, None] * self._cost).sum(axis=1)
        self.moments = np.where(queries[:, None] > 0, self.moments + cost, self.moments)
        self._reserved += queries
        return queries

    def spent(self) -> FloatArray:
        """Epsilon of everything charged to each model [M]."""
        return self._converted(self.moments)

    def _room(self, queries: int) -> BoolArray:
        return self._converted((self._reserved + queries)[:, None] * self._most) <= self._epsilon

    def _converted(self, moments: FloatArray) -> FloatArray:
        """Epsilon of log moments [M, L] (Abadi et al. 2016, Theorem 2); 0 while all are 0."""
        epsilon = ((moments + math.log(self._inverse)) / self._orders).min(axis=1)
        return np.where(moments.any(axis=1), epsilon, 0.0)
