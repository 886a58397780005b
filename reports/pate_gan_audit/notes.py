"""A recorder that keeps what Figures 2 to 4 show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dpaudit.account import VoteTable
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Stage


class Notes:
    """Keeps who read which records, the teachers' losses, and how often each vote was cast.

    Attributes:
        read_by: Distinct records by reader and index.
        own: Cross-entropy of teacher 0 on what it read first, by iteration.
        others: The mean of the others' on the same records.
        votes: How often n teachers voted 1, by n.
        iterations: Rounds begun.
        spent: Epsilon that the accountant holds spent; None without one.
    """

    def __init__(self) -> None:
        self.read_by: dict[Reader, dict[int, set[int]]] = {}
        self.own: list[float] = []
        self.others: list[float] = []
        self.votes: Counter[int] = Counter()
        self.iterations = 0
        self.spent: float | None = None

    @property
    def teachers(self) -> dict[int, set[int]]:
        """Records of each teacher; of each step of the single critic where there are none."""
        found = self.read_by.get(Reader.TEACHER) or self.read_by.get(Reader.STUDENT) or {}
        return {index: found[index] for index in sorted(found)}

    def iteration(self) -> None:
        """Counts a round."""
        self.iterations += 1

    def read(self, reader: Reader, rows: IntArray, *, index: int = 0) -> None:
        """Adds the rows to those of a reader."""
        self.read_by.setdefault(reader, {}).setdefault(index, set()).update(map(int, rows))

    def losses(self, own: float, others: float) -> None:
        """Keeps both."""
        self.own.append(float(own))
        self.others.append(float(others))

    def voted(self, ones: IntArray, labels: IntArray) -> None:
        """Counts votes; the labels are not needed."""
        del labels
        self.votes.update(map(int, ones))

    def charged(
        self, queries: int, *, before: float, after: float, moments: FloatArray | None
    ) -> None:
        """Keeps the latest epsilon."""
        del queries, before, moments
        self.spent = float(after)

    def constant(self, name: str, value: float) -> None:
        """Not kept."""

    def scaling(self, column: str, numbers: Sequence[float]) -> None:
        """Not kept."""

    def label_counts(self, counts: Sequence[int]) -> None:
        """Not kept."""

    def taught(self, index: int, *, before: FloatArray, after: FloatArray) -> None:
        """Not kept."""

    def promised(self, table: VoteTable) -> None:
        """Not kept."""

    def noise(self, draws: FloatArray, *, on: NoiseOn) -> None:
        """Not kept."""

    def fed(self, stage: Stage, inputs: FloatArray) -> None:
        """Not kept."""

    def output(self, unrounded: FloatArray) -> None:
        """Not kept."""
