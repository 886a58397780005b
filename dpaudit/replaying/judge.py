"""How counted replays are drawn, their losses and weights, and what these prove."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from dpaudit.bounds.replays import mean_lower
from dpaudit.plugins.protocols import World
from dpaudit.replaying.guarantee import (
    EXACT,
    EpsilonReplays,
    ReplayGuarantee,
    Replays,
)
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.lockstep import Aim
from dpaudit.replaying.loss import How, Influence, ShownAnswers, losses, shifts_across, total
from dpaudit.replaying.mixtures import CoinMixture, Expected, Steering, steering
from dpaudit.replaying.setting import ReplayFindings, ReplaySetting
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import (
    NoisyStep,
    Pair,
    Question,
    Site,
    Toss,
    Transcript,
)

TILTS: Final = (0.0, *np.geomspace(0.1, 200.0, 34))
"""Tilts tried on the pilot; none depends on the counted replays."""
_FINER: Final = tuple(np.geomspace(1.0, 12.0, 24))
"""Also tried for mixtures over coins, where slightly too much tilt loses everything."""
_SIMULATED: Final = 40
_STEERED: Final = 5
"""Simulated groups of steered replays."""
_MOST_STEPS: Final = 100
"""Largest number of steered answers of sub-samples; more have one common tilt."""
_MOST_AIMED: Final = 60.0
_BISECTIONS: Final = 14
_PURE_TILT: Final = 30.0
"""For a claim without delta: draws answers where the loss is largest."""
_WIDENED: Final = (1.0, 10.0, 1.0, 30.0)
"""For a claim without delta: how many times as wide the noise is in successive pairs of replays.

