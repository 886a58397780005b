"""The ledger: steps, shifts and privacy cost of every line that adds noise or selects."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from dpaudit.account.accountants import Call, CallLaw
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim, ConcentratedClaim, GaussianClaim
from dpaudit.replaying.guarantee import gaussian_epsilon
from dpaudit.replaying.laws import (
    Bounded,
    DiscreteGaussian,
    FloatArray,
    GammaDifference,
    Gaussian,
    LaplaceSum,
    Staircase,
)
from dpaudit.replaying.loss import How, StepLoss
from dpaudit.replaying.mixtures import log_mixed
from dpaudit.replaying.transcript import NoisyStep, Site, Toss, Transcript

_STEP: Final = 1e-3
"""Grid width of privacy losses for composing steps of several laws."""
_MOST_COMPOSED: Final = 500.0
"""Above this, e^epsilon is too large a number for dp-accounting."""
_MOST_TABLES: Final = 100
"""With more tables of probabilities, draws count by their largest ratios."""
_COMPOSED: Final = ("gaussian", "discrete gaussian", "laplace", "discrete laplace")
"""Laws whose released answers can be composed at a delta above 0."""


CHOICE: Final = "choice"
"""The law of a line that draws a place with known probabilities."""


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """One line of code that adds noise or selects.

    Attributes:
        place: File and line.
        function: The function that contains it.
        law: The law of its noise; "choice" for a place drawn with known probabilities.
        times: Steps in one fit.
        scale: The scale of the noise in world "in"; the smallest, if it changes.
        other_scale: The same in world "out" if it differs, else null.
        l1: The largest L1 distance by which the answers of one step moved.
        l2: The same in L2.
        linf: The same for a single number.
        counts_as: "released", "selected", or "taken as released".
        epsilon: The largest privacy loss of the steps together; null if unlimited, as for Gaussian
            noise.
        mu: For Gaussian noise, the mu of the steps together; null for other laws.
        share: Share of the mean privacy loss of the whole fit, from 0 to 1.
        sampling: The probability that the record is in the secret sub-sample behind the answers;
            null if there is none. `mu` is then conditional on the record being in it.
    """

    place: str
    function: str
    law: str
    times: int
    scale: float | None
    other_scale: float | None
    l1: float
    l2: float
    linf: float
    counts_as: str
    epsilon: float | None
    mu: float | None
    share: float
    sampling: float | None = None


def ledger(transcript: Transcript, found: Sequence[StepLoss]) -> tuple[LedgerLine, ...]:
    """The lines of a transcript that add noise or select, most expensive first.

    Args:
        transcript: One replay.
        found: Its losses.
    """
    steps: dict[Site, list[NoisyStep]] = defaultdict(list)
    for step in transcript.noisy:
        steps[step.site].append(step)
    ways: dict[Site, list[StepLoss]] = defaultdict(list)
    for loss in found:
        ways[loss.site].append(loss)
    tosses = transcript.tosses
    lines = [_noisy_line(site, own, ways[site], tosses) for site, own in steps.items()]
    chosen = {one.site for one in found if one.tables} - set(steps)
    lines += [_choice_line(site, ways[site], tosses) for site in chosen]
    total = sum(weight for _, weight in lines)
    return tuple(
        replace(line, share=weight / total if total else 0.0)
        for line, weight in sorted(lines, key=lambda one: (-one[1], one[0].place))
    )


def _noisy_line(
    site: Site, steps: list[NoisyStep], ways: list[StepLoss], tosses: Sequence[Toss]
) -> tuple[LedgerLine, float]:
    shifts = [
        np.concatenate([np.atleast_1d(part.before.shift) for part in parts])
        for parts in _whole(steps)
    ]
    how = _how(ways)
    epsilon, mu, divergence = 0.0, None, 0.0
    sampling = _sampling(steps, tosses)
    if how is How.SELECTED:
        largest = [_most(one) for one in ways]
        epsilon = _pure_cost([(one.toss, _most(one)) for one in ways], tosses)
        divergence = sum(min(one, one * one / 2) for one in largest)
    else:
        squares = 0.0
        pure: list[tuple[int | None, float]] = []
        for step in steps:
            ratio = np.abs(step.before.shift) / step.scales.inside
            if isinstance(step.laws[0], Gaussian | DiscreteGaussian):
                squares += float(np.sum(ratio**2))
                epsilon = math.inf if np.any(ratio > 0) else epsilon
            else:
                pure.append((step.toss, float(np.sum(np.abs(_largest(step))))))
        epsilon += _pure_cost(pure, tosses)
        mu = math.sqrt(squares) if squares else None
        divergence = squares / 2 + (0.0 if math.isinf(epsilon) else min(epsilon, epsilon**2 / 2))
    divergence *= 1.0 if sampling is None else sampling**2
    scales = [_scale(steps, world) for world in (0, 1)]
    differ = not math.isclose(scales[0], scales[1], rel_tol=1e-9)
    line = LedgerLine(
        place=str(site),
        function=site.function,
        law=steps[0].laws[0].name,
        times=len(shifts),
        scale=scales[0],
        other_scale=scales[1] if differ else None,
        l1=max(float(np.sum(np.abs(one))) for one in shifts),
        l2=max(float(np.sqrt(np.sum(one**2))) for one in shifts),
        linf=max(float(np.max(np.abs(one), initial=0.0)) for one in shifts),
        counts_as=how.value,
        epsilon=None if math.isinf(epsilon) else epsilon,
        mu=mu,
        share=0.0,
        sampling=sampling,
    )
    return line, divergence


def _whole(steps: Sequence[NoisyStep]) -> list[list[NoisyStep]]:
    """The steps, each with all its parts: a sum of answers may be several."""
    found: dict[object, list[NoisyStep]] = defaultdict(list)
    for at, step in enumerate(steps):
        found[step.keys or at].append(step)
    return list(found.values())


def _sampling(steps: Sequence[NoisyStep | StepLoss], tosses: Sequence[Toss]) -> float | None:
    """The probability of the target's coins behind some steps; the largest, if it changes."""
    return max((tosses[one.toss].chance for one in steps if one.toss is not None), default=None)


