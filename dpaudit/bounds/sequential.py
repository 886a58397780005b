"""Proof that a claim is violated, as early as the outcomes allow: an e-process on pairs.

Trials come in pairs, one of either world, and a frozen attack guesses the world of both. The
e-process of a claim is a wealth that starts at 1 and, if the claim is true, is expected never to
grow, whatever has happened so far. By Ville's inequality (1939) the probability that it ever
reaches 1/α is then at most α: the audit may check after every pair, stop at any time for any
reason, and go on after a check. `sequential_bets` proves that the bets are fair;
`sequential_schedule` says when the attack may change.

Nothing here hands out error counts, and no fixed-n bound takes what these functions return: a
bound such as `exact`, recomputed at every check, fails more often than its confidence admits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpaudit.bounds._checks import FloatArray, check_confidence, check_delta, check_epsilon
from dpaudit.bounds.sequential_bets import PairBets
from dpaudit.bounds.sequential_outcomes import pair_errors, read_guesses

# The claims that `pair_bound` tries; a block of them is prepared at once.
_STEP = 0.01
_BLOCK = 64


@dataclass(frozen=True, eq=False)
class PairProcess:
    """Evidence against a claim after the pairs seen so far.

    Start with `PairProcess.against`; `update` returns the state after one more pair. The guesses
    of a pair must come from an attack, threshold included, that was fixed before its two trials
    were scored; it may differ from pair to pair.

    Attributes:
        bets: Bets against the claim.
        log_wealths: Log wealth of every alternative; shape (alternatives,).
        pairs: Pairs seen.
        log_e_value: Log of the e-value now.
        largest_log_e_value: Log of the largest e-value so far, at least 0.
    """

    bets: PairBets
    log_wealths: FloatArray
    pairs: int
    log_e_value: float
    largest_log_e_value: float

    @classmethod
    def against(cls, *, epsilon: float, delta: float) -> PairProcess:
        """The state before the first pair.

        Args:
            epsilon: Claimed ε, finite and not negative.
            delta: Claimed δ, in [0, 1).

        Returns:
            A process whose e-value is 1.

        Raises:
            SettingsError: If epsilon or delta is out of range.
        """
        check_epsilon(epsilon)
        check_delta(delta)
        bets = PairBets.against(epsilon, delta)
        return cls(bets, bets.log_weights, 0, 0.0, 0.0)

    def update(self, *, guess_in: bool, guess_out: bool) -> PairProcess:
        """The state after one more pair.

        Args:
            guess_in: Whether the attack guessed "in" on the trial of the "in" world.
            guess_out: Whether the attack guessed "in" on the trial of the "out" world.

        Returns:
            The new state; this one stays as it is.

        Raises:
            SettingsError: If a guess is neither true nor false.
        """
        wrong_in = int(not read_guesses("guess_in", [guess_in])[0])
        wrong_out = int(read_guesses("guess_out", [guess_out])[0])
        log_wealths = (
            self.log_wealths + self.bets.log_in[:, wrong_in] + self.bets.log_out[:, wrong_out]
        )
        log_e_value = float(np.logaddexp.reduce(log_wealths))
        return replace(
            self,
            log_wealths=log_wealths,
            pairs=self.pairs + 1,
            log_e_value=log_e_value,
            largest_log_e_value=max(self.largest_log_e_value, log_e_value),
        )

    def proved(self, *, confidence: float) -> bool:
        """Whether the violation is proved: the e-value has reached 1/(1 − confidence) once.

        Args:
            confidence: One less the probability that a true claim is ever refuted, in (0, 1).

        Returns:
            Once true, true for ever.

        Raises:
            SettingsError: If confidence is out of range.
        """
        return self.largest_log_e_value >= _log_needed(confidence)


def e_process(
    guesses_in: npt.ArrayLike, guesses_out: npt.ArrayLike, *, epsilon: float, delta: float
) -> FloatArray:
    """Runs the e-process of `PairProcess` over many pairs at once.

    Args:
        guesses_in: Whether the attack guessed "in" on the "in" trial of each pair; shape (pairs,).
        guesses_out: The same on the "out" trials; shape (pairs,).
        epsilon: Claimed ε, finite and not negative.
        delta: Claimed δ, in [0, 1).

    Returns:
        Log e-value after each pair; shape (pairs,). The claim is refuted at level α, once and
        for all, where it first reaches log(1/α).

    Raises:
        SettingsError: If guesses are not true or false, the worlds differ in length, or a setting
            is out of range.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    return PairBets.against(epsilon, delta).log_e_values(pair_errors(guesses_in, guesses_out))


def pair_bound(
    guesses_in: npt.ArrayLike, guesses_out: npt.ArrayLike, *, delta: float, confidence: float
) -> float:
    """A lower bound on epsilon at any time: the largest claim that the pairs so far refute.

    The claims ε = 0.01, 0.02, … are tried in order, each by the largest e-value of its own
    process so far, until one survives; the bound is the last one refuted. This needs no correction
    for the many claims and no monotonicity in ε: the bound exceeds the true ε only where the
    first claim of the list at or above the true ε, a true claim, was refuted (fixed-sequence
    testing). It so holds at all times at once, and it never falls as pairs arrive.

    Args:
        guesses_in: Whether the attack guessed "in" on the "in" trial of each pair; shape (pairs,).
        guesses_out: The same on the "out" trials; shape (pairs,).
        delta: δ of the claim, in [0, 1).
        confidence: Probability that the bound never exceeds the true ε, in (0, 1).

    Returns:
        The bound, a multiple of 0.01, at least 0.

    Raises:
        SettingsError: As for `e_process`.
    """
    check_delta(delta)
    needed = _log_needed(confidence)
    errors = pair_errors(guesses_in, guesses_out)
    if errors.pairs.size == 0:
        return 0.0
    refuted = 0
    while True:
        claims = _STEP * np.arange(refuted + 1, refuted + 1 + _BLOCK)
        bets = PairBets.against(claims, delta)
        log_e_values_now = bets.log_e_values(errors.last())[:, 0]
        for index, log_e_value_now in enumerate(log_e_values_now):
            # The last e-value is nearly always the largest: the others matter where it falls short.
            if log_e_value_now < needed and bets.one(index).log_e_values(errors).max() < needed:
                return round(refuted * _STEP, 2)
            refuted += 1


def _log_needed(confidence: float) -> float:
    """Log of the e-value that refutes a claim."""
    check_confidence(confidence)
    return -math.log1p(-confidence)
