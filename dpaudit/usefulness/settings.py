"""The settings of a measurement of utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.errors import SettingsError
from dpaudit.seeds import check_seed


@dataclass(frozen=True, kw_only=True)
class UtilitySettings:
    """Every choice of a measurement of utility.

    Attributes:
        label: Name of the column to predict; the schema's label by default.
        positive: Its value to predict, as text; the second of two by default.
        test_share: Share of the table that is held out for tests, if there is no test table.
        repeats: Models to train, each with one synthetic table.
        rows: Synthetic rows to train classifiers on; by default as many as real ones.
        classifiers: Names of the classifiers; all that are installed by default.
        fidelity: Whether to measure columns and pairs of columns too (extra `fidelity`).
        confidence: Of intervals, and of the statement that noise is beaten, in (0.5, 1).
        seed: Root of every random stream.

    Raises:
        SettingsError: If a setting is out of range.
    """

    label: str | None = None
    positive: str | None = None
    test_share: float = 0.2
    repeats: int = 10
    rows: int | None = None
    classifiers: Sequence[str] | None = None
    fidelity: bool = False
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.test_share < 1.0:
            raise SettingsError(f"`test_share` must be in (0, 1), got {self.test_share}")
        if self.repeats < 2:
            raise SettingsError(
                f"`repeats` must be at least 2, got {self.repeats}: one table has no interval"
            )
        if self.rows is not None and self.rows < 2:
            raise SettingsError(f"`rows` must be at least 2, got {self.rows}")
        if not 0.5 < self.confidence < 1.0:
            raise SettingsError(f"`confidence` must be in (0.5, 1), got {self.confidence}")
        check_seed(self.seed)
