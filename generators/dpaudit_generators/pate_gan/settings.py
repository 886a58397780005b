"""The public constants of a training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dpaudit.errors import SettingsError

_LEAST: Final = {
    "rounds": 1,
    "teacher_steps": 1,
    "student_steps": 1,
    "generator_steps": 1,
    "batch": 1,
    "noise_width": 1,
    "hidden": 4,
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Shapes, lengths and rates: constants chosen without looking at any private table.

    Attributes:
        rounds: How often teachers train and labels are released.
        teacher_steps: Steps of every teacher in a round.
        student_steps: Steps of the student in a round.
        generator_steps: Steps of the generator in a round.
        batch: Records in a minibatch, of every network.
        noise_width: Dimension of the generator's normal noise.
        hidden: Hidden units of the generator; the student has half, a teacher a quarter of them.
        learning_rate: Of every network (Adam).

    Raises:
        SettingsError: If one is not positive.
    """

    rounds: int = 40
    teacher_steps: int = 5
    student_steps: int = 10
    generator_steps: int = 5
    batch: int = 64
    noise_width: int = 16
    hidden: int = 64
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            count = getattr(self, name)
            if not isinstance(count, int) or count < least:
                raise SettingsError(f"{name} is {count!r}: use a whole number, at least {least}")
        if not 0.0 < self.learning_rate < math.inf:
            raise SettingsError(f"learning_rate is {self.learning_rate!r}: use one above 0")
