"""The teachers of M models: the only module that hands private records to voters.

Each teacher draws its records as the proof requires it, or as published. Those of two published
PATE-GANs are logistic regressions, fitted side by side by Newton's method. Each is the minimum of a
strictly convex function, so any method finds the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import Reader, Recorder
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Layer, flat
from dpaudit_generators.networks.stack import Networks, cross_entropy, with_ones
from dpaudit_generators.pate import IndexArray, cells
from dpaudit_generators.published.recipes import Larger, Recipe, Switch
from dpaudit_generators.published.trainee import PublishedSettings, PublishedTrainee


class NetworkTeachers:
    """Critics trained by gradient descent, on minibatches of their own part and of fakes.

    A teacher draws from a stream of its own. With replacement it always draws equally many numbers,
    so a part may be smaller than a minibatch. Without replacement such a part is taken whole,
    repeatedly in the same random order. A teacher without records votes 0.

    Args:
        trainees: What the models are trained on.
        partitions: Which teacher has which records.
        recipe: The hyperparameters.
        batch: Size of a minibatch.
    """

    def __init__(
        self,
        trainees: Sequence[PublishedTrainee],
        partitions: Sequence[Partition],
        *,
        recipe: Recipe,
        batch: int,
    ) -> None:
        self._trainees, self._partitions, self._recipe = trainees, partitions, recipe
        self._k, self._batch, self._steps = len(partitions[0].parts), batch, recipe.teacher_steps
        width = trainees[0].records.shape[1]
        self._networks = Networks.drawn(
            [trainee.seed for trainee in trainees],
            "teacher weights",
            recipe.teacher,
            Layer(width, 1),
            recipe.descent,
            k=self._k,
            start=recipe.start,
        )
        self._rngs = [
            [rng_of(trainee.seed, f"teacher {index}") for index in range(self._k)]
            for trainee in trainees
        ]
        self._bank, self._starts = bank(trainees)
        self._first: Tensor | None = None

    @property
    def fakes(self) -> int:
        """Number of generated records of each model that an iteration takes."""
        return self._steps * self._batch

    def train(self, fakes: Tensor, recorder: Recorder | None) -> None:
        """Trains them for one iteration on generated records [M, fakes, padded(width)]."""
        rows, filled = self._minibatches()
        before = self._parameters(recorder)
        models, width = len(fakes), fakes.shape[-1]
        for step in range(self._steps):
            part = slice(step * self._batch, (step + 1) * self._batch)
            real = self._bank[rows[:, :, part].reshape(models * self._k, self._batch)]
            fake = fakes[:, None, part].expand(-1, self._k, -1, -1)
            fake = fake.reshape(models * self._k, self._batch, width)
            # Records of an empty part have no weight.
            weight = filled.flatten()[:, None] / self._batch
            if self._recipe.teacher_turns == 1:
                self._descend(
                    torch.cat([real, fake], dim=1),
                    self._labels(1.0, 0.0),
                    torch.cat([weight.expand(-1, self._batch), self._labels(1.0) / self._batch], 1),
                )
            else:
                self._descend(real, self._labels(1.0), weight)
                self._descend(fake, self._labels(0.0), self._labels(1.0) / self._batch)
            if self._first is None:
                self._first = real
        if recorder is not None:
            self._record(recorder, rows[0].numpy(), filled[0].numpy(), before)

    def _labels(self, *each: float) -> Tensor:
        """This many minibatches of one label each, for all teachers."""
        labels = torch.tensor(each).repeat_interleave(self._batch)
        return labels.expand(len(self._trainees) * self._k, -1)

    def _descend(self, records: Tensor, target: Tensor, weight: Tensor) -> None:
        """Takes one step on cross-entropy, each record with a weight."""
        losses = cross_entropy(self._networks(records)[..., 0], target) * weight
        self._networks.descend(losses.sum())

    def votes(self, records: Tensor) -> IntArray:
        """How many vote 1 on records [M, n, padded(width)]: integers [M, n]."""
        models, n, width = records.shape
        shared = records[:, None].expand(-1, self._k, -1, -1).reshape(-1, n, width)
        with torch.no_grad():
            voted = self._networks(shared)[..., 0].view(models, self._k, n) > 0.0
        filled = [[len(part) > 0 for part in partition.parts] for partition in self._partitions]
        voted &= torch.tensor(filled)[:, :, None]
        return np.asarray(voted.sum(dim=1).numpy(), dtype=np.int64)

    def _minibatches(self) -> tuple[Tensor, Tensor]:
        """Rows of the bank for all steps [M, k, fakes], and whether a part has records [M, k]."""
        rows = np.zeros((len(self._trainees), self._k, self.fakes), dtype=np.int64)
        filled = np.ones((len(self._trainees), self._k), dtype=np.float32)
        for model, (partition, rngs) in enumerate(zip(self._partitions, self._rngs, strict=True)):
            for index, (part, rng) in enumerate(zip(partition.parts, rngs, strict=True)):
                chosen = self._drawn(part, rng)
                if len(chosen):
                    rows[model, index] = self._starts[model] + chosen
                else:
                    filled[model, index] = 0.0
        return torch.from_numpy(rows), torch.from_numpy(filled)

    def _drawn(self, part: IntArray, rng: np.random.Generator) -> IntArray:
        """Minibatches of one teacher for all steps, one after the other; none of an empty part."""
        if self._recipe.replacement:
            uniform = rng.random(self.fakes)  # of an empty part as well
            return part[(uniform * len(part)).astype(np.int64)] if len(part) else part
        order = rng.random((self._steps, len(part))).argsort(axis=1, kind="stable")
        return np.resize(part[order].T, (self._batch, self._steps)).T.ravel() if len(part) else part

    def _parameters(self, recorder: Recorder | None) -> list[FloatArray]:
        if recorder is None:
            return []
        return [flat(weights) for weights in self._networks.weights(range(self._k))]

    def _record(
        self,
        recorder: Recorder,
        rows: IntArray,
        filled: npt.NDArray[np.float32],
        before: Sequence[FloatArray],
    ) -> None:
        positions = self._trainees[0].positions
        for index, after in enumerate(self._parameters(recorder)):
            if filled[index]:
                recorder.read(Reader.TEACHER, positions[rows[index]], index=index)
            recorder.taught(index, before=before[index], after=after)
        if self._first is not None and filled[0]:
            first = self._first[:1].expand(self._k, -1, -1).contiguous()
            with torch.no_grad():
                outputs = self._networks(first)[..., 0].double()
            entropy = torch.nn.functional.softplus(-outputs).mean(dim=1)
            _record_losses(recorder, entropy)


class LogisticTeachers:
    """Logistic regressions fitted from scratch in every iteration, on as many fakes as records.

    If parts may differ in size, a teacher draws a public number of records from its own, with
    replacement. Teachers of equal parts are equal, and are fitted once.

    Args:
        trainees: What the models are trained on.
        partitions: Which teacher has which records.
        whole: Whether a fit takes all records of a part, because all parts have equally many.
        draws: How many records a fit draws if parts may differ in size.
    """

    def __init__(
        self,
        trainees: Sequence[PublishedTrainee],
        partitions: Sequence[Partition],
        *,
        whole: bool,
        draws: int,
    ) -> None:
        self._trainees, self._partitions = trainees, partitions
        first = partitions[0].parts
        self._k = len(first)
        self._whole = whole
        self.fakes = len(first[0]) if whole else draws
        self._fits = 1 if all(part is first[0] for part in first) else self._k
        self._rngs = [
            [rng_of(trainee.seed, f"teacher {index}") for index in range(self._fits)]
            for trainee in trainees
        ]
        self._found = np.zeros((len(trainees), self._fits, trainees[0].records.shape[1] + 1))
        self._first: FloatArray | None = None

    fakes: int
    """Number of generated records of each model that an iteration takes."""

    def train(self, fakes: Tensor, recorder: Recorder | None) -> None:
        """Fits them anew on generated records [M, fakes, padded(width)]."""
        models, width = len(self._trainees), self._found.shape[2] - 1
        seen = np.empty((models, self._fits, 2 * self.fakes, width), dtype=np.float32)
        seen[:, :, self.fakes :] = fakes.numpy()[:, None, :, :width]
        filled = np.ones((models, self._fits, 2 * self.fakes))
        read = []
        for model, (trainee, partition) in enumerate(
            zip(self._trainees, self._partitions, strict=True)
        ):
            for index in range(self._fits):
                rows = self._rows(partition.parts[index], self._rngs[model][index])
                seen[model, index, : self.fakes] = trainee.records[rows] if len(rows) else 0.0
                filled[model, index, : self.fakes] = len(rows) > 0
                read.append(rows)
        labels = np.repeat([1.0, 0.0], self.fakes)
        self._found = fit_logistic(
            seen.reshape(-1, 2 * self.fakes, width),
            np.broadcast_to(labels, (models * self._fits, 2 * self.fakes)),
            weights=filled.reshape(-1, 2 * self.fakes),
        ).reshape(models, self._fits, width + 1)
        if self._first is None:
            self._first = seen[0, 0, : self.fakes].astype(np.float64)
        if recorder is not None:
            self._record(recorder, read)

    def votes(self, records: Tensor) -> IntArray:
        """How many vote 1 on records [M, n, padded(width)]: integers [M, n]."""
        weights, width = self._found, self._found.shape[2] - 1
        rows = records.detach().numpy()[..., :width].astype(np.float64)
        margins = np.stack(
            [
                (mine[:, None, :] * own[None, :, :width]).sum(axis=-1) + own[:, width]
                for mine, own in zip(rows, weights, strict=True)
            ]
        )
        ones: IntArray = (margins > 0.0).sum(axis=2)
        return ones * (self._k // self._fits)

    def _rows(self, part: IntArray, rng: np.random.Generator) -> IntArray:
        if self._whole or len(part) == 0:
            return part
        return part[(rng.random(self.fakes) * len(part)).astype(np.int64)]

    def _record(self, recorder: Recorder, read: Sequence[IntArray]) -> None:
        found = np.repeat(self._found[0], self._k // self._fits, axis=0)
        for index, after in enumerate(found):
            rows = read[index % self._fits]
            if len(rows):
                recorder.read(Reader.TEACHER, self._trainees[0].positions[rows], index=index)
            recorder.taught(index, before=np.zeros_like(after), after=after)
        if self._first is not None and len(read[0]):
            margins = self._first @ found[:, :-1].T + found[:, -1]
            entropy = np.logaddexp(0.0, -margins).mean(axis=0)
            _record_losses(recorder, entropy)


def _record_losses(recorder: Recorder, entropy: Tensor | FloatArray) -> None:
    """Records the cross-entropy of teacher 0 and the mean of the others'."""
    others = float(entropy[1:].mean()) if len(entropy) > 1 else 0.0
    recorder.losses(float(entropy[0]), others)


