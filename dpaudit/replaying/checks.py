"""Further replays that check the others: sub-samples, excuses, rejected draws, influence.

Each repeats a replay with one change and asks whether anything else changes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.findings import ProvedByReplays, ReplayFindings, proved_by, questions_of
from dpaudit.replaying.influence import (
    Suspect,
    answers_without,
    costly_elements,
    differs,
    has_influence,
    near_answers,
    other_answers,
    repeats,
    same_steps,
    suspects,
    was_rejected,
)
from dpaudit.replaying.judge import DrawPlan
from dpaudit.replaying.lockstep import (
    OPPOSITE,
    Order,
    Played,
)
from dpaudit.replaying.loss import How, losses
from dpaudit.replaying.setting import FIRST, ReplaySetting
from dpaudit.replaying.subsamples import (
    follows_coins,
    leaves_no_trace,
    other_orders,
)
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import Question, Site, Transcript

_CHANGED: Final = 10
"""Largest number of answers that are changed to see whether they influence what is released."""
_SEVERAL: Final = 4
"""Replays in which a loop that rejects draws would ask unequally often."""
_APART: Final = (100.0, 200.0, 400.0)
"""Scales by which answers are moved to see whether they are rounded or selected from."""
_MANY_ROWS: Final = 50_000
"""Enough synthetic rows to show a small influence that a few rounded rows hide."""
_OTHER_COINS: Final = 2
"""Number of redraws of the coins to see whether the released answers depend on them."""


def piloted(
    setting: ReplaySetting,
) -> ReplayFindings:
    """Runs the pilot and checks whether the target's own coins decide its sub-sample membership.

    Either outcome of a comparison may mean membership, so both are tried.
    """
    fits, loose = 0, None
    for kept in (True, False):
        order = Order(1, kept=kept)
        pilot = setting.play(order).transcript
        fits += 2
        if not pilot.tosses:
            return ReplayFindings(settled(pilot), kept=kept, fits=fits, seconds=[pilot.seconds])
        found = ReplayFindings(settled(pilot), kept=kept, fits=fits, seconds=[pilot.seconds])
        if _is_subsample(setting, order, pilot, found):
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
    checks = other_orders(transcript, order, count, setting.place, rng)
    for changed in checks:
        setting.say("other outcomes of the records' own coins")
        found.fits += 2
        again = setting.play(changed).transcript
        followed = leaves_no_trace(again) if changed.rows else follows_coins(transcript, again)
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
    comparison to notice. If the worlds then differ, the answers are used as numbers.
    """
    noisy = {step.site for step in pilot.noisy}
    seen = losses(pilot)
    left = {one.site for one in seen if one.how is not How.RELEASED and one.value != 0} & noisy
    if not left or not _moves(setting, 500, frozenset(left), found):
        return frozenset()
    if len(left) == 1:
        return frozenset(left)
    return frozenset(
        site
        for number, site in enumerate(sorted(left))
        if _moves(setting, 501 + number, frozenset({site}), found)
    )


def _moves(
    setting: ReplaySetting,
    number: int,
    sites: frozenset[Site],
    found: ReplayFindings,
) -> bool:
    """Whether anything changes with the answers of some lines."""
    setting.say(f"how the answers of {', '.join(map(str, sorted(sites)))} are used")
    transcript = setting.play(Order(number, nudged=sites), alike=World.IN).transcript
    found.fits += 2
    return differs(transcript)


def look_for_excuses(
    setting: ReplaySetting,
    order: Order,
    transcript: Transcript,
    found: ReplayFindings,
) -> None:
    """Checks whether randomness other than noise may excuse the findings of this replay.

    Runs the replay again with the same answers, and with other coins (first all reversed, then
    random) or another seed. If all values before noise, all probabilities and the divergence stay
    the same, coins hide nothing there, and no randomness has been missed.
    """
    changes = [order._replace(seed=2000 + order.number)]
    # Noise whose use was not observed is drawn with the coins, and is never public.
    secret = next((one.site for one in transcript.unfollowed if one.unseen), None)
    if secret is None and not setting.public_coins:
        secret = transcript.coin_before
    if secret is not None:
        changes += [
            order._replace(coins=coins) for coins in (OPPOSITE, *range(2, 2 + _OTHER_COINS))
        ]
    for changed in changes:
        what = f"again, with {'other coins' if changed.coins else 'another seed'}"
        if same_steps(transcript, _again(setting, found, changed, what).transcript):
            continue
        if changed.coins:
            found.coins_matter = secret
        else:
            found.unheard = True
        return
    if transcript.tosses:
        _is_subsample(setting, order, transcript, found)


