"""The ledger: for every line that adds noise or selects, how often, how far, and at what cost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpaudit.replaying.guarantee import gaussian_epsilon
from dpaudit.replaying.laws import DiscreteGaussian, Gaussian
from dpaudit.replaying.loss import How, StepLoss
from dpaudit.replaying.transcript import NoisyStep, Site, Transcript

_STEP: Final = 1e-3
"""Width of the grid of privacy losses where steps of several laws are composed."""


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """One line of code that adds noise or selects.

    Attributes:
        place: File and line.
        function: The function that it stands in.
        law: The law of its noise; "choice" for a place drawn with known probabilities.
        times: Steps in one fit.
        scale: The scale of the noise in world "in"; the smallest, if it changes.
        other_scale: The same in world "out", where it differs; null where it does not.
        l1: The largest L1 distance by which the answers of one step moved.
        l2: The same, L2.
        linf: The same, of one number.
        counts_as: "released", "selected", or "taken as released".
        epsilon: The largest privacy loss of the steps together; null where it has no limit, as of
            Gaussian noise.
        mu: Of Gaussian noise, the mu of the steps together; null for other laws.
        share: Of the mean privacy loss of the whole fit, from 0 to 1.
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


def ledger(transcript: Transcript, found: Sequence[StepLoss]) -> tuple[LedgerLine, ...]:
    """The lines of a transcript that add noise or select, the costliest first.

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
    lines = [_noisy_line(site, own, ways[site]) for site, own in steps.items()]
    chosen = {one.site for one in transcript.choices} - set(steps)
    lines += [_choice_line(site, ways[site]) for site in chosen]
    total = sum(weight for _, weight in lines)
    return tuple(
        LedgerLine(**{**vars(line), "share": weight / total if total else 0.0})
        for line, weight in sorted(lines, key=lambda one: (-one[1], one[0].place))
    )


def _noisy_line(
    site: Site, steps: list[NoisyStep], ways: list[StepLoss]
) -> tuple[LedgerLine, float]:
    shifts = [step.before.shift for step in steps]
    how = _how(ways)
    epsilon, mu, divergence = 0.0, None, 0.0
    if how is How.SELECTED:
        largest = [one.largest if one.largest is not None else abs(one.value) for one in ways]
        epsilon = float(sum(largest))
        divergence = sum(min(one, one * one / 2) for one in largest)
    else:
        squares = 0.0
        for step in steps:
            gaussian = isinstance(step.laws[0], Gaussian | DiscreteGaussian)
            ratio = np.abs(step.before.shift) / np.broadcast_to(
                step.laws[0].scale, step.answer.shape
            )
            if gaussian:
                squares += float(np.sum(ratio**2))
                epsilon = math.inf if np.any(ratio > 0) else epsilon
            else:
                epsilon += float(np.sum(np.abs(_largest(step))))
        mu = math.sqrt(squares) if squares else None
        divergence = squares / 2 + (0.0 if math.isinf(epsilon) else min(epsilon, epsilon**2 / 2))
    scales = [_scale(steps, world) for world in (0, 1)]
    differ = not math.isclose(scales[0], scales[1], rel_tol=1e-9)
    line = LedgerLine(
        place=str(site),
        function=site.function,
        law=steps[0].laws[0].name,
        times=len(steps),
        scale=scales[0],
        other_scale=scales[1] if differ else None,
        l1=max(float(np.sum(np.abs(one))) for one in shifts),
        l2=max(float(np.sqrt(np.sum(one**2))) for one in shifts),
        linf=max(float(np.max(np.abs(one), initial=0.0)) for one in shifts),
        counts_as=how.value,
        epsilon=None if math.isinf(epsilon) else epsilon,
        mu=mu,
        share=0.0,
    )
    return line, divergence


def _choice_line(site: Site, ways: list[StepLoss]) -> tuple[LedgerLine, float]:
    largest = [math.inf if one.largest is None else one.largest for one in ways]
    epsilon = float(sum(largest))
    line = LedgerLine(
        place=str(site),
        function=site.function,
        law="choice",
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
    )
    return line, sum(min(one, one * one / 2) if math.isfinite(one) else 100.0 for one in largest)


def _how(ways: list[StepLoss]) -> How:
    """How most of a line's answers count; the strongest word where they differ."""
    found = {one.how for one in ways}
    for how in (How.RELEASED, How.ASSUMED, How.SELECTED):
        if how in found:
            return how
    return How.SELECTED


def _scale(steps: list[NoisyStep], world: int) -> float:
    return min(float(np.min(step.laws[world].scale)) for step in steps)


def _largest(step: NoisyStep) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The largest loss of each number of a step: of Laplace noise, the shift over the scale."""
    ratio = step.before.shift / np.broadcast_to(step.laws[0].scale, step.answer.shape)
    if step.laws[0].name in ("laplace", "discrete laplace", "logistic"):
        return np.asarray(ratio)
    inside, outside = (
        law.log_density(step.answer - before)
        for law, before in zip(step.laws, step.before, strict=True)
    )
    return np.asarray(np.broadcast_to(inside - outside, step.answer.shape))


def computed_epsilon(
    transcript: Transcript, found: Sequence[StepLoss], delta: float
) -> float | None:
    """What the steps that were seen cost together, at the distances that were seen.

    Exact where the answers' distances do not depend on earlier answers. Pure losses add up;
    Gaussian ones add up in squares; both together by numerical convolution (dp-accounting).

    Args:
        transcript: One replay.
        found: Its losses.
        delta: The delta of the claim.

    Returns:
        Epsilon; None if something has no known largest loss, or the worlds part.
    """
    if transcript.parting is not None:
        return None
    lines = ledger(transcript, found)
    pure = [one.epsilon for one in lines if one.mu is None]
    if any(one is None for one in pure):
        return None
    mu = math.sqrt(sum(one.mu**2 for one in lines if one.mu is not None))
    if any(one.other_scale is not None for one in lines):
        return None
    epsilons = [one for one in pure if one is not None and one > 0]
    if mu == 0:
        return (
            float(sum(epsilons))
            if delta == 0 or not epsilons
            else _composed(0.0, transcript, found, delta)
        )
    if delta == 0:
        return math.inf
    return gaussian_epsilon(mu, delta) if not epsilons else _composed(mu, transcript, found, delta)


def _composed(mu: float, transcript: Transcript, found: Sequence[StepLoss], delta: float) -> float:
    """Epsilon at delta of Gaussian, Laplace and other steps together."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = (
        []
        if mu == 0
        else [pld.from_gaussian_mechanism(1.0 / mu, value_discretization_interval=_STEP)]
    )
    selected = {one.site for one in found if one.how is How.SELECTED}
    for step in transcript.noisy:
        if step.site in selected or isinstance(step.laws[0], Gaussian | DiscreteGaussian):
            continue
        for one in np.abs(_largest(step)):
            if one > 0:
                parts.append(
                    pld.from_laplace_mechanism(
                        1.0 / float(one), value_discretization_interval=_STEP
                    )
                )
    parts += [
        pld.from_privacy_parameters(
            _pure(one.largest if one.largest is not None else abs(one.value)),
            value_discretization_interval=_STEP,
        )
        for one in found
        if one.how is How.SELECTED and (one.largest or abs(one.value)) > 1e-12
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(delta))


def _pure(epsilon: float) -> object:
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    return DifferentialPrivacyParameters(epsilon, 0.0)
