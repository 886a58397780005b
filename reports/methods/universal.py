"""Anytime-valid bounds for arms of unequal size: universal inference.

The e-value of a claim is the likelihood of all guesses so far under a mixture, over the largest
likelihood that the claim allows. The mixture of Krichevsky and Trofimov (1981) gives either error
rate a Beta(½, ½) prior and is a probability distribution of the sequence of guesses, whatever
rule, using the past only, decides the world of the next trial. The likelihood ratio against
the true rates is therefore a wealth that is expected to stay as it is, and the maximum over the
claim can only make it smaller: an e-process (Wasserman, Ramdas and Balakrishnan 2020, their
sequential test, with a mixture for the running estimate). Ville's inequality does the rest, as in
`sequential`, which proves more.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betaln, xlog1py, xlogy

from dpaudit.bounds.inputs import (
    BoolArray,
    FloatArray,
    check_confidence,
    check_delta,
    check_epsilon,
)
from dpaudit.errors import SettingsError
from reports.methods.projection import ErrorRates, project

_TOLERANCE = 1e-9


def universal_inference(
    guesses: npt.ArrayLike, worlds_in: npt.ArrayLike, *, epsilon: float, delta: float
) -> FloatArray:
    """Runs the e-process of universal inference over trials in any order of worlds.

    Args:
        guesses: Whether the attack guessed "in" on each trial, in the order of scoring; shape
            (trials,). The attack, threshold included, was fixed before the trial was scored.
        worlds_in: Whether each trial is of the "in" world; shape (trials,).
        epsilon: Claimed ε, finite and not negative.
        delta: Claimed δ, in [0, 1).

    Returns:
        Log e-value after each trial; shape (trials,). The claim is refuted at level α, once and
        for all, where it first reaches log(1/α).

    Raises:
        SettingsError: If guesses or worlds are not true or false or differ in length, or a setting
            is out of range.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    guessed_in = _read_guesses("guesses", guesses)
    inside = _read_guesses("worlds_in", worlds_in)
    if guessed_in.size != inside.size:
        raise SettingsError(
            f"`guesses` holds {guessed_in.size} trials and `worlds_in` {inside.size}; "
            "give the world of every guess"
        )
    return _log_e_value(
        np.cumsum(inside & ~guessed_in),
        np.cumsum(~inside & guessed_in),
        np.cumsum(inside),
        np.cumsum(~inside),
        epsilon=epsilon,
        delta=delta,
    )


def universal_bound(
    false_negatives: int,
    false_positives: int,
    n_in: int,
    n_out: int,
    *,
    delta: float,
    confidence: float,
) -> float:
    """A lower bound on epsilon from counts that may be checked, and added to, at any time.

    The bound is the root of e-value(ε) = 1/(1 − confidence). The e-value falls in ε, as weaker
    claims allow more, so that all claims below the bound are refuted and none above.

    Args:
        false_negatives: Trials of the "in" world that the attack guessed "out".
        false_positives: Trials of the "out" world that the attack guessed "in".
        n_in: Scored trials of the "in" world, at least 1.
        n_out: Scored trials of the "out" world, at least 1.
        delta: δ of the claim, in [0, 1).
        confidence: Probability that the bound never exceeds the true ε, whenever it is computed; in
            (0, 1).

    Returns:
        The bound, at least 0, and at most 1e-8 below the root.

    Raises:
        SettingsError: If a count is negative, fractional or above its trials, a world has no trial,
            or delta or confidence is out of range.
    """
    check_delta(delta)
    check_confidence(confidence)
    _check_errors("false_negatives", false_negatives, "n_in", n_in)
    _check_errors("false_positives", false_positives, "n_out", n_out)
    needed = -math.log1p(-confidence)

    def excess(epsilon: float) -> float:
        log_e_value = _log_e_value(
            false_negatives, false_positives, n_in, n_out, epsilon=epsilon, delta=delta
        )
        return float(log_e_value) - needed

    if excess(0.0) < 0.0:
        return 0.0
    high = 1.0
    while excess(high) >= 0.0:
        high *= 2.0
    root = float(brentq(excess, 0.0, high, xtol=_TOLERANCE))
    return max(0.0, root - _TOLERANCE)


def _log_e_value(
    false_negatives: npt.ArrayLike,
    false_positives: npt.ArrayLike,
    n_in: npt.ArrayLike,
    n_out: npt.ArrayLike,
    *,
    epsilon: float,
    delta: float,
) -> FloatArray:
    """Log of mixture likelihood over the largest allowed one; worlds may have no trial yet."""
    fn, fp, trials_in, trials_out = (
        np.asarray(count, dtype=np.float64)
        for count in (false_negatives, false_positives, n_in, n_out)
    )
    observed = ErrorRates(fp / np.maximum(trials_out, 1.0), fn / np.maximum(trials_in, 1.0))
    allowed = project(observed, epsilon=epsilon, delta=delta, n_out=trials_out, n_in=trials_in)
    log_e_value: FloatArray = (
        _log_mixture(fp, trials_out)
        + _log_mixture(fn, trials_in)
        - _log_likelihood(fp, trials_out, allowed.fpr)
        - _log_likelihood(fn, trials_in, allowed.fnr)
    )
    return log_e_value


def _log_mixture(errors: FloatArray, trials: FloatArray) -> FloatArray:
    """Log probability of a sequence under the Beta(½, ½) mixture of its rate."""
    log_ratio: FloatArray = betaln(errors + 0.5, trials - errors + 0.5) - betaln(0.5, 0.5)
    return log_ratio


def _log_likelihood(errors: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    """Log probability of a sequence of independent errors."""
    return np.asarray(xlogy(errors, rate) + xlog1py(trials - errors, -rate), dtype=np.float64)


def _check_errors(name: str, errors: int, n_name: str, trials: int) -> None:
    """Refuses counts that no experiment has."""
    for argument, count in ((n_name, trials), (name, errors)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer):
            raise SettingsError(f"`{argument}` is {count!r}; give a whole number")
    if trials < 1:
        raise SettingsError(f"`{n_name}` is {trials}; a bound needs at least 1 scored trial")
    if not 0 <= errors <= trials:
        raise SettingsError(f"`{name}` is {errors}; give a count from 0 to {n_name} = {trials}")


def _read_guesses(name: str, values: npt.ArrayLike) -> BoolArray:
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
