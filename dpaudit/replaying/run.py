"""Replays a generator: the control, the pilot, the counted replays, and the verdict."""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpaudit.auditing.games import audit_settings, audited_table
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.auditing.two_worlds.worst_case_search import candidate_audits
from dpaudit.errors import ReplayError, SchemaError, SettingsError
from dpaudit.external import worker
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import WorkerStart
from dpaudit.game.target import exposing_first
from dpaudit.game.worker import search_path
from dpaudit.model.choices import WorstCase, check_sampler
from dpaudit.model.linked_files import Given, are_several
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import FloatArray, World
from dpaudit.replaying import local_world
from dpaudit.replaying.checks import (
    limited_lines,
    look_for_excuses,
    piloted,
    redraws_of_coins,
    retried,
    used_lines,
)
from dpaudit.replaying.conclusion import MEANING, concluded, decide, parting_found
from dpaudit.replaying.guarantee import EpsilonReplays, replay_guarantee
from dpaudit.replaying.judge import (
    DrawPlan,
    ProvedByReplays,
    draw_plan,
    proved_by,
    questions_of,
)
from dpaudit.replaying.ledger import LedgerLine, ledger
from dpaudit.replaying.lockstep import WORLDS, Order, Played, Worlds, opened_worlds, same
from dpaudit.replaying.loss import How, ShownAnswers, losses
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.resting import resting
from dpaudit.replaying.rows import (
    MovedFeature,
    WorldsIdentified,
    features,
    moved_features,
    worlds_identified,
)
from dpaudit.replaying.setting import FIRST, FURTHER, ReplayFindings, ReplaySetting, streams
from dpaudit.replaying.sums import settled
from dpaudit.replaying.transcript import Site, Transcript
from dpaudit.results.verdict import Verdict

REPLAYS: Final = 10
"""Counted replays, two fits each."""
_HANDED: Final = 8
"""Pairs of synthetic tables used to find features that the record moves."""
_CHECKED: Final = 2
"""Replays with the largest losses are run again to look for excuses for a violation."""


