"""Noisy labels: each paid for before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.account.noisy_max import ConfidentNoisyMax, LaplaceNoisyMax, NoisyMax
from dpaudit.errors import BudgetError, SettingsError
from dpaudit_generators.pate.partition import IndexArray
from dpaudit_generators.pate.randomness import (
    RandomBits,
    WordArray,
    discrete_gaussian,
    discrete_laplace,
)

_AHEAD: Final = 1024
"""Random words of a model that are drawn at a time, if a query needs fewer."""

Aggregation: TypeAlias = NoisyMax | ConfidentNoisyMax
"""How votes become a label."""


class LabelRelease:
    """Releases labels of two classes as draws from a public table, by comparisons without noise.

    Args:
        table: The 64-bit table, as `VoteTable.quantised` makes it.
        budget: Pays for each label, and refuses the one after the last.
        seed: For audits; None takes every word from the operating system's entropy.
    """

    def __init__(self, table: VoteTable, budget: LabelBudget, *, seed: int | None) -> None:
        self._table = table
        self._budget = budget
        self._bits = RandomBits(seed, "label noise")

    @property
    def left(self) -> int:
        """How many labels the budget still pays for."""
        return self._budget.left

    def release(self, votes: npt.ArrayLike) -> IndexArray:
        """Draws one label for each query.

        Args:
            votes: How many teachers voted 1, integers [n].

        Returns:
            Labels 0 or 1, [n].

        Raises:
            BudgetError: If the budget does not pay for all of them; none is drawn then.
            SettingsError: If a count is outside 0..k.
        """
        count = np.asarray(votes, dtype=np.int64)
        if count.size == 0:
            return count
        self._budget.spend(count.size)
        return self._table.release(count, self._bits.words(count.size))


class LabelReleases:
    """`LabelRelease` for M models at once; the labels of each are those it would get alone.

    Args:
        table: The 64-bit table, as `VoteTable.quantised` makes it.
        budgets: Pay for the labels of each model.
        seeds: One for each model; None takes every word from the operating system's entropy.
    """

    def __init__(
        self, table: VoteTable, budgets: Sequence[LabelBudget], *, seeds: Sequence[int | None]
    ) -> None:
        self._table, self._budgets = table, budgets
        self._bits = [RandomBits(seed, "label noise") for seed in seeds]
        self._ahead = np.empty((len(seeds), 0), dtype=np.uint64)

    def release(self, votes: npt.NDArray[np.int64], *, going: Sequence[bool]) -> IndexArray:
        """Draws one label for each query.

        Args:
            votes: How many teachers voted 1, integers [M, n], n at least 1.
            going: Whether each model asks; nothing is released for the others.

        Returns:
            Labels 0 or 1, [M, n]; 0 for models that do not ask.

        Raises:
            BudgetError: If a budget does not pay for all of them; none is drawn then.
            SettingsError: If a count is outside 0..k.
        """
        n = votes.shape[1]
        for budget, goes in zip(self._budgets, going, strict=True):
            if goes:
                budget.spend(n)
        words = self._next(n)
        if all(going):
            return self._table.release(votes, words)
        asked = np.flatnonzero(going)
        labels = np.zeros_like(votes)
        labels[asked] = self._table.release(votes[asked], words[asked])
        return labels

    def _next(self, n: int) -> WordArray:
        """The next n words of each model, [M, n]."""
        if self._ahead.shape[1] < n:
            more = np.empty((len(self._bits), max(n, _AHEAD)), dtype=np.uint64)
            for mine, bits in zip(more, self._bits, strict=True):
                mine[:] = bits.words(more.shape[1])
            self._ahead = np.concatenate([self._ahead, more], axis=1)
        words, self._ahead = self._ahead[:, :n], self._ahead[:, n:]
        return words


class Answers(NamedTuple):
    """What the ensemble released.

    Attributes:
        rows: Which queries were answered, increasing positions [m]; all of them, unless only
            clear majorities are.
        labels: Their noisy labels [m].
    """

    rows: IndexArray
    labels: npt.NDArray[np.generic]


class ClassRelease:
    """Releases labels of any number of classes.

    Two classes use the exact table. More classes get integer noise on every count; of equal noisy
    counts the first class wins, which costs no privacy and hardly any accuracy.

    Args:
        noisy_max: How votes become a label.
        budget: Pays for each label, and refuses the one after the last.
        seed: For audits; None takes every bit from the operating system's entropy.
    """

    def __init__(self, noisy_max: NoisyMax, budget: LabelBudget, *, seed: int | None) -> None:
        self._noisy_max = noisy_max
        self._budget = budget
        self._bits = RandomBits(seed, "label noise")
        table = noisy_max.table
        self._two = None if table is None else LabelRelease(table, budget, seed=seed)

    def release(self, votes: npt.ArrayLike) -> Answers:
        """Answers every query.

        Args:
            votes: Votes of the teachers for each class, integers [n, classes]; each row adds up to
                the number of teachers.

        Returns:
            The answers, one for each query.

        Raises:
            BudgetError: If the budget does not pay for all queries; nothing is drawn then.
            SettingsError: If the votes are not those of the teachers among the classes.
        """
        counts = _counts(votes, self._noisy_max)
        if self._two is not None:
            labels = self._two.release(counts[:, 1])
        else:
            if len(counts):
                self._budget.spend(len(counts))
            # Python integers, because no noise is too large for them.
            labels = np.array([self._noisy_argmax(row) for row in counts.tolist()], dtype=np.int64)
        return Answers(np.arange(len(counts)), labels)

    def _noisy_argmax(self, counts: Sequence[int]) -> int:
        laplace = isinstance(self._noisy_max, LaplaceNoisyMax)
        draw = discrete_laplace if laplace else discrete_gaussian
        noisy = [count + draw(self._noisy_max.scale, self._bits) for count in counts]
        return noisy.index(max(noisy))


class ConfidentRelease:
    """Releases labels of clear majorities only, after a noisy check of each query.

    Args:
        confident: How queries are checked and answered.
        budget: Pays for each label. Checks have a budget of their own: `confident.checks`.
        seed: For audits; None takes every bit from the operating system's entropy.
    """

    def __init__(
        self, confident: ConfidentNoisyMax, budget: LabelBudget, *, seed: int | None
    ) -> None:
        self._confident = confident
        self._budget = budget
        self._checks = LabelBudget(confident.checks)
        self._bits = RandomBits(seed, "check noise")
        self._answer = ClassRelease(confident.answer, budget, seed=seed)

    def release(self, votes: npt.ArrayLike) -> Answers:
        """Answers queries whose noisy largest count reaches the threshold.

        Queries beyond the last label that the budget pays for stay unanswered.

        Args:
            votes: As for `ClassRelease.release`.

        Returns:
            The answers, and which queries they are for.

        Raises:
            BudgetError: If not all queries can be checked, or no label is left; nothing is drawn
                then.
            SettingsError: If the votes are not those of the teachers among the classes.
        """
        counts = _counts(votes, self._confident.answer)
        if self._budget.left == 0:
            raise BudgetError("all labels of the privacy budget are spent: plan a larger budget")
        if len(counts):
            self._checks.spend(len(counts))
        clear = np.flatnonzero([self._is_clear(max(row)) for row in counts.tolist()])
        rows = clear[: self._budget.left]
        return Answers(rows, self._answer.release(counts[rows]).labels)

    def _is_clear(self, largest: int) -> bool:
        noise = discrete_gaussian(self._confident.check_scale, self._bits)
        return largest + noise >= self._confident.threshold


def class_release(
    aggregation: Aggregation, budget: LabelBudget, *, seed: int | None
) -> ClassRelease | ConfidentRelease:
    """The release that an aggregation needs.

    Args:
        aggregation: How votes become a label.
        budget: Pays for each label.
        seed: For audits; None takes every bit from the operating system's entropy.
    """
    if isinstance(aggregation, ConfidentNoisyMax):
        return ConfidentRelease(aggregation, budget, seed=seed)
    return ClassRelease(aggregation, budget, seed=seed)


def _counts(votes: npt.ArrayLike, noisy_max: NoisyMax) -> IndexArray:
    counts = np.asarray(votes)
    if (
        counts.dtype.kind not in "iu"
        or counts.ndim != 2
        or counts.shape[1] != noisy_max.classes
        or np.any(counts < 0)
        or np.any(counts.sum(axis=1) != noisy_max.teachers)
    ):
        # The message does not quote the votes, because they are secret.
        raise SettingsError(
            f"the votes are not whole numbers for {noisy_max.classes} classes that add up to "
            f"{noisy_max.teachers} teachers: count one vote of every teacher for each query"
        )
    return counts.astype(np.int64)
