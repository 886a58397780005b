"""Further replays that check the others: sub-samples, excuses, rejected draws.

Each repeats a replay with one change and asks whether anything else changes with it.

The loss of a mixture over the records' own coins rests on two conditions: with its coin "out" the
target leaves no trace, so world "in" behaves as world "out"; and a step depends only on the latest
coin before it. Both are checked by repeating a replay's answers with other coins. Also, the values
of other records whose coins are "out" must not matter: otherwise their coins might be noise, which
protects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.guarantee import ReplayGuarantee
from dpaudit.replaying.influence import (
    answers_without,
    are_alike,
    differs,
    repeats,
    same_choices,
    same_steps,
    size_of_steps,
    was_rejected,
)
from dpaudit.replaying.judge import questions_of
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.lockstep import OPPOSITE, Order, Played, same
from dpaudit.replaying.loss import How, losses
from dpaudit.replaying.setting import FIRST, ReplayFindings, ReplaySetting
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import Question, Site, Transcript, joined

CHANGED: Final = 10
"""Largest number of answers that are changed to see whether they influence what is released."""
_SEVERAL: Final = 4
"""Replays in which a loop that rejects draws would ask unequally often."""
APART: Final = (100.0, 200.0, 400.0)
"""Scales by which answers are moved to see whether they are rounded or selected from."""
_LOST: Final = 4000
"""Number of the first fit with other noise where its use was not observed."""
_FITS_OF_LOST: Final = 4
"""Number of such fits, because a limit on what is released may hide a change in one."""
_OTHER_COINS: Final = 2
"""Redraws of the coins to see whether what is released depends on them, if nothing is refuted."""
_MOST_COINS: Final = 60
"""The most redraws of them; a large claim asks for more, and then nothing is refuted."""
_LONG: Final = 61
"""Length of a random pattern of coins, which then repeats."""


def piloted(setting: ReplaySetting) -> ReplayFindings:
    """Runs the pilot and checks whether the target's own coins decide its sub-sample membership.

    Either outcome of a comparison may mean membership, so both are tried.
    """
    fits, loose = 0, None
    for kept in (True, False):
        order = Order(1, kept=kept)
        pilot = setting.play(order).transcript
        fits += 2
        found = ReplayFindings(settled(pilot), kept=kept, fits=fits, seconds=[pilot.seconds])
        if not pilot.tosses or _is_subsample(setting, order, pilot, found):
            return found
        fits, loose = found.fits, found.loose
    pilot = setting.play(Order(1, kept=None)).transcript
    return ReplayFindings(settled(pilot), loose=loose, fits=fits + 2, seconds=[pilot.seconds])


def _is_subsample(
    setting: ReplaySetting,
    order: Order,
    transcript: Transcript,
    found: ReplayFindings,
) -> bool:
    """Whether the records' coins decide only membership in a sub-sample."""
    rng = setting.worlds.rng("falls", order.number)
    count = len(setting.spec.game.table(World.IN, 0))
    checks = other_orders(transcript, order, count, setting.places, rng)
    for changed in checks:
        setting.say("other outcomes of the records' own coins")
        found.fits += 2
        other = setting.play(changed).transcript
        followed = leaves_no_trace(other) if changed.rows else follows_coins(transcript, other)
        if not followed:
            found.loose = transcript.tosses[0].site
            return False
    return True


def used_lines(
    setting: ReplaySetting,
    pilot: Transcript,
    found: ReplayFindings,
) -> frozenset[Site]:
    """Lines whose answers are used as numbers, although no such use was observed.

    Both worlds have the same table, and one gets answers that are changed too little for a
    comparison to notice. If the worlds then differ, the answers are used as numbers. Rounding may
    hide a slight change, so those left are moved far up, farther in one world than in the other:
    with that no maximum, order or comparison with a limit changes. A selection may cost nothing
    here because its outcome was certain, so what moved is tried whatever it costs.
    """
    seen = [one for one in losses(pilot) if one.how is not How.RELEASED]
    left = {
        step.site
        for step in pilot.noisy
        if np.any(step.differs) and any(step.keys & one.keys for one in seen)
    }
    used: set[Site] = set()
    # with a delta, code may never show a number that is far off
    far = tuple(pairwise(APART)) if setting.guarantee.is_pure else ()
    for first, apart in ((500, (None,)), (600, far)):
        tried = left - used
        if not (tried and apart) or not _move(setting, first, tried, apart, found):
            continue
        used |= {
            site
            for number, site in enumerate(sorted(tried))
            if len(tried) == 1 or _move(setting, first + 1 + number, {site}, apart, found)
        }
    return frozenset(used)


