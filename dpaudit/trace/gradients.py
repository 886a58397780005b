"""Checks of DP-SGD: contributions to the sums, batches, noise, and the cost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import numpy as np
from scipy import stats

from dpaudit.account import dp_sgd_claim
from dpaudit.plugins.protocols import FloatArray
from dpaudit.trace.catalogue import CheckOutcome, Passed, Skipped, flaw
from dpaudit.trace.trainings import Trace, Trainings
from dpaudit.trace.votes import ERROR, FEWEST, Law, laws_of, may_have_scale, scale_of

_PART: Final = "gradient-part-not-clipped"
_WHOLE: Final = "gradients-not-clipped"
_BATCHES: Final = "batches-not-sampled"
_SKIPPED: Final = "gradient-noise-skipped"
_SCALE: Final = "gradient-noise-scale"
_STEPS: Final = "gradient-steps-not-accounted"
_IDS: Final = (_WHOLE, _PART, _BATCHES, _SKIPPED, _SCALE, _STEPS)
_ROUNDING: Final = 1e-4
"""Relative tolerance above the clipping norm, for single precision."""
_DEARER: Final = 1e-2
"""Relative tolerance of a recomputed epsilon above the claim, for differences between proofs."""
_PROMISED: Final = ("sampling_rate", "clip", "noise_multiplier")


def gradients(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Runs every check of DP-SGD, on the table and in the exercises."""
    for trace in trainings.charged:
        promised = [trace.constants.get(name) for name in _PROMISED]
        if not trace.sums:
            yield from (Skipped(id_, "no sums of gradients were recorded") for id_ in _IDS)
        elif None in promised:
            missing = ", ".join(set(_PROMISED) - set(trace.constants))
            yield from (Skipped(id_, f"not recorded: {missing}") for id_ in _IDS)
        else:
            yield from _clipping(trace)
            yield _batches(trace)
            yield from _noise(trace)
            yield _cost(trace)


def _clipping(trace: Trace) -> Iterator[CheckOutcome]:
    most = trace.constants["clip"] * (1.0 + _ROUNDING)
    clipped = np.concatenate([step.clipped for step in trace.sums])
    added = np.concatenate([step.added for step in trace.sums])
    whole, part = clipped > most, (added > most) & (clipped <= most)
    for id_, over, norms, what in (
        (_WHOLE, whole, clipped, "after clipping"),
        (_PART, part, added, "with what is added to their clipped part"),
    ):
        if not over.any():
            yield Passed(id_) if norms.size else Skipped(id_, "all batches were empty")
            continue
        largest = float(norms[over].max())
        yield flaw(
            id_,
            f"{over.sum()} of {norms.size} gradients exceed the clipping norm "
            f"{trace.constants['clip']:g} {what}; the largest has norm {largest:.4g}",
            gradients=norms.size,
            exceeding=int(over.sum()),
            largest=largest,
            clip=trace.constants["clip"],
        )


def _batches(trace: Trace) -> CheckOutcome:
    """Tests sizes of batches and counts of records, by mean and by spread.

    The sum of n T coins is binomial. The dispersion of the n records' counts, and of the T batches'
    sizes, is about chi-squared. It is too small for batches of one size, or records that are in
    equally many batches, and too large for batches that stay together.
    """
    rate, n, steps = trace.constants["sampling_rate"], len(trace.data), len(trace.sums)
    sizes = np.array([step.rows.size for step in trace.sums])
    counts = np.bincount(np.concatenate([step.rows for step in trace.sums]), minlength=n)
    repeated = sum(np.unique(step.rows).size < step.rows.size for step in trace.sums)
    if rate < 1.0 and not repeated:
        smallest = min(
            float(stats.binomtest(int(sizes.sum()), n * steps, rate).pvalue),
            *(_spread(values, each, rate) for values, each in ((counts, steps), (sizes, n))),
        )
        suspicious = 3.0 * smallest < ERROR
    else:
        suspicious = bool(repeated or np.any(sizes != n))
    if not suspicious:
        return Passed(_BATCHES)
    evidence = f"a record is read several times in {repeated} of {steps} batches"
    if not repeated:
        evidence = (
            f"{steps} batches of {sizes.min()} to {sizes.max()} records, each record in "
            f"{counts.min()} to {counts.max()} of them, are not {n} x {steps} coins of probability "
            f"{rate:g}; the false-alarm probability is {ERROR:g}"
        )
    return flaw(
        _BATCHES,
        evidence,
        steps=steps,
        rate=rate,
        expected_size=rate * n,
        mean_size=float(sizes.mean()),
        variance_of_sizes=float(sizes.var()),
        variance_of_counts=float(counts.var()),
        repeated=repeated,
    )


def _spread(numbers: FloatArray | np.ndarray, coins: int, rate: float) -> float:
    """The two-sided p-value of the index of dispersion of binomial numbers [m]."""
    total = float(np.sum((numbers - coins * rate) ** 2) / (coins * rate * (1.0 - rate)))
    law = stats.chi2(numbers.size)
    return float(2.0 * min(law.cdf(total), law.sf(total)))


def _noise(trace: Trace) -> Iterator[CheckOutcome]:
    silent = sum(not step.noise.any() for step in trace.sums)
    steps = len(trace.sums)
    if silent:
        evidence = f"{silent} of {steps} sums get no noise"
        yield flaw(_SKIPPED, evidence, silent=silent, steps=steps)
    else:
        yield Passed(_SKIPPED)
    draws = np.concatenate([step.noise for step in trace.sums])
    draws = draws[draws != 0.0]  # padding, and steps that are a finding of their own
    if draws.size < FEWEST:
        yield Skipped(_SCALE, f"{draws.size} draws on gradients are too few")
        return
    scale = trace.constants["clip"] * trace.constants["noise_multiplier"]
    normal = Law.NORMAL in laws_of(draws)
    if normal and may_have_scale(draws, Law.NORMAL, scale):
        yield Passed(_SCALE)
        return
    seen = scale_of(draws, Law.NORMAL)
    yield flaw(
        _SCALE,
        f"{draws.size} draws on gradients have standard deviation {seen:.6g}"
        + (f", where {scale:.6g} is accounted for" if normal else " and are not normal"),
        draws=draws.size,
        deviation=seen,
        accounted=scale,
    )


def _cost(trace: Trace) -> CheckOutcome:
    claim = trace.claim
    if claim is None or not claim.delta:
        return Skipped(_STEPS, "no epsilon is claimed" if claim is None else "no delta is claimed")
    rate, _, multiplier = (trace.constants[name] for name in _PROMISED)
    cost = _epsilon(len(trace.sums), rate, multiplier, claim.delta)
    if cost <= claim.epsilon * (1.0 + _DEARER):
        return Passed(_STEPS)
    return flaw(
        _STEPS,
        f"{len(trace.sums)} steps at rate {rate:g} with noise multiplier {multiplier:g} cost "
        f"epsilon {cost:.4g} at delta {claim.delta:g}, where {claim.epsilon:.4g} is claimed",
        steps=len(trace.sums),
        cost=cost,
        claimed=claim.epsilon,
    )


@cache
def _epsilon(steps: int, rate: float, multiplier: float, delta: float) -> float:
    return dp_sgd_claim(steps=steps, rate=rate, noise_multiplier=multiplier, delta=delta).epsilon
