"""Checks the charges for labels: completeness, cost and budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from dpaudit.account import Mechanism, epsilon_from_rdp
from dpaudit.account.algorithm_1 import Deviation, algorithm_1_moments
from dpaudit.account.moments import exact_moments
from dpaudit.formatting import percent
from dpaudit.model.choices import Severity
from dpaudit.plugins.protocols import FloatArray
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, flaw
from dpaudit.trace.noise import accounted_noise, draws_per_label, inverse_deltas, teachers_of
from dpaudit.trace.trainings import Charge, Trace, Trainings

_DISAGREES: Final = "accountant-disagrees"
_ONE_NOISE: Final = "one-noise-charged-as-two"
_IDS: Final = ("accountant-missing-log", "accountant-exponent-slip", _DISAGREES)
_TOLERANCE: Final = 1e-6
_TINY: Final = 1e-300
"""Replaces a log moment of 0 or less in a factor."""
_CORRECT: Final = "Algorithm 1"
"""Name of the way without deviations."""

_RULES: Final[Mapping[str, tuple[Deviation, ...]]] = {
    "": (),
    "unconditioned": (Deviation.UNCONDITIONED,),
    "half": (Deviation.HALF,),
    "accountant-missing-log": (Deviation.MISSING_LOG,),
    "accountant-exponent-slip": (Deviation.EXPONENT_SLIP,),
}
"""Ways of using the term of Theorem 3, by their finding; the first three are not findings."""
_QUERIES: Final = "queries-not-accounted"
_EXCEEDED: Final = "budget-exceeded"
_DELTAS: Final = ("delta-xor", "delta-multiplied", "delta-ignored")


class Cost(NamedTuple):
    """One way of charging.

    Attributes:
        by_votes: Log moments of a label by its votes for 1 [k + 1, L].
        finding: Id of the finding if charges follow this way; "" if it is correct.
        two_noises: Whether it is valid only for two noisy counts.
    """

    by_votes: FloatArray
    finding: str
    two_noises: bool


class Charged(NamedTuple):
    """A charge for labels whose votes are known.

    Attributes:
        counts: How many labels had each count of votes [k + 1].
        moments: What was charged [L].
        room: Rounding error allowed for [L].
    """

    counts: FloatArray
    moments: FloatArray
    room: FloatArray

    def agrees(self, cost: Cost) -> bool:
        """Whether this is what was charged."""
        off = np.abs(self.moments - self.counts @ cost.by_votes)
        return bool(np.all(off <= self.room))


class Compared(NamedTuple):
    """The charges of a training, and the known ways of charging.

    Attributes:
        trace: The training.
        charges: Its charges whose votes are known.
        costs: Every known way of charging, by name.
    """

    trace: Trace
    charges: list[Charged]
    costs: dict[str, Cost]

    def recomputed(self, charge: Charged, way: str) -> FloatArray:
        """The charge [L] by one way, or the exact one if that way is not known."""
        return charge.counts @ self.costs.get(way, self.costs["exact, by votes"]).by_votes


def accountant(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Finds which way of charging explains all charges, on the table and in the exercises."""
    compared = [
        Compared(trace, charges, costs)
        for trace in trainings.charged
        if (charges := charges_of(trace)) and (costs := ways(trace, charges[0].moments.size))
    ]
    if not compared:
        why = "no log moments were recorded with the votes they are for"
        yield from (Skipped(id_, why) for id_ in (*_IDS, _ONE_NOISE))
        return
    names = set.intersection(*(set(costs) for _, _, costs in compared))
    explain = {
        name
        for name in names
        if all(charge.agrees(costs[name]) for _, charges, costs in compared for charge in charges)
    }
    known = compared[0].costs
    right = {name for name in explain if not known[name].finding}
    slips = {known[name].finding for name in explain} - {""}
    if right:
        alike = "on these votes it charges what a correct accountant charges"
        yield from (Skipped(id_, alike) if id_ in slips else Passed(id_) for id_ in _IDS)
    elif len(slips) == 1:
        id_ = slips.pop()
        # Compared with the paper's own accountant, which lacks just this mistake.
        way = min(explain).replace(id_, Deviation.UNCONDITIONED)
        yield _worst_charge(id_, compared, way)
        yield from (Passed(other) for other in _IDS if other != id_)
    else:
        yield _worst_charge(_DISAGREES, compared, _CORRECT)
        yield from (Passed(id_) for id_ in _IDS[:2])
    single = not explain or any(not known[name].two_noises for name in explain)
    yield from (_one_noise(account, single=single) for account in reversed(compared))