def _most(loss: StepLoss) -> float:
    """The largest loss of a selection, or else the observed one."""
    return abs(loss.value) if loss.largest is None else loss.largest


def _pure_cost(costs: Sequence[tuple[int | None, float]], tosses: Sequence[Toss]) -> float:
    """The largest joint loss of several steps, some of which depend on the target's coins."""
    sums: dict[int | None, float] = defaultdict(float)
    for toss, cost in costs:
        sums[toss] += cost
    return sum(
        cost if toss is None else float(log_mixed(tosses[toss].chance, cost))
        for toss, cost in sums.items()
    )


def _choice_line(
    site: Site, ways: list[StepLoss], tosses: Sequence[Toss]
) -> tuple[LedgerLine, float]:
    largest = [math.inf if one.largest is None else one.largest for one in ways]
    sampling = _sampling(ways, tosses)
    epsilon = _pure_cost(
        [(one.toss, most) for one, most in zip(ways, largest, strict=True)], tosses
    )
    line = LedgerLine(
        place=str(site),
        function=site.function,
        law=CHOICE,
        times=len(ways),
        scale=None,
        other_scale=None,
        l1=0.0,
        l2=0.0,
        linf=0.0,
        counts_as=How.SELECTED.value,
        epsilon=None if math.isinf(epsilon) else epsilon,
        mu=None,
        share=0.0,
        sampling=sampling,
    )
    weight = sum(min(one, one * one / 2) if math.isfinite(one) else 100.0 for one in largest)
    return line, weight * (1.0 if sampling is None else sampling**2)


def _how(ways: list[StepLoss]) -> How:
    """How a line's answers count; the strongest category if they differ."""
    found = {one.how for one in ways}
    for how in (How.RELEASED, How.ASSUMED, How.SELECTED):
        if how in found:
            return how
    return How.SELECTED


def _scale(steps: list[NoisyStep], world: int) -> float:
    return min(float(np.min(step.laws[world].scale)) for step in steps)


def _largest(step: NoisyStep) -> FloatArray:
    """The largest loss of each number of a step: for Laplace noise, the shift over the scale.

    The same holds for a sum of Laplace draws, whose density is log-concave: towards its tails the
    loss grows to that of the largest scale. Below shape 1 the density has a peak, and no limit is
    known.
    """
    law = step.laws[0]
    ratio = step.before.shift / step.scales.inside
    if isinstance(law, Bounded):
        return _largest_bounded(step)
    if isinstance(law, GammaDifference):
        return np.where((ratio == 0) | (law.shape >= 1), ratio, math.inf)
    if law.name in ("laplace", "discrete laplace", "logistic", LaplaceSum.name):
        return np.asarray(ratio)
    if isinstance(law, Staircase):
        return np.asarray(law.epsilon * np.ceil(np.abs(ratio)))
    return np.where(ratio == 0, 0.0, math.inf)  # gamma, geometric, Gumbel: one side has no limit


def _largest_bounded(step: NoisyStep) -> FloatArray:
    """The largest loss of bounded noise: at a kink or an end; infinite if the ends differ."""
    points = [np.asarray(one) for one in step.before]
    for law, before in zip(step.laws, step.before, strict=True):
        assert isinstance(law, Bounded)
        points += [before + end for end in law.ends]
    largest = np.zeros(step.answer.shape)
    for point in points:
        inside, outside = (
            law.log_density(point - before)
            for law, before in zip(step.laws, step.before, strict=True)
        )
        possible = np.isfinite(inside) | np.isfinite(outside)
        with np.errstate(invalid="ignore"):
            largest = np.maximum(largest, np.where(possible, np.abs(inside - outside), 0.0))
    return largest


