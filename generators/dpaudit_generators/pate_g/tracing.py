"""What a training of PATE-G records: who reads which rows, votes, labels and what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpaudit.plugins.protocols import IntArray
from dpaudit.plugins.recorder import Reader, Recorder
from dpaudit_generators.batches import whole_table
from dpaudit_generators.pate import TeacherEnsemble

if TYPE_CHECKING:
    from dpaudit_generators.pate_g.mechanism import PateG


def traced(
    generator: PateG, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
) -> pd.DataFrame:
    """Trains on a table, samples the model and records the training; see `PateG.trace`."""
    recorder.constant("teachers", generator.teachers)
    recorder.constant("labels", generator.labels)
    recorder.constant("batch", generator.batch)
    for column in generator.schema.columns:
        if column.kind.numeric:
            recorder.scaling(column.name, column.bounds)
    if generator.aggregation.table is not None:
        recorder.promised(generator.aggregation.table)
    model = generator.train(data, [whole_table(seed)], _Recording(generator, recorder))[0]
    return model.sample(n_rows, seed=seed)


class _Recording:
    """Observes a training of one model and records it.

    Args:
        generator: What is trained.
        recorder: Takes the records.
    """

    def __init__(self, generator: PateG, recorder: Recorder) -> None:
        self._generator, self._recorder = generator, recorder

    def on_labels(self, teachers: TeacherEnsemble, votes: IntArray, labels: IntArray) -> None:
        """Records which rows teachers read, how they voted, the labels and their cost.

        Of more than two classes the second is recorded, against all others.
        """
        generator, recorder = self._generator, self._recorder
        recorder.iteration()
        for index, rows in enumerate(teachers.cells):
            if len(rows):
                recorder.read(Reader.TEACHER, rows, index=index)
        recorder.voted(votes[:, 1], (labels == 1).astype(np.int64))
        paid = generator.labels - teachers.left
        spent = generator.aggregation.epsilon(paid, delta=generator.delta)
        recorder.charged(paid, before=0.0, after=spent, moments=None)

    def on_rows(self, rows: IntArray) -> None:
        """Records which rows a student reads, if they are the table's own."""
        self._recorder.iteration()
        if self._generator.public is None:
            self._recorder.read(Reader.STUDENT, rows[rows >= 0])
