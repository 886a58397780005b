"""Replays a generator: the control, the pilot, the counted replays, and the verdict."""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings, audited_table
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.auditing.two_worlds.worst_case_search.spec import candidate_audits
from dpaudit.errors import ReplayError, SchemaError, SettingsError
from dpaudit.external import worker
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import WorkerStart
from dpaudit.formatting import percent
from dpaudit.game.payload import search_path
from dpaudit.game.target import Target, exposing_first
from dpaudit.model.choices import WorstCase
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.plugins.samplers import check_sampler, text_of
from dpaudit.replaying import local_world
from dpaudit.replaying.features import MovedFeature, moved_features
from dpaudit.replaying.guarantee import (
    EXACT,
    EpsilonReplays,
    ReplayGuarantee,
    Replays,
    replay_guarantee,
)
from dpaudit.replaying.identified import WorldsIdentified, worlds_identified
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
from dpaudit.replaying.judge import DrawPlan, detectable, draw_plan, measured
from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.ledger import Computed, LedgerLine, computed, ledger
from dpaudit.replaying.lockstep import (
    OPPOSITE,
    WORLDS,
    Order,
    Played,
    Worlds,
    opened_worlds,
    same,
)
from dpaudit.replaying.loss import How, StepLoss, losses, shifts_across
from dpaudit.replaying.record import NotFollowed, PartingFound, ReplayRecord
from dpaudit.replaying.subsamples import (
    follows_coins,
    leaves_no_trace,
    other_orders,
    with_other_rows,
)
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import NoisyStep, PartKind, Question, Site, Transcript
from dpaudit.results.verdict import Verdict
from dpaudit.seeds import Stream
from dpaudit.versions import today

REPLAYS: Final = 10
"""Counted replays, two fits each."""
_ROUNDED: Final = 1.01
"""Observed steps may cost this many times the claim, because claims are rounded."""
_FIRST: Final = 10
"""Number of the first counted replay; the control, the pilot and its repeat come before it."""
_HANDED: Final = 8
"""Pairs of synthetic tables used to find features that the record moves."""
_CHECKED: Final = 2
"""Replays with the largest losses are run again to look for excuses for a violation."""
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
_OF_ROWS: Final = 0.1
"""Share of the error probability for the game of the rows, if both need a share."""
_MEANING: Final = {
    PartKind.ROWS: "the synthetic rows differ although all noisy answers and coins are equal",
    PartKind.STEPS: "what the code does next depends on the data, without noise",
    PartKind.SHAPES: "the number of noisy values depends on the data",
    PartKind.OPERANDS: "a value without noise is combined with noisy answers",
    PartKind.DRAWS: "a sampler's parameters depend on the data although all answers are equal",
    PartKind.REUSED: "noise is used a second time, so that a difference of two answers has none",
    PartKind.FAILURE: "the generator fails in only one world",
}
_SURE: Final = frozenset({PartKind.OPERANDS, PartKind.REUSED})
"""Divergences that are visible in the released output.

Steps, shapes and samplers that depend on the data may be compensated elsewhere: noise for empty
cells in a separate loop, a threshold within delta.
"""


@dataclass
class _Found:
    """The state after some of the replays."""

    pilot: Transcript
    control: str | None = None
    used: frozenset[Site] = frozenset()
    coins_matter: Site | None = None
    unheard: bool = False
    fixed: tuple[Site, ...] = ()
    once_drawn: str | None = None
    fits: int = 0
    seconds: list[float] = field(default_factory=list)
    rows_differ: bool = False
    kept: bool | None = None
    loose: Site | None = None
    idle: tuple[Site, ...] = ()
    coarse: tuple[Site, ...] = ()
    retried: frozenset[Question] = frozenset()
    redrawn: bool = False
    heard: bool = False
    open_use: bool = False
    identified: WorldsIdentified | None = None
    doubts: tuple[str, ...] = ()
    verdict: Verdict = Verdict.INCONCLUSIVE
    reasons: tuple[str, ...] = ()
    features: tuple[MovedFeature, ...] | None = None


class _Setting(NamedTuple):
    """The common inputs of every replay of a target."""

    worlds: Worlds
    spec: TwoWorldSpec
    public_coins: bool = False
    samplers: Sequence[Mapping[str, Any]] = ()
    hand_over: bool = False

    @property
    def rows(self) -> int:
        """Synthetic rows asked of both worlds."""
        return self.spec.game.view.n_rows