class Recorded(NamedTuple):
    """The lines of a ledger as mechanism calls.

    Attributes:
        calls: One for each line that the record moves.
        unknown: Why the cost of the lines together is not known; None if it is.
    """

    calls: tuple[Call, ...]
    unknown: str | None


def recorded_calls(lines: Sequence[LedgerLine]) -> Recorded:
    """The lines of a ledger as mechanism calls, for an accountant.

    A line keeps the sum of its steps: Gaussian ones are one step of their mu, others have their
    largest loss.

    Args:
        lines: The ledger.
    """
    calls = []
    for one in lines:
        if one.other_scale is not None:
            return Recorded((), f"the scale of the noise at {one.place} depends on the data")
        if one.mu is None and one.epsilon is None:
            return Recorded((), f"the largest loss of a step at {one.place} is not known")
        if one.mu is not None and (one.sampling is not None or one.law != Gaussian.name):
            return Recorded((), f"the steps at {one.place} are not kept one by one")
        if one.mu is not None:
            calls.append(Call(law=CallLaw.GAUSSIAN, scale=1.0, sensitivity=one.mu))
        elif one.epsilon is not None and one.epsilon > 0:
            calls.append(Call(law=CallLaw.PURE, scale=1.0, sensitivity=one.epsilon))
    return Recorded(tuple(calls), None)


class Computed(NamedTuple):
    """What the observed steps cost together.

    Attributes:
        value: In the quantity of the claim; None if it is not computed.
        note: Why it is not, or what it leaves out.
    """

    value: float | None
    note: str | None = None


def computed(transcript: Transcript, found: Sequence[StepLoss], claim: Claim) -> Computed:
    """The total cost of the observed steps, at the observed distances.

    Exact if the distances do not depend on earlier answers. For ε, pure losses add up, Gaussian
    ones in squares, and both together by numerical convolution (dp-accounting). For μ and ρ only
    Gaussian steps are known: the root of the sum of their squares, and half that sum.

    Args:
        transcript: One replay.
        found: Its losses.
        claim: The claim.
    """
    if transcript.parting is not None:
        return Computed(None, "the worlds diverge")
    lines = ledger(transcript, found)
    follows = next((one for one in lines if one.other_scale is not None), None)
    if follows is not None:
        return Computed(None, f"the scale of the noise at {follows.place} depends on the data")
    if isinstance(claim, PrivacyClaim):
        return _computed_epsilon(transcript, found, lines, claim.delta)
    if not isinstance(claim, GaussianClaim | ConcentratedClaim):
        return Computed(None, "a privacy curve has no single cost")
    other = [one.site for one in found if one.how is How.SELECTED and _most(one) > 1e-12]
    for step in transcript.noisy:
        is_known = isinstance(step.laws[0], Gaussian | DiscreteGaussian) and step.toss is None
        counts = any(one.site == step.site and one.how is not How.SELECTED for one in found)
        if counts and not is_known and np.any(step.before.shift):
            other.append(step.site)
    if other:
        quantity = claim.quantity
        return Computed(None, f"{other[0]} is no Gaussian step: its {quantity} is not known")
    square = sum(one.mu**2 for one in lines if one.mu is not None)
    return Computed(math.sqrt(square) if isinstance(claim, GaussianClaim) else square / 2)


def _computed_epsilon(
    transcript: Transcript, found: Sequence[StepLoss], lines: Sequence[LedgerLine], delta: float
) -> Computed:
    tables = _tables(found) if delta > 0 else Counter()
    if chance_of_one_world(found) > delta > 0:
        return Computed(None, "an outcome that only one world has costs without limit")
    unknown = {str(one.site) for one in found if not _has_tables(one)}
    lines = tuple(one for one in lines if not tables or one.place in unknown)
    for one in lines:
        if one.mu is None and one.epsilon is None:
            return Computed(None, f"the largest loss of a step at {one.place} is not known")
        is_moved = one.counts_as != How.SELECTED and one.l1 > 0
        if delta > 0 and is_moved and one.law not in _COMPOSED:
            return Computed(None, f"no accountant knows {one.law} noise ({one.place})")
    mu = math.sqrt(sum(one.mu**2 for one in lines if one.mu is not None))
    if delta == 0 and mu > 0:
        return Computed(None, "Gaussian noise has no epsilon at delta 0")
    if any(one.sampling is not None for one in lines):
        value = _computed_mixtures(transcript, found, delta)
        note = "one coin of the record decides Gaussian and other steps" if value is None else None
        return Computed(value, note)
    epsilons = [one.epsilon for one in lines if one.mu is None and one.epsilon]
    if delta > 0 and max(epsilons, default=0.0) > _MOST_COMPOSED:
        return Computed(None, "a step costs more than accountants compose")
    if not (epsilons or tables):
        return Computed(gaussian_epsilon(mu, delta))
    if delta == 0:
        return Computed(float(sum(epsilons)))
    return Computed(_composed(mu, transcript, found, delta, tables))


