"""Private Aggregation of Teacher Ensembles (Papernot et al. 2017, 2018), usable on its own.

`Pate` fits any classifiers on disjoint cells of a private table, releases a fixed number of noisy
labels of public rows, each charged before it is drawn, and fits a student on them. Every teacher
and every student is a fitted classifier that always has an answer: any of scikit-learn, or a torch
module that behaves like one. PATE-GAN uses the same parts: `cells` assigns records to teachers,
`LabelRelease` draws labels from a public table.

Noise for several counts is discrete Laplace or discrete Gaussian, by the samplers of Canonne,
Kamath and Steinke 2020, "The Discrete Gaussian for Differential Privacy". They use only integer
arithmetic on uniform integers, so the noise has exactly the accounted distribution. Floating-point
noise does not, and its low bits can reveal the count (Mironov 2012). The bounds for continuous
noise hold for discrete noise as well. The duration of a draw depends on the noise: draw where it
cannot be timed. Importing this module imports neither torch nor scikit-learn.
"""

from __future__ import annotations

import copy
import hashlib
import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.account.noisy_max import ConfidentNoisyMax, LaplaceNoisyMax, NoisyMax
from dpaudit.errors import BudgetError, DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Category
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of, seeded_globals
from dpaudit_generators.batches import require_table

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


@dataclass(frozen=True, kw_only=True)
class Pate:
    """Private Aggregation of Teacher Ensembles (Papernot et al. 2017, 2018).

    The claim is (epsilon, delta) for adding or removing one record. A keyed hash assigns each
    record, label included, to one teacher; a teacher is fitted on its own cell with separate
    randomness, so one record changes one vote. Labels are released by a mechanism whose cost does
    not depend on the votes (`dpaudit.account.noisy_max`), their number is fixed here, and the
    student sees nothing else. All constants are public.

    Attributes:
        teacher: The classifier of every teacher, which is cloned and not changed: any of
            scikit-learn, or a `TorchClassifier`. It must train on every cell that holds two
            classes, however small, because an exception would reveal its cell.
        classes: A public list of all classes, not only those in the table.
        aggregation: How votes become a label; fixes the number of teachers.
        labels: How many labels may be released.
        delta: The delta of the claim.

    Raises:
        SettingsError: If a setting is out of range or contradicts another.
        ClaimError: If nothing can be claimed, such as at delta 0 with Gaussian noise.
    """

    teacher: Classifier
    classes: tuple[Hashable, ...]
    aggregation: Aggregation
    labels: int
    delta: float = 1e-5

    def __post_init__(self) -> None:
        require_classifier(self.teacher)
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(set(self.classes)) != len(self.classes):
            raise SettingsError("a class is listed twice: list each class once")
        if len(self.classes) != self.aggregation.classes:
            raise SettingsError(
                f"{len(self.classes)} classes are listed and the aggregation has "
                f"{self.aggregation.classes}: give both the same number"
            )
        if self.labels < 1:
            raise SettingsError(f"labels is {self.labels}: use at least 1")
        _ = self.claim  # validates the budget

    @property
    def claim(self) -> PrivacyClaim:
        """The cost of all labels, for adding or removing one record, with its derivation."""
        return self.aggregation.claim(self.labels, delta=self.delta)

    def fit(
        self, rows: npt.ArrayLike, labels: npt.ArrayLike, *, seed: int | None
    ) -> TeacherEnsemble:
        """Trains the teachers.

        Args:
            rows: Private records as numbers under a public encoding, [n, width]; `labelled` makes
                them from a table.
            labels: Their classes [n].
            seed: For audits; None draws everything from the operating system's entropy.

        Raises:
            DataError: If the records cannot be used; raised before any training. The message is
                only for the owner of the data and must not be released.
        """
        table = _numbers(rows)
        positions = self._positions(labels)
        k = self.aggregation.teachers
        if len(positions) != len(table):
            raise DataError(
                f"there are {len(table)} rows and {len(positions)} labels: give one for each"
            )
        if len(table) < k:
            raise DataError(
                f"the table has {len(table)} rows for {k} teachers: most would have nothing to "
                "learn from; use fewer teachers"
            )
        if len(np.unique(positions)) < 2:
            raise DataError(
                "all labels are of one class, so there is nothing to learn: add records of another"
            )
        return self.teach(table, positions, seed=seed)

    def teach(self, rows: Rows, positions: IndexArray, *, seed: int | None) -> TeacherEnsemble:
        """Trains the teachers on any table: `fit` without refusals, which depend on the records.

        Args:
            rows: As `fit` takes them.
            positions: Positions of the records' classes in `classes` [n].
            seed: For audits; None draws everything from the operating system's entropy.
        """
        key = rng_of(seed, "partition").bytes(32)
        owned = cells(
            np.column_stack([rows, positions]), teachers=self.aggregation.teachers, key=key
        )
        teachers = tuple(
            fit_voter(self.teacher, rows[cell], positions[cell], seed=_seed(seed, f"teacher {i}"))
            for i, cell in enumerate(owned)
        )
        return TeacherEnsemble(self, teachers, owned, width=rows.shape[1], seed=seed)

    def _positions(self, labels: npt.ArrayLike) -> IndexArray:
        position = {name: i for i, name in enumerate(self.classes)}
        found = [position.get(label, -1) for label in np.asarray(labels).ravel().tolist()]
        if -1 in found:
            raise DataError(
                f"the label of row {found.index(-1)} is not in the list of classes: correct it, or "
                "add its class"
            )
        return np.array(found, dtype=np.int64)