def limited_lines(
    setting: ReplaySetting, pilot: Transcript, found: ReplayFindings
) -> frozenset[Site]:
    """Lines whose answers are used as numbers, which rounding and a limit have hidden so far.

    They are moved step by step; this takes more fits than `used_lines`.
    """
    used: set[Site] = set()
    for site in sorted({one.site for one in losses(pilot) if one.how is How.ASSUMED}):
        setting.say(f"step by step: how the answers of {site} are used")
        keys = frozenset().union(*(step.keys for step in pilot.noisy if step.site == site))

        def shows(given: Mapping[Question, Any], nudges: Mapping[Question, FloatArray]) -> bool:
            return _shows(setting, Order(1, given=given, nudges=nudges), found)

        if size_of_steps(pilot, keys, shows) is not None:
            used.add(site)
    return frozenset(used)


def _shows(setting: ReplaySetting, order: Order, found: ReplayFindings) -> bool:
    """Whether the worlds of a replay of one table differ."""
    found.fits += 2
    return differs(setting.play(order, alike=World.IN))


def _move(
    setting: ReplaySetting,
    number: int,
    sites: Set[Site],
    changes: Sequence[tuple[float, float] | None],
    found: ReplayFindings,
) -> bool:
    """Whether each of some changes of the answers of some lines changes anything else."""
    setting.say(f"how the answers of {', '.join(map(str, sorted(sites)))} are used")
    orders = (Order(number, nudged=frozenset(sites), apart=apart) for apart in changes)
    return all(_shows(setting, order, found) for order in orders)


def redraws_of_coins(guarantee: ReplayGuarantee, confidence: float) -> float:
    """Redraws in which coins that could excuse a difference would change something.

    Args:
        guarantee: The claim's.
        confidence: Probability with which they do.
    """
    chance = guarantee.rarest_excuse
    return math.inf if chance <= 0 else math.ceil(math.log(1.0 - confidence) / math.log1p(-chance))


def look_for_excuses(
    setting: ReplaySetting,
    order: Order,
    transcript: Transcript,
    found: ReplayFindings,
    *,
    redraws: float = _OTHER_COINS,
) -> None:
    """Checks whether randomness other than noise may excuse the findings of this replay.

    Runs the replay again with the same answers, and with other coins (first all reversed, then
    random) or another seed. If all values before noise, all probabilities and the divergence stay
    the same, coins hide nothing there, and no randomness has been missed. Noise whose use was not
    observed must change nothing, because it may be added to an answer after replay lost sight of
    both.

    Args:
        setting: The common inputs.
        order: The replay.
        transcript: What happened in it.
        found: What is known so far; changed.
        redraws: How often coins are drawn again.
    """
    changes = [order._replace(seed=2000 + order.number)]
    # Noise whose use was not observed is drawn with the coins, and is never public.
    secret = next((one.site for one in transcript.unfollowed if one.unseen), None)
    if secret is None and not setting.public_coins:
        secret = transcript.coin_before or transcript.draw_before
    if secret is not None:
        random = range(2, 2 + int(min(redraws, _MOST_COINS)))
        changes += [order._replace(coins=coins) for coins in (OPPOSITE, *random)]
    for changed in changes:
        what = f"again, with {'other coins' if changed.coins else 'another seed'}"
        if same_steps(transcript, again(setting, found, changed, what).transcript):
            continue
        if changed.coins:
            found.coins_matter = secret
        else:
            found.unheard = True
        return
    if redraws > _MOST_COINS:
        found.coins_untried = secret
    lost = frozenset(one.site for one in transcript.unfollowed if one.unseen)
    if lost:
        for at in range(_FITS_OF_LOST):
            setting.say("other noise where its use was not observed")
            found.fits += 2
            changed = Order(_LOST + at, kept=order.kept, redrawn=lost)
            if differs(setting.play(changed, alike=World.IN)):
                found.coins_matter = min(lost)
                return
    if transcript.tosses:
        _is_subsample(setting, order, transcript, found)


