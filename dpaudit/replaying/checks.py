"""Further replays that check the others: sub-samples, excuses, rejected draws, influence.

Each repeats a replay with one change and asks whether anything else changes with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.as_numbers import NoisyNumbers, Places
from dpaudit.replaying.findings import ProvedByReplays, ReplayFindings, proved_by, questions_of
from dpaudit.replaying.guarantee import EXACT, ReplayGuarantee, replay_guarantee
from dpaudit.replaying.influence import (
    Rung,
    Suspect,
    answers_without,
    differs,
    has_influence,
    ladders,
    near_answers,
    other_answers,
    other_bits,
    repeats,
    same_steps,
    suspects,
    was_rejected,
)
from dpaudit.replaying.judge import DrawPlan
from dpaudit.replaying.lockstep import (
    NUDGE,
    OPPOSITE,
    Order,
    Played,
)
from dpaudit.replaying.loss import NOTHING_SHOWN, How, ShownAnswers, losses
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
_LOST: Final = 4000
"""Number of the first fit with other noise where its use was not observed."""
_FITS_OF_LOST: Final = 4
"""Number of such fits, because a limit on what is released may hide a change in one."""
_ELEMENTS: Final = 4
"""Numbers of one line that are checked one by one."""
_MOST_ELEMENTS: Final = 12
"""The same if some of them fail."""
_MANY_ROWS: Final = 50_000
"""Enough synthetic rows to show a small influence that a few rounded rows hide."""
_OTHER_COINS: Final = 2
"""Redraws of the coins to see whether what is released depends on them, if nothing is refuted."""
_MOST_COINS: Final = 60
"""The most redraws of them; a large claim asks for more, and then nothing is refuted."""


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
    checks = other_orders(transcript, order, count, setting.places, rng)
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
    far = tuple(pairwise(_APART)) if _is_pure(setting) else ()
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


def _is_pure(setting: ReplaySetting) -> bool:
    """Whether the rarest numbers count; with a delta, code may never show one that is far off."""
    return replay_guarantee(setting.spec.claim).is_pure


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

        def shows(rung: Rung) -> bool:
            return _shows(setting, Order(1, **rung._asdict()), found)

        if _size_of_steps(pilot, keys, shows) is not None:
            used.add(site)
    return frozenset(used)


def _size_of_steps(
    transcript: Transcript, keys: Set[Question], shows: Callable[[Rung], bool]
) -> float | None:
    """The size of the first steps of some answers that all show; None if there are none."""
    every = ladders(transcript, keys)
    return next((one.size for one in every if all(map(shows, one.rungs))), None)


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
        if same_steps(transcript, _again(setting, found, changed, what).transcript):
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

    Changes the answers that raise a loss, one question at a time, largest loss first; of replays
    that exceed the claim, those first whose noise was not widened, because more of their numbers
    show. Ends when the answers with an influence exceed the claim by themselves, or when `_CHANGED`
    were changed; if all of these have an influence, the whole result stands.
    """
    shown, bits = NOTHING_SHOWN, dict[Suspect, int]()
    tried: set[frozenset[Question]] = set()
    idle: list[Site] = []
    coarse: list[Site] = []
    transcripts = [one.transcript for one in counted]
    proved = proved_by(setting, found, plan, transcripts, shown=shown)
    rng = setting.worlds.rng("other answers", 0)
    checks = _Checks(setting, found, tuple(zip(orders, counted, strict=True)), rng)

    def with_(one: Suspect, places: Places) -> ShownAnswers:
        own = {key: places[key] for key in one.keys & places.keys()}
        return ShownAnswers(shown.keys | one.keys, {**shown.places, **own})

    sizes, claimed = np.abs(whole.replays.losses), replay_guarantee(setting.spec.claim).claimed
    later = [order.widened != 1.0 for order in orders] | (sizes <= claimed)
    for place in np.lexsort((-sizes, later)).tolist():
        raising = suspects(losses(transcripts[place], used=found.used))
        fresh = [one for one in raising if one.keys not in tried and not one.keys & found.retried]
        fresh = [] if proved.above else fresh[: _CHANGED - len(tried)]
        tried |= {one.keys for one in fresh}
        left = list(fresh)
        for one in checks.influential(place, fresh):
            left.remove(one)

            def suffice(places: Places, one: Suspect = one) -> bool:
                now = with_(one, places)
                return proved_by(setting, found, plan, transcripts, shown=now).above

            places = checks.counted_places(place, one, suffice) if one.as_numbers else {}
            if places is None:
                coarse.append(one.site)
                continue
            shown = with_(one, places)
            if not one.as_numbers:
                bits[one] = place
            if one.keys & places.keys():
                coarse.append(one.site)
            proved = proved_by(setting, found, plan, transcripts, shown=shown)
            if proved.above:
                break
        idle += [one.site for one in left]
    if not checks.are_apart(bits):
        shown = shown._replace(keys=shown.keys.difference(*(one.keys for one in bits)))
        coarse += [one.site for one in bits]
        proved = proved_by(setting, found, plan, transcripts, shown=shown)
    if not proved.above and not (idle or coarse):
        return whole
    found.shown = shown
    found.idle = () if proved.above else tuple(dict.fromkeys(idle))
    found.coarse = () if proved.above else tuple(dict.fromkeys(coarse))
    return proved