class TeacherEnsemble:
    """Fitted teachers and their remaining budget.

    An ensemble is as private as the data: keep it where the data is kept. The claim covers only
    what `label` and `student` return.

    Args:
        pate: The settings.
        teachers: One fitted teacher for each cell.
        cells: Row numbers of each teacher's records.
        width: Number of columns of the rows that they were fitted on.
        seed: For audits; None takes every noise bit from the operating system's entropy.
    """

    def __init__(
        self,
        pate: Pate,
        teachers: tuple[Voter, ...],
        cells: tuple[IndexArray, ...],
        *,
        width: int,
        seed: int | None,
    ) -> None:
        self._pate = pate
        self._teachers = teachers
        self._cells = cells
        self._width = width
        self._seed = seed
        self._budget = LabelBudget(pate.labels)
        self._release = class_release(pate.aggregation, self._budget, seed=seed)

    @property
    def claim(self) -> PrivacyClaim:
        """The claim for all released labels together, and for any student."""
        claim = self._pate.claim
        if self._seed is None:
            return claim
        return replace(claim, source=f"{claim.source}; noise from a seed, for audits only")

    @property
    def cells(self) -> tuple[IndexArray, ...]:
        """Row numbers of the records of each teacher, which are private."""
        return self._cells

    @property
    def left(self) -> int:
        """How many labels may still be released."""
        return self._budget.left

    def votes(self, rows: npt.ArrayLike) -> IndexArray:
        """Counts the raw votes, which are private and must never be released.

        Args:
            rows: Rows [n, width].

        Returns:
            Votes [n, classes].

        Raises:
            DataError: If the rows do not fit the teachers.
        """
        asked = _numbers(rows)
        if asked.shape[1] != self._width:
            raise DataError(
                f"the rows have {asked.shape[1]} columns and the teachers learned from "
                f"{self._width}: encode both in the same way"
            )
        classes = self._pate.aggregation.classes
        counts = np.zeros((len(asked), classes), dtype=np.int64)
        for teacher in self._teachers:
            counts[np.arange(len(asked)), teacher.predict(asked, classes=classes)] += 1
        return counts

    def label(self, rows: npt.ArrayLike) -> Answers:
        """Draws noisy labels of public rows, each paid for before it is drawn.

        Args:
            rows: Public rows [n, width].

        Returns:
            Which rows were answered, and their classes.

        Raises:
            BudgetError: If the budget does not pay for all rows; nothing is drawn then.
            DataError: If the rows do not fit the teachers.
        """
        answers = self._release.release(self.votes(rows))
        return Answers(answers.rows, _named(self._pate.classes, answers.labels))

    def student(self, classifier: Classifier, rows: npt.ArrayLike) -> Student:
        """Labels public rows and fits a student on the answers.

        The labels are paid for from the budget; the fit costs nothing, as post-processing.

        Args:
            classifier: Any of scikit-learn or a `TorchClassifier`; it is cloned.
            rows: Public rows [n, width]; each costs a label.

        Returns:
            The student, which may be published.

        Raises:
            BudgetError: If the budget does not pay for all rows; nothing is drawn then.
            DataError: If the rows do not fit the teachers.
            SettingsError: If `classifier` is not one; nothing is drawn then.
        """
        require_classifier(classifier)
        answers = self._release.release(self.votes(rows))
        voter = fit_voter(
            classifier,
            _numbers(rows)[answers.rows],
            answers.labels.astype(np.int64),
            seed=_seed(self._seed, "student"),
        )
        return Student(self._pate.classes, voter, self.claim)


