"""Noise that belongs together: added to a value draw by draw, or shared by several answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpaudit.replaying.laws import FloatArray, IntArray
from dpaudit.replaying.messages import Draw, draws_of, law_of_draws
from dpaudit.replaying.transcript import (
    NoisyStep,
    Pair,
    Transcript,
    Unfollowed,
)

_ALONE: Final = "more noise is added to a noisy answer, which is charged by itself"


@dataclass(frozen=True)
class StepNoise:
    """The noise of a step.

    Attributes:
        draws: Its draws in each world.
        on: The answers that it is added to, one for each of its own; None if it is added to data.
        factor: What each of these is multiplied by before.
    """

    draws: tuple[Sequence[Draw], Sequence[Draw]]
    on: IntArray | None = None
    factor: FloatArray | None = None


def join_noise(transcript: Transcript, noises: Sequence[StepNoise]) -> None:
    """Joins steps of which only the last answer is used, and names the draws that answers share.

    `counts + exponential - exponential` is one answer with Laplace noise if `counts + exponential`
    is used for nothing else. If it is, it is charged in full, and what gets more noise is not.

    Args:
        transcript: A fit that has ended; its steps are changed.
        noises: The noise of each of its steps.
    """
    steps, noises, gone = transcript.noisy, list(noises), set()
    uses = Counter(
        number for noise in noises if noise.on is not None for number in noise.on.tolist()
    )
    known = transcript.released | {number for number, times in uses.items() if times > 1}
    known |= {number for selection in transcript.selections for number in selection.answers}
    for place, noise in enumerate(noises):
        if noise.on is None:
            continue
        at = _step_of(steps, noise.on, known)
        joined = None if at is None else _join_steps(steps[at], noises[at], steps[place], noise)
        if at is None or joined is None:
            numbers = set(noise.on.tolist())
            if not numbers <= transcript.released:
                transcript.charged_alone.append(Unfollowed(steps[place].site, _ALONE))
            transcript.released |= numbers
        else:
            steps[place], noises[place] = joined
            gone.add(at)
    kept = [at for at in range(len(steps)) if at not in gone]
    transcript.noisy = [steps[at] for at in kept]
    _name_shared_draws(transcript.noisy, [noises[at].draws[0] for at in kept])


def _step_of(steps: Sequence[NoisyStep], on: IntArray, known: Collection[int]) -> int | None:
    """The step whose answers these are, if they are all of them and used for nothing else."""
    wanted = set(on.tolist())
    if wanted & set(known):
        return None
    places = (at for at, step in enumerate(steps) if step.first == min(wanted, default=-1))
    at = next(places, None)
    return at if at is not None and set(steps[at].numbers.tolist()) == wanted else None


def _join_steps(
    first: NoisyStep, noise: StepNoise, second: NoisyStep, more: StepNoise
) -> tuple[NoisyStep, StepNoise] | None:
    """Two steps as one with the noise of both; None if its law is not known."""
    assert more.on is not None
    assert more.factor is not None
    order, factor = more.on - first.first, more.factor
    inside, outside = (
        [*(draw.take(order, factor) for draw in own), *others]
        for own, others in zip(noise.draws, more.draws, strict=True)
    )
    laws = law_of_draws(inside), law_of_draws(outside)
    is_one = first.toss == second.toss and not (first.is_lost or second.is_lost)
    if laws[0] is None or laws[1] is None or not is_one:
        return None
    before = (
        after - factor * (first.answer - own)[order]
        for own, after in zip(first.before, second.before, strict=True)
    )
    step = replace(
        second,
        before=Pair(*before),
        laws=(laws[0], laws[1]),
        differs=first.differs[order] | second.differs,
        law_names=first.law_names | second.law_names,
        seed=second.seed if first.seed == second.seed else None,
    )
    return step, replace(more, draws=(inside, outside))


def _name_shared_draws(steps: list[NoisyStep], draws: Sequence[Sequence[Draw]]) -> None:
    """Names the draws of answers that share some, with each other or with later steps."""
    every = [np.concatenate([draw.ids for draw in own]) for own in draws]
    if not every:
        return
    ids, counts = np.unique(np.concatenate(every), return_counts=True)
    shared = ids[counts > 1]
    for place, step in enumerate(steps):
        if shared.size and np.isin(every[place], shared).any():
            steps[place] = replace(step, draws=draws_of(draws[place], step.answer.size))
