"""From findings to a verdict, its reasons, and the record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.formatting import percent
from dpaudit.game.target import Target
from dpaudit.model.choices import sampler_text
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import Claim
from dpaudit.replaying.guarantee import EXACT, ReplayGuarantee, detectable, replay_guarantee
from dpaudit.replaying.influence import same_steps
from dpaudit.replaying.judge import ProvedByReplays
from dpaudit.replaying.ledger import CHOICE, Computed, chance_of_one_world, computed, ledger
from dpaudit.replaying.lockstep import same
from dpaudit.replaying.loss import How, StepLoss, largest_ratio, losses, shifts_across
from dpaudit.replaying.record import NotFollowed, PartingFound, ReplayRecord
from dpaudit.replaying.setting import ReplayFindings, ReplaySetting, streams
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import PartKind, Site, Transcript
from dpaudit.results.verdict import Verdict
from dpaudit.versions import today

_ROUNDED: Final = 1.01
"""Observed steps may cost this many times the claim, because claims are rounded."""
MEANING: Final = {
    PartKind.ROWS: "the synthetic rows differ although all noisy answers and coins are equal",
    PartKind.STEPS: "what the code does next depends on the data, without noise",
    PartKind.SHAPES: "the number of noisy values depends on the data",
    PartKind.OPERANDS: "a value without noise is combined with noisy answers",
    PartKind.DRAWS: "a sampler's parameters depend on the data although all answers are equal",
    PartKind.REUSED: "noise is used a second time, so that a difference of two answers has none",
    PartKind.FAILURE: "the generator fails in only one world",
}
_LOST_SIGHT: Final = (
    "lost sight of noise ({}) before anything was added to it, because rounding, a limit or "
    "float() makes it a plain number"
)
_SURE: Final = frozenset({PartKind.OPERANDS, PartKind.REUSED})
"""Divergences that are visible in the released output.

