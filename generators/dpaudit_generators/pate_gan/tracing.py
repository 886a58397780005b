"""What a training of PATE-GAN tells a recorder: rows, votes, labels and what they cost.

No count of labels is told, not even with private proportions: labels are drawn one by one from what
noisy counts released, and no number of records of a class is ever fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dpaudit.model.encoding import table_of, values_of
from dpaudit.model.schema import Kind, Schema
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit_generators.batches import whole_table
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_gan.rounds import Round
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.source import Noise, sample
from dpaudit_generators.pate_gan.teachers import Teachers

if TYPE_CHECKING:
    from dpaudit_generators.pate_gan.mechanism import PateGan

Numbers = npt.NDArray[np.float64]


def traced(
    generator: PateGan, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
) -> pd.DataFrame:
    """Trains on a table and samples the model; see `PateGan.trace`."""
    plan = generator.plan
    recorder.constant("teachers", plan.teachers)
    recorder.constant("batch", generator.batch)
    recorder.constant("labels", plan.labels)
    recorder.promised(plan.table)
    teller = _Teller(generator, recorder, rows=len(data))
    model = generator.fit_many(data, [whole_table(seed)], observer=teller)[0]
    for column in model.schema.columns:
        if column.kind.numeric:
            recorder.scaling(column.name, column.bounds)
    matrix = sample(
        [model.weights],
        Head(model.schema, given=len(model.proportions) > 0),
        [model.proportions],
        n_rows,
        seeds=[seed],
        watch=lambda noise: recorder.fed(Stage.SAMPLING, teller.inputs(noise)),
    )[0].astype(np.float64)
    recorder.output(_unrounded(matrix, model.schema))
    return table_of(values_of(matrix, model.schema), model.schema)


class _Teller:
    """Turns what a training of one model is shown to do into what a recorder is told.

    Args:
        generator: What is trained.
        recorder: Is told.
        rows: Of the table.
    """

    def __init__(self, generator: PateGan, recorder: Recorder, *, rows: int) -> None:
        self._recorder, self._rows = recorder, rows
        self._width, self._plan = generator.noise_width, generator.plan
        steps = generator.teacher_steps + generator.generator_steps
        self._steps = steps * generator.batch  # records of a round beside its queries
        self._table, self._released = self._plan.table, 0
        self._histograms = float(generator.split.histograms * generator.split.each)
        self._before: list[Numbers] = []
        self._teachers: Teachers | None = None
        self._first: Tensor | None = None

    def begins(self, this: Round, chosen: Tensor, teachers: Teachers) -> None:
        """A round, with the real records that its minibatches are made of."""
        tell = self._recorder
        tell.iteration()
        fed = this.noise.part(slice(self._steps + this.queries))
        tell.fed(Stage.TRAINING, self.inputs(fed))
        numbers = chosen[0].cpu().numpy()
        for index in range(self._plan.teachers):
            rows = numbers[:, index].ravel()
            if rows[0] < self._rows:  # an empty cell reads padding
                tell.read(Reader.TEACHER, rows, index=index)
        self._teachers, self._before = teachers, _parameters(teachers)
        self._first = chosen[0, 0, 0] if numbers[0, 0, 0] < self._rows else None

    def released(self, votes: IndexArray, labels: IndexArray) -> None:
        """Labels, and the teachers that have voted."""
        assert self._teachers is not None  # a round has begun
        tell, queries = self._recorder, labels.shape[1]
        after = _parameters(self._teachers)
        for index, (one, other) in enumerate(zip(self._before, after, strict=True)):
            tell.taught(index, before=one, after=other)
        if self._first is not None:
            own, *others = _losses(self._teachers, self._first)
            if others:
                tell.losses(own, float(np.mean(others)))
        tell.voted(votes[0].copy(), labels[0].copy())
        before, self._released = self._spent(), self._released + queries
        tell.charged(queries, before=before, after=self._spent(), moments=None)

    def inputs(self, noise: Noise) -> Numbers:
        """The random numbers of records; not the labels that they are given."""
        return noise.rows[0, :, : self._width].cpu().numpy().astype(np.float64)

    def _spent(self) -> float:
        """Epsilon of all labels so far, and of the histograms before them."""
        spent = self._table.epsilon(self._released, delta=self._plan.delta, method="rdp")
        return self._histograms + spent


def _parameters(teachers: Teachers) -> list[Numbers]:
    """Of each teacher, flat."""
    return [
        np.concatenate([part.ravel() for part in weights]).astype(np.float64)
        for weights in teachers.networks.weights()
    ]


def _losses(teachers: Teachers, chosen: Tensor) -> list[float]:
    """Each teacher's cross-entropy on real records [n], which it should call real."""
    _, logits = teachers.networks.forward(teachers.rows[chosen][None])
    losses: list[float] = torch.nn.functional.softplus(-logits).mean(dim=1).tolist()
    return losses


def _unrounded(matrix: Numbers, schema: Schema) -> Numbers:
    """Numbers in the scale of the output, missing ones NaN; whole ones not yet rounded."""
    numeric = [column.kind.numeric for column in schema.columns]
    continuous = tuple(
        replace(column, kind=Kind.CONTINUOUS) if column.kind is Kind.INTEGER else column
        for column in schema.columns
    )
    return values_of(matrix, replace(schema, columns=continuous))[:, numeric]