class _Checks:
    """Repeats counted replays with other answers, to see how these are used."""

    def __init__(
        self,
        setting: ReplaySetting,
        found: ReplayFindings,
        replays: tuple[tuple[Order, Played], ...],
        rng: np.random.Generator,
    ) -> None:
        self._setting, self._found, self._rng = setting, found, rng
        self._replays = replays
        self._known: dict[Site, Places | None] = {}
        self._without_steps: set[Site] = set()

    def influential(self, place: int, every: Sequence[Suspect]) -> Iterator[Suspect]:
        """The answers of a replay with which anything changes, as soon as each one shows.

        All are changed in one way, then those left in the next. If the first one, whose loss is the
        largest, does not show, or none in one way, or each way was tried, many more rows are made.

        Args:
            place: The replay to repeat.
            every: The answers.
        """
        order, played = self._replays[place]
        same_answers, left = order._replace(given=played.transcript.given), list(every)
        few = self._setting.rows
        for rows in sorted({few, max(few, _MANY_ROWS)}):
            if left and rows > few:
                what = "again, with more rows"
                played = _again(self._setting, self._found, same_answers, what, rows=rows)
            asked = tuple(left)
            pure, transcript = _is_pure(self._setting), played.transcript
            ways = (other_answers(transcript, one.keys, self._rng, pure=pure) for one in asked)
            for answers in zip(*ways, strict=True):
                before = len(left)
                for one, given in zip(asked, answers, strict=True):
                    if one not in left:
                        continue
                    what = f"again, with other answers at {one.site}"
                    changed = order._replace(given=given)
                    again = _again(self._setting, self._found, changed, what, rows=rows)
                    if has_influence(played, again):
                        left.remove(one)
                        yield one
                    elif rows < _MANY_ROWS and len(left) == len(asked):
                        break
                if not left or (rows < _MANY_ROWS and len(left) == before):
                    break

    def are_apart(self, bits: Mapping[Suspect, int]) -> bool:
        """Whether bits that each have an influence show together: no majority or count of them.

        Args:
            bits: The answers that count by what they are compared with, and the replay of each.
        """
        if not bits:
            return True
        order, played = self._replays[min(bits.values())]
        keys = frozenset[Question]().union(*(one.keys for one in bits))
        # one bit of fewer ones exceeds the claim by itself
        claimed = replay_guarantee(self._setting.spec.claim).claimed
        fewest = sum(one.loss for one in bits) / max(claimed, EXACT)
        given = other_bits(played.transcript, keys, self._rng, fewest=fewest)
        if given is None:
            return True
        what = "again, with several other outcomes"
        again = _again(self._setting, self._found, order._replace(given=given), what)
        return has_influence(played, again)

    def counted_places(
        self, place: int, one: Suspect, suffice: Callable[[Places], bool]
    ) -> Places | None:
        """The numbers that count of answers that are used as numbers, rounded or not.

        Both worlds have the same table and, except for these answers, the same answers. A slight
        change shows that numbers are used. If it does not, they may be rounded, so all numbers of
        an answer are moved far up, farther in one world than in the other. No maximum, order or
        comparison with a limit changes with that. If this shows nothing either, a limit may hide
        it, and they are moved step by step.

        Args:
            place: The replay to repeat.
            one: The answers.
            suffice: Whether some numbers are enough to exceed the claim.

        Returns:
            The numbers that count of answers of which others do not, by question; None if the
            answers are not used as numbers, or none of these counts by itself.
        """
        transcript = self._replays[place][1].transcript
        size, nudged = NUDGE, {"nudged": one.keys}
        near = near_answers(transcript, one.keys, self._rng)
        if not any(self._moves(place, one.site, given=given, **nudged) for given in near):
            found = self._size_that_shows(place, one)
            if found is None or not self._shows_here(place, one, found):
                return None
            size = found
        numbers = NoisyNumbers.together_with(transcript, next(iter(one.keys)), one.site)
        key = next((lever for lever in numbers.keys if lever in one.keys), None)
        if key is None:
            return {}  # a sum over an answer: it counts as one number
        if numbers.are_sums and self._use(place, one.site, [numbers.exchanged()]):
            return {}  # sums of which each has its place, so that none is chosen by its size
        if not numbers.are_plain:
            alone = [numbers.alone(one, size) for one in numbers.costly()[:_ELEMENTS]]
            given = transcript.given
            shows = all(self._moves(place, one.site, given=given, nudges=each) for each in alone)
            return {} if shows else None
        if one.site not in self._known and self._is_share(place, one, key, size):
            return None
        if self._known.get(one.site) != {}:
            self._known[one.site] = self._apart(place, one.site, numbers, size, suffice)
        known = self._known[one.site]
        own = {key: known[key]} if known and key in known else None
        return own if known else known

    def _size_that_shows(self, place: int, one: Suspect) -> float | None:
        """How many scales rounded answers must move to show; None if they are not numbers."""
        transcript = self._replays[place][1].transcript
        if _is_pure(self._setting) and all(
            self._moves(place, one.site, given=transcript.given, apart=apart, nudged=one.keys)
            for apart in pairwise(_APART)
        ):
            return _APART[0]
        if one.site in self._without_steps:
            return None

        def shows(rung: Rung) -> bool:
            return self._moves(place, one.site, **rung._asdict())

        size = _size_of_steps(transcript, one.keys, shows)
        if size is None:
            self._without_steps.add(one.site)
        return None if size is None else 2.0 * size

    def _shows_here(self, place: int, one: Suspect, size: float) -> bool:
        """Whether rounded answers show where they are, if one beyond a limit would show less."""
        transcript = self._replays[place][1].transcript
        steps = [(key, step) for step in transcript.noisy for key in step.keys & one.keys]
        if all(step.laws[0].even_tails for _, step in steps):
            return True
        moves = [
            {key: np.full(step.answer.shape, far * step.laws[0].width) for key, step in steps}
            for far in (size, -size)
        ]
        return any(
            self._moves(place, one.site, given=given, nudges=each)
            for given in near_answers(transcript, one.keys, self._rng)
            for each in moves
        )

    def _is_share(self, place: int, one: Suspect, key: Question, size: float) -> bool:
        """Whether another number makes up for a change of the costliest one of an answer."""
        transcript = self._replays[place][1].transcript
        line = NoisyNumbers.of_line(transcript, one.site)
        pairs = line.partners(key)
        if not pairs:
            return False
        alone = line.alone(pairs[0][0], size)
        for given in near_answers(transcript, one.keys, self._rng):
            if self._moves(place, one.site, given=given, nudges=alone):  # no limit hides it here
                changes = (line.balanced(pair, size, self._rng) for pair in pairs)
                return not all(
                    self._moves(place, one.site, given=given, nudges=each) for each in changes
                )
        return False

    def _apart(
        self,
        place: int,
        site: Site,
        numbers: NoisyNumbers,
        size: float,
        suffice: Callable[[Places], bool],
    ) -> Places | None:
        """As `counted_places`, for numbers that a line drew; see `as_numbers`."""
        costly, every = numbers.costly(), list(range(len(numbers)))
        changes = [
            numbers.balanced(some, size, self._rng)
            for some in ([every, costly] if 1 < len(costly) < len(every) else [every])
            if len(some) > 1
        ]
        changes += [numbers.equal(size)] if costly else []
        transcript = self._replays[place][1].transcript
        line = NoisyNumbers.of_line(transcript, site)
        if len(line) > len(numbers):
            changes.append(line.balanced(list(range(len(line))), size, self._rng))
        given = transcript.given
        if not all(self._moves(place, site, given=given, nudges=each) for each in changes):
            return None
        passed: list[int] = []
        failed: list[int] = []
        first = costly[:_ELEMENTS]
        for number in [*first, *(one for one in numbers.ranked() if one not in first)]:
            tried = len(passed) + len(failed)
            if tried >= len(first) and (not failed or tried >= _MOST_ELEMENTS):
                break
            if tried >= len(first) and passed and suffice(numbers.places_of(passed)):
                break
            counts = self._counts(place, site, numbers, number, size)
            (passed if counts else failed).append(number)
        if not failed:
            return {}
        alone = passed and not self._use(place, site, numbers.moved_far(failed, self._rng))
        if not alone or not self._recur(place, site, numbers.places_of(passed), size):
            return None
        return numbers.places_of(passed)

    def _counts(
        self, place: int, site: Site, numbers: NoisyNumbers, number: int, size: float
    ) -> bool:
        """Whether a change of a number shows above, below and amid the others."""
        alone = numbers.alone(number, size)
        return all(
            any(self._moves(place, site, given=given, nudges=alone) for given in every)
            for every in numbers.positions(number, self._rng)
        )

    def _use(self, place: int, site: Site, every: Iterable[Mapping[Question, Any]]) -> bool:
        """Whether anything changes with other answers."""
        order, played = self._replays[place]
        for given in every:
            what = f"again, with other answers at {site}"
            again = _again(self._setting, self._found, order._replace(given=given), what)
            if has_influence(played, again):
                return True
        return False

    def _recur(self, place: int, site: Site, places: Places, size: float) -> bool:
        """Whether the same numbers show in another replay."""
        other = next((at for at in range(len(self._replays)) if at != place), None)
        if other is None:
            return False
        transcript = self._replays[other][1].transcript
        numbers = NoisyNumbers.together_with(transcript, next(iter(places)), site)
        own = [at for at in range(len(numbers)) if numbers.is_among(at, places)]
        return len(own) == sum(map(len, places.values())) and all(
            self._moves(other, site, given=transcript.given, nudges=numbers.alone(at, size))
            for at in own
        )

    def _moves(self, place: int, site: Site, **change: Any) -> bool:
        """Whether the worlds of a replay of one table differ if answers differ between them."""
        what = f"again: are the answers at {site} numbers"
        order = self._replays[place][0]._replace(**change)
        return differs(_again(self._setting, self._found, order, what, alike=World.IN))


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
