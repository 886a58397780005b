"""PATE-GAN as in its paper: a generator network that starts from noise.

What else it uses of the table is released by noisy histograms, charged to the privacy budget:
bounds of numbers, proportions of labels. Bounds may also come from the public schema, or, as an
experiment, from the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.account import LabelPlan, calibrate
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import MISSING, Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.setting import BETWEEN_0_AND_1, check_number
from dpaudit_generators.batches import schema_of_data, shares_of
from dpaudit_generators.pate import RandomBits, discrete_laplace
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator
from dpaudit_generators.pate_gan.settings import Trainee

GRID: Final = 64
"""Cells of the histogram of a numeric column: equal parts of the range of its public bounds."""

_BEYOND: Final = 0.01
"""Largest share of the records that a released bound may cut off on its side."""

_SURE: Final = 2.0
"""Standard deviations of noise added to a share before it is compared with the limit."""

_PARTS: Final = 2**32
"""The epsilon of a histogram is a multiple of 1 / _PARTS, so the noise is exact in integers."""


class Bounds(StrEnum):
    """Where the bounds of numeric columns come from."""

    SCHEMA = "schema"
    """The public schema."""
    PRIVATE = "private"
    """Noisy histograms of the table, paid from the budget."""
    DATA = "data"
    """The smallest and largest value of the table: an experiment that breaks the proof."""


class Proportions(StrEnum):
    """Where the proportions of the label's classes come from."""

    GENERATED = "generated"
    """The label is generated like any other column."""
    PRIVATE = "private"
    """Released as noisy counts; labels are drawn from these, then records given a label."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """How a budget is divided between histograms and votes, which is public.

    Attributes:
        histograms: Number of histograms.
        each: Epsilon of each, with delta 0.
        votes: Epsilon that remains for the votes.
    """

    histograms: int
    each: Fraction
    votes: float


def split(epsilon: float, *, share: float, histograms: int) -> Split:
    """Divides a budget: a share of epsilon equally over the histograms, the rest for the votes.

    Args:
        epsilon: The whole budget, positive and finite.
        share: Share of the histograms, in (0, 1); without histograms the votes get everything.
        histograms: How many are released.

    Returns:
        The split; its parts never add up to more than the budget.

    Raises:
        SettingsError: If the share of a histogram is too small for any noise to be drawn.
    """
    if histograms == 0:
        return Split(histograms=0, each=Fraction(0), votes=epsilon)
    each = Fraction(int(epsilon * share / histograms * _PARTS), _PARTS)
    if each == 0:
        raise SettingsError(
            f"epsilon {epsilon:g} leaves nothing for {histograms} private histograms: raise it, "
            "or use bounds=schema and label_proportions=generated"
        )
    votes = math.nextafter(epsilon - float(histograms * each), 0.0)  # rounded down
    return Split(histograms=histograms, each=each, votes=votes)


def released_counts(
    counts: npt.NDArray[np.int64], *, epsilon: Fraction, bits: RandomBits
) -> npt.NDArray[np.int64]:
    """Counts [n] of one histogram plus independent discrete Laplace noise.

    A record adds one to one cell of a histogram, so counts with discrete Laplace noise of parameter
    epsilon are (epsilon, 0)-differentially private for adding or removing one record (Ghosh,
    Roughgarden and Sundararajan 2009; parallel composition over the cells), and several histograms
    cost the sum (basic composition). Everything computed from them is post-processing.
    """
    noise = [discrete_laplace(1 / epsilon, bits) for _ in range(len(counts))]
    return counts + np.array(noise, dtype=np.int64)


def private_bounds(
    column: Column, values: pd.Series[Any], *, epsilon: Fraction, bits: RandomBits
) -> Column:
    """Narrows the bounds of a numeric column to about 98 % of its values.

    From each side the range shrinks cell by cell as long as the noisy count beyond, plus twice the
    standard deviation of its noise, is at most 1 % of all. So a small table or budget keeps the
    public bounds, and no outlier moves them.

    Args:
        column: The column with its public bounds.
        values: Its values; one beyond the public bounds counts in the nearest cell, a missing one
            in none.
        epsilon: Epsilon to spend.
        bits: Source of random bits.

    Returns:
        The column with bounds on the public grid, rounded outwards for integers; unchanged if
        nothing can be cut off.
    """
    lower, upper = column.bounds
    numbers = column.numbers(values)
    place = (numbers[~np.isnan(numbers)] - lower) / (upper - lower)
    cells = np.clip(place * GRID, 0, GRID - 1).astype(np.int64)
    counts = released_counts(np.bincount(cells, minlength=GRID), epsilon=epsilon, bits=bits)
    left, right = _cut(counts, epsilon), _cut(counts[::-1], epsilon)
    edges = np.linspace(lower, upper, GRID + 1)
    low, high = float(edges[left]), float(edges[GRID - right])
    if not low < high:
        return column
    if column.kind is Kind.INTEGER:
        low, high = math.floor(low), math.ceil(high)
    return replace(column, lower=max(lower, low), upper=min(upper, high))


def _cut(counts: npt.NDArray[np.int64], epsilon: Fraction) -> int:
    """How many of the first cells hold at most the share to be cut off, allowing for noise."""
    deviation = math.sqrt(2.0) / float(epsilon)  # a little above that of the discrete noise
    cut = np.arange(1, GRID + 1)
    surely = np.cumsum(counts) + _SURE * deviation * np.sqrt(cut) <= _BEYOND * counts.sum()
    return int(np.cumprod(surely).sum())


def private_proportions(
    column: Column, values: pd.Series[Any], *, epsilon: Fraction, bits: RandomBits
) -> tuple[float, ...]:
    """Releases the proportions of a label's classes, with "missing" last where it is allowed.

    Args:
        column: The label column, with categories.
        values: Its values.
        epsilon: Epsilon to spend.
        bits: Source of random bits.

    Returns:
        Proportions that add up to 1; equal ones if no noisy count is above 0.
    """
    classes = len(column.categories)
    codes = column.codes(values)
    if column.missing:
        codes = np.where(codes == MISSING, classes, codes)
    exact = np.bincount(codes[codes >= 0], minlength=classes + column.missing)
    return tuple(shares_of(released_counts(exact, epsilon=epsilon, bits=bits)).tolist())


@dataclass(frozen=True, kw_only=True)
class PateGan(TaughtGenerator):
    """The PATE-GAN of its paper (Jordon et al. 2019), with a proved claim.

    A generator network, which starts from noise, learns from a student that learns from the noisy
    labels of k teachers. It claims (epsilon, delta) for adding or removing one record. The proof,
    in the order of the code: All constants come from public settings (`plan`, `TrainingSettings`).
    A keyed hash assigns records to teachers, so a record reaches one teacher (`pate.cells`), whose
    training does not read the other cells (`Teachers`). So one vote of k changes by one, and the
    released label is a draw from a public table, whose exact Rényi divergences add up. Everything
    else, the student, the generator network and the records, reads released labels only, which is
    post-processing. Everything else used from the table is released by noisy histograms
    (`released_counts`) before any teacher trains, for a share of epsilon subtracted from the votes;
    the sum is the budget. Under `bounds=data` the premise fails, and the claim with it.

    With `seed=None` every stream, including that of the labels' noise, is the operating system's
    entropy, as production needs; a seed is for audits. The model's claim says which was used.

    The defaults do not depend on any data: an accuracy of .65 with 50 teachers means noise of 38.9
    votes at most. At epsilon 1 the budget buys 144 labels, too few to describe a table:
    `pate-gan-marginals` has better records for the same budget.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is the claim, not the amount spent in training.
        delta: The delta of the budget.
        rounds: How often teachers train, labels are released and the generator network learns.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels. If the budget pays for more labels
            than the student's steps can use, it buys only as many, with less noise.
        bounds: Where bounds of numbers come from; `data` is an experiment that violates the proof.
        label_proportions: Where the proportions of the label's classes come from.
        release_share: Share of epsilon for private bounds and label proportions, if any; divided
            equally over the numeric columns and the label.
        device: Where the networks are trained: "cpu", "cuda" or "cuda:N". Devices differ by
            rounding alone: weights agree to 1e-5 after 30 rounds.

    Raises:
        SettingsError: If a setting is out of range, or the budget pays for no label.
    """

    rounds: int = 40
    bounds: Bounds = Bounds.SCHEMA
    label_proportions: Proportions = Proportions.GENERATED
    release_share: float = 0.2

    stream_parameters: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"start": "noise", "rounds": 40}
    )
    """Parameters from when `pate-gan` had a choice of both, so that streams stay the same."""

    def __post_init__(self) -> None:
        for name, kind in (("bounds", Bounds), ("label_proportions", Proportions)):
            value = getattr(self, name)
            if value not in list(kind):
                raise SettingsError(f"{name} is {value!r}: use {', '.join(kind)}")
            object.__setattr__(self, name, kind(value))  # text from a command line
        check_number("release_share", self.release_share, BETWEEN_0_AND_1)
        if self._releases_proportions and (
            self.label is None or self.label.kind.numeric or len(self.schema.columns) < 2
        ):
            raise SettingsError(
                "label_proportions=private needs a schema that names a label column with "
                'categories ("label": NAME), and another column'
            )
        super().__post_init__()

    @cached_property
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""
        plan, split = self.plan, self.split
        source = plan.table.claim(plan.labels, delta=plan.delta, method="rdp").source
        if split.histograms:
            source += (
                f"; epsilon {split.votes:.3g} of the budget; the rest for {split.histograms} "
                f"histogram(s) with discrete Laplace noise, {float(split.each):.3g} each; the sum "
                "by basic composition"
            )
        if self.bounds is Bounds.DATA:
            source = f"not proved, because bounds are read off the data; else {source}"
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @cached_property
    def split(self) -> Split:
        """The budgets of histograms and votes; does not depend on data."""
        numbers = sum(column.kind.numeric for column in self.schema.columns)
        histograms = numbers * (self.bounds is Bounds.PRIVATE)
        histograms += self.label_proportions is Proportions.PRIVATE
        return split(self.epsilon, share=self.release_share, histograms=histograms)

    @cached_property
    def plan(self) -> LabelPlan:
        """Number and noise of the labels that the budget pays for; does not depend on data."""
        budget, k, delta = self.split.votes, self.teachers, self.delta
        most = self.rounds * self.student_steps * self.batch  # labels that the student draws
        # RDP only: no trial has to wait for the import of another accountant.
        plan = calibrate(epsilon=budget, delta=delta, k=k, accuracy=self.accuracy, method="rdp")
        if plan.labels <= most:
            return plan
        return calibrate(epsilon=budget, delta=delta, k=k, labels=most, method="rdp")

    def spent(self, labels: int) -> float:
        """Epsilon of this many labels and of everything released before them.

        Args:
            labels: Number of labels, at least 0.
        """
        plan = self.plan
        histograms = float(self.split.histograms * self.split.each)
        return histograms + plan.table.epsilon(labels, delta=plan.delta, method="rdp")

    def fixes(self) -> dict[str, PateGan]:
        """The same generator with public bounds, if bounds of the data violate its proof."""
        if self.bounds is Bounds.DATA:
            return {"bounds-from-data": replace(self, bounds=Bounds.SCHEMA)}
        return {}

    @property
    def _releases_proportions(self) -> bool:
        return self.label_proportions is Proportions.PRIVATE

    @property
    def _histogram_facts(self) -> Sequence[str]:
        names = []
        label = self.label
        if self._releases_proportions and label is not None:
            classes = [str(category) for category in label.categories]
            classes += ["missing"] if label.missing else []
            names += [f"proportion of {label.name} = {name}" for name in classes]
        if self.bounds is not Bounds.SCHEMA:
            names += [
                f"{end} bound of {column.name}"
                for column in self.schema.columns
                if column.kind.numeric
                for end in ("lower", "upper")
            ]
        return names

    def _histogram_numbers(self, schema: Schema, trainee: Trainee) -> Sequence[float]:
        bounds: list[float] = []
        if self.bounds is not Bounds.SCHEMA:
            numeric = [column for column in schema.columns if column.kind.numeric]
            bounds = [float(end) for column in numeric for end in column.bounds]
        return (*trainee.proportions, *bounds)

    def _histograms(self, data: pd.DataFrame, seed: int | None) -> tuple[Schema, tuple[float, ...]]:
        bits = RandomBits(seed, "histogram noise")
        return self._scale(data, bits), self._proportions(data, bits)

    def _scale(self, data: pd.DataFrame, bits: RandomBits) -> Schema:
        """The schema whose bounds scale the numbers."""
        if self.bounds is Bounds.DATA:
            return schema_of_data(self.schema, data)
        if self.bounds is Bounds.SCHEMA:
            return self.schema
        columns = tuple(
            private_bounds(column, data[column.name], epsilon=self.split.each, bits=bits)
            if column.kind.numeric
            else column
            for column in self.schema.columns
        )
        return replace(self.schema, columns=columns)

    def _proportions(self, data: pd.DataFrame, bits: RandomBits) -> tuple[float, ...]:
        """Released proportions of the label's classes, or none."""
        label = self.label
        if not self._releases_proportions or label is None:
            return ()
        return private_proportions(label, data[label.name], epsilon=self.split.each, bits=bits)