def bank(trainees: Sequence[PublishedTrainee]) -> tuple[Tensor, list[int]]:
    """Joins the records of all models, those of a shared table once.

    Args:
        trainees: What the models are trained on.

    Returns:
        Records with their ones [rows, padded(width)], and the first row of each model.
    """
    found: dict[int, int] = {}
    tables, starts, total = [], [], 0
    for trainee in trainees:
        if id(trainee.records) not in found:
            found[id(trainee.records)] = total
            tables.append(torch.from_numpy(trainee.records))
            total += len(trainee.records)
        starts.append(found[id(trainee.records)])
    return with_ones(torch.cat(tables)), starts


class Partition:
    """Deals the records of one model to teachers.

    Args:
        trainee: The model's records.
        recipe: Which contiguous parts get the records that are left over.
        settings: The public constants. If several switches concern partitions, the first of these
            counts: all rows, reshuffled, last only, by position.
    """

    def __init__(
        self, trainee: PublishedTrainee, recipe: Recipe, settings: PublishedSettings
    ) -> None:
        self._n, self._k = len(trainee.public), settings.teachers
        self._rng = rng_of(trainee.seed, "partition")
        teachers, switches = settings.teachers, settings.switches
        self._again = Switch.PARTITION_RESHUFFLED in switches
        if Switch.PARTITION_ALL_ROWS in switches:
            self._again = False
            self.parts = [np.arange(self._n)] * teachers
        elif self._again:
            self.parts = self._dealt()
        elif Switch.PARTITION_LAST_ONLY in switches:
            self.parts = [self._dealt()[-1]] * teachers
        elif Switch.PARTITION_BY_POSITION in switches:
            self.parts = _contiguous(self._n, teachers, recipe.larger)
        else:
            self.parts = list(cells(trainee.public, teachers=teachers, key=self._rng.bytes(32)))

    parts: list[IndexArray]
    """Row numbers of each teacher's records."""

    def next_iteration(self) -> None:
        """Deals the records again if that deviation is on."""
        if self._again:
            self.parts = self._dealt()

    def _dealt(self) -> list[IndexArray]:
        """Random parts of n // k records each; records that are left over are in no part."""
        size = self._n // self._k
        order = self._rng.permutation(self._n)
        return [order[teacher * size : (teacher + 1) * size] for teacher in range(self._k)]