def replay(
    generator: object,
    data: Given | None = None,
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
    data: Given | None,
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
    if hand_over and are_several(data):
        raise SettingsError("`hand_over` is for replays of one table: audit several without it")
    table = audited_table(data, schema, audit_settings(**settings))
    specs = list(_candidates(generator, table, settings, targets))

    def setting(worlds: Worlds, spec: TwoWorldSpec) -> ReplaySetting:
        say = on_progress or (lambda line: None)
        return ReplaySetting(worlds, spec, public_coins, samplers, hand_over, say)

    yield from _records(specs, seeds, setting, replays=replays, samplers=samplers)


def replay_of(spec: TwoWorldSpec, *, replays: int = REPLAYS) -> ReplayRecord:
    """As `replay`, of an audit that is complete and validated.

    Args:
        spec: The audit.
        replays: As for `replay`.

    Returns:
        What was found.

    Raises:
        InputError: If the claim cannot be replayed.
        ReplayError: As `replay`.
    """
    return next(_records([spec], [spec.settings.seed], ReplaySetting, replays=replays, samplers=()))


def _records(
    specs: Sequence[TwoWorldSpec],
    seeds: Sequence[int],
    setting: Callable[[Worlds, TwoWorldSpec], ReplaySetting],
    *,
    replays: int,
    samplers: Sequence[Mapping[str, Any]],
) -> Iterator[ReplayRecord]:
    """One record for each seed, of the worst of some records."""
    replay_guarantee(specs[0].claim)  # refused before a process starts
    listed = json.dumps([dict(one) for one in samplers])
    with started_as(specs[0]) as start, opened_worlds(start, samplers=listed) as worlds:
        for seed in seeds:
            started = time.monotonic()
            worlds.rng = streams(seed)
            seeded = [replace(spec, settings=replace(spec.settings, seed=seed)) for spec in specs]
            say = setting(worlds, seeded[0]).say
            spec = seeded[0] if len(seeded) == 1 else _worst(worlds, seeded, say)
            yield _replayed(setting(worlds, spec), replays, started)


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


def _worst(
    worlds: Worlds, specs: Sequence[TwoWorldSpec], say: Callable[[str], None]
) -> TwoWorldSpec:
    """The candidate with the largest difference between the worlds."""
    best: tuple[float, int] | None = None
    for number, spec in enumerate(specs):
        say(f"candidate {number + 1} of {len(specs)}: {spec.target.choice}")
        played = ReplaySetting(worlds, spec).play(Order(1000 + number))
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
    setting: ReplaySetting, replays: int, started: float, *, fits: int = 0
) -> ReplayRecord:
    spec = setting.spec
    guarantee = setting.guarantee
    setting.say("control: the same table in both worlds")
    control = setting.play(Order(0), alike=World.IN)
    if control.failure is not None:
        raise ReplayError(f"the generator fails: {control.failure}")
    setting.say("pilot")
    found = piloted(setting)
    found.control = _control_said(control)
    again = setting.play(Order(2, kept=found.kept, draws_record=True))
    found.fits += fits + 4
    found.seconds.append(again.transcript.seconds)
    fixed = _fixed(found.pilot, settled(again.transcript))
    if fixed:
        public = setting._replace(public_seeds=setting.public_seeds | {seed for _, seed in fixed})
        if _has_other_noise(public.play(Order(2, kept=found.kept)).transcript):
            return _replayed(public, replays, started, fits=found.fits + 2)
        found.fits += 2
    found.fixed = tuple(dict.fromkeys(site for site, _ in fixed))
    found.once_drawn = _once_drawn(found.pilot, again.transcript)
    found.used = used_lines(setting, found.pilot, found)
    plan = draw_plan(
        found.pilot,
        guarantee,
        used=found.used,
        replays=replays,
        confidence=setting.confidence.counted,
        rng=setting.worlds.rng("plan", 0),
    )
    counted = _counted(setting, found, plan, replays)
    found.retried = retried(setting, found, counted)
    judge = partial(proved_by, setting, found, plan)
    judged = judge()
    if not judged.above:
        found.redrawn = (
            bool(found.retried) and judge(shown=ShownAnswers(questions_of(found.counted))).above
        )
        found.open_use = not found.redrawn and judge(all_released=True).above
    if found.open_use:
        found.used |= limited_lines(setting, found.pilot, found)
        judged = judge()
        found.open_use = not judged.above
    found.heard = any(one.noisy or one.choices for one in found.transcripts)
    if judged.proved > 0 and found.control is None and (found.heard or setting.public_coins):
        redraws = redraws_of_coins(guarantee, spec.settings.confidence)
        largest = np.argsort([-one for one in judged.replays.losses], kind="stable")
        for place in largest[: _CHECKED if judged.above else 1]:
            if found.coins_matter is None and found.loose is None and not found.unheard:
                more = {"redraws": redraws} if judged.above and place == largest[0] else {}
                look_for_excuses(setting, counted[place][0], found.counted[place], found, **more)
    found.above, found.parted = judged.above, parting_found(found.transcripts)
    decide(setting, found)
    if found.verdict is Verdict.VIOLATION and not found.fixed:
        judged = resting(setting, found, plan, counted, judged)
        if found.shown.places and not judged.above and found.pilot.parting is None:
            judged = _counted_in_part(setting, found, replays)
        decide(setting, found)
    is_parted = found.parted is not None
    if found.verdict is Verdict.INCONCLUSIVE and found.control is None and is_parted:
        found.identified = _identified(setting, found)
    unproved = found.doubts or found.control is not None or (judged.above and is_parted)
    if found.verdict is not Verdict.VIOLATION and unproved:
        judged = judged._replace(proved=0.0)
    differ = parting_found(found.transcripts) is not None
    if setting.hand_over and found.control is None and (found.above or differ):
        found.features = _moved(setting, found)
    return concluded(setting, found, judged, time.monotonic() - started)


def _counted(
    setting: ReplaySetting,
    found: ReplayFindings,
    plan: DrawPlan,
    replays: int,
    *,
    first: int = FIRST,
) -> list[tuple[Order, Played]]:
    """The counted replays."""
    orders = [
        Order(
            first + number,
            plan.base_of(number),
            plan.tilt,
            plan.widened_in(number),
            steering=plan.steering,
            kept=found.kept,
            along=plan.along,
        )
        for number in range(replays)
    ]
    plays = []
    for order in orders:
        setting.say(f"replay {order.number - first + 1} of {replays}")
        played = setting.play(order)
        found.seconds.append(played.transcript.seconds)
        found.fits += 2
        found.rows_differ |= _differ(played)
        plays.append((order, played))
    found.counted = [played.transcript for _, played in plays]
    return plays


