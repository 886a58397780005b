"""What a bound on epsilon is computed from: the errors of an attack in either world."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.errors import SettingsError


@dataclass(frozen=True)
class Counts:
    """Errors of a membership inference attack over independent trials.

    Attributes:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.

    Raises:
        SettingsError: A world has no trial, or its errors are negative or outnumber its trials.
    """

    false_negatives: int
    false_positives: int
    n_in: int
    n_out: int

    def __post_init__(self) -> None:
        for kind, errors, world, trials in (
            ("false negatives", self.false_negatives, "in", self.n_in),
            ("false positives", self.false_positives, "out", self.n_out),
        ):
            if trials < 1:
                raise SettingsError(
                    f'the "{world}" world has {trials} scored trials; a bound needs at least 1'
                )
            if not 0 <= errors <= trials:
                raise SettingsError(
                    f'{errors} {kind} in {trials} trials of the "{world}" world; '
                    f"give a count from 0 to {trials}"
                )