class Student(NamedTuple):
    """A classifier that may be published.

    Attributes:
        classes: All classes.
        voter: The fitted classifier.
        claim: The claim for the records of the teachers.
    """

    classes: tuple[Hashable, ...]
    voter: Voter
    claim: PrivacyClaim

    def predict(self, rows: npt.ArrayLike) -> npt.NDArray[Any]:
        """Predicts the classes [n] of rows [n, width]."""
        positions = self.voter.predict(_numbers(rows), classes=len(self.classes))
        return _named(self.classes, positions)


def _seed(seed: int | None, purpose: str) -> int:
    return int(rng_of(seed, purpose).integers(2**32))


def _named(classes: tuple[Hashable, ...], positions: npt.NDArray[np.generic]) -> npt.NDArray[Any]:
    """The classes at some positions; classes of mixed types keep their types."""
    dtype = None if len({type(name) for name in classes}) == 1 else object
    return np.asarray(np.array(classes, dtype=dtype)[positions])


def _numbers(rows: npt.ArrayLike) -> Rows:
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("the rows are not all numbers: encode them, as `labelled` does") from None
    if table.ndim != 2:
        raise DataError(f"the rows have shape {table.shape}: give a matrix [n, width]")
    return table


Rows: TypeAlias = npt.NDArray[np.float64]