def _contiguous(n: int, k: int, larger: Larger) -> list[IndexArray]:
    if larger is Larger.FIRST:
        return np.array_split(np.arange(n), k)
    bounds = [teacher * n // k for teacher in range(k + 1)]
    return [np.arange(*pair) for pair in pairwise(bounds)]


_CERTAIN: Final = 40.0  # a margin whose probability is 1 in float64
_RESIDUAL: Final = 1e-9  # largest entry of a solution's gradient
_ROUNDING: Final = 1e-14  # or this share of the gradient at 0, the limit of float64
_STEPS: Final = 100  # at most; rows in [-1, 1] need about 7
_HALVES: Final = 40  # at most, of a step
_LANES: Final = 8  # float64 numbers in a cache line
_AT_ONCE: Final = 16  # regressions that share a cache


def fit_logistic(
    rows: npt.NDArray[np.floating],
    labels: npt.NDArray[np.floating],
    *,
    weights: npt.NDArray[np.floating] | None = None,
) -> FloatArray:
    """Fits B logistic regressions, each bit-identical to fitting it alone.

    Each minimises half the squared norm of its coefficients plus the sum of its rows' logistic
    losses: an L2 penalty with C = 1 that leaves the intercept free, as in scikit-learn, which takes
    5 to 15 times as long on 228 to 640 rows of 31 columns, one regression after the other.

    Args:
        rows: Their rows [B, n, width], scaled; beyond 1e5 the search may miss the solution.
        labels: 0 or 1, [B, n].
        weights: How much each row counts [B, n]; 1 if left out.

    Returns:
        Coefficients and, last, intercepts, [B, width + 1]. A regression whose rows are all of one
        class always predicts that class: coefficients 0, an intercept of -40 or 40.
    """
    many, n, width = rows.shape
    counts = np.ones((many, n)) if weights is None else weights.astype(np.float64)
    ones = (counts * labels).sum(axis=1)
    found = np.zeros((many, width + 1))
    found[:, width] = np.where(ones > 0.0, _CERTAIN, -_CERTAIN)
    mixed = np.flatnonzero((ones > 0.0) & (ones < counts.sum(axis=1)))
    for start in range(0, len(mixed), _AT_ONCE):
        part = mixed[start : start + _AT_ONCE]
        design = np.zeros((len(part), n, -(-(width + 1) // _LANES) * _LANES))
        design[..., :width] = rows[part]
        design[..., width] = 1.0
        penalty = np.ones(design.shape[2])
        penalty[width] = 0.0
        solved = _minimum(design, labels[part].astype(np.float64), counts[part], penalty)
        found[part] = solved[:, : width + 1]
    return found


def _minimum(
    design: FloatArray, labels: FloatArray, counts: FloatArray, penalty: FloatArray
) -> FloatArray:
    """Minimises counted logistic losses and half the penalised squares, from 0: [b, columns]."""

    def loss(margins: FloatArray, coefficients: FloatArray) -> FloatArray:
        each = counts * (np.logaddexp(0.0, margins) - labels * margins)
        return np.asarray(each.sum(axis=1) + (penalty * coefficients**2).sum(axis=1) / 2.0)

    found, margins = np.zeros((len(design), design.shape[2])), np.zeros(labels.shape)
    diagonal, goal = np.arange(len(penalty)), np.zeros(len(design))
    for step in range(_STEPS):
        chances = expit(margins)
        slope = ((counts * (chances - labels))[:, None] @ design)[:, 0] + penalty * found
        size = np.abs(slope).max(axis=1)
        if step == 0:
            goal = np.maximum(_RESIDUAL, _ROUNDING * size)
        left = size > goal
        if not left.any():
            break
        curvature = counts * chances * (1.0 - chances)
        hessian = (design * curvature[..., None]).swapaxes(1, 2) @ design
        hessian[:, diagonal, diagonal] += penalty + 1e-12  # in case all chances are 0 or 1
        direction = np.linalg.solve(hessian, -slope[..., None])
        change, direction = (design @ direction)[..., 0], direction[..., 0]
        # A step is halved until the loss falls by a share of what the slope says, up to rounding.
        before, fall = loss(margins, found), 1e-4 * (slope * direction).sum(axis=1)
        length = left.astype(np.float64)
        for _ in range(_HALVES):
            after = loss(margins + length[:, None] * change, found + length[:, None] * direction)
            falls = after <= before + length * fall + 1e-12 * (1.0 + before)
            if falls.all():
                break
            length = np.where(falls, length, length / 2.0)
        found += length[:, None] * direction
        margins += length[:, None] * change
    return found