Steps, shapes and samplers that depend on the data may be compensated elsewhere: noise for empty
cells in a separate loop, a threshold within delta.
"""


def decide(setting: ReplaySetting, found: ReplayFindings) -> None:
    """Sets the verdict, and what could excuse a loss."""
    public_coins = setting.public_coins
    found.doubts = tuple(doubts(found, public_coins=public_coins))
    found.verdict, found.reasons = _verdict(found, public_coins=public_coins)
    if found.verdict is not Verdict.CONSISTENT:
        return
    claim, ways = setting.spec.claim, _each_way(found.transcripts)
    guarantee, each = setting.guarantee, [way.transcript for way in ways]
    cost = _cost_above(ways, claim, used=found.used)
    rare = tuple(outcomes_above(each, guarantee, used=found.used))
    if rare and _is_one_above(each, guarantee, used=found.used):
        found.verdict, found.reasons = Verdict.INCONCLUSIVE, rare
    elif cost is None:
        found.reasons += rare
    else:
        ratios = shifts_across(found.pilot, used=found.used)
        found.verdict = Verdict.INCONCLUSIVE
        price = "without limit" if math.isinf(cost) else f"{claim.quantity} {cost:.3g}"
        found.reasons = (
            f"the observed steps cost {price}, more than the claim, which is not proved"
            + (
                "; some noisy answers are released only as ratios, which cost less"
                if ratios
                else ""
            )
            + _advice(found, public_coins=public_coins),
            *found.reasons[1:],
        )


def _advice(found: ReplayFindings, *, public_coins: bool) -> str:
    """What may explain a cost above the claim that is not proved, or could prove it."""
    if found.doubts:
        return ""
    if found.pilot.coin_before is not None and found.coins_matter is None and not public_coins:
        return f"; coins ({found.pilot.coin_before}) may hide it, as noise made of them does"
    return ": ask for more replays (--replays)"


class _Way(NamedTuple):
    """What code did in some replays.

    Attributes:
        transcript: One of these replays.
        weight: Together, how likely they are, over how likely they were drawn.
    """

    transcript: Transcript
    weight: float


def _each_way(transcripts: Sequence[Transcript]) -> list[_Way]:
    """What code did in replays that ended: what it does next may follow answers and coins."""
    ways: list[_Way] = []
    for one in transcripts:
        if one.parting is not None:
            continue
        weight = math.exp(min(one.log_weight, 0.0))
        alike = (at for at, way in enumerate(ways) if same_steps(one, way.transcript))
        if (at := next(alike, None)) is None:
            ways.append(_Way(settled(one), weight))
        else:
            ways[at] = ways[at]._replace(weight=ways[at].weight + weight)
    return ways


def outcomes_above(
    each: Iterable[Transcript], claim: ReplayGuarantee, *, used: Set[Site] = frozenset()
) -> Iterator[str]:
    """Choices of which outcomes that were not drawn would cost more than a claim without delta.

    Args:
        each: The replays.
        claim: The claim.
        used: As in `losses`.
    """
    if not claim.is_pure:  # delta may cover rare outcomes
        return
    most: dict[str, float] = {}
    for one in each:
        for line in ledger(one, losses(one, used=used)):
            if line.law == CHOICE:
                cost = math.inf if line.epsilon is None else line.epsilon
                most[line.place] = max(cost, most.get(line.place, 0.0))
    for place, cost in most.items():
        if cost > _ROUNDED * claim.claimed:
            said = "without limit" if math.isinf(cost) else f"{cost:.3g} in all"
            yield (
                f"outcomes at {place} that were not drawn would cost more than the claim "
                f"({said}): ask for more replays (--replays)"
            )


def _is_one_above(each: Iterable[Transcript], claim: ReplayGuarantee, *, used: Set[Site]) -> bool:
    """Whether an outcome of a single choice, made once, would cost more than the claim."""
    return any(
        step.toss is None
        and any(largest_ratio(table) > _ROUNDED * claim.claimed for table in step.tables)
        for one in each
        for step in losses(one, used=used)
    )


def _cost_above(ways: Sequence[_Way], claim: Claim, *, used: Set[Site]) -> float | None:
    """What the steps of replays cost, if that is more than the claim.

    Together such replays must be more likely than delta, which may cover rare ones.
    """
    delta = claim.delta if isinstance(claim, PrivacyClaim) else 0.0
    limit = _ROUNDED * replay_guarantee(claim).claimed
    costs = [(_cost(one.transcript, claim, delta, used), one.weight) for one in ways]
    above = [one for one in costs if one[0] is not None and one[0] > limit]
    share = sum(weight for _, weight in above) / max(sum(weight for _, weight in costs), 1.0)
    return max(cost for cost, _ in above if cost) if share > delta else None


def _cost(transcript: Transcript, claim: Claim, delta: float, used: Set[Site]) -> float | None:
    """What the steps of one replay cost; None if it is not known."""
    if not delta:
        transcript = replace(transcript, choices=[])  # of several choices only a limit is known
    known = losses(transcript, used=used)
    selected = [one for one in known if one.how is How.SELECTED and abs(one.value) >= EXACT]
    if any(not one.tables or one.toss is not None for one in selected):
        return None
    if delta and chance_of_one_world(known) > delta:
        return math.inf
    is_pure = replay_guarantee(claim).is_pure
    if is_pure and any(one.epsilon is None for one in ledger(transcript, known)):
        return math.inf
    return computed(transcript, known, claim).value


def _verdict(found: ReplayFindings, *, public_coins: bool) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict and its reasons; a violation only if nothing could excuse it."""
    parted = found.parted
    if found.control is not None:
        return Verdict.INCONCLUSIVE, (
            f"the code is not repeatable, so nothing can be concluded: {found.control}",
        )
    if found.fixed:
        where = ", ".join(map(str, found.fixed))
        return Verdict.VIOLATION, (
            f"the noise at {where} has the same seed in every fit, so it is not secret",
        )
    nothing = _nothing_compared(found, public_coins=public_coins)
    if nothing is not None:
        return Verdict.INCONCLUSIVE, (nothing,)
    if not found.above:
        if parted is not None:
            return Verdict.INCONCLUSIVE, (
                f"{parted.meaning}; this is not proved to exceed the claim",
            )
        cut = next((one for one in found.transcripts if one.parting is not None), None)
        if cut is not None:
            return Verdict.INCONCLUSIVE, (
                f"what happens after {cut.unfollowed[-1].site} cannot be followed: "
                f"{cut.unfollowed[-1].why}",
            )
        if found.once_drawn is not None:
            return Verdict.INCONCLUSIVE, (found.once_drawn,)
        if found.open_use or found.redrawn or _lost(found):
            return Verdict.INCONCLUSIVE, found.doubts
        mixed = next((one.site for one in found.pilot.unfollowed if one.mixed), None)
        rare = f"a rare leak where noisy answers are combined with data ({mixed}) is not ruled out"
        return Verdict.CONSISTENT, (
            _consistent(found),
            *((rare,) if mixed is not None else ()),
            *(f"nothing is proved, because {one}" for one in found.doubts),
        )
    if found.doubts:
        return Verdict.INCONCLUSIVE, found.doubts
    reason = "the privacy loss of the noisy answers exceeds the claim"
    if found.pilot.tosses:
        reason = f"{reason}, given which other records are in the sub-samples"
    follows = next((step for step in found.pilot.noisy if not same(*step.scales)), None)
    if follows is not None:
        scales = " and ".join(f"{float(np.min(one)):.6g}" for one in follows.scales)
        what = f"the scale of the noise at {follows.site} depends on the data"
        if follows.rescaled is not None:
            what = f"noisy answers are multiplied at {follows.rescaled} by a value from the data"
            scales = f"noise of {scales}"
        reason = f"{reason}; {what}: {scales}"
    if parted is not None:
        where = "" if parted.place is None else f" ({parted.place})"
        reason = f"{parted.meaning}{where}, in {parted.replays} of {len(found.counted)} replays"
    if public_coins:
        reason = f"{reason}; all coins other than noise count as public, as requested"
    return Verdict.VIOLATION, (reason,)


