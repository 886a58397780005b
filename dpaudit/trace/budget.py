"""Checks whether every label is charged, within the budget, for the delta that is claimed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from dpaudit.account import epsilon_from_rdp
from dpaudit.plugins.protocols import FloatArray
from dpaudit.trace.collector import Charge, Trace
from dpaudit.trace.findings import CheckOutcome, Finding, Passed, Skipped, found
from dpaudit.trace.noise import inverse_deltas
from dpaudit.trace.trainings import Trainings

_QUERIES: Final = "queries-not-accounted"
_EXCEEDED: Final = "budget-exceeded"
_DELTAS: Final = ("delta-xor", "delta-multiplied", "delta-ignored")
_TOLERANCE: Final = 1e-6


def budget(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Runs every check of the budget, on the table and in the exercises."""
    for trace in trainings.charged:
        yield _queries(trace)
        yield _exceeded(trace)
        yield from _delta(trace)


def _queries(trace: Trace) -> CheckOutcome:
    released = trace.labels.size
    if not released:
        return Skipped(_QUERIES, "no labels were released")
    accounted = sum(charge.queries for charge in trace.charges)
    if released <= accounted:
        return Passed(_QUERIES)
    return found(
        _QUERIES,
        f"{released} labels are released and {accounted} are charged: "
        f"{1 - accounted / released:.0%} are free",
        released=released,
        charged=accounted,
    )


def _exceeded(trace: Trace) -> CheckOutcome:
    if trace.claim is None or not trace.charges:
        return Skipped(_EXCEEDED, "no claim" if trace.charges else "nothing was charged")
    spent, epsilon = trace.charges[-1].after, trace.claim.epsilon
    if spent <= epsilon * (1.0 + 1e-9):
        return Passed(_EXCEEDED)
    return found(
        _EXCEEDED,
        f"the accountant ends at epsilon {spent:.6g} where {epsilon:g} is claimed, "
        f"{spent / epsilon - 1:.2%} more",
        spent=spent,
        claimed=epsilon,
        excess=spent - epsilon,
    )


def _delta(trace: Trace) -> Iterator[CheckOutcome]:
    """Finds the delta that turns the log moments into the epsilon that the accountant reports."""
    charges = [one for one in trace.charges if one.moments is not None and one.queries]
    if not charges or trace.claim is None or not trace.claim.delta:
        why = "no log moments were recorded" if trace.claim else "no delta is claimed"
        yield from (Skipped(id_, why) for id_ in _DELTAS)
        return
    delta = trace.claim.delta
    used = np.array([log_inverse_delta(charge) for charge in charges])
    for id_, inverse in inverse_deltas(delta).items():
        meant = math.log(inverse)
        if np.allclose(used, meant, rtol=_TOLERANCE, atol=1e-8):
            if id_:
                yield _of(id_, used, delta)
            yield from (Passed(other) for other in _DELTAS if other != id_)
            return
    if np.ptp(used) <= _TOLERANCE * (1.0 + np.abs(used).max()):
        yield _of("delta-ignored", used, delta)
        yield from (Passed(other) for other in _DELTAS[:2])
        return
    yield from (
        Skipped(id_, "epsilon is not computed from log moments as Abadi et al. do")
        for id_ in _DELTAS
    )
    yield from _other_conversion(charges, delta)


def log_inverse_delta(charge: Charge) -> float:
    """The ln(1 / delta) that turns log moments into the epsilon of a charge.

    ``epsilon = min over l of (alpha(l) + c) / l`` (Abadi et al. 2016, Theorem 2), solved for c.
    """
    assert charge.moments is not None
    orders = np.arange(1.0, charge.moments.size + 1.0)
    return float(np.max(orders * charge.after - charge.moments))


def _of(id_: str, used: FloatArray, delta: float) -> Finding:
    c = float(used[-1])
    return found(
        id_,
        f"epsilon follows from the log moments with ln(1 / delta) = {c:.6g}, so with 1 / delta = "
        f"{math.exp(min(c, 700.0)):.6g}; the claimed delta = {delta:g} "
        f"has ln(1 / delta) = {-math.log(delta):.6g}",
        log_inverse_delta=c,
        claimed_log_inverse_delta=-math.log(delta),
    )


def _other_conversion(charges: list[Charge], delta: float) -> Iterator[CheckOutcome]:
    """Checks whether epsilon is below what the best known conversion proves."""
    last = charges[-1]
    assert last.moments is not None
    orders = np.arange(1.0, last.moments.size + 1.0)
    # A log moment of 0 or less, as a mistake may give, proves nothing: divergences are at least 0.
    proved = epsilon_from_rdp(orders + 1.0, np.maximum(last.moments, 0.0) / orders, delta=delta)
    if last.after < proved * (1.0 - _TOLERANCE):
        yield found(
            "accountant-disagrees",
            f"the accountant reports epsilon {last.after:.6g} spent; its own log moments prove "
            f"{proved:.6g} at delta {delta:g}",
            spent=last.after,
            proved=proved,
        )