def retried(
    setting: ReplaySetting, found: ReplayFindings, counted: Sequence[tuple[Order, Played]]
) -> frozenset[Question]:
    """Questions whose answers may be rejected, so that they show nothing.

    All of a line if one answer was; of others those repeated ones that were not tried. A line that
    asks equally often in every one of several replays rejects nothing.
    """
    asked = [Counter(key[:2] for key in one.given) for one in found.transcripts]
    few = len(asked) < _SEVERAL
    varying = {
        line for line in set().union(*asked) if few or len({each[line] for each in asked}) > 1
    }
    if not varying:
        return frozenset()
    candidates = [
        (one, order, played)
        for order, played in counted
        for one in repeats(played.transcript, losses(played.transcript, used=found.used), varying)
    ]
    candidates.sort(key=lambda candidate: -candidate[0].loss)
    lines: set[tuple[str, Site]] = set()
    for one, order, played in candidates[:CHANGED]:
        if one.key[:2] not in lines:
            without = order._replace(given=answers_without(played.transcript, one))
            what = f"again, with one draw at {one.key[1]} less"
            if was_rejected(played, again(setting, found, without, what), one):
                lines.add(one.key[:2])
    untried = {one.key for one, _, _ in candidates[CHANGED:]}
    every = questions_of(found.transcripts)
    return frozenset(key for key in every if key[:2] in lines or key in untried)


def again(
    setting: ReplaySetting,
    found: ReplayFindings,
    order: Order,
    what: str,
    *,
    alike: World | None = None,
    rows: int | None = None,
) -> Played:
    """A counted replay once more, with a change."""
    setting.say(f"replay {order.number - FIRST + 1} {what}")
    found.fits += 2
    return setting.play(order, alike=alike, rows=rows)


def other_orders(
    transcript: Transcript,
    order: Order,
    count: int,
    target: Sequence[int],
    rng: np.random.Generator,
) -> Iterator[Order]:
    """Replays that must not differ further if coins decide membership only.

    First the target's coins are all "out", then each outcome follows each other, then they are
    random. At last the coins of one half of the other records are "out", then those of the other.

    Args:
        transcript: A replay in which the target's coins are all "in".
        order: How it was drawn.
        count: Number of records.
        target: The places of the target.
        rng: Draws patterns and halves.
    """
    tosses = len(transcript.tosses)
    patterns: list[tuple[bool, ...]] = [(False,)]
    if tosses > 1:
        patterns += [(True, False), (False, True)]
    if tosses > 2:
        patterns.append(tuple(map(bool, rng.integers(0, 2, size=_LONG))))
    for falls in patterns:
        if transcript.parting is None or not any(falls):
            yield order._replace(falls=falls, given=transcript.given)
    others = rng.permutation(np.delete(np.arange(count), target)).tolist()
    for half in (others[::2], others[1::2]):
        if half:
            yield order._replace(falls=(False,), rows=tuple(sorted(half)))


def follows_coins(first: Transcript, second: Transcript) -> bool:
    """Whether the same steps move if the target's coin is "in", and none otherwise.

    Args:
        first: A replay with all of the target's coins "in".
        second: The same answers with other coins.
    """
    shared = len(first.noisy)
    if second.parting is not None or len(second.noisy) < shared:
        return False
    if first.parting is None and not _alike_in_use(first, second):
        return False
    for one, two in zip(first.noisy, second.noisy[:shared], strict=True):
        inside = 0 if two.toss is None or second.tosses[two.toss].inside else 1
        if one.site != two.site or one.toss != two.toss:
            return False
        for world, place in ((0, inside), (1, 1)):
            if not same(one.before[place], two.before[world]):
                return False
            if not are_alike(one.laws[place], two.laws[world]):
                return False
    if any(not same(*step.before) and step.toss is not None for step in second.noisy[shared:]):
        return False
    expected = [one for one in first.choices if one.toss is None or second.tosses[one.toss].inside]
    return same_choices(expected, second.choices)


def leaves_no_trace(transcript: Transcript) -> bool:
    """Whether both worlds did the same, with a record's coins all "out"."""
    return (
        bool(transcript.tosses)
        and transcript.parting is None
        and not transcript.choices
        and all(same(*step.before) and are_alike(*step.laws) for step in transcript.noisy)
    )


def _alike_in_use(first: Transcript, second: Transcript) -> bool:
    """Whether both have equally many answers, with the same uses."""
    released = [np.sort(joined(one.released)) for one in (first, second)]
    return (
        len(first.noisy) == len(second.noisy)
        and len(first.tosses) == len(second.tosses)
        and np.array_equal(released[0], released[1])
        and len(first.selections) == len(second.selections)
        and all(
            one.site == two.site and np.array_equal(one.outcome, two.outcome)
            for one, two in zip(first.selections, second.selections, strict=True)
        )
    )