def _nothing_compared(found: ReplayFindings, *, public_coins: bool) -> str | None:
    """Why there is no answer whose noise could be weighed; None if there is one."""
    parted = found.parted
    shown = public_coins and parted is not None and parted.kind == PartKind.ROWS
    is_lost = _lost(found)
    if parted is None and not (found.heard or found.pilot.follows_coins or is_lost):
        return (
            "no noise was observed, and with the same coins this record changed nothing; other "
            "coins may show more: run a black-box audit (`dpaudit audit`)"
        )
    if parted is None and found.heard and not any(map(_moves, found.transcripts)):
        return (
            "this record moved no noisy answer and, with the same coins, changed nothing, so there "
            "was nothing to compare: try more records (--targets) or run a black-box audit "
            "(`dpaudit audit`)"
        )
    if parted is not None and not found.heard and not shown:
        lost = next((one for each in found.transcripts for one in each.unfollowed), None)
        alone = min(_alone(found), default=None)
        heard = "no noise was observed"
        if lost is not None:
            heard = f"the noise of {lost.site} cannot be followed"
        elif alone is not None:
            heard = f"replay {_LOST_SIGHT.format(alone)}"
        return f"{heard}, and {parted.meaning}: run a black-box audit (`dpaudit audit`)"
    return None


def _alone(found: ReplayFindings) -> set[Site]:
    """Lines whose noise was used as a number before anything was added to it."""
    return {site for one in found.transcripts for site in one.alone}


def _lost(found: ReplayFindings) -> bool:
    """Whether a draw could not be followed that may hide a loss."""
    every = [one for transcript in found.transcripts for one in transcript.unfollowed]
    return any(not (one.unseen or one.mixed or one.public_coins) for one in every)


def _moves(transcript: Transcript) -> bool:
    """Whether the worlds differ anywhere, or coins of the record's own decide whether they do."""
    return (
        bool(transcript.tosses)
        or any(np.any(step.differs) for step in transcript.noisy)
        or any(not same(*step.table) for step in transcript.choices)
    )


def _consistent(found: ReplayFindings) -> str:
    if not found.heard:
        return "no noise was observed, and what coins decide does not depend on this record"
    if found.loose is not None:
        return (
            f"within the claim for the outcomes of the record's own coins at {found.loose} that "
            "were drawn; they decide more than membership in a sub-sample"
        )
    if found.pilot.tosses:
        return (
            "within the claim if the only secret coins are those that put records into sub-samples"
        )
    if found.pilot.coin_before is not None and found.coins_matter is None:
        return "within the claim even if all coins are public; other records are not ruled out"
    return (
        "leaks of other records or tables, or through draws that replay misses, are not ruled out"
    )


