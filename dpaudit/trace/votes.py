"""Checks of votes: distribution and scale of the noise, labels that follow, and their charges.

Each test of a distribution errs with probability 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dpaudit.account import Mechanism, VoteTable, epsilon_from_rdp, vote_table
from dpaudit.account.moments import Deviation, algorithm_1_moments, exact_moments
from dpaudit.account.vote_table import wrong_at
from dpaudit.formatting import percent
from dpaudit.model.choices import Severity
from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.recorder import NoiseOn
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, flaw
from dpaudit.trace.trainings import Charge, Trace, Trainings

ERROR: Final = 1e-6
"""Probability of a false alarm of one test."""
FEWEST: Final = 1200
"""Fewest draws by which normal and Laplace noise are distinguished with both errors at `ERROR`."""
_EXACT: Final = 1e-9
_CLIPPED: Final = 2e-6
"""Probabilities nearer to 0 or 1 may have been clipped (`VoteTable.quantised`)."""
_SAME: Final = 1e-6
_NARROWEST: Final = 1e3
"""Margin over scale: smaller noise changes no label."""
_WIDEST: Final = 1e9
"""In votes: noise of a larger scale hides every vote."""
_LABELS: Final = "labels-not-from-votes"
_ON_LABELS: Final = "noise-gaussian-on-labels"
_FEWEST_FOR_SCALE: Final = 30
_SCALES: Final = ("noise-scale-inverted", "noise-wrong-scale")
_BEYOND: Final = float(stats.norm.isf(ERROR / 20))
"""Standard errors; a spare factor of 20 allows for the ratio being only roughly normal."""
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


class Law(StrEnum):
    """Distributions of noise with mean 0."""

    NORMAL = "normal"
    LAPLACE = "Laplace"


class _Shape(NamedTuple):
    """Mean absolute value over root mean square, and sqrt(n) times its standard error."""

    ratio: float
    error: float


# The error is that of the delta method: of log(mean |x|) - log(mean x^2) / 2.
_SHAPES: Final = {
    Law.NORMAL: _Shape(math.sqrt(2 / math.pi), math.sqrt(1 - 3 / math.pi)),
    Law.LAPLACE: _Shape(math.sqrt(1 / 2), math.sqrt(1 / 2) / 2),
}


def laws_of(draws: FloatArray) -> tuple[Law, ...]:
    """The distributions that draws [n] may come from, whatever their scale.

    The ratio of mean absolute value and root mean square is the likelihood ratio of the two, each
    at its likeliest scale.

    Args:
        draws: At least `FEWEST`.

    Returns:
        The laws that are not rejected: none, one, or both if there are too few draws.
    """
    root = math.sqrt(float(np.mean(draws**2)))
    if not 0.0 < root < math.inf:
        return ()
    ratio = float(np.mean(np.abs(draws))) / root
    room = _BEYOND / math.sqrt(draws.size)
    return tuple(
        law for law, shape in _SHAPES.items() if abs(ratio - shape.ratio) < room * shape.error
    )


def scale_of(draws: FloatArray, law: Law) -> float:
    """The likeliest scale: standard deviation of normal draws, scale of Laplace draws."""
    if law is Law.NORMAL:
        return math.sqrt(float(np.mean(draws**2)))
    return float(np.mean(np.abs(draws)))


def may_have_scale(draws: FloatArray, law: Law, scale: float) -> bool:
    """Whether draws may have a scale: an exact two-sided test at `ERROR`.

    The sum of squares over the variance is chi-square with n degrees of freedom; the sum of
    absolute values over the Laplace scale is Gamma(n).

    Args:
        draws: Noise with mean 0; shape [n].
        law: Its distribution.
        scale: The scale in question: standard deviation or Laplace scale.

    Returns:
        False if the test rejects it.
    """
    n = draws.size
    if law is Law.NORMAL:
        statistic = float(np.sum((draws / scale) ** 2))
        tails = stats.chi2.cdf(statistic, n), stats.chi2.sf(statistic, n)
    else:
        statistic = float(np.sum(np.abs(draws / scale)))
        tails = stats.gamma.cdf(statistic, n), stats.gamma.sf(statistic, n)
    return bool(min(tails) > ERROR / 2)


def noise(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Runs every check of noise, on the table and in the exercises."""
    outcomes = [
        check for trace in trainings.charged for check in (*_on_votes(trace), *_on_labels(trace))
    ]
    yield from outcomes
    # An exercise may be too short to identify its noise, and its labels show the same mistake.
    wrong = [outcome.id for outcome in outcomes if isinstance(outcome, Finding)]
    yield from (_check_labels(trace, wrong) for trace in trainings.charged)


def draws_per_label(trace: Trace) -> int | None:
    """How many draws hide one vote: 1 or 2; None if neither."""
    drawn, labels = trace.noise[NoiseOn.VOTES].size, trace.labels.size
    return next((each for each in (1, 2) if drawn and drawn == each * labels), None)


