"""The ledger: steps, shifts and privacy cost of every line that adds noise or selects."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from dpaudit.account.accountants import Call, CallLaw
from dpaudit.replaying.charges import RELEASED, SELECTED, Charges, StepCharge
from dpaudit.replaying.costs import GaussianCost, pure_epsilon
from dpaudit.replaying.laws import FloatArray, Gaussian
from dpaudit.replaying.transcript import NoisyStep, Site, Transcript

CHOICE: Final = "choice"
"""The law of a line that draws a place with known probabilities."""
UNKNOWN: Final = "unknown"
"""The law of a line whose noise is not recognised."""
_WORTH: Final = 100.0
"""The weight of a step without limit in a ledger."""


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
        counts_as: "released" or "selected".
        epsilon: The largest privacy loss of the steps together; null if unlimited, as for Gaussian
            noise, or not known.
        mu: For Gaussian noise, the mu of the steps together; null for other laws.
        share: Share of the mean privacy loss of the whole fit, from 0 to 1.
        sampling: The probability that the record is in the secret sub-sample behind the answers;
            null if there is none. `mu` is then conditional on the record being in it.
        internal: Whether its answers are declared not to be released, and left out of the sum.
        delta: The delta that it spends, at any epsilon: the chance that the release shows a key
            that only one world has; null if there is no such key.
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
    internal: bool = False
    delta: float | None = None


def ledger(
    transcript: Transcript,
    charges: Charges,
    chances: Mapping[int | None, float],
    deltas: Mapping[Site, float],
    *,
    is_internal: Callable[[Site], bool],
) -> tuple[LedgerLine, ...]:
    """The lines of a transcript that add noise or select, most expensive first.

    Args:
        transcript: One replay.
        charges: Its charges.
        chances: Of each coin of the record's own, the probability that the record is in the
            sub-sample; 1 where that does not count, as without a coin.
        deltas: The delta that lines spend on keys that only one world has.
        is_internal: Whether a line is declared internal.
    """
    steps: dict[Site, list[NoisyStep]] = defaultdict(list)
    choices: dict[Site, int] = defaultdict(int)
    own: dict[Site, list[StepCharge]] = defaultdict(list)
    for step in transcript.noisy:
        steps[step.site].append(step)
    for choice in transcript.choices:
        choices[choice.site] += len(choice.tables)
    for charge in charges.charges:
        own[charge.site].append(charge)
    lines = []
    for site in {**steps, **choices, **own}:
        times = len(steps[site]) or choices[site]
        line = _line(site, steps[site], own[site], chances)
        is_chosen = not own[site] and any(step.first in charges.selected for step in steps[site])
        counts_as = SELECTED if is_chosen else line.counts_as
        line = replace(
            line,
            times=times,
            counts_as=counts_as,
            internal=is_internal(site),
            delta=deltas.get(site),
        )
        weight = 0.0 if line.internal else sum(_weight(charge, chances) for charge in own[site])
        lines.append((line, weight))
    total = sum(weight for _, weight in lines)
    return tuple(
        replace(line, share=weight / total if total else 0.0)
        for line, weight in sorted(lines, key=lambda row: (-row[1], row[0].place))
    )


def _line(
    site: Site,
    steps: Sequence[NoisyStep],
    charges: Sequence[StepCharge],
    chances: Mapping[int | None, float],
) -> LedgerLine:
    moves = [step.before.shift for step in steps if step.answer.size]
    shifts = [move[np.isfinite(move)] for move in moves]
    scales = [[_smallest(step.scales[world]) for step in steps] for world in (0, 1)]
    scale, other = (
        min((value for value in own if value is not None), default=None) for own in scales
    )
    differ = scale is not None and other is not None and not math.isclose(scale, other)
    names = [UNKNOWN if step.laws is None else step.laws[0].name for step in steps]
    epsilon = pure_epsilon(
        [(charge.toss, charge.cost.epsilon * charge.times) for charge in charges], chances
    )
    squares = [charge.cost.mu**2 for charge in charges if isinstance(charge.cost, GaussianCost)]
    sampling = max((chances[charge.toss] for charge in charges), default=1.0)
    selected = bool(charges) and all(charge.counts_as == SELECTED for charge in charges)
    return LedgerLine(
        place=str(site),
        function=site.function,
        law=names[0] if names else CHOICE,
        times=0,
        scale=scale,
        other_scale=other if differ else None,
        l1=max((float(np.sum(np.abs(shift))) for shift in shifts), default=0.0),
        l2=max((float(np.linalg.norm(shift)) for shift in shifts), default=0.0),
        linf=max((float(np.max(np.abs(shift), initial=0.0)) for shift in shifts), default=0.0),
        counts_as=SELECTED if selected or not names else RELEASED,
        epsilon=epsilon if math.isfinite(epsilon) else None,
        mu=math.sqrt(sum(squares)) if squares else None,
        share=0.0,
        sampling=sampling if sampling < 1.0 else None,
    )


def _smallest(scales: FloatArray) -> float | None:
    known = scales[np.isfinite(scales)]
    return float(np.min(known)) if known.size else None


def _weight(charge: StepCharge, chances: Mapping[int | None, float]) -> float:
    """About the mean privacy loss of a charge."""
    epsilon = charge.cost.epsilon
    rho = min(epsilon, epsilon**2 / 2) if math.isfinite(epsilon) else charge.cost.rho
    worth = rho if math.isfinite(rho) else _WORTH
    return worth * charge.times * chances[charge.toss] ** 2


class RecordedCalls(NamedTuple):
    """The lines of a ledger as mechanism calls.

    Attributes:
        calls: One for each line that the record moves.
        unknown: Why the cost of the lines together is not known; None if it is.
    """

    calls: tuple[Call, ...]
    unknown: str | None


def recorded_calls(lines: Sequence[LedgerLine]) -> RecordedCalls:
    """The lines of a ledger as mechanism calls, for an accountant.

    A line keeps the sum of its steps: Gaussian ones are one step of their mu, others have their
    largest loss. Internal lines are left out.

    Args:
        lines: The ledger.
    """
    calls = []
    for line in lines:
        if line.internal:
            continue
        if line.delta:
            return RecordedCalls((), f"a key that only one world has is shown at {line.place}")
        if line.other_scale is not None:
            return RecordedCalls((), f"the scale of the noise at {line.place} depends on the data")
        if line.mu is None and line.epsilon is None:
            return RecordedCalls((), f"the largest loss of a step at {line.place} is not known")
        if line.mu is not None and (line.sampling is not None or line.law != Gaussian.name):
            return RecordedCalls((), f"the steps at {line.place} are not kept one by one")
        if line.mu is not None:
            calls.append(Call(law=CallLaw.GAUSSIAN, scale=1.0, sensitivity=line.mu))
        elif line.epsilon is not None and line.epsilon > 0:
            calls.append(Call(law=CallLaw.PURE, scale=1.0, sensitivity=line.epsilon))
    return RecordedCalls(tuple(calls), None)