def _doubts_of_answers(found: ReplayFindings) -> Iterator[str]:
    """Answers that count although they may not be released, and randomness that is missed."""
    if found.open_use:
        open_sites = {
            str(one.site)
            for transcript in found.transcripts
            for one in losses(transcript, used=found.used)
            if one.how is How.ASSUMED and abs(one.value) > EXACT
        }
        yield (
            f"the use of the noisy answers at {', '.join(sorted(open_sites))} is not followed; "
            "if they are released, the loss exceeds the claim"
        )
    if found.unheard:
        yield (
            "what is released changes with the seed although all answers and coins are equal: "
            "replay misses some randomness, which may protect"
        )
    if found.redrawn:
        yield (
            f"{_redrawn(found)}, which is not released; the loss of the other answers does not "
            "exceed the claim"
        )
    if found.idle:
        yield (
            f"nothing changed with the answers at {', '.join(map(str, found.idle))}; "
            "the loss of the other answers does not exceed the claim"
        )
    if found.coarse:
        yield (
            f"the answers at {', '.join(map(str, found.coarse))} only select what follows, lie "
            "beyond a limit, or few of them are used, which replay does not follow; if all are "
            "released, the loss exceeds the claim"
        )


def doubts(found: ReplayFindings, *, public_coins: bool) -> Iterator[str]:
    """What could excuse a loss: with any of these nothing is proved."""
    parted = found.parted
    yield from _doubts_of_answers(found)
    if found.loose is not None:
        yield (
            f"the record's own coins at {found.loose} decide more than whether it is in a "
            "sub-sample, so what they hide is not followed"
        )
    if found.coins_matter in _alone(found):
        yield (
            f"replay {_LOST_SIGHT.format(found.coins_matter)}; what is released depends on it, and "
            "what it hides is not known"
        )
    elif found.coins_matter is not None:
        yield (
            f"what is released depends on coins ({found.coins_matter}) that may be secret"
            f"{'; if they are public, the loss exceeds the claim' if found.above else ''}"
        )
    if found.coins_untried is not None:
        yield (
            f"coins ({found.coins_untried}) that may be secret changed nothing when they were "
            "drawn again, but rarer ones could excuse a loss above so large a claim; if they are "
            "public, it is exceeded"
        )
    unknown = [
        one
        for transcript in found.transcripts
        for one in transcript.unfollowed
        if (not (one.unseen or one.mixed) or parted is not None)
        and not (public_coins and one.public_coins)
    ]
    uncoupled = next((one.uncoupled for one in found.transcripts if one.uncoupled), None)
    if uncoupled is not None and not public_coins:
        yield f"the number of coins at {uncoupled} depends on the record, and they may be secret"
    if unknown:
        yield f"a draw at {unknown[0].site} cannot be followed: {unknown[0].why}"
    if parted is None:
        return
    kind = PartKind(parted.kind)
    if any(one.tosses for one in found.transcripts):
        yield (
            f"{parted.meaning}, but other records' coins could hide it: run a black-box audit "
            "(`dpaudit audit`)"
        )
    if kind is PartKind.FAILURE:
        yield f"the generator fails in only one world: {parted.inside}; {parted.outside}"
    elif kind is PartKind.ROWS and found.pilot.first_coin is not None and not public_coins:
        yield (
            "the synthetic rows differ although all noisy answers are equal, but coins could hide "
            "it: run a black-box audit (`dpaudit audit`)"
        )
    elif kind not in _SURE and kind is not PartKind.ROWS:
        yield (
            f"{parted.meaning} ({parted.place}), and what that costs is not known: run a "
            "black-box audit (`dpaudit audit`)"
        )


def concluded(
    setting: ReplaySetting, found: ReplayFindings, judged: ProvedByReplays, seconds: float
) -> ReplayRecord:
    """The record of a replay."""
    spec, pilot, proved = setting.spec, found.pilot, judged.proved
    pilot_losses = losses(pilot, used=found.used)
    verdict, reasons = found.verdict, found.reasons
    if found.fixed and verdict is Verdict.VIOLATION:
        proved = np.inf  # anyone who knows the code knows the noise
    if found.identified is not None:
        proved, verdict = found.identified.proved, Verdict.VIOLATION
        reasons = (
            f"the synthetic rows alone identified the world in {found.identified.guesses} of "
            f"{found.identified.guesses} fits",
            *reasons,
        )
    cost = _computed(setting, found, pilot_losses, proved)
    return ReplayRecord(
        verdict=verdict,
        reasons=reasons,
        generator=spec.generator.name,
        parameters=spec.generator.parameters,
        source=spec.table.source,
        schema_inferred=spec.table.schema.inferred,
        target=_named(spec.target),
        claim=spec.claim,
        proved=None if np.isinf(proved) else proved,
        computed=cost.value,
        computed_note=cost.note,
        confidence=spec.settings.confidence,
        replays=len(found.counted),
        fits=found.fits,
        detectable=detectable(
            setting.guarantee,
            replays=len(found.counted),
            confidence=setting.confidence.counted,
            rng=streams(0)("power", 0),
        )
        if found.heard
        else None,
        ledger=ledger(pilot, pilot_losses),
        parting=parting_found(found.transcripts),
        not_followed=_not_followed(pilot, pilot_losses),
        fixed_seeds=tuple(str(site) for site in found.fixed),
        rows_differ=found.rows_differ,
        guesses=None if found.identified is None else found.identified.guesses,
        public_coins=setting.public_coins,
        features=found.features,
        seed=spec.settings.seed,
        seconds=seconds,
        seconds_a_fit=float(np.median(found.seconds)),
        versions=spec.versions,
        reproduce=spec.command_of("replay", _own_words(setting, len(found.counted))),
        date=today(),
    )


