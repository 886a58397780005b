"""Noisy labels, each charged before it is drawn, and the assignment of records to teachers.

Noise for several counts is discrete Laplace or discrete Gaussian, by the samplers of Canonne,
Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy". They use only integer
arithmetic on uniform integers, so the noise has exactly the accounted distribution. Floating-point
noise does not, and its low bits can reveal the count (Mironov 2012). The bounds for continuous
noise hold for discrete noise as well. The duration of a draw depends on the noise: draw where it
cannot be timed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.account.noisy_max import ConfidentNoisyMax, LaplaceNoisyMax, NoisyMax
from dpaudit.errors import BudgetError, SettingsError
from dpaudit.seeds import rng_of

_AHEAD: Final = 1024
"""Random words drawn at a time for a model, if a query needs fewer."""

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
        """Number of labels that the remaining budget allows."""
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
    """`LabelRelease` for M models at once; each gets the same labels as if alone.

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
            more = np.stack([bits.words(max(n, _AHEAD)) for bits in self._bits])
            left = self._ahead.shape[1]
            self._ahead = np.concatenate([self._ahead, more], axis=1) if left else more
        words, self._ahead = self._ahead[:, :n], self._ahead[:, n:]
        return words


class Answers(NamedTuple):
    """The released answers of the ensemble.

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


IndexArray: TypeAlias = npt.NDArray[np.int64]


def cells(rows: npt.NDArray[np.float64], *, teachers: int, key: bytes) -> tuple[IndexArray, ...]:
    """Assigns records to teachers by a keyed hash of each record alone.

    Neither the position of a record nor any other record matters, so adding or removing one changes
    one cell and leaves the others unchanged, including their order: the premise of the privacy
    proof. A permutation or a split by position would change almost every cell. Equal records share
    a cell.

    Args:
        rows: Records encoded under the public schema, shape [n, width].
        teachers: Number k of cells.
        key: Key of the hash, at most 64 bytes; independent of the records.

    Returns:
        k arrays of row numbers, of which some may be empty; each in the order of the hash.
    """
    canonical = np.ascontiguousarray(rows) + 0.0  # -0.0 becomes 0.0: equal records, equal bytes
    words = b"".join(
        hashlib.blake2b(row.data, digest_size=8, key=key).digest() for row in canonical
    )
    hashes = np.frombuffer(words, dtype="<u8")
    order = np.argsort(hashes, kind="stable")
    # 64 bits are mapped to k cells: the largest bias is k / 2**64.
    owner = (hashes[order] % np.uint64(teachers)).astype(np.int64)
    return tuple(order[owner == teacher] for teacher in range(teachers))


WordArray: TypeAlias = npt.NDArray[np.uint64]


class RandomBits:
    """A source of uniform integers.

    Args:
        seed: For audits; None takes every bit from the operating system's entropy.
        purpose: Names the stream of a seed.
    """

    def __init__(self, seed: int | None, purpose: str) -> None:
        self._bytes: Callable[[int], bytes] = secrets.token_bytes
        self._words: Callable[[int], WordArray] = _secret_words
        if seed is not None:
            rng = rng_of(seed, purpose)
            self._bytes, self._words = rng.bytes, rng.bit_generator.random_raw

    def words(self, n: int) -> WordArray:
        """Draws uniform 64-bit integers [n]."""
        return self._words(n)

    def below(self, bound: int) -> int:
        """Draws a uniform integer in [0, bound), of any size; by rejection, hence unbiased."""
        bits = (bound - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            drawn = int.from_bytes(self._bytes(size), "little") >> (8 * size - bits)
            if drawn < bound:
                return drawn


def _secret_words(n: int) -> WordArray:
    return np.frombuffer(secrets.token_bytes(8 * n), dtype=np.uint64)


def discrete_laplace(scale: float | Fraction, bits: RandomBits) -> int:
    """Draws x with probability proportional to exp(-abs(x) / scale) (Algorithm 2 there).

    Args:
        scale: Positive and finite; a float stands for its exact binary fraction.
        bits: The source.
    """
    top, bottom = scale.as_integer_ratio()
    while True:
        rest = bits.below(top)
        if not _bernoulli_exp(rest, top, bits):
            continue
        whole = 0
        while _bernoulli_exp(1, 1, bits):
            whole += 1
        size = (rest + top * whole) // bottom
        negative = bits.below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(scale: float | Fraction, bits: RandomBits) -> int:
    """Draws x with probability proportional to exp(-x**2 / (2 scale**2)) (Algorithm 3 there).

    Args:
        scale: Sigma, positive and finite; a float stands for its exact binary fraction.
        bits: The source.
    """
    top, bottom = scale.as_integer_ratio()
    top, bottom = top * top, bottom * bottom  # sigma squared
    spread = int(scale) + 1
    while True:
        x = discrete_laplace(spread, bits)
        # Accept with probability exp(-(|x| - sigma**2 / spread)**2 / (2 sigma**2)).
        distance = abs(x) * bottom * spread - top
        if _bernoulli_exp(distance * distance, 2 * top * bottom * spread * spread, bits):
            return x


def _bernoulli_exp(top: int, bottom: int, bits: RandomBits) -> bool:
    """True with probability exp(-top / bottom), the fraction being at least 0 (Algorithm 1)."""
    while top > bottom:
        if not _bernoulli_exp(1, 1, bits):
            return False
        top -= bottom
    terms = 1
    while bits.below(bottom * terms) < top:
        terms += 1
    return terms % 2 == 1