A rare outcome, such as another winner of a noisy maximum, may have the largest loss.
"""


class DrawPlan(NamedTuple):
    """How the counted replays are drawn, chosen on the pilot.

    Attributes:
        base: The world whose law is drawn from.
        tilt: As in `lockstep.Order`.
        at: The epsilon at which the divergence is bounded.
        steering: As in `lockstep.Order`.
        in_turn: Whether every second replay is drawn from the other world, because a transcript
            refutes a claim without delta in either order.
        along: As in `lockstep.Order`.
    """

    base: World
    tilt: float
    at: float
    steering: Steering | None = None
    in_turn: bool = False
    along: Mapping[Question, Aim] = {}

    def base_of(self, number: int) -> World:
        """The world whose law a counted replay is drawn from."""
        other = World.OUT if self.base is World.IN else World.IN
        return other if self.in_turn and number % 2 else self.base

    def widened_in(self, number: int) -> float:
        """As in `lockstep.Order`, of a counted replay."""
        return _WIDENED[number // 2 % len(_WIDENED)] if self.in_turn else 1.0


def measured(
    transcript: Transcript,
    base: World,
    *,
    used: Set[Site] = frozenset(),
    shown: ShownAnswers | None = None,
    all_released: bool = False,
) -> tuple[float, float]:
    """The loss of a transcript towards the world that it was drawn from, and its log weight.

    Some answers may have no influence: their use was not observed, or only others are shown to have
    one. The loss is then the smallest that is possible, unless `all_released` counts every answer
    as released. If the worlds diverge only when the target's own coin is "in", world "in" diverges
    with the probability of that coin, and otherwise behaves like world "out".
    """
    if transcript.parting is not None and transcript.parting.is_release:
        if not transcript.tosses:
            return math.inf, transcript.log_weight
        if base is World.IN:
            with np.errstate(divide="ignore"):
                return math.inf, transcript.log_weight + float(np.log(transcript.chance))
    transcript = settled(transcript)
    found = losses(transcript, used=used)
    loss = total(found)
    is_open = shown is not None or any(one.how is How.ASSUMED for one in found)
    if loss != 0 and is_open and not all_released:
        sign = 1 if loss > 0 else -1
        limit = total(losses(transcript, used=used, influence=Influence(shown, sign)))
        loss = limit if sign * limit > 0 else 0.0
    if math.isnan(loss):
        loss = 0.0
    return (loss if base is World.IN else -loss), transcript.log_weight


def draw_plan(
    pilot: Transcript,
    guarantee: ReplayGuarantee,
    *,
    used: Set[Site],
    replays: int,
    confidence: float,
    rng: np.random.Generator,
    places: Mapping[Question, frozenset[int]] | None = None,
) -> DrawPlan:
    """Chooses world, tilt and epsilon by simulating the pilot's steps without fits.

    Args:
        pilot: A replay that is not counted.
        guarantee: The claim's guarantee.
        used: As in `losses`.
        replays: Number of replays that will be counted.
        confidence: Confidence of the bound.
        rng: Draws the simulations.
        places: The only numbers that count, of some answers, by question.
    """
    pilot = settled(pilot)
    found = losses(pilot, used=used)
    selected = {one.site for one in found if one.how is How.SELECTED and not one.is_value}
    across = shifts_across(pilot, used=used) | _shifts_of(pilot, places or {})
    along = {
        key: Aim.at(step.before, step.laws)._replace(
            shift=across.get(step.first, step.before.shift)
        )
        for step in pilot.noisy
        for key in step.keys
        if step.first in across or step.rescaled is not None
    }
    seen = [
        replace(step, before=Pair(step.before.outside + across[step.first], step.before.outside))
        if step.first in across
        else step
        for step in pilot.noisy
    ]
    steps = [step for step in seen if step.site not in selected and np.any(step.differs)]
    pure = guarantee.is_pure
    # a mixture's loss is the larger one towards world "in"
    towards = World.IN if pilot.tosses or total(found) >= 0 else World.OUT
    if pure or not steps:
        tilt = _PURE_TILT if steps or pilot.choices else 0.0
        return DrawPlan(towards, tilt, guarantee.points[0], in_turn=pure, along=along)
    if pilot.parting is not None and pilot.parting.is_release and not pilot.tosses:
        # a tilt would only take weight from losses that are infinite
        sure = Replays(np.full(replays, math.inf), np.zeros(replays))
        at = max(
            guarantee.points, key=lambda at: guarantee.proved(sure, at=at, confidence=confidence)
        )
        return DrawPlan(towards, 0.0, at)
    best, plan = -math.inf, DrawPlan(World.IN, 0.0, guarantee.points[0], along=along)
    for base in (World.IN, World.OUT):
        for tilt in (*TILTS, *_FINER) if pilot.tosses else TILTS:
            drawn = _simulated(steps, pilot.tosses, base, float(tilt), replays * _SIMULATED, rng)
            groups = Replays(*(part.reshape(replays, _SIMULATED).T[::4].copy() for part in drawn))
            left = [*guarantee.points]
            while left := guarantee.promising(left, groups, best, confidence=confidence):
                at, *left = left
                value = float(
                    np.median(
                        [
                            guarantee.proved(Replays(*one), at=at, confidence=confidence)
                            for one in zip(*groups, strict=True)
                        ]
                    )
                )
                if value > best + 1e-9:
                    best, plan = value, DrawPlan(base, float(tilt), at, along=along)
    steered = _steered(pilot, guarantee, replays=replays, confidence=confidence)
    if steered is None:
        return plan
    tried = [_simulated_steering(*steered, replays, rng) for _ in range(_STEERED)]
    proved = [guarantee.proved(one, at=plan.at, confidence=confidence) for one in tried]
    if float(np.median(proved)) <= best:
        return plan
    return plan._replace(base=steered[1], steering=steered[2])


def _shifts_of(
    pilot: Transcript, places: Mapping[Question, frozenset[int]]
) -> dict[int, FloatArray]:
    """How far answers move if only some of their numbers count, by the first of each answer."""
    return {
        step.first: step.before.shift * np.isin(np.arange(step.answer.size), list(places[key]))
        for step in pilot.noisy
        for key in step.keys & places.keys()
    }


def _steered(
    pilot: Transcript, guarantee: ReplayGuarantee, *, replays: int, confidence: float
) -> tuple[list[Expected], World, Steering] | None:
    """Steering towards the largest epsilon that this many replays can be expected to prove.

    There the divergence exceeds delta just enough to win the bet with equal values. None unless
    everything that moves is Gaussian and each answer has its own coin.
    """
    answers = _expected(pilot)
    if answers is None or not isinstance(guarantee, EpsilonReplays):
        return None
    ratio = 1.0 / mean_lower(np.ones(replays), confidence=confidence)
    aimed = 1.02 * ratio * guarantee.delta
    best: tuple[list[Expected], World, Steering] | None = None
    for base in World:
        low, high = (0.0 if best is None else best[2].epsilon), _MOST_AIMED
        if steering(answers, base, low)[1] <= aimed:
            continue
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if steering(answers, base, middle)[1] > aimed else (low, middle)
            )
        best = answers, base, steering(answers, base, low)[0]
    return best


def _expected(pilot: Transcript) -> list[Expected] | None:
    """The answers that move; None unless each depends on its own coin and nothing else."""
    if pilot.choices or pilot.selections or pilot.derived or pilot.parting is not None:
        return None
    moving = [step for step in pilot.noisy if np.any(step.before.shift)]
    tosses = [step.toss for step in moving]
    if not moving or None in tosses or len(set(tosses)) < len(tosses) or len(moving) > _MOST_STEPS:
        return None
    found = []
    for step in moving:
        if not step.is_gaussian:
            return None
        assert step.toss is not None
        far = float(np.linalg.norm(step.before.shift / step.scales.inside))
        found.append(Expected(round(far, 9), pilot.tosses[step.toss].chance))
    return found


def _simulated_steering(
    answers: Sequence[Expected],
    base: World,
    steered: Steering,
    count: int,
    rng: np.random.Generator,
) -> Replays:
    """Losses and weights of transcripts with the expected answers."""
    losses, weights = np.zeros(count), np.zeros(count)
    for place in range(count):
        for number, one in enumerate(answers):
            mixture = one.in_world(base)
            towards = steered.towards(number, float(losses[place]))
            drawn = mixture.drawn(1.0, rng, towards=towards)
            losses[place] += float(mixture.loss(drawn.log_ratios[0]))
            weights[place] += drawn.log_weights[0]
    return Replays(losses, weights)


def _simulated(
    steps: Sequence[NoisyStep],
    tosses: Sequence[Toss],
    base: World,
    tilt: float,
    count: int,
    rng: np.random.Generator,
) -> Replays:
    """Losses and weights of many transcripts whose steps move as those of the pilot do."""
    world = 0 if base is World.IN else 1
    found, weights = _simulated_mixtures(steps, tosses, base, tilt, count, rng)
    for step in steps:
        if step.toss is not None:
            continue
        for at in np.flatnonzero(step.differs)[:2000].tolist():
            both, _ = step.element(at)
            law, other = both[world], both[1 - world]
            aim = Aim(np.full(count, step.before.shift[at]), (both[0].scale, both[1].scale))
            moved = aim.moved(law, base=world)
            noise = aim.drawn(law, base=world, tilt=tilt, rng=rng)
            with np.errstate(invalid="ignore"):
                loss = law.log_density(noise.value) - other.log_density(noise.value + moved)
            found += np.where(np.isnan(loss), 0.0, loss)  # moved beyond both: its weight is 0
            weights += noise.log_weights
    return Replays(found, weights)


def _simulated_mixtures(
    steps: Sequence[NoisyStep],
    tosses: Sequence[Toss],
    base: World,
    tilt: float,
    count: int,
    rng: np.random.Generator,
) -> Replays:
    """The same for steps that depend on the target's own coins.

    For Gaussian noise of one scale, all answers of a coin count as one, by the distance they move
    together. For other noise each answer counts as if it had its own coin.
    """
    squares: dict[int, float] = defaultdict(float)
    found, weights = np.zeros(count), np.zeros(count)

    def add(one: CoinMixture, times: int = 1) -> None:
        drawn = one.drawn(tilt, rng, size=count * times)
        loss = one.loss(drawn.log_ratios).reshape(times, count).sum(axis=0)
        np.add(found, loss, out=found)
        np.add(weights, drawn.log_weights.reshape(times, count).sum(axis=0), out=weights)

    for step in steps:
        if step.toss is None:
            continue
        if step.is_gaussian:
            squares[step.toss] += float(np.sum((step.before.shift / step.scales.inside) ** 2))
            continue
        for at in np.flatnonzero(step.differs)[:2000].tolist():
            add(CoinMixture(*step.element(at), tosses[step.toss].chance, base))
    apart = Counter(
        Expected(round(math.sqrt(square), 6), tosses[toss].chance)
        for toss, square in squares.items()
    )
    for one, times in apart.items():
        add(one.in_world(base), times)
    return Replays(found, weights)


class ProvedByReplays(NamedTuple):
    """What the counted replays prove.

    Attributes:
        replays: Their losses and weights.
        proved: The lower limit.
        above: Whether that exceeds the claim.
    """

    replays: Replays
    proved: float
    above: bool


def proved_by(
    setting: ReplaySetting,
    found: ReplayFindings,
    plan: DrawPlan,
    *,
    shown: ShownAnswers | None = None,
    all_released: bool = False,
    confidence: float | None = None,
) -> ProvedByReplays:
    """What the counted replays prove.

    Args:
        setting: The common inputs.
        found: What is known of the uses of answers.
        plan: How the counted replays were drawn.
        shown: The answers that are shown to have an influence; all by default.
        all_released: Whether every answer counts as released.
        confidence: Of the bound; by default that of the counted replays.
    """
    guarantee = setting.guarantee
    if shown is None and found.retried:
        shown = ShownAnswers(questions_of(found.counted) - found.retried)
    measures = [
        measured(
            one,
            plan.base_of(number),
            used=found.used,
            shown=shown,
            all_released=all_released,
        )
        for number, one in enumerate(found.counted)
    ]
    replays = Replays(*map(np.asarray, zip(*measures, strict=True)))
    if guarantee.is_pure:
        proved = float(np.max(np.abs(replays.losses)))  # in either order
    else:
        confidence = confidence or setting.confidence.counted
        proved = guarantee.proved(replays, at=plan.at, confidence=confidence)
    return ProvedByReplays(replays, proved, proved > guarantee.claimed * (1.0 + EXACT))


def questions_of(transcripts: Sequence[Transcript]) -> frozenset[Question]:
    """All questions of some replays."""
    return frozenset(key for one in transcripts for key in one.given)