def _named(target: Target) -> str:
    """The target as an option's value: its row if it was searched for in the table."""
    is_named = ":" in target.choice or target.row is None
    return target.choice if is_named else f"row:{target.row}"


def _own_words(setting: ReplaySetting, replays: int) -> list[str]:
    words = ["--replays", str(replays), *(["--public-coins"] if setting.public_coins else [])]
    for sampler in setting.samplers:
        words += ["--sampler", sampler_text(sampler)]
    return [*setting.spec.pair_options, *words]


def _computed(
    setting: ReplaySetting,
    found: ReplayFindings,
    pilot_losses: Sequence[StepLoss],
    proved: float,
) -> Computed:
    """What the steps cost in the pilot, or in the costliest replay if more than that is proved.

    A value below what is proved comes with the reason.
    """
    claim, used = setting.spec.claim, found.used
    if found.retried:
        return Computed(None, _redrawn(found))
    cost = computed(found.pilot, pilot_losses, claim)
    if cost.value is None or proved <= cost.value * (1 + EXACT):
        return cost
    known = [settled(one) for one in found.counted if one.parting is None]
    values = [computed(one, losses(one, used=used), claim).value for one in known]
    most = max([cost.value, *(one for one in values if one is not None)])
    if proved <= most * (1 + EXACT):
        return Computed(most)
    return Computed(most, f"below the bound, because {_left_out(setting, found)}")


def _redrawn(found: ReplayFindings) -> str:
    where = ", ".join(sorted({str(site) for _, site, _ in found.retried}))
    return f"draws at {where} may be rejected and made again"


def _left_out(setting: ReplaySetting, found: ReplayFindings) -> str:
    """Why the observed steps cost less than is proved."""
    if found.identified is not None:
        return "the synthetic rows reveal more than these steps"
    if found.fixed:
        return "noise from a fixed seed is not secret"
    if any(one.parting is not None for one in found.counted):
        return "the worlds diverge in some replays"
    every = [losses(one, used=found.used) for one in found.counted]
    if any(one.how is How.SELECTED and one.largest is None for own in every for one in own):
        return "selections count by the outcomes that were drawn"
    confidence = setting.spec.settings.confidence
    return f"a bound may exceed the truth in {percent(1 - confidence)} of replays"


def parting_found(transcripts: Sequence[Transcript]) -> PartingFound | None:
    """The first difference of the worlds, if there is one.

    Args:
        transcripts: The pilot, then the counted replays.
    """
    partings = [one.parting for one in transcripts if one.parting is not None]
    first = next((one for one in partings if one.is_difference), None)
    if first is None:
        return None
    places = [None if site is None else str(site) for site in first.sites]
    return PartingFound(
        kind=first.kind.value,
        place=places[0] or places[1],
        other_place=places[1] if places[1] != places[0] else None,
        inside=first.values[0],
        outside=first.values[1],
        meaning=MEANING[first.kind],
        replays=sum(one.parting is not None for one in transcripts[1:]),
    )


def _not_followed(pilot: Transcript, found: Sequence[Any]) -> tuple[NotFollowed, ...]:
    listed = [NotFollowed(str(one.site), one.why) for one in pilot.unfollowed]
    listed += [
        NotFollowed(
            str(one.site), "noisy answers whose use was not observed; they count as released"
        )
        for one in found
        if one.how is How.ASSUMED and one.value != 0
    ]
    return tuple(dict.fromkeys(listed))