class Classifier(Protocol):
    """A scikit-learn classifier, or anything that behaves like one (`TorchClassifier`)."""

    def fit(self, rows: Any, labels: Any, /) -> Any:
        """Learns from rows [n, width] and class positions [n]."""
        ...

    def predict(self, rows: Any, /) -> Any:
        """Class positions [n]."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""
        ...

    def set_params(self, **settings: Any) -> Any:
        """Changes settings."""
        ...


class Voter(NamedTuple):
    """A fitted classifier that always has an answer.

    Attributes:
        classifier: None if its records had fewer than two classes.
        constant: The answer in that case.
    """

    classifier: Classifier | None
    constant: int

    def predict(self, rows: Rows, *, classes: int) -> IndexArray:
        """Predicts class positions.

        Args:
            rows: Rows [n, width].
            classes: Number of classes.

        Returns:
            Positions [n], each in 0..classes - 1.

        Raises:
            SettingsError: If the classifier predicts anything else.
        """
        if self.classifier is None or len(rows) == 0:
            return np.full(len(rows), self.constant, dtype=np.int64)
        named = np.asarray(self.classifier.predict(rows))
        positions = named.astype(np.int64)
        # The proof counts one whole vote of each teacher.
        if named.shape != (len(rows),) or not np.isin(named, np.arange(classes)).all():
            raise SettingsError(
                f"{type(self.classifier).__name__} did not predict one class position for each "
                "row: pass a classifier, not a regressor or one with several outputs"
            )
        return positions


def fit_voter(template: Classifier, rows: Rows, positions: IndexArray, *, seed: int) -> Voter:
    """Fits a clone of a classifier, unless there are fewer than two classes.

    Without records the answer is the first class of the public list, for any size of the table.
    With a single class it is that class: an ordinary function of the cell, and the answer of any
    classifier that accepts such a cell.

    Args:
        template: The classifier, which is not changed.
        rows: The cell, [n, width].
        positions: Class positions [n].
        seed: A seed in [0, 2**32) for every random setting of the clone, and for global state while
            it is fitted, so that no two classifiers share a random stream.
    """
    from sklearn.base import clone

    present = np.unique(positions)
    if len(present) < 2:
        return Voter(None, int(present[0]) if len(present) else 0)
    classifier = clone(template)
    states = [name for name in classifier.get_params() if name.endswith("random_state")]
    classifier.set_params(**dict.fromkeys(states, seed))
    with seeded_globals(seed):
        classifier.fit(rows, positions)
    return Voter(classifier, int(present[0]))


def require_classifier(classifier: object) -> None:
    """Checks that an object can be cloned, fitted and asked for classes.

    Raises:
        SettingsError: If it is a class, or lacks a method.
    """
    needed = ("fit", "predict", "get_params", "set_params")
    if isinstance(classifier, type) or not all(hasattr(classifier, name) for name in needed):
        raise SettingsError(
            f"{classifier!r} is not a scikit-learn classifier: pass an instance, or wrap a torch "
            "module in TorchClassifier"
        )


class Labelled(NamedTuple):
    """A table in the form that `Pate.fit` takes.

    Attributes:
        rows: The other columns, encoded under the public schema, [n, width].
        labels: The label column [n].
        classes: All its categories, from the schema.
    """

    rows: npt.NDArray[np.float64]
    labels: npt.NDArray[Any]
    classes: tuple[Category, ...]


def labelled(data: pd.DataFrame, schema: Schema) -> Labelled:
    """Splits a table into rows and labels, using only its public schema.

    Args:
        data: A table that fits the schema.
        schema: Its public schema, which names the label column.

    Returns:
        Rows, labels and the list of classes.

    Raises:
        DataError: If the table does not fit, or the schema has no label column with categories in
            addition to other columns.
    """
    by_name = {column.name: column for column in schema.columns}
    if schema.label is None:
        raise DataError("the schema names no label column: set `label` to one of its columns")
    column = by_name.pop(schema.label)
    if column.kind.numeric or not by_name:
        raise DataError(
            f"column {column.name!r} cannot be the label: it must be binary or categorical, with "
            "another column to learn from"
        )
    require_table(data, schema)
    rows = encode(data, replace(schema, columns=tuple(by_name.values()), label=None))
    return Labelled(rows, data[column.name].to_numpy(dtype=object), column.categories)


if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(kw_only=True)
class TorchClassifier:
    """Trains a copy of a module by Adam on the cross-entropy of minibatches.

    Importing this module does not import torch; fitting does.

    Attributes:
        module: Maps float32 rows [n, width] to logits [n, classes]. Every fit starts from a copy
            of it, so its weights must be public: fresh, or those of a public model.
        steps: Number of minibatches in a training.
        batch: Size of a minibatch, which is drawn with replacement.
        rate: Learning rate.
        random_state: Seeds the choice of minibatches.

    Raises:
        SettingsError: If a setting is out of range.
    """

    module: Module
    steps: int = 200
    batch: int = 32
    rate: float = 1e-2
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.rate > 0.0:
            raise SettingsError("steps and batch must be at least 1, and rate above 0")

    def fit(self, rows: npt.ArrayLike, labels: npt.ArrayLike) -> TorchClassifier:
        """Trains on rows [n, width] and class positions [n]."""
        import torch

        inputs = torch.as_tensor(np.asarray(rows, dtype=np.float32))
        classes = torch.as_tensor(np.asarray(labels, dtype=np.int64))
        rng = torch.Generator().manual_seed(self.random_state)
        self.module_ = copy.deepcopy(self.module).train()
        adam = torch.optim.Adam(self.module_.parameters(), lr=self.rate)
        for _ in range(self.steps):
            chosen = torch.randint(len(inputs), (self.batch,), generator=rng)
            loss = torch.nn.functional.cross_entropy(self.module_(inputs[chosen]), classes[chosen])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        self.module_.eval()
        return self

    def predict(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Predicts class positions [n] of rows [n, width]."""
        import torch

        with torch.no_grad():
            logits = self.module_(torch.as_tensor(np.asarray(rows, dtype=np.float32)))
        return np.asarray(logits.argmax(dim=1).numpy(), dtype=np.int64)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as scikit-learn's `clone` needs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **settings: Any) -> TorchClassifier:
        """Changes settings."""
        for name, value in settings.items():
            setattr(self, name, value)
        return self