def _on_votes(trace: Trace) -> Iterator[CheckOutcome]:
    ids = (*_SCALES, "noise-wrong-law")
    draws, accounted = trace.noise[NoiseOn.VOTES], accounted_noise(trace)
    if accounted is None or draws.size < _FEWEST_FOR_SCALE:
        why = f"{draws.size} draws on votes are too few" if accounted else "no noise was promised"
        yield from (Skipped(id_, why) for id_ in ids)
        return
    law = Law.NORMAL if accounted.mechanism is Mechanism.GAUSSIAN else Law.LAPLACE
    likely = laws_of(draws) if draws.size >= FEWEST else ()
    if likely and law not in likely:
        yield flaw(
            "noise-wrong-law",
            f"{draws.size} draws on votes have a {likely[0]} distribution, {law} noise is "
            f"accounted for; the false-alarm probability is {ERROR:g}",
            draws=draws.size,
            mean_absolute_over_deviation=_ratio(draws),
        )
        return
    if likely:
        yield Passed("noise-wrong-law")
    else:
        yield Skipped(
            "noise-wrong-law", f"{draws.size} draws on votes do not identify their distribution"
        )
    if may_have_scale(draws, law, accounted.scale):
        yield from (Passed(id_) for id_ in _SCALES)
        return
    gamma = trace.constants.get("gamma", 1.0 / accounted.scale)
    inverted = gamma > 0 and may_have_scale(draws, law, gamma)
    seen = scale_of(draws, law)
    yield flaw(
        _SCALES[0] if inverted else _SCALES[1],
        f"{draws.size} draws on votes have scale {seen:.6g} (standard deviation "
        f"{float(np.std(draws)):.6g}), where {accounted.scale:.6g} is accounted for"
        + (f": that is lambda = {gamma:g} itself" if inverted else ""),
        draws=draws.size,
        scale=seen,
        deviation=float(np.std(draws)),
        accounted_scale=accounted.scale,
    )


def _on_labels(trace: Trace) -> Iterator[CheckOutcome]:
    draws = trace.noise[NoiseOn.LABELS]
    if draws.size < FEWEST:
        if draws.size:
            yield Skipped(_ON_LABELS, f"{draws.size} draws on labels are too few")
        elif trace.noise[NoiseOn.VOTES].size or trace.labels.size:
            yield Passed(_ON_LABELS)
        else:
            yield Skipped(_ON_LABELS, "no noise was recorded")
        return
    if laws_of(draws) != (Law.NORMAL,):
        yield Passed(_ON_LABELS)
        return
    seen = scale_of(draws, Law.NORMAL)
    yield flaw(
        _ON_LABELS,
        f"{draws.size} normal draws with standard deviation {seen:.4g} are added to labels that "
        f"are 0 or 1; mean absolute value over deviation is {_ratio(draws):.3f}, for Laplace "
        f"noise 0.707; the false-alarm probability is {ERROR:g}",
        draws=draws.size,
        deviation=seen,
        excess_kurtosis=float(stats.kurtosis(draws)),
    )
    yield from _gaussian_scale(trace, draws)


def _gaussian_scale(trace: Trace, draws: FloatArray) -> Iterator[CheckOutcome]:
    """Checks that normal noise has the scale sqrt(2 ln(1.25 / delta)) / epsilon."""
    claim = trace.claim
    if claim is None or not claim.delta:
        yield Skipped("noise-wrong-scale", "normal noise, but no delta is claimed")
        return
    seen = scale_of(draws, Law.NORMAL)
    meant = {
        id_: math.sqrt(2.0 * math.log(1.25 * inverse)) / claim.epsilon
        for id_, inverse in inverse_deltas(claim.delta).items()
    }
    fitting = [id_ for id_, scale in meant.items() if may_have_scale(draws, Law.NORMAL, scale)]
    right = meant[""]
    if "" in fitting:
        yield Passed("noise-wrong-scale")
        yield from (Passed(id_) for id_ in meant if id_ and id_ not in fitting)
        return
    id_ = fitting[0] if fitting else "noise-wrong-scale"
    yield flaw(
        id_,
        f"normal noise has standard deviation {seen:.4g}; for epsilon {claim.epsilon:g} and delta "
        f"{claim.delta:g} the Gaussian mechanism needs {right:.4g}"
        + (f", and this mistake gives {meant[id_]:.4g}" if fitting else ""),
        draws=draws.size,
        deviation=seen,
        needed=right,
    )


def inverse_deltas(delta: float) -> dict[str, float]:
    """Values used for 1 / delta, by finding; the correct one under ""."""
    meant = {"": 1.0 / delta, "delta-multiplied": 10.0**delta}
    slipped = 10 ^ round(-math.log10(delta))
    if slipped > 1:
        meant["delta-xor"] = float(slipped)
    return meant


