"""The settings of a measurement of utility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from dpaudit.model.setting import CONFIDENCE, SEED, NumberRange, Option, check_settings


@dataclass(frozen=True, kw_only=True)
class UtilitySettings:
    """Every choice of a measurement of utility.

    Attributes:
        label: Column to predict. Default: the schema's label.
        positive: Value of the label that counts as positive, as text. Default: the second of two.
        test_share: Share of `data` held out for testing, if there is no `test`.
        repeats: Models to train, one synthetic table each.
        rows: Synthetic rows per model. Default: as many as real training rows.
        classifiers: Classifiers to train. Default: the twelve of the PATE-GAN paper, as far as
            they are installed.
        fidelity: Also compare columns and pairs of columns (SDMetrics).
        confidence: Confidence of intervals and of beating noise.
        seed: Seed of all randomness; another one gives independent results.

    Raises:
        SettingsError: If a setting is out of range.
    """

    label: Annotated[str | None, Option("COLUMN")] = None
    positive: Annotated[str | None, Option("VALUE")] = None
    test_share: Annotated[float, NumberRange(above=0, below=1), Option("SHARE")] = 0.2
    repeats: Annotated[int, NumberRange(least=2, why="one table has no interval"), Option("N")] = 10
    rows: Annotated[int | None, NumberRange(least=2), Option("N")] = None
    classifiers: Annotated[Sequence[str] | None, Option("NAME", ("--classifier",))] = None
    fidelity: bool = False
    confidence: Annotated[float, CONFIDENCE, Option("C")] = 0.95
    seed: Annotated[int, SEED, Option("S")] = 0

    def __post_init__(self) -> None:
        check_settings(self)