def _counted_in_part(
    setting: ReplaySetting, found: ReplayFindings, replays: int
) -> ProvedByReplays:
    """What further replays prove, which are drawn for the numbers that count and no others.

    The first ones were drawn for all numbers of an answer, and prove little of some of them. Which
    ones count was chosen on those, so the further ones are judged by themselves.
    """
    confidence = setting.confidence.later
    plan = draw_plan(
        found.pilot,
        setting.guarantee,
        used=found.used,
        replays=replays,
        confidence=confidence,
        rng=setting.worlds.rng("plan", 1),
        places=found.shown.places,
    )
    _counted(setting, found, plan, replays, first=FURTHER)
    judged = proved_by(setting, found, plan, shown=found.shown, confidence=confidence)
    if judged.above:
        found.idle = found.coarse = ()
    return judged


def _identified(setting: ReplaySetting, found: ReplayFindings) -> WorldsIdentified | None:
    """Whether the rows identify the world, if nothing else decides."""
    guarantee = setting.guarantee
    if not isinstance(guarantee, EpsilonReplays):
        return None
    game, first = setting.spec.game, found.fits

    def fitted(world: World) -> FloatArray | None:
        setting.say(f"rows of separate fit {found.fits - first + 1}")
        found.fits += 1
        data = game.table(world, 0)
        table = setting.worlds.fitted(data, rows=setting.rows, number=found.fits)
        return None if table is None else features(table, game.view)

    return worlds_identified(
        fitted,
        setting.worlds.rng("told", 0),
        epsilon=guarantee.claimed,
        delta=guarantee.delta,
        confidence=setting.confidence.later,
    )


def _moved(
    setting: ReplaySetting,
    found: ReplayFindings,
) -> tuple[MovedFeature, ...]:
    """The features that the record moves, in pairs of tables made with the same random numbers.

    Each world is fitted separately, to its end: after a divergence neither would have a table.
    """
    pairs, schema = [], setting.spec.table.schema
    for number in range(_HANDED):
        setting.say(f"synthetic tables with and without the record: {number + 1} of {_HANDED}")
        plays = [setting.play(Order(3000 + number), alike=world) for world in WORLDS]
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
        return f"two fits of the same table differ: {MEANING[transcript.parting.kind]}"
    moved = [
        step.site for step in transcript.noisy if not same(step.before.inside, step.before.outside)
    ]
    if moved or transcript.choices:
        where = moved[0] if moved else transcript.choices[0].site
        return f"two fits of the same table differ at {where}"
    return "two fits of the same table give different rows" if _differ(control) else None


def _once_drawn(pilot: Transcript, drawn: Transcript) -> str | None:
    """What differs only if the record is among those that coins draw, without noise."""
    parting = parting_found([drawn]) if pilot.parting is None else None
    if parting is None:
        return None
    return f"if coins draw this record, {parting.meaning}; what that costs is not known"


def _differ(played: Played) -> bool:
    first, second = played.tables
    return first is not None and second is not None and not first.equals(second)


def _fixed(first: Transcript, second: Transcript) -> list[tuple[Site, str]]:
    """Lines whose noise has the same seed in two fits that got different seeds, and that seed."""
    seeds = [
        {
            (step.site, step.seed)
            for step in one.noisy
            if step.seed is not None and np.any(step.before.shift != 0)
        }
        for one in (first, second)
    ]
    return sorted(seeds[0] & seeds[1])


def _has_other_noise(bare: Transcript) -> bool:
    """Whether noise covers the record in a replay in which draws of fixed seeds are no noise.

    Public numbers may come from a fixed seed: weights to start from, a projection, an offset.
    A single choice may cover it, but rows that are drawn with the record's probabilities do not.
    """
    draws = [np.size(one.log_probability.inside) for one in bare.choices]
    moved = any(np.any(one.before.shift != 0) for one in bare.noisy) or 1 in draws
    return moved and bare.parting is None and max(draws, default=1) == 1