def charges_of(trace: Trace) -> list[Charged]:
    """The charges with moments whose votes are all known."""
    k = teachers_of(trace)
    if k is None:
        return []
    costs, before = [], None
    for charge in trace.charges:
        if charge.moments is None:
            continue
        last = np.zeros_like(charge.moments) if before is None else before
        before = charge.moments
        votes = charge.votes
        if not charge.queries or votes.size != charge.queries or votes.max() > k:
            continue
        moments = charge.moments - last
        # Differences of sums lose digits of the sums, not of themselves.
        room = _TOLERANCE * np.abs(moments) + 1e-12 * (1.0 + np.abs(charge.moments))
        counts = np.bincount(votes, minlength=k + 1).astype(np.float64)
        costs.append(Charged(counts, moments, room))
    return costs


def ways(trace: Trace, moments: int) -> dict[str, Cost]:
    """Every known way of charging, by name.

    Args:
        trace: A training, for its noise and its number of teachers.
        moments: The number L of log moments.

    Returns:
        The ways; empty if the noise is not known.
    """
    accounted, k = accounted_noise(trace), teachers_of(trace)
    gamma = trace.constants.get("gamma", 0.0)
    if accounted is None or k is None:
        return {}
    orders, ones = np.arange(1.0, moments + 1.0), np.arange(k + 1)
    table = trace.promised or accounted.table(k)
    two = accounted.mechanism is Mechanism.NOISY_MAX
    costs = {
        "exact, by votes": Cost(exact_moments(table, ones, moments=orders), "", two),
        "exact, at most": Cost(_all(k, orders * table.rdp(orders + 1.0)), "", two),
    }
    if not gamma > 0:
        return costs
    single = accounted._replace(mechanism=Mechanism.LAPLACE, scale=1.0 / gamma).table(k)
    costs["one noise, by votes"] = Cost(exact_moments(single, ones, moments=orders), "", False)
    costs["one noise, at most"] = Cost(_all(k, orders * single.rdp(orders + 1.0)), "", False)
    for name, factor in (("two noises", 1.0), ("one noise", 0.5)):
        concentrated = 2.0 * (factor * gamma) ** 2 * orders * (orders + 1.0)
        capped = np.minimum(concentrated, 2.0 * factor * gamma * orders)
        # A bound for two noises holds for one, which reveals less.
        costs[f"{name}, Theorem 2"] = Cost(_all(k, concentrated), "", False)
        costs[f"{name}, Theorem 2 and the pure cost"] = Cost(_all(k, capped), "", False)
    counts = np.stack([k - ones, ones], axis=-1)
    for slip, rule in _RULES.items():
        for extra in ((), (Deviation.UNCAPPED,)):
            chosen = (*rule, *extra)
            by_votes = algorithm_1_moments(
                counts, gamma=gamma, moments=orders, deviations=frozenset(chosen)
            )
            name = " ".join((_CORRECT, *chosen))
            costs[name] = Cost(by_votes, slip if slip in _IDS else "", True)
    return costs


def _all(k: int, moments: FloatArray) -> FloatArray:
    return np.tile(moments, (k + 1, 1))


def _worst_charge(id_: str, compared: list[Compared], way: str) -> Finding:
    """The charge that differs most from another way, with the direction."""
    (log_factor, moment), account, charge = max(
        (
            (_largest_factor(charge, account.recomputed(charge, way)), account, charge)
            for account in compared
            for charge in account.charges
        ),
        key=lambda apart: abs(apart[0][0]),
    )
    labels, gamma = float(charge.counts.sum()), account.trace.constants.get("gamma", math.nan)
    added, right = charge.moments[moment], account.recomputed(charge, way)[moment]
    direction = "over" if log_factor > 0 else "under"
    return flaw(
        id_,
        f"for {labels:.0f} labels at lambda = {gamma:g} the accountant adds {added:.6g} to log "
        f"moment {moment + 1}; recomputed from the votes without the mistake it is {right:.6g}: it "
        f"{direction}-counts by a factor of {np.exp(abs(log_factor)):.4g}",
        gamma=gamma,
        moment=moment + 1,
        charged=added,
        recomputed=right,
        labels=labels,
    )


