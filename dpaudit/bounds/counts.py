"""What a bound on epsilon is computed from: the errors of an attack in either world."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpaudit.bounds._checks import whole_number
from dpaudit.errors import SettingsError


@dataclass(frozen=True)
class Counts:
    """Errors of a membership inference attack over independent trials.

    It unpacks in this order, so that `exact(*counts, delta=..., confidence=...)` bounds ε.

    Attributes:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.

    Raises:
        SettingsError: If a count is not a whole number, a world has no trial, or its errors are
            negative or outnumber its trials.
    """

    false_negatives: int
    false_positives: int
    n_in: int
    n_out: int

    def __post_init__(self) -> None:
        for name in ("n_in", "n_out", "false_negatives", "false_positives"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        for name, trials in (("n_in", self.n_in), ("n_out", self.n_out)):
            if trials < 1:
                raise SettingsError(f"`{name}` is {trials}; a bound needs at least 1 scored trial")
        for name, errors, trials in (
            ("false_negatives", self.false_negatives, self.n_in),
            ("false_positives", self.false_positives, self.n_out),
        ):
            if not 0 <= errors <= trials:
                raise SettingsError(
                    f"`{name}` is {errors} in a world of {trials} trials; "
                    f"give a count from 0 to {trials}"
                )

    def __iter__(self) -> Iterator[int]:
        yield from (self.false_negatives, self.false_positives, self.n_in, self.n_out)