def _check_labels(trace: Trace, wrong: list[str]) -> CheckOutcome:
    """Checks whether released labels have the promised probabilities."""
    accounted, k = accounted_noise(trace), teachers_of(trace)
    table = trace.promised
    if accounted is not None and k is not None:
        if draws_per_label(trace) == 1 and accounted.mechanism is Mechanism.NOISY_MAX:
            # That is a finding of its own, one-noise-charged-as-two.
            accounted = accounted._replace(mechanism=Mechanism.LAPLACE)
            table = None
        table = table or accounted.table(k)
    if not trace.labels.size:
        return Skipped(_LABELS, "no labels were released")
    if table is None:
        return Skipped(_LABELS, "no noise was promised")
    if np.any(trace.ones > table.teachers):
        return Skipped(_LABELS, f"more votes than the {table.teachers} promised teachers")
    if wrong:
        return Skipped(_LABELS, f"explained by {wrong[0]}")
    return _test_votes(trace, table)


def _test_votes(trace: Trace, table: VoteTable) -> CheckOutcome:
    """Runs an exact binomial test for each count of votes, all together at `ERROR`."""
    cast, places = np.unique(trace.ones, return_inverse=True)
    released = np.bincount(places, weights=trace.labels).astype(int)
    times = np.bincount(places)
    expected = table.probabilities[cast]
    p_values = np.array(
        [
            stats.binomtest(int(ones), int(n), float(p)).pvalue
            for ones, n, p in zip(released, times, expected, strict=True)
        ]
    )
    least = int(np.argmin(p_values))
    if p_values[least] * cast.size > ERROR:
        return Passed(_LABELS)
    return flaw(
        _LABELS,
        f"with {cast[least]} of {table.teachers} votes for 1, {released[least]} of {times[least]} "
        f"labels are 1 ({percent(round(released[least] / times[least], 3))}), where the accounted "
        f"mechanism gives {percent(round(expected[least], 3))}; p = {p_values[least]:.1e}",
        votes=cast[least],
        labels=times[least],
        ones=released[least],
        probability=expected[least],
        p_value=p_values[least],
    )


def _ratio(draws: FloatArray) -> float:
    return float(np.mean(np.abs(draws)) / np.sqrt(np.mean(draws**2)))


class AccountedNoise(NamedTuple):
    """The noise that an accountant charges for.

    Attributes:
        mechanism: The mechanism.
        scale: Standard deviation of normal noise, scale of Laplace noise, in votes.
    """

    mechanism: Mechanism
    scale: float

    def table(self, teachers: int) -> VoteTable:
        """The probabilities that this noise gives."""
        return vote_table(self.mechanism, teachers, self.scale)


def accounted_noise(trace: Trace) -> AccountedNoise | None:
    """The noise that the accountant of a training charges for.

    It follows from the promised table of probabilities, or without one from `gamma`, as in PATE.

    Returns:
        The noise; None if nothing was promised, or the noise is not known.
    """
    gamma = trace.constants.get("gamma", 0.0)
    if trace.promised is not None:
        return _fit_noise(trace.promised, gamma)
    return AccountedNoise(Mechanism.NOISY_MAX, 1.0 / gamma) if gamma > 0 else None


def teachers_of(trace: Trace) -> int | None:
    """The number k of teachers, if it is known."""
    if trace.promised is not None:
        return trace.promised.teachers
    number = trace.constants.get("teachers", 0.0)
    return int(number) if number >= 1 and number == int(number) else None


def _fit_noise(table: VoteTable, gamma: float) -> AccountedNoise | None:
    """The noise that gives a table of probabilities.

    With few teachers or much noise there may be several; then the one of scale 1 / gamma.
    """
    k = table.teachers
    wrong = table.probabilities[: k // 2 + 1]
    margins = k / 2 - np.arange(k // 2 + 1, dtype=np.float64)
    telling = (margins > 0) & (wrong > _CLIPPED) & (wrong < 0.5)
    if not telling.any():
        return None
    wrong, margins = wrong[telling], margins[telling]
    fitting = []
    for mechanism in Mechanism:
        # The widest margin is the most informative.
        scale = _scale(mechanism, float(margins[0]), float(wrong[0]))
        if scale and np.all(np.abs(wrong_at(mechanism, margins / scale) - wrong) < _EXACT):
            fitting.append(AccountedNoise(mechanism, scale))
    if len(fitting) == 1:
        return fitting[0]
    alike = [law for law in fitting if abs(law.scale * gamma - 1.0) < _SAME]
    return alike[0] if len(alike) == 1 else None


def _scale(mechanism: Mechanism, margin: float, wrong: float) -> float | None:
    """The scale at which a label contradicts a majority of this margin with this probability."""

    def excess(log_x: float) -> float:
        return float(wrong_at(mechanism, np.exp(np.array(log_x))) - wrong)

    lowest, highest = math.log(margin / _WIDEST), math.log(_NARROWEST)
    if excess(lowest) <= 0.0 or excess(highest) >= 0.0:
        return None
    return float(margin / math.exp(brentq(excess, lowest, highest, xtol=1e-15, rtol=1e-14)))


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