def retried(
    setting: ReplaySetting,
    orders: Sequence[Order],
    counted: Sequence[Played],
    found: ReplayFindings,
) -> frozenset[Question]:
    """Questions whose answers may be rejected, so that they show nothing.

    All of a line if one answer was; of others those repeated ones that were not tried. A line that
    asks equally often in every one of several replays rejects nothing.
    """
    transcripts = [found.pilot, *(one.transcript for one in counted)]
    asked = [Counter(key[:2] for key in one.given) for one in transcripts]
    few = len(transcripts) < _SEVERAL
    varying = {
        line for line in set().union(*asked) if few or len({each[line] for each in asked}) > 1
    }
    if not varying:
        return frozenset()
    candidates = [
        (one, order, played)
        for order, played in zip(orders, counted, strict=True)
        for one in repeats(played.transcript, losses(played.transcript, used=found.used), varying)
    ]
    candidates.sort(key=lambda candidate: -candidate[0].loss)
    lines: set[tuple[str, Site]] = set()
    for one, order, played in candidates[:_CHANGED]:
        if one.key[:2] not in lines:
            without = order._replace(given=answers_without(played.transcript, one))
            what = f"again, with one draw at {one.key[1]} less"
            if was_rejected(played, _again(setting, found, without, what), one):
                lines.add(one.key[:2])
    untried = {one.key for one, _, _ in candidates[_CHANGED:]}
    every = questions_of(transcripts)
    return frozenset(key for key in every if key[:2] in lines or key in untried)


def resting(
    setting: ReplaySetting,
    found: ReplayFindings,
    plan: DrawPlan,
    orders: Sequence[Order],
    counted: Sequence[Played],
    whole: ProvedByReplays,
) -> ProvedByReplays:
    """What is proved by the answers that influence what is released.

    Changes the answers that raise a loss, one question at a time, largest loss first. Ends when
    those with an influence exceed the claim by themselves, or when `_CHANGED` were changed; if all
    of these have an influence, the whole result stands.
    """
    shown: frozenset[Question] = frozenset()
    tried: set[frozenset[Question]] = set()
    idle: list[Site] = []
    coarse: list[Site] = []
    transcripts = [one.transcript for one in counted]
    judged = proved_by(setting, found, plan, transcripts, shown=shown)
    rng = setting.worlds.rng("other answers", 0)
    for place in np.argsort(-np.abs(whole.replays.losses), kind="stable"):
        for one in suspects(losses(transcripts[place], used=found.used)):
            if judged.above or len(tried) >= _CHANGED:
                break
            if one.keys in tried or one.keys & found.retried:
                continue
            tried.add(one.keys)
            if not _has_influence(setting, orders[place], counted[place], one, rng, found):
                idle.append(one.site)
            elif one.as_numbers and not _are_numbers(
                setting, orders[place], counted[place], one, rng, found
            ):
                coarse.append(one.site)
            else:
                shown |= one.keys
                judged = proved_by(setting, found, plan, transcripts, shown=shown)
    if not judged.above and not (idle or coarse):
        return whole
    found.idle = () if judged.above else tuple(dict.fromkeys(idle))
    found.coarse = () if judged.above else tuple(dict.fromkeys(coarse))
    return judged


def _are_numbers(
    setting: ReplaySetting,
    order: Order,
    played: Played,
    one: Suspect,
    rng: np.random.Generator,
    found: ReplayFindings,
) -> bool:
    """Whether answers are used as numbers, rounded or not, and not only selected from.

    Both worlds have the same table and, except for these answers, the same answers. A slight change
    shows that numbers are used. If it does not, they may be rounded, so all numbers of an answer
    are moved far up, farther in one world than in the other. No maximum, order or comparison with a
    limit changes with that. If the loss rests on several numbers of an answer, each is changed.
    """
    nudged = order._replace(given=played.transcript.given, nudged=one.keys)

    def moves(changed: Order) -> bool:
        what = f"again: are the answers at {one.site} numbers"
        return differs(_again(setting, found, changed, what, alike=World.IN).transcript)

    def show(changed: Order) -> bool:
        near = near_answers(played.transcript, one.keys, rng)
        return any(moves(changed._replace(given=given)) for given in near)

    if not show(nudged):
        return all(moves(nudged._replace(apart=apart)) for apart in pairwise(_APART))
    return all(
        show(nudged._replace(nudged=frozenset({key}), elements=frozenset({place})))
        for key, place in costly_elements(played.transcript, one.keys)
    )


def _has_influence(
    setting: ReplaySetting,
    order: Order,
    played: Played,
    one: Suspect,
    rng: np.random.Generator,
    found: ReplayFindings,
) -> bool:
    """Whether anything changes with some answers; if not, tries again with many more rows."""
    same_answers = order._replace(given=played.transcript.given)
    for rows in (setting.rows, max(setting.rows, _MANY_ROWS)):
        if rows > setting.rows:
            found.fits += 2
            played = setting.play(same_answers, rows=rows)
        for given in other_answers(played.transcript, one.keys, rng):
            changed = order._replace(given=given)
            what = f"again, with other answers at {one.site}"
            if has_influence(played, _again(setting, found, changed, what, rows=rows)):
                return True
    return False


def _again(
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