def replay(
    generator: object,
    data: pd.DataFrame | str | Path | None = None,
    *,
    schema: Schema | str | Path | None = None,
    replays: int = REPLAYS,
    targets: int = 1,
    samplers: Sequence[Mapping[str, Any]] = (),
    public_coins: bool = False,
    hand_over: bool = False,
    on_progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> ReplayRecord:
    """Runs unmodified code in both worlds with the same noisy answers, and bounds its privacy loss.

    Args:
        generator: As for `dpaudit.audit`; it must run in Python.
        data: As for `dpaudit.audit`.
        schema: As for `dpaudit.audit`.
        replays: Counted replays, two fits each; three more come before them.
        targets: Records to try with two fits each; the replays of the worst are counted.
        samplers: The user's own samplers: mappings with `function` ("module:name"), `law`, and the
            names of its parameters for `scale` and, if it has them, `loc` and `shape`.
        public_coins: Whether the claim's proof relies on noise alone, as for PATE and for DP-SGD
            without sampling: protection by other coins is then no excuse.
        hand_over: Whether a replay that is not consistent searches for the features of synthetic
            rows that the record moves, for a later audit: 32 more fits.
        on_progress: Called with a line before each replay.
        settings: Claim, target, parameters, rows, confidence and seed, as for `dpaudit.audit`.

    Returns:
        What was found.

    Raises:
        InputError: If anything is unusable, before any training.
        ReplayError: If the generator's draws cannot be intercepted, or its process ends.
    """
    records = replays_of(
        generator,
        data,
        [int(settings.pop("seed", 0))],
        schema=schema,
        replays=replays,
        targets=targets,
        samplers=samplers,
        public_coins=public_coins,
        hand_over=hand_over,
        on_progress=on_progress,
        **settings,
    )
    return next(iter(records))


def replays_of(
    generator: object,
    data: pd.DataFrame | str | Path | None,
    seeds: Sequence[int],
    *,
    schema: Schema | str | Path | None = None,
    replays: int = REPLAYS,
    targets: int = 1,
    samplers: Sequence[Mapping[str, Any]] = (),
    public_coins: bool = False,
    hand_over: bool = False,
    on_progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Iterator[ReplayRecord]:
    """As `replay`, once for each seed, in the same two processes.

    Args:
        generator: As for `replay`.
        data: As for `replay`.
        seeds: Roots of the random streams.
        schema: As for `replay`.
        replays: As for `replay`.
        targets: As for `replay`.
        samplers: As for `replay`.
        public_coins: As for `replay`.
        hand_over: As for `replay`.
        on_progress: As for `replay`.
        settings: As for `replay`.

    Yields:
        The record for each seed.

    Raises:
        InputError: As `replay`.
        ReplayError: As `replay`.
    """
    for name, value in (("replays", replays), ("targets", targets)):
        if not isinstance(value, int) or value < 1:
            raise SettingsError(f"`{name}` must be a whole number of at least 1, got {value!r}")
    for one in samplers:
        check_sampler(one)
    table = audited_table(data, schema, audit_settings(**settings))
    say = on_progress or (lambda line: None)
    first, *_ = specs = list(_candidates(generator, table, settings, targets))
    replay_guarantee(first.claim)  # refused before a process starts
    listed = json.dumps([dict(one) for one in samplers])
    with started_as(first) as start, opened_worlds(start, samplers=listed) as worlds:
        for seed in seeds:
            started = time.monotonic()
            worlds.rng = _streams(seed)
            seeded = [replace(spec, settings=replace(spec.settings, seed=seed)) for spec in specs]
            spec = seeded[0] if len(seeded) == 1 else _worst(worlds, seeded, say)
            setting = _Setting(worlds, spec, public_coins, samplers, hand_over)
            yield _replayed(setting, replays, say, started)


def _streams(seed: int) -> Callable[[str, int], np.random.Generator]:
    """Every stream of a replay, by its purpose and number."""
    return lambda role, number: Stream(seed, "replay", role, number).rng()


def _candidates(
    generator: object, table: Table, settings: Mapping[str, Any], targets: int
) -> Iterator[TwoWorldSpec]:
    if targets == 1:
        named = audit_settings(**settings)
        if named.game.worst_case is WorstCase.SEARCH:
            yield from candidate_audits(generator, table, named)
        else:
            yield build_two_worlds(generator, table, named)
        return
    pair = next((one for one in ("worst_case", "neighbours_file") if settings.get(one)), None)
    if pair is not None:
        raise SettingsError(f"`{pair}` names the record itself: leave out `targets`")
    if table.schema.unit is not None:
        raise SettingsError("`targets` tries single records, not units: leave out `targets`")
    for row in exposing_first(table.data, table.schema)[:targets]:
        given = {**settings, "target": f"row:{int(row)}"}
        yield build_two_worlds(generator, table, audit_settings(**given))


@contextmanager
def started_as(spec: TwoWorldSpec) -> Iterator[WorkerStart]:
    """Prepares the start of a process that fits the generator of an audit.

    Args:
        spec: The audit.

    Yields:
        The start; a generator of this environment lies in a file until the context ends.
    """
    named = spec.generator.generator
    if isinstance(named, WorkerGenerator):
        yield named.start
        return
    with tempfile.TemporaryDirectory(prefix="dpaudit-replay-") as folder:
        path = Path(folder) / "generator.pickle"
        blob = pickled((spec.table.schema, named), name="the generator")
        path.touch(mode=0o600)
        places = [os.path.abspath(place) for place in (*search_path(), os.curdir)]
        path.write_bytes(pickle.dumps((places, blob)))
        yield WorkerStart(
            (
                sys.executable,
                worker.__file__,
                f"{local_world.__file__}:{local_world.Unpickled.__name__}",
            ),
            spec.table.schema,
            json.dumps({"path": str(path)}),
            None,
        )


def _play(
    setting: _Setting, order: Order, *, alike: World | None = None, rows: int | None = None
) -> Played:
    """One replay; on request with one world's table in both, or another number of rows.

    If the order has rows, both worlds have the same table except for those rows.
    """
    game = setting.spec.game
    both = World.IN if order.rows else alike
    tables = {world: game.table(both or world, 0) for world in World}
    if order.rows:
        rng = setting.worlds.rng("other records", order.number)
        tables[World.OUT] = with_other_rows(tables[World.OUT], order.rows, rng)
    return setting.worlds.play(
        tables, rows=rows or setting.rows, order=order, places=_places_of(setting)
    )


def _worst(
    worlds: Worlds, specs: Sequence[TwoWorldSpec], say: Callable[[str], None]
) -> TwoWorldSpec:
    """The candidate with the largest difference between the worlds."""
    best: tuple[float, int] | None = None
    for number, spec in enumerate(specs):
        say(f"candidate {number + 1} of {len(specs)}: {spec.target.choice}")
        played = _play(_Setting(worlds, spec), Order(1000 + number))
        found = losses(played.transcript)
        lines = ledger(played.transcript, found)
        size = sum(map(_size, lines))
        if played.transcript.parting is not None and played.transcript.parting.is_difference:
            size = float("inf")
        if best is None or size > best[0]:
            best = size, number
    assert best is not None
    return specs[best[1]]


def _size(line: LedgerLine) -> float:
    """How much a line of one replay costs, to compare records.

    The loss of a selection is that of the outcome drawn, and another outcome may cost more: what
    its answers moved, in scales of the noise, is comparable.
    """
    cost = (line.mu or 0.0) ** 2 + (line.epsilon or 0.0)
    if line.counts_as == How.SELECTED and line.scale:
        return max(cost, line.linf / line.scale)
    return cost


def _replayed(
    setting: _Setting, replays: int, say: Callable[[str], None], started: float
) -> ReplayRecord:
    spec = setting.spec
    guarantee = replay_guarantee(spec.claim)
    confidence = spec.settings.confidence
    say("control: the same table in both worlds")
    control = _play(setting, Order(0), alike=World.IN)
    if control.failure is not None:
        raise ReplayError(f"the generator fails: {control.failure}")
    say("pilot")
    found = _piloted(setting, say)
    found.control = _control_said(control)
    again = _play(setting, Order(2, kept=found.kept, draws_record=True))
    found.fits += 4
    found.seconds.append(again.transcript.seconds)
    found.fixed = _fixed(found.pilot, settled(again.transcript))
    found.once_drawn = _once_drawn(found.pilot, again.transcript)
    found.used = _used(setting, found.pilot, found, say)
    plan = draw_plan(
        found.pilot,
        guarantee,
        used=found.used,
        replays=replays,
        confidence=_shared(guarantee, confidence).counted,
        rng=setting.worlds.rng("plan", 0),
    )
    plays: list[Played] = []
    orders = [
        Order(
            _FIRST + number,
            plan.base_of(number),
            plan.tilt,
            plan.widened_in(number),
            steering=plan.steering,
            kept=found.kept,
            along=plan.along,
        )
        for number in range(replays)
    ]
    for order in orders:
        say(f"replay {order.number - _FIRST + 1} of {replays}")
        played = _play(setting, order)
        found.seconds.append(played.transcript.seconds)
        found.fits += 2
        found.rows_differ |= _differ(played)
        plays.append(played)
    counted = [one.transcript for one in plays]
    found.retried = _retried(setting, orders, plays, found, say)
    judged = _judged(setting, found, plan, counted)
    if not judged.above:
        found.redrawn = (
            bool(found.retried)
            and _judged(setting, found, plan, counted, shown=_asked(counted)).above
        )
        found.open_use = (
            not found.redrawn and _judged(setting, found, plan, counted, all_released=True).above
        )
    found.heard = any(one.noisy or one.choices for one in (found.pilot, *counted))
    if judged.proved > 0 and found.control is None and (found.heard or setting.public_coins):
        largest = np.argsort([-one for one in judged.replays.losses], kind="stable")
        for place in largest[: _CHECKED if judged.above else 1]:
            if found.coins_matter is None and found.loose is None and not found.unheard:
                _excuses(setting, orders[place], counted[place], found, say)
    above, parted = judged.above, _parting(found.pilot, counted)
    _decide(setting, found, counted, above=above, parted=parted)
    if found.verdict is Verdict.VIOLATION and not found.fixed:
        judged = _resting(setting, found, plan, orders, plays, judged, say)
        _decide(setting, found, counted, above=above, parted=parted)
    if found.verdict is Verdict.INCONCLUSIVE and found.control is None and parted is not None:
        found.identified = _identified(setting, guarantee, found, say)
    unproved = found.doubts or found.control is not None or (judged.above and parted is not None)
    if found.verdict is not Verdict.VIOLATION and unproved:
        judged = judged._replace(proved=0.0)
    partings = [one.parting for one in (found.pilot, *counted) if one.parting is not None]
    differ = any(one.is_difference for one in partings)
    if setting.hand_over and found.control is None and (above or differ):
        found.features = _moved(setting, found, say)
    return _concluded(setting, found, judged, counted, time.monotonic() - started)


def _piloted(setting: _Setting, say: Callable[[str], None]) -> _Found:
    """Runs the pilot and checks whether the target's own coins decide its sub-sample membership.

    Either outcome of a comparison may mean membership, so both are tried.
    """
    fits, loose = 0, None
    for kept in (True, False):
        order = Order(1, kept=kept)
        pilot = _play(setting, order).transcript
        fits += 2
        if not pilot.tosses:
            return _Found(settled(pilot), kept=kept, fits=fits, seconds=[pilot.seconds])
        found = _Found(settled(pilot), kept=kept, fits=fits, seconds=[pilot.seconds])
        if _is_subsample(setting, order, pilot, found, say):
            return found
        fits, loose = found.fits, found.loose
    pilot = _play(setting, Order(1, kept=None)).transcript
    return _Found(settled(pilot), loose=loose, fits=fits + 2, seconds=[pilot.seconds])


def _is_subsample(
    setting: _Setting,
    order: Order,
    transcript: Transcript,
    found: _Found,
    say: Callable[[str], None],
) -> bool:
    """Whether the records' coins decide only membership in a sub-sample."""
    rng = setting.worlds.rng("falls", order.number)
    count = len(setting.spec.game.table(World.IN, 0))
    checks = other_orders(transcript, order, count, _places_of(setting), rng)
    for changed in checks:
        say("other outcomes of the records' own coins")
        found.fits += 2
        again = _play(setting, changed).transcript
        followed = leaves_no_trace(again) if changed.rows else follows_coins(transcript, again)
        if not followed:
            found.loose = transcript.tosses[0].site
            return False
    return True


def _named(target: Target) -> str:
    """The target as an option's value: its row if it was searched for in the table."""
    is_named = ":" in target.choice or target.row is None
    return target.choice if is_named else f"row:{target.row}"


def _places_of(setting: _Setting) -> tuple[int, ...]:
    """The places of the target in its table: one, or those of the rows of a unit."""
    return next(rows for rows in setting.spec.game.missing.values() if rows)


def _identified(
    setting: _Setting, guarantee: ReplayGuarantee, found: _Found, say: Callable[[str], None]
) -> WorldsIdentified | None:
    """Whether the rows identify the world, if nothing else decides."""
    if not isinstance(guarantee, EpsilonReplays):
        return None
    game, first = setting.spec.game, found.fits

    def fitted(world: World) -> pd.DataFrame | None:
        say(f"rows of separate fit {found.fits - first + 1}")
        found.fits += 1
        return setting.worlds.fitted(game.table(world, 0), rows=setting.rows, number=found.fits)

    return worlds_identified(
        fitted,
        setting.spec.table.schema,
        setting.worlds.rng("told", 0),
        epsilon=guarantee.claimed,
        delta=guarantee.delta,
        confidence=_shared(guarantee, setting.spec.settings.confidence).rows,
    )


class _Shared(NamedTuple):
    """The confidence that each of two ways to refute a claim needs for joint validity.

    Attributes:
        counted: The counted replays.
        rows: The rows, if they are used.
    """

    counted: float
    rows: float


def _shared(guarantee: ReplayGuarantee, confidence: float) -> _Shared:
    """Divides the error probability (Bonferroni); exact losses need none."""
    if not isinstance(guarantee, EpsilonReplays) or guarantee.delta == 0:
        return _Shared(confidence, confidence)  # the rows are not used, or losses are exact
    error = 1.0 - confidence
    return _Shared(1.0 - (1.0 - _OF_ROWS) * error, 1.0 - _OF_ROWS * error)


def _moved(
    setting: _Setting, found: _Found, say: Callable[[str], None]
) -> tuple[MovedFeature, ...]:
    """The features that the record moves, in pairs of tables made with the same random numbers.

    Each world is fitted separately, to its end: after a divergence neither would have a table.
    """
    pairs, schema = [], setting.spec.table.schema
    for number in range(_HANDED):
        say(f"synthetic tables with and without the record: {number + 1} of {_HANDED}")
        plays = [_play(setting, Order(3000 + number), alike=world) for world in WORLDS]
        found.fits += 4
        made = [table for played in plays if (table := played.tables[0]) is not None]
        if len(made) == 2:
            with suppress(SchemaError):  # words among numbers: audits attack those separately
                pairs.append((schema.canonical(made[0]), schema.canonical(made[1])))
    return moved_features(pairs, setting.spec.game.view)


def _control_said(control: Played) -> str | None:
    """Why the control failed; None if both runs of the same world agree."""
    transcript = control.transcript
    if transcript.parting is not None and transcript.parting.is_difference:
        return f"two fits of the same table differ: {_MEANING[transcript.parting.kind]}"
    moved = [
        step.site for step in transcript.noisy if not same(step.before.inside, step.before.outside)
    ]
    if moved or transcript.choices:
        where = moved[0] if moved else transcript.choices[0].site
        return f"two fits of the same table differ at {where}"
    return "two fits of the same table give different rows" if _differ(control) else None


def _once_drawn(pilot: Transcript, drawn: Transcript) -> str | None:
    """What differs only if the record is among those that coins draw, without noise."""
    parting = _parting(drawn, ()) if pilot.parting is None else None
    if parting is None:
        return None
    return f"if coins draw this record, {parting.meaning}; what that costs is not known"


def _differ(played: Played) -> bool:
    first, second = played.tables
    return first is not None and second is not None and not first.equals(second)


def _fixed(first: Transcript, second: Transcript) -> tuple[Site, ...]:
    """Lines whose noise has the same seed in two fits that got different seeds."""
    seeds = [
        {
            (step.site, step.seed)
            for step in one.noisy
            if step.seed is not None and np.any(step.before.shift != 0)
        }
        for one in (first, second)
    ]
    return tuple(dict.fromkeys(site for site, _ in seeds[0] & seeds[1]))


def _used(
    setting: _Setting, pilot: Transcript, found: _Found, say: Callable[[str], None]
) -> frozenset[Site]:
    """Lines whose answers are used as numbers, although no such use was observed.

    Both worlds have the same table, and one gets answers that are changed too little for a
    comparison to notice. If the worlds then differ, the answers are used as numbers.
    """
    noisy = {step.site for step in pilot.noisy}
    seen = losses(pilot)
    left = {one.site for one in seen if one.how is not How.RELEASED and one.value != 0} & noisy
    if not left or not _moves(setting, 500, frozenset(left), found, say):
        return frozenset()
    if len(left) == 1:
        return frozenset(left)
    return frozenset(
        site
        for number, site in enumerate(sorted(left))
        if _moves(setting, 501 + number, frozenset({site}), found, say)
    )


def _moves(
    setting: _Setting,
    number: int,
    sites: frozenset[Site],
    found: _Found,
    say: Callable[[str], None],
) -> bool:
    """Whether anything changes with the answers of some lines."""
    say(f"how the answers of {', '.join(map(str, sorted(sites)))} are used")
    transcript = _play(setting, Order(number, nudged=sites), alike=World.IN).transcript
    found.fits += 2
    return differs(transcript)


def _excuses(
    setting: _Setting,
    order: Order,
    transcript: Transcript,
    found: _Found,
    say: Callable[[str], None],
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
        what = "other coins" if changed.coins else "another seed"
        say(f"replay {order.number - _FIRST + 1} again, with {what}")
        found.fits += 2
        if same_steps(transcript, _play(setting, changed).transcript):
            continue
        if changed.coins:
            found.coins_matter = secret
        else:
            found.unheard = True
        return
    if transcript.tosses:
        _is_subsample(setting, order, transcript, found, say)


def _retried(
    setting: _Setting,
    orders: Sequence[Order],
    counted: Sequence[Played],
    found: _Found,
    say: Callable[[str], None],
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
            say(f"replay {order.number - _FIRST + 1} again, with one draw at {one.key[1]} less")
            found.fits += 2
            without = order._replace(given=answers_without(played.transcript, one))
            if was_rejected(played, _play(setting, without), one):
                lines.add(one.key[:2])
    untried = {one.key for one, _, _ in candidates[_CHANGED:]}
    every = _asked(transcripts)
    return frozenset(key for key in every if key[:2] in lines or key in untried)


def _resting(
    setting: _Setting,
    found: _Found,
    plan: DrawPlan,
    orders: Sequence[Order],
    counted: Sequence[Played],
    whole: _Judged,
    say: Callable[[str], None],
) -> _Judged:
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
    judged = _judged(setting, found, plan, transcripts, shown=shown)
    rng = setting.worlds.rng("other answers", 0)
    for place in np.argsort(-np.abs(whole.replays.losses), kind="stable"):
        for one in suspects(losses(transcripts[place], used=found.used)):
            if judged.above or len(tried) >= _CHANGED:
                break
            if one.keys in tried or one.keys & found.retried:
                continue
            tried.add(one.keys)
            if not _has_influence(setting, orders[place], counted[place], one, rng, found, say):
                idle.append(one.site)
            elif one.as_numbers and not _are_numbers(
                setting, orders[place], counted[place], one, rng, found, say
            ):
                coarse.append(one.site)
            else:
                shown |= one.keys
                judged = _judged(setting, found, plan, transcripts, shown=shown)
    if not judged.above and not (idle or coarse):
        return whole
    found.idle = () if judged.above else tuple(dict.fromkeys(idle))
    found.coarse = () if judged.above else tuple(dict.fromkeys(coarse))
    return judged


def _are_numbers(
    setting: _Setting,
    order: Order,
    played: Played,
    one: Suspect,
    rng: np.random.Generator,
    found: _Found,
    say: Callable[[str], None],
) -> bool:
    """Whether answers are used as numbers, rounded or not, and not only selected from.

    Both worlds have the same table and, except for these answers, the same answers. A slight change
    shows that numbers are used. If it does not, they may be rounded, so all numbers of an answer
    are moved far up, farther in one world than in the other. No maximum, order or comparison with a
    limit changes with that. If the loss rests on several numbers of an answer, each is changed.
    """
    nudged = order._replace(given=played.transcript.given, nudged=one.keys)

    def moves(changed: Order) -> bool:
        say(f"replay {order.number - _FIRST + 1} again: are the answers at {one.site} numbers")
        found.fits += 2
        return differs(_play(setting, changed, alike=World.IN).transcript)

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
    setting: _Setting,
    order: Order,
    played: Played,
    one: Suspect,
    rng: np.random.Generator,
    found: _Found,
    say: Callable[[str], None],
) -> bool:
    """Whether anything changes with some answers; if not, tries again with many more rows."""
    same_answers = order._replace(given=played.transcript.given)
    for rows in (setting.rows, max(setting.rows, _MANY_ROWS)):
        if rows > setting.rows:
            found.fits += 2
            played = _play(setting, same_answers, rows=rows)
        for given in other_answers(played.transcript, one.keys, rng):
            say(f"replay {order.number - _FIRST + 1} again, with other answers at {one.site}")
            found.fits += 2
            if has_influence(played, _play(setting, order._replace(given=given), rows=rows)):
                return True
    return False


class _Judged(NamedTuple):
    """What the counted replays prove.

    Attributes:
        replays: Their losses and weights.
        proved: The lower limit.
        above: Whether that exceeds the claim.
    """

    replays: Replays
    proved: float
    above: bool


def _judged(
    setting: _Setting,
    found: _Found,
    plan: DrawPlan,
    counted: Sequence[Transcript],
    *,
    shown: frozenset[Question] | None = None,
    all_released: bool = False,
) -> _Judged:
    guarantee = replay_guarantee(setting.spec.claim)
    if shown is None and found.retried:
        shown = _asked(counted) - found.retried
    measures = [
        measured(
            one,
            plan.base_of(number),
            used=found.used,
            shown=shown,
            all_released=all_released,
        )
        for number, one in enumerate(counted)
    ]
    replays = Replays(
        np.asarray([one for one, _ in measures]), np.asarray([one for _, one in measures])
    )
    if isinstance(guarantee, EpsilonReplays) and guarantee.delta == 0:
        proved = float(np.max(np.abs(replays.losses)))  # in either order
    else:
        counts = _shared(guarantee, setting.spec.settings.confidence).counted
        proved = guarantee.proved(replays, at=plan.at, confidence=counts)
    return _Judged(replays, proved, proved > guarantee.claimed * (1.0 + EXACT))


def _asked(counted: Sequence[Transcript]) -> frozenset[Question]:
    return frozenset(key for one in counted for key in one.given)


def _concluded(
    setting: _Setting,
    found: _Found,
    judged: _Judged,
    counted: Sequence[Transcript],
    seconds: float,
) -> ReplayRecord:
    spec, pilot, proved = setting.spec, found.pilot, judged.proved
    guarantee = replay_guarantee(spec.claim)
    confidence = spec.settings.confidence
    pilot_losses = losses(pilot, used=found.used)
    parting = _parting(pilot, counted)
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
    cost = _computed(setting, found, pilot_losses, counted, proved)
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
        confidence=confidence,
        replays=len(counted),
        fits=found.fits,
        detectable=detectable(
            guarantee,
            replays=len(counted),
            confidence=_shared(guarantee, confidence).counted,
            rng=_streams(0)("power", 0),
        )
        if found.heard
        else None,
        ledger=ledger(pilot, pilot_losses),
        parting=parting,
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
        reproduce=spec.command_of("replay", _own_words(setting, len(counted))),
        date=today(),
    )


def _own_words(setting: _Setting, replays: int) -> list[str]:
    words = ["--replays", str(replays), *(["--public-coins"] if setting.public_coins else [])]
    for sampler in setting.samplers:
        words += ["--sampler", text_of(sampler)]
    return [*setting.spec.pair_options, *words]


def _computed(
    setting: _Setting,
    found: _Found,
    pilot_losses: Sequence[StepLoss],
    counted: Sequence[Transcript],
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
    known = [settled(one) for one in counted if one.parting is None]
    values = [computed(one, losses(one, used=used), claim).value for one in known]
    most = max([cost.value, *(one for one in values if one is not None)])
    if proved <= most * (1 + EXACT):
        return Computed(most)
    return Computed(most, f"below the bound, because {_left_out(setting, found, counted)}")


def _redrawn(found: _Found) -> str:
    where = ", ".join(sorted({str(site) for _, site, _ in found.retried}))
    return f"draws at {where} may be rejected and made again"


def _left_out(setting: _Setting, found: _Found, counted: Sequence[Transcript]) -> str:
    """Why the observed steps cost less than is proved."""
    if found.identified is not None:
        return "the synthetic rows reveal more than these steps"
    if found.fixed:
        return "noise from a fixed seed is not secret"
    if any(one.parting is not None for one in counted):
        return "the worlds diverge in some replays"
    every = [losses(one, used=found.used) for one in counted]
    if any(one.how is How.SELECTED and one.largest is None for own in every for one in own):
        return "selections count by the outcomes that were drawn"
    confidence = setting.spec.settings.confidence
    return f"a bound may exceed the truth in {percent(1 - confidence)} of replays"


def _parting(pilot: Transcript, counted: Sequence[Transcript]) -> PartingFound | None:
    partings = [one.parting for one in (pilot, *counted) if one.parting is not None]
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
        meaning=_MEANING[first.kind],
        replays=sum(one.parting is not None for one in counted),
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


def _decide(
    setting: _Setting,
    found: _Found,
    counted: Sequence[Transcript],
    *,
    above: bool,
    parted: PartingFound | None,
) -> None:
    """Sets the verdict, and what could excuse a loss."""
    public_coins = setting.public_coins
    found.doubts = tuple(_doubts(found, counted, parted, above=above, public_coins=public_coins))
    found.verdict, found.reasons = _verdict(
        found, counted, above=above, parted=parted, public_coins=public_coins
    )
    cost = _cost_above(setting, found) if found.verdict is Verdict.CONSISTENT else None
    if cost is not None:
        ratios = shifts_across(found.pilot, used=found.used)
        found.verdict = Verdict.INCONCLUSIVE
        found.reasons = (
            f"the observed steps cost {setting.spec.claim.quantity} {cost:.3g}, more than the "
            "claim, which is not proved"
            + (
                "; some noisy answers are released only as ratios, which cost less"
                if ratios
                else ""
            )
            + ("" if found.doubts else ": ask for more replays (--replays)"),
            *found.reasons[1:],
        )


def _cost_above(setting: _Setting, found: _Found) -> float | None:
    """What the pilot's noise alone costs, if that is more than the claim."""
    claim = setting.spec.claim
    noise_alone = replace(found.pilot, choices=[])  # of several choices only a limit is known
    known = losses(noise_alone, used=found.used)
    if any(one.how is How.SELECTED and abs(one.value) >= EXACT for one in known):
        return None
    cost = computed(noise_alone, known, claim).value
    above = cost is not None and cost > _ROUNDED * replay_guarantee(claim).claimed
    return cost if above else None


def _verdict(
    found: _Found,
    counted: Sequence[Transcript],
    *,
    above: bool,
    parted: PartingFound | None,
    public_coins: bool,
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict and its reasons; a violation only if nothing could excuse it."""
    if found.control is not None:
        return Verdict.INCONCLUSIVE, (
            f"the code is not repeatable, so nothing can be concluded: {found.control}",
        )
    if found.fixed:
        where = ", ".join(map(str, found.fixed))
        return Verdict.VIOLATION, (
            f"the noise at {where} has the same seed in every fit, so it is not secret",
        )
    shown = public_coins and parted is not None and parted.kind == PartKind.ROWS
    if parted is None and not found.heard and not found.pilot.follows_coins:
        return Verdict.INCONCLUSIVE, (
            "no noise was observed, and with the same coins this record changed nothing; other "
            "coins may show more: run a black-box audit (`dpaudit audit`)",
        )
    if parted is not None and not found.heard and not shown:
        lost = next((one for each in (found.pilot, *counted) for one in each.unfollowed), None)
        heard = (
            "no noise was observed"
            if lost is None
            else f"the noise of {lost.site} cannot be followed"
        )
        return Verdict.INCONCLUSIVE, (
            f"{heard}, and {parted.meaning}: run a black-box audit (`dpaudit audit`)",
        )
    if not above:
        if parted is not None:
            return Verdict.INCONCLUSIVE, (
                f"{parted.meaning}; this is not proved to exceed the claim",
            )
        cut = next((one for one in (found.pilot, *counted) if one.parting is not None), None)
        if cut is not None:
            return Verdict.INCONCLUSIVE, (
                f"what happens after {cut.unfollowed[-1].site} cannot be followed: "
                f"{cut.unfollowed[-1].why}",
            )
        if found.once_drawn is not None:
            return Verdict.INCONCLUSIVE, (found.once_drawn,)
        if found.open_use or found.redrawn:
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
    follows = next((step for step in found.pilot.noisy if not same(*_scales(step))), None)
    if follows is not None:
        scales = " and ".join(f"{float(np.min(one)):.6g}" for one in _scales(follows))
        what = f"the scale of the noise at {follows.site} depends on the data"
        if follows.rescaled is not None:
            what = f"noisy answers are multiplied at {follows.rescaled} by a value from the data"
            scales = f"noise of {scales}"
        reason = f"{reason}; {what}: {scales}"
    if parted is not None:
        where = "" if parted.place is None else f" ({parted.place})"
        reason = f"{parted.meaning}{where}, in {parted.replays} of {len(counted)} replays"
    if public_coins:
        reason = f"{reason}; all coins other than noise count as public, as requested"
    return Verdict.VIOLATION, (reason,)


def _scales(step: NoisyStep) -> tuple[FloatArray, FloatArray]:
    """The scales of a step's noise in both worlds."""
    inside, outside = (np.broadcast_to(law.scale, step.answer.shape) for law in step.laws)
    return inside, outside


def _consistent(found: _Found) -> str:
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
    if found.pilot.coin_before is not None:
        return "within the claim even if all coins are public; other records are not ruled out"
    return (
        "leaks of other records or tables, or through draws that replay misses, are not ruled out"
    )


def _doubts_of_answers(found: _Found, counted: Sequence[Transcript]) -> Iterator[str]:
    """Answers that count although they may not be released, and randomness that is missed."""
    if found.open_use:
        open_sites = {
            str(one.site)
            for transcript in (found.pilot, *counted)
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
            f"the answers at {', '.join(map(str, found.coarse))} only select what follows, or few "
            "of them are used, which replay does not follow; if all are released, the loss exceeds "
            "the claim"
        )


def _doubts(
    found: _Found,
    counted: Sequence[Transcript],
    parted: PartingFound | None,
    *,
    above: bool,
    public_coins: bool,
) -> Iterator[str]:
    """What could excuse a loss: with any of these nothing is proved."""
    yield from _doubts_of_answers(found, counted)
    if found.loose is not None:
        yield (
            f"the record's own coins at {found.loose} decide more than whether it is in a "
            "sub-sample, so what they hide is not followed"
        )
    if found.coins_matter is not None:
        yield (
            f"what is released depends on coins ({found.coins_matter}) that may be secret"
            f"{'; if they are public, the loss exceeds the claim' if above else ''}"
        )
    unknown = [
        one
        for transcript in (found.pilot, *counted)
        for one in transcript.unfollowed
        if (not (one.unseen or one.mixed) or parted is not None)
        and not (public_coins and one.public_coins)
    ]
    uncoupled = next(
        (one.uncoupled for one in (found.pilot, *counted) if one.uncoupled is not None), None
    )
    if uncoupled is not None and not public_coins:
        yield f"the number of coins at {uncoupled} depends on the record, and they may be secret"
    if unknown:
        yield f"a draw at {unknown[0].site} cannot be followed: {unknown[0].why}"
    if parted is None:
        return
    kind = PartKind(parted.kind)
    if any(one.tosses for one in (found.pilot, *counted)):
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
