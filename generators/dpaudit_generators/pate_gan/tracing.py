"""What a training of PATE-GAN records: rows, votes, labels and what they cost.

No label counts are recorded, not even with private proportions: labels are drawn one by one from
released proportions, so the number of records of a class is never fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dpaudit.account import LabelPlan
from dpaudit.model.column import Kind
from dpaudit.model.encoding import encode_values, table_of, values_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit_generators.networks.source import Head, Noise, sample
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_gan.model import PateGanModel
from dpaudit_generators.pate_gan.settings import TrainingSettings
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.training import Round

Numbers = npt.NDArray[np.float64]


class Recording:
    """Records a training of one model, and its sampling, for `dpaudit trace`.

    Args:
        recorder: Takes the records.
        rows: Number of rows of the table.
        schema: The generator's schema.
        plan: Number of labels that may be released.
        spent: Epsilon of a number of labels and of everything released before them.
        settings: The public constants.
        drawn: Whether records are drawn from noisy marginals.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        rows: int,
        schema: Schema,
        plan: LabelPlan,
        spent: Callable[[int], float],
        settings: TrainingSettings,
        drawn: bool,
    ) -> None:
        self._recorder, self._rows = recorder, rows
        self._width = Head(schema).width if drawn else settings.noise_width
        self._plan, self._spent = plan, spent
        steps = settings.teacher_steps + (0 if drawn else settings.generator_steps)
        self._steps = steps * settings.batch  # records of a round next to its queries
        self._released = 0
        self._before: list[Numbers] = []
        self._teachers: Teachers | None = None
        self._first: Tensor | None = None

    def on_round(self, drawn: Round, chosen: Tensor, teachers: Teachers) -> None:
        """Records what a round draws and which real records the teachers read."""
        recorder = self._recorder
        recorder.iteration()
        fed = drawn.noise.part(slice(self._steps + drawn.queries))
        recorder.fed(Stage.TRAINING, self._inputs(fed))
        numbers = chosen[0].cpu().numpy()
        for index in range(self._plan.teachers):
            rows = numbers[:, index].ravel()
            if rows[0] < self._rows:  # an empty cell reads padding
                recorder.read(Reader.TEACHER, rows, index=index)
        self._teachers, self._before = teachers, _parameters(teachers)
        self._first = chosen[0, 0, 0] if numbers[0, 0, 0] < self._rows else None

    def on_labels(self, votes: IndexArray, labels: IndexArray) -> None:
        """Records labels, their cost, and the teachers that voted."""
        assert self._teachers is not None  # a round has begun
        recorder, queries = self._recorder, labels.shape[1]
        after = _parameters(self._teachers)
        for index, (one, other) in enumerate(zip(self._before, after, strict=True)):
            recorder.taught(index, before=one, after=other)
        if self._first is not None:
            own, *others = _losses(self._teachers, self._first)
            if others:
                recorder.losses(own, float(np.mean(others)))
        recorder.voted(votes[0].copy(), labels[0].copy())
        before = self._spent(self._released)
        self._released += queries
        recorder.charged(queries, before=before, after=self._spent(self._released), moments=None)

    def sample(self, model: PateGanModel, n_rows: int, *, seed: int) -> pd.DataFrame:
        """Samples the trained model as it would by itself, and records it."""
        if model.start is not None:
            return self._weighted(model, n_rows, seed=seed)
        matrix = sample(
            [model.weights],
            Head(model.schema, given=len(model.proportions) > 0),
            [model.proportions],
            n_rows,
            seeds=[seed],
            on_noise=lambda noise: self._recorder.fed(Stage.SAMPLING, self._inputs(noise)),
        )[0].astype(np.float64)
        self._recorder.output(_unrounded(matrix, model.schema))
        return table_of(values_of(matrix, model.schema), model.schema)

    def _weighted(self, model: PateGanModel, n_rows: int, *, seed: int) -> pd.DataFrame:
        """Samples a model of noisy marginals and records its candidates."""
        schema = model.schema

        def fed(candidates: Numbers) -> None:
            order = Head(schema).order
            self._recorder.fed(Stage.SAMPLING, encode_values(candidates, schema)[:, order])

        values = model.weighted(n_rows, seed=seed, on_candidates=fed)
        numeric = [column.kind.numeric for column in schema.columns]
        self._recorder.output(values[:, numeric])
        return table_of(values, schema)

    def _inputs(self, noise: Noise) -> Numbers:
        """What records are made of, without given labels: random numbers, or candidates."""
        return noise.rows[0, :, : self._width].cpu().numpy().astype(np.float64)


def _parameters(teachers: Teachers) -> list[Numbers]:
    """The parameters of each teacher, flat."""
    return [
        np.concatenate([part.ravel() for part in weights]).astype(np.float64)
        for weights in teachers.networks.weights()
    ]


def _losses(teachers: Teachers, chosen: Tensor) -> list[float]:
    """Each teacher's cross-entropy on real records, given their row numbers [n]."""
    _, logits = teachers.networks.forward(teachers.rows[chosen][None])
    losses: list[float] = torch.nn.functional.softplus(-logits).mean(dim=1).tolist()
    return losses


def _unrounded(matrix: Numbers, schema: Schema) -> Numbers:
    """Numbers in the scale of the output, NaN where missing; integers are not yet rounded."""
    numeric = [column.kind.numeric for column in schema.columns]
    continuous = tuple(
        replace(column, kind=Kind.CONTINUOUS) if column.kind is Kind.INTEGER else column
        for column in schema.columns
    )
    return values_of(matrix, replace(schema, columns=continuous))[:, numeric]
