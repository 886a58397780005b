"""Reports of a generator about its own training, for the white-box checks of `dpaudit trace`.

A generator that can be traced has `trace`, which does what `fit` and `sample` do and reports to a
`Recorder` what happens, as it happens: facts (row numbers, votes, draws, numbers that scaled a
column), never a judgement. It calls only the methods that apply to it. Most of them are about PATE
(teachers, votes, labels and their cost); `summed` is about DP-SGD.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol, TypeGuard

import pandas as pd

from dpaudit.account import VoteTable
from dpaudit.plugins.protocols import FloatArray, Generator, IntArray


class Reader(StrEnum):
    """A part of a generator that may read private records."""

    TEACHER = "teacher"
    """One of many teachers, which releases nothing but its vote."""
    STUDENT = "student"
    """The network that the generator network learns from, such as a single critic."""
    GENERATOR = "generator"
    """The network that makes synthetic records, in training."""
    CONDITIONS = "conditions"
    """The values that synthetic records are conditioned on."""


class NoiseOn(StrEnum):
    """What a draw of noise is added to."""

    VOTES = "votes"
    """A count of teachers' votes."""
    LABELS = "labels"
    """A label that is 0 or 1."""


class Stage(StrEnum):
    """When the generator network is fed."""

    TRAINING = "training"
    SAMPLING = "sampling"


class Recorder(Protocol):
    """Receives what happens in one training.

    Row numbers are positions in the table that is traced.
    """

    def constant(self, name: str, value: float) -> None:
        """A number that the training treats as public.

        Names with a meaning: `teachers` (k), `batch`, `gamma` (the inverse noise scale that the
        accountant uses), `gradient_penalty` (its weight); for DP-SGD `sampling_rate`, `clip` (the
        clipping norm) and `noise_multiplier`, as its accountant uses them.
        """
        ...

    def scaling(self, column: str, numbers: Sequence[float]) -> None:
        """The numbers that scale a numeric column: bounds [2], or means and deviations."""
        ...

    def label_counts(self, counts: Sequence[int]) -> None:
        """Numbers of records of each class to generate, or counted for that purpose."""
        ...

    def iteration(self) -> None:
        """A round of teachers, student and generator begins."""
        ...

    def read(self, reader: Reader, rows: IntArray, *, index: int = 0) -> None:
        """A part read private records.

        Args:
            reader: The part.
            rows: Row numbers, perhaps repeated.
            index: Number of the teacher, if it is one.
        """
        ...

    def taught(self, index: int, *, before: FloatArray, after: FloatArray) -> None:
        """A teacher was trained in this iteration: its parameters, flat, before and after."""
        ...

    def losses(self, own: float, others: float) -> None:
        """Cross-entropy on what teacher 0 read first: its own, and the mean of the others'."""
        ...

    def promised(self, table: VoteTable) -> None:
        """The mechanism that the accountant charges for: how labels should follow from votes."""
        ...

    def voted(self, ones: IntArray, labels: IntArray) -> None:
        """Labels were released: the numbers of teachers that voted 1 [n], and the labels [n]."""
        ...

    def noise(self, draws: FloatArray, *, on: NoiseOn) -> None:
        """Noise was drawn to hide votes or labels [n]."""
        ...

    def charged(
        self, queries: int, *, before: float, after: float, moments: FloatArray | None
    ) -> None:
        """The accountant charged for the latest labels.

        Args:
            queries: Number of these labels.
            before: Epsilon spent before, according to the accountant.
            after: Epsilon spent now, according to the accountant.
            moments: The total log moments 1..L of a moments accountant [L].
        """
        ...

    def summed(
        self, rows: IntArray, *, clipped: FloatArray, added: FloatArray, noise: FloatArray
    ) -> None:
        """A step of DP-SGD: gradients of records were summed up.

        Args:
            rows: Row numbers of the batch [b].
            clipped: Norm of the part of each gradient that is clipped, after clipping [b].
            added: Norm of all that each record added to the sum [b].
            noise: Noise added to each number of the sum [p]; 0 for no noise.
        """
        ...

    def fed(self, stage: Stage, inputs: FloatArray) -> None:
        """The generator network was fed these random numbers."""
        ...

    def output(self, unrounded: FloatArray) -> None:
        """Numeric columns of the sampled table before rounding, in its own scale [n, numeric]."""
        ...


class Traceable(Generator, Protocol):
    """A generator that reports what it does.

    It may also have `exercises()`: the same generator with settings that reach further cases, such
    as an accountant's term that is otherwise never the smallest. These are traced too.
    """

    def trace(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """Trains on a table as `fit` does and draws `n_rows` records from the model.

        Returns:
            The synthetic table: that of ``fit(data, seed=seed).sample(n_rows, seed=seed)``.
        """
        ...


def can_be_traced(generator: object) -> TypeGuard[Traceable]:
    """Whether a generator reports what it does."""
    return callable(getattr(generator, "trace", None))