def _largest_factor(charge: Charged, meant: FloatArray) -> tuple[float, int]:
    """The log of the charged over the correct moment, and the moment where it is largest."""
    factors = np.log(np.maximum(charge.moments, _TINY) / np.maximum(meant, _TINY))
    factors[np.abs(charge.moments - meant) <= charge.room] = 0.0
    moment = int(np.argmax(np.abs(factors)))
    return float(factors[moment]), moment


def _one_noise(compared: Compared, *, single: bool) -> CheckOutcome:
    """Checks whether labels with one draw each are charged as if there were two."""
    trace, charges, costs = compared
    each = draws_per_label(trace)
    if each is None:
        return Skipped(_ONE_NOISE, "draws on votes were not recorded for every label")
    if each == 2:
        return Passed(_ONE_NOISE)
    if single:
        return Skipped(_ONE_NOISE, "the term for two noises was never the smallest, or is not used")
    exact = costs["one noise, by votes"].by_votes
    under = [
        float(np.max(charge.counts @ exact / np.maximum(charge.moments, _TINY)))
        for charge in charges
        if np.any(charge.counts @ exact > charge.moments + charge.room)
    ]
    gamma = trace.constants["gamma"]
    evidence = (
        f"{trace.labels.size} labels have one draw each at lambda = {gamma:g}, and are charged by "
        "the error probability of two; "
    )
    evidence += (
        f"{len(under)} of {len(charges)} charges are below the exact cost, by up to a factor of "
        f"{max(under):.4g}"
        if under
        else f"none of {len(charges)} charges is below the exact cost of one"
    )
    finding = flaw(
        _ONE_NOISE,
        evidence,
        gamma=gamma,
        labels=trace.labels.size,
        charges=len(charges),
        charges_too_small=len(under),
        largest_factor=max(under, default=1.0),
    )
    return finding if under else replace(finding, severity=Severity.NOTE)


def budget(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Runs every check of the budget, on the table and in the exercises."""
    for trace in trainings.charged:
        yield _queries(trace)
        yield _check_spending(trace)
        yield from _delta(trace)


def _queries(trace: Trace) -> CheckOutcome:
    released = trace.labels.size
    if not released:
        return Skipped(_QUERIES, "no labels were released")
    accounted = sum(charge.queries for charge in trace.charges)
    if released <= accounted:
        return Passed(_QUERIES)
    return flaw(
        _QUERIES,
        f"{released} labels are released and {accounted} are charged: "
        f"{percent(round(1 - accounted / released, 2))} are free",
        released=released,
        charged=accounted,
    )


def _check_spending(trace: Trace) -> CheckOutcome:
    if trace.claim is None or not trace.charges:
        return Skipped(_EXCEEDED, "no claim" if trace.charges else "nothing was charged")
    spent, epsilon = trace.charges[-1].after, trace.claim.epsilon
    if spent <= epsilon * (1.0 + 1e-9):
        return Passed(_EXCEEDED)
    return flaw(
        _EXCEEDED,
        f"the accountant ends at epsilon {spent:.6g} where {epsilon:g} is claimed, "
        f"{percent(round(spent / epsilon - 1, 4))} more",
        spent=spent,
        claimed=epsilon,
        excess=spent - epsilon,
    )


def _delta(trace: Trace) -> Iterator[CheckOutcome]:
    """Finds the delta that turns the log moments into the epsilon that the accountant reports."""
    charges = [charge for charge in trace.charges if charge.moments is not None and charge.queries]
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
                yield _wrong_delta(id_, used, delta)
            yield from (Passed(other) for other in _DELTAS if other != id_)
            return
    if np.ptp(used) <= _TOLERANCE * (1.0 + np.abs(used).max()):
        yield _wrong_delta("delta-ignored", used, delta)
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


def _wrong_delta(id_: str, used: FloatArray, delta: float) -> Finding:
    c = float(used[-1])
    return flaw(
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
        yield flaw(
            "accountant-disagrees",
            f"the accountant reports epsilon {last.after:.6g} spent; its own log moments prove "
            f"{proved:.6g} at delta {delta:g}",
            spent=last.after,
            proved=proved,
        )