def chance_of_one_world(found: Sequence[StepLoss]) -> float:
    """The probability of an outcome that the other world does not have, in a choice of some steps.

    Args:
        found: The losses of the steps.
    """
    left = np.ones(2)  # probability that no such outcome is drawn, in each world
    for one in filter(_has_tables, found):
        for inside, outside in one.tables:
            left *= 1.0 - np.array([inside[outside == 0].sum(), outside[inside == 0].sum()])
    return float(np.max(1.0 - left))


def _has_tables(loss: StepLoss) -> bool:
    """Whether a step is drawn from known tables, whatever coins of the record's own decide."""
    return bool(loss.tables) and loss.toss is None


def _tables(found: Sequence[StepLoss]) -> Counter[tuple[bytes, bytes]]:
    """How often each pair of tables of probabilities was drawn from; empty if they are many."""
    every = Counter(
        (np.asarray(pair.inside, float).tobytes(), np.asarray(pair.outside, float).tobytes())
        for one in filter(_has_tables, found)
        for pair in one.tables
    )
    return every if len(every) <= _MOST_TABLES else Counter()


def _computed_mixtures(
    transcript: Transcript, found: Sequence[StepLoss], delta: float
) -> float | None:
    """The same where steps depend on the target's own coins; None if one coin has both kinds."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    squares: dict[int | None, float] = defaultdict(float)
    pure: list[tuple[int | None, float]] = []
    selected = {one.site for one in found if one.how is How.SELECTED}
    for step in transcript.noisy:
        if step.site in selected or not np.any(step.before.shift):
            continue
        if isinstance(step.laws[0], Gaussian | DiscreteGaussian):
            squares[step.toss] += float(np.sum((step.before.shift / step.laws[0].scale) ** 2))
        else:
            pure.append((step.toss, float(np.sum(np.abs(_largest(step))))))
    pure += [(one.toss, _most(one)) for one in found if one.how is How.SELECTED]
    costs = [one for one in pure if one[1] > 0]
    if {toss for toss, _ in costs if toss is not None} & set(squares):
        return None
    epsilon = _pure_cost(costs, transcript.tosses)
    if delta == 0 or not squares:
        return epsilon
    kinds = Counter(
        (round(math.sqrt(square), 9), 1.0 if toss is None else transcript.tosses[toss].chance)
        for toss, square in squares.items()
    )
    whole = pld.from_privacy_parameters(_pure(epsilon), value_discretization_interval=_STEP)
    for (mu, chance), times in kinds.items():
        one = pld.from_gaussian_mechanism(
            1.0 / mu, sampling_prob=chance, value_discretization_interval=_STEP
        )
        whole = whole.compose(one.self_compose(times))
    return float(whole.get_epsilon_for_delta(delta))


def _composed(
    mu: float,
    transcript: Transcript,
    found: Sequence[StepLoss],
    delta: float,
    tables: Counter[tuple[bytes, bytes]],
) -> float:
    """Epsilon at delta of Gaussian, Laplace and other steps together, and of draws from tables."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    step_size = max(_STEP / (1 + tables.total()), _STEP / 100)  # each draw is rounded up
    interval = {"value_discretization_interval": step_size}
    parts = [] if mu == 0 else [pld.from_gaussian_mechanism(1.0 / mu, **interval)]
    for pair, times in tables.items():
        logs = [
            {at: math.log(one) for at, one in enumerate(np.frombuffer(table)) if one > 0}
            for table in pair
        ]
        known = pld.from_two_probability_mass_functions(*logs, **interval, symmetric=False)
        parts.append(known.self_compose(times))
    selected = {one.site for one in found if one.how is How.SELECTED}
    for step in transcript.noisy:
        if step.site in selected or isinstance(step.laws[0], Gaussian | DiscreteGaussian):
            continue
        for one in np.abs(_largest(step)):
            if one > 0:
                parts.append(pld.from_laplace_mechanism(1.0 / float(one), **interval))
    parts += [
        pld.from_privacy_parameters(_pure(_most(one)), **interval)
        for one in found
        if one.how is How.SELECTED
        and (one.largest or abs(one.value)) > 1e-12
        and not (tables and _has_tables(one))
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(delta))


def _pure(epsilon: float) -> object:
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    return DifferentialPrivacyParameters(epsilon, 0.0)
