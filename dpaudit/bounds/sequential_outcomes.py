"""Guesses of an attack in the order in which the trials were scored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.bounds._checks import BoolArray, FloatArray
from dpaudit.errors import SettingsError


class PairErrors(NamedTuple):
    """Pairs and errors, counted up to each pair; every array of shape (pairs,).

    Attributes:
        pairs: Pairs.
        wrong_out: Guesses "in" among the "out" trials.
        wrong_in: Guesses "out" among the "in" trials.
    """

    pairs: FloatArray
    wrong_out: FloatArray
    wrong_in: FloatArray

    def last(self) -> PairErrors:
        """The counts after the last pair alone; shape (1,), or (0,) where there is none."""
        return PairErrors(self.pairs[-1:], self.wrong_out[-1:], self.wrong_in[-1:])


def pair_errors(guesses_in: npt.ArrayLike, guesses_out: npt.ArrayLike) -> PairErrors:
    """Counts errors along pairs of guesses.

    Args:
        guesses_in: Whether the attack guessed "in" on the "in" trial of each pair.
        guesses_out: The same on the "out" trials.

    Returns:
        Running counts.

    Raises:
        SettingsError: If guesses are not true or false, or the worlds differ in length.
    """
    inside = read_guesses("guesses_in", guesses_in)
    outside = read_guesses("guesses_out", guesses_out)
    if inside.size != outside.size:
        raise SettingsError(
            f"`guesses_in` holds {inside.size} guesses and `guesses_out` {outside.size}; "
            "give one of either world per pair"
        )
    return PairErrors(
        np.arange(1.0, inside.size + 1),
        np.cumsum(outside, dtype=np.float64),
        np.cumsum(~inside, dtype=np.float64),
    )


def read_guesses(name: str, values: npt.ArrayLike) -> BoolArray:
    """Reads a sequence of true or false; the numbers 0 and 1 are taken.

    Args:
        name: Argument to name in the message.
        values: Guesses, one-dimensional.

    Returns:
        The guesses; shape (trials,).

    Raises:
        SettingsError: If the array is not one-dimensional or holds anything else.
    """
    array = np.asarray(values)
    if array.ndim != 1 or not np.isin(array, (0, 1)).all():
        raise SettingsError(f"`{name}` must be a sequence of true or false, one per trial")
    return array.astype(np.bool_)
