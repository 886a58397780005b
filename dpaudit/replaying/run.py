"""Replays a generator: control, pilots, edges, ledger, reading, coins, verdict."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, audited_table, build_two_worlds
from dpaudit.errors import ReplayError, SettingsError, TrialError
from dpaudit.game.target import exposing_first
from dpaudit.model.claim import DeltaClaim, require_claim
from dpaudit.model.linked_files import Given, are_several
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World
from dpaudit.plugins.release import accept
from dpaudit.replaying.charges import IF_RELEASED
from dpaudit.replaying.coins import run_game
from dpaudit.replaying.findings import Options, ReplayAccess, ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.gaps import find_gap_draws
from dpaudit.replaying.launching import LaunchedWorlds
from dpaudit.replaying.lone_draws import find_deltas
from dpaudit.replaying.moved_features import moved_features
from dpaudit.replaying.orders import costliest_outcomes
from dpaudit.replaying.processes import WORLDS, Processes, open_processes, prepare_start
from dpaudit.replaying.reading import find_readings, prove
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.release import are_rows, differing_places
from dpaudit.replaying.spending import Spent, spend
from dpaudit.replaying.transcript import (
    ChoiceStep,
    NoisyStep,
    PartKind,
    Question,
    Site,
    Transcript,
    Unfollowed,
)
from dpaudit.replaying.verdict import conclude, is_consistent, is_overspent

PILOTS: Final = 4
"""Replays with noise as drawn."""
MOST_PILOTS: Final = 40
"""The same of a fast generator: a rare event shows in many replays, a seed that repeats in all."""
_OUTCOME_SECONDS: Final = 3.0
"""Seconds for the replays in which choices have other outcomes."""
_MOMENT: Final = 1.0
"""Seconds for the replays beyond the first `PILOTS`."""
FITS: Final = 400
"""Fits for reading and for the coin game."""
_SLOW: Final = 2.0
"""If a fit takes more seconds than this, fewer are made."""
_COIN_EDGES: Final = (1e-9, 1.0 - 1e-9)
_SHARED: Final = 400_000
"""The natural fits whose noise is compared have numbers from here on."""
_GAPS: Final = 480_000
"""The fits that find ranges of uniform draws have this number."""
_CONTROLS: Final = (0, 90, 91)
_AGAIN: Final = (700, 701)
"""Numbers of the fits that are made in new processes as well."""
_MOST_UNITS: Final = 500
_ANSWER_EDGES: Final = (6.0, -6.0, 30.0, -30.0, 100.0, -100.0)
_PATIENCE: Final = 120.0
"""Seconds for the coin game; and for fits that find gaps."""
_LIFTS: Final = (1e3, -1e3)
"""Scales by which all answers of a line are moved alike."""
_MOST_LIFTED: Final = 4
"""Lines whose answers are moved."""
_REDRAWN: Final = "how often a line draws depends on its noise, and every draw is charged"
_SAMPLED: Final = 450_000
"""The natural fit in which samplers are drawn from again."""
_REDRAWS: Final = 10_000
_NOT_ITS_LAW: Final = 1e-6
"""Below this p-value, over all samplers, one does not follow its law."""
_HANDED_OVER: Final = 8
"""Pairs of synthetic tables used to find features that the record moves."""


def replay(
    generator: object,
    data: Given | None = None,
    *,
    schema: Schema | str | Path | None = None,
    fits: int | None = None,
    targets: int = 1,
    samplers: Sequence[Mapping[str, Any]] = (),
    public_coins: bool = False,
    proof: str | None = None,
    internal: Sequence[str] = (),
    access: str = "model",
    coins: bool = True,
    hand_over: bool = False,
    on_progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> ReplayRecord:
    """Says what unmodified code spends, where data goes around its noise, and what is released.

    Args:
        generator: As for `dpaudit.audit`; it must run in Python.
        data: As for `dpaudit.audit`.
        schema: As for `dpaudit.audit`.
        fits: Fits that may be made to prove a leak from the release; 400 by default, fewer of a
            slow generator.
        targets: Records to try with two fits each; the replay is of the one that spends most.
        samplers: The user's own samplers: mappings with `function` ("module:name"), `law`, and the
            names of its parameters for `scale` and, if it has them, `loc` and `shape`.
        public_coins: Whether secret sub-samples count as public: sampling then lowers nothing.
        proof: "composition" if the claim is proved by composing the noise steps: overspending then
            refutes that proof.
        internal: Lines whose answers are not released, as "FILE:LINE" or "FILE:LINE: why".
        access: "model" if the attacker sees the fitted model and rows, "rows" for rows alone.
        coins: Whether guesses over fits whose world a coin picks may show a leak. An audit that
            follows plays this game better.
        hand_over: Whether a replay that is not consistent searches for the features of synthetic
            rows that the record moves, for a later audit: 16 more fits.
        on_progress: Called with a line before each replay.
        settings: Claim, target, parameters, rows, confidence and seed, as for `dpaudit.audit`.

    Returns:
        What was found.

    Raises:
        InputError: If anything is unusable, before any training.
        ReplayError: If the generator's draws cannot be intercepted, or its process ends.
    """
    seed = int(settings.pop("seed", 0))
    records = replays_of(
        generator,
        data,
        [seed],
        schema=schema,
        fits=fits,
        targets=targets,
        samplers=samplers,
        public_coins=public_coins,
        proof=proof,
        internal=internal,
        access=access,
        coins=coins,
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
    targets: int = 1,
    on_progress: Callable[[str], None] | None = None,
    launched: LaunchedWorlds | None = None,
    **settings: Any,
) -> Iterator[ReplayRecord]:
    """As `replay`, once for each seed, in the same two processes.

    Args:
        generator: As for `replay`.
        data: As for `replay`.
        seeds: Roots of the random streams.
        schema: As for `replay`.
        targets: As for `replay`.
        on_progress: As for `replay`.
        launched: Worlds whose processes were started already.
        settings: The other arguments of `replay`.

    Yields:
        The record for each seed.

    Raises:
        InputError: As `replay`.
        ReplayError: As `replay`.
    """
    options = Options.of(
        {
            option.name: settings.pop(option.name)
            for option in fields(Options)
            if option.name in settings
        }
    )
    check_number("targets", targets, AT_LEAST_1, whole=True)
    if options.hand_over and are_several(data):
        raise SettingsError("`hand_over` is for replays of one table: audit several without it")
    table = audited_table(data, schema, audit_settings(**settings))
    specs = list(_candidates(generator, table, settings, targets))
    say = on_progress or (lambda line: None)
    yield from _records(specs, seeds, options, launched, say=say)


def _records(
    specs: Sequence[TwoWorldSpec],
    seeds: Sequence[int],
    options: Options,
    launched: LaunchedWorlds | None,
    *,
    say: Callable[[str], None],
) -> Iterator[ReplayRecord]:
    """Replays the costliest of some candidates, once for each seed."""
    require_claim(specs[0].claim, method="a replay")  # refused before any fit
    if isinstance(specs[0].claim, DeltaClaim):
        raise SettingsError("a replay reports epsilon and delta: leave out `bound`")
    options = options.with_proof_of(specs[0].generator.generator)
    samplers = json.dumps([dict(sampler) for sampler in options.samplers])
    with prepare_start(specs[0]) as start:
        open_worlds = partial(open_processes, start, samplers=samplers)
        with open_worlds(launched=launched) as processes:
            for seed in seeds:
                started = time.monotonic()
                each = [
                    Fits(
                        processes,
                        replace(spec, settings=replace(spec.settings, seed=seed)),
                        watches_state=options.access is ReplayAccess.MODEL,
                        say=say,
                    )
                    for spec in specs
                ]
                fits = each[0] if len(each) == 1 else _find_costliest(each, options)
                yield replay_record(fits, options, open_worlds, started)


def _candidates(
    generator: object, table: Table, settings: Mapping[str, Any], targets: int
) -> Iterator[TwoWorldSpec]:
    if targets == 1:
        yield build_two_worlds(generator, table, audit_settings(**settings))
        return
    pair = next((name for name in ("worst_case", "neighbours_file") if settings.get(name)), None)
    if pair is not None:
        raise SettingsError(f"`{pair}` names the record itself: leave out `targets`")
    if table.schema.unit is not None:
        raise SettingsError("`targets` tries single records, not units: leave out `targets`")
    rows = exposing_first(table.data, table.schema)[:targets]
    if not len(rows):
        raise SettingsError("every record has a copy, so none is exposed: leave out `targets`")
    for row in rows:
        given = {**settings, "target": f"row:{int(row)}"}
        yield build_two_worlds(generator, table, audit_settings(**given))


def _find_costliest(each: Sequence[Fits], options: Options) -> Fits:
    """Finds the candidate that spends most in one replay, or at which the worlds part."""
    costs: list[tuple[float, int]] = []
    for number, fits in enumerate(each):
        fits.say(f"candidate {number + 1} of {len(each)}: {fits.spec.target.choice}")
        transcript = fits.pair(1)
        cost = spend([transcript], fits.spec.claim, public_coins=options.public_coins)
        parted = transcript.parting is not None or cost.is_unlimited or bool(transcript.lone)
        costs.append((float("inf") if parted else cost.value or 0.0, -number))
    fits = each[-max(costs)[1]]
    fits.count += 2 * (len(each) - 1)
    return fits


def replay_record(
    fits: Fits,
    options: Options,
    open_worlds: Callable[[], AbstractContextManager[Processes]],
    started: float,
) -> ReplayRecord:
    """The whole of a replay, from the control to the record.

    Args:
        fits: Its fits.
        options: What it was asked for.
        open_worlds: Starts new processes of both worlds.
        started: When it began, by `time.monotonic`.
    """
    findings = ReplayFindings(public_coins=options.public_coins)
    run_control(fits, findings)
    if findings.control is None:
        run_pilots(fits, findings)
        if learn_gap_draws(fits, findings):
            run_pilots(fits, findings)
        follow_lone_draws(fits, findings)
        check_selections(fits, findings)
        find_shared_noise(fits, findings)
        test_samplers(fits, findings)
        run_edges(fits, findings)
        find_foreign_seeds(fits, findings)
        charge(fits, options, findings)
        check_limits(fits, options, findings)
        findings.take_seeds(fits.seeds)
        if not is_consistent(fits.spec.claim, findings):
            prove_from_release(fits, options, findings)
            if findings.is_shown and not fits_agree(fits, findings, open_worlds):
                findings.are_dependent = True
            if options.hand_over:
                hand_over(fits, findings)
    return conclude(fits, options, findings, seconds=time.monotonic() - started)


def run_control(fits: Fits, findings: ReplayFindings) -> None:
    """The same table in both worlds: nothing may move, and the release must be equal.

    Raises:
        ReplayError: If the generator fails.
    """
    fits.say("control: the same table in both worlds")
    transcript = _first_control(fits)
    while (parting := transcript.parting) is not None and parting.kind is PartKind.SEEDS:
        [site] = {site for site in parting.sites if site is not None}
        fits.learned.free_seeds.add(site)  # of the system's entropy, or of the time
        transcript = _first_control(fits)
    _check_table(transcript.tables[0], fits.spec.table.schema)
    first, second = (fits.release_of(transcript, world) for world in WORLDS)
    findings.noise_lines = frozenset(step.site for step in transcript.noisy)
    if first is not None and second is not None:
        findings.without = frozenset(differing_places(first, second))
    moved = [step.site for step in transcript.moving]
    moved += [choice.site for choice in transcript.choices]
    thread = next(
        (unfollowed for unfollowed in transcript.unfollowed if "thread" in unfollowed.why), None
    )
    if thread is not None:
        findings.control = f"{thread.why} ({thread.site})"
    elif transcript.parting is not None:
        findings.control_parting = transcript.parting
        findings.control = "two fits of the same table differ"
    elif moved:
        findings.control = f"two fits of the same table differ at {moved[0]}"
    elif any(map(are_rows, findings.without)):
        findings.control = "two fits of the same table give different rows"
    elif first is None or second is None:
        findings.control = "what a fit releases was not seen"


def _first_control(fits: Fits) -> Transcript:
    """The first control in which the generator does not fail, as it may by chance."""
    failure = ""
    for number in _CONTROLS:
        transcript = fits.pair(number, alike=World.IN, keeps_tables=True)
        failures = (failure for failure in transcript.failures if failure not in (None, "ended"))
        failure = next(failures, None) or ""
        if not failure or transcript.parting is not None:
            return transcript
    raise ReplayError(f"the generator fails: {failure}")


def _check_table(table: pd.DataFrame | None, schema: Schema) -> None:
    """Refuses a synthetic table that an audit would refuse; several tables come as a frame."""
    if table is None or isinstance(schema, LinkedTables):
        return
    try:
        accept(table, schema, len(table))
    except TrialError as error:
        raise ReplayError(f"the generator fails: {error.shareable}") from None


def run_pilots(fits: Fits, findings: ReplayFindings) -> None:
    """Replays with noise as drawn, from either world in turn; the first one samples again."""
    records = max(map(len, fits.tables.values()))
    samples = ((fits.rows, 1), (2 * max(records, fits.rows) + 7, 2))
    started = time.monotonic()
    for number in range(MOST_PILOTS):
        is_late = time.monotonic() - started > _MOMENT
        if (number >= PILOTS and is_late) or (number >= 2 and fits.pace > _SLOW):
            break
        fits.say(f"replay {number + 1}")
        base = WORLDS[number % 2]
        given = samples if number == 0 else ()
        transcript = fits.pair(1 + number, base=base, samples=given)
        findings.add(fits, transcript)
        if transcript.lone and findings.goes_around and fits.learned.alignment.advance():
            findings.forget_pilots()
            run_pilots(fits, findings)
            return
    if any(pilot.tosses for pilot in findings.pilots):
        follow_subsamples(fits, findings)


def follow_subsamples(fits: Fits, findings: ReplayFindings) -> None:
    """Finds which steps the record's own coins decide, with coins that put it out and in.

    A step is amplified if the record moves it only where the coin before it puts the record in.
    Code that keeps those whose comparison fails is replayed again with its coins read that way.
    """
    fits.say("replays with the record in and out of its sub-samples")
    turned = [fits.pair(1, own_coins=coins) for coins in ("out", "even", "odd")]
    moved: dict[bool, set[Site]] = {True: set(), False: set()}
    for transcript in (*findings.pilots, *turned):
        steps: list[NoisyStep | ChoiceStep] = [*transcript.moving, *transcript.choices]
        for step in steps:
            if step.toss is not None:
                moved[transcript.tosses[step.toss].is_in].add(step.site)
    within, without = moved[True] - moved[False], moved[False] - moved[True]
    if without and not within and fits.keeps:
        fits.keeps = False
        findings.forget_pilots()
        run_pilots(fits, findings)
        return
    if without:
        why = "the record's own coins put it into one sub-sample and out of another"
        turned[0].unfollowed.append(Unfollowed(min(without), why))
    findings.unamplified = frozenset(moved[False])
    for transcript in turned:
        findings.add(fits, transcript)


def learn_gap_draws(fits: Fits, findings: ReplayFindings, *, most: int | None = None) -> bool:
    """Finds draws from ranges whose ends depend on data; later fits give both worlds one value.

    Args:
        fits: The fits.
        findings: What was found so far; forgotten if there are such draws.
        most: Fits that may be made; by default by time.

    Returns:
        Whether there are any, so that what was replayed so far is to be replayed again.
    """
    picks = any(
        pilot.selections or any(not choice.is_late for choice in pilot.choices)
        for pilot in findings.pilots
    )
    if not (findings.goes_around or picks) or fits.pace > _SLOW:
        return False

    def fit(world: World, chosen: Mapping[Question, tuple[int, ...]]) -> Transcript:
        return fits.alone(world, _GAPS, chosen=chosen, notes_ranges=True)

    fits.say("fits of each world, to find ranges that choices pick")
    draws = find_gap_draws(fit, most=most or int(_PATIENCE / fits.pace))
    fits.learned.follow(draws)
    if draws:
        findings.forget_pilots()
    return bool(draws)


def follow_lone_draws(fits: Fits, findings: ReplayFindings) -> None:
    """Finds what is spent on keys that only one world has; if that is not known, worlds part."""
    lone = [pilot for pilot in findings.pilots if pilot.lone]
    if not lone:
        return
    fits.say("replays with the keys that only one world has, shown and hidden")
    is_hidden = not findings.goes_around
    deltas = find_deltas(fits, findings.pilots, is_hidden=is_hidden, without=findings.without)
    if deltas is not None:
        findings.deltas = deltas
        return
    for pilot in lone:
        pilot.parting = pilot.lone[0].parting


def check_selections(fits: Fits, findings: ReplayFindings) -> None:
    """Counts scores as released if the release follows a change too small for any selection."""
    selected = {
        (step.key, number)
        for pilot in findings.pilots
        for step in pilot.noisy
        for number in set(step.numbers.tolist()) - pilot.released
        if any(number in selection.numbers for selection in pilot.selections)
    }
    if not selected or findings.parting is not None:
        return
    fits.say("the same replay, with scores changed by a little")
    again = replay_second_pilot(fits, nudged={key for key, _ in selected})
    releases = [fits.release_of(transcript, World.IN) for transcript in (findings.pilots[1], again)]
    if None not in releases:
        first, second = releases
        assert first is not None
        assert second is not None
        if not set(differing_places(first, second)) - findings.without:
            return
    for pilot in findings.pilots:
        pilot.released |= {number for step in pilot.noisy for number in step.numbers.tolist()}


def replay_second_pilot(fits: Fits, **order: Any) -> Transcript:
    """`found.pilots[1]` again, the first pilot that samples once."""
    return fits.pair(2, base=WORLDS[1], **order)


def find_shared_noise(fits: Fits, findings: ReplayFindings) -> None:
    """Finds lines whose noise is the same, as that of two generators with one seed."""
    fits.say("natural fits")
    unfollowed = findings.pilots[-1].unfollowed
    for transcript in fits.natural([(world, _SHARED + at) for at, world in enumerate(WORLDS)]):
        unfollowed += transcript.unfollowed
        known: dict[float, NoisyStep] = {}
        for step in transcript.noisy:
            if len(known) > _MOST_UNITS:
                break
            if step.laws is None or step.laws[0].whole or step.draws:
                continue
            finite = np.isfinite(step.before.inside)
            noise = step.answer[finite] - step.before.inside[finite]
            units = noise / step.scales.inside[finite]
            for unit in np.abs(units[:_MOST_UNITS]).round(10).tolist():
                first = known.setdefault(unit, step)
                if unit and first.key != step.key:
                    findings.shared_noise |= dict.fromkeys([(first.site, step.site)])


def test_samplers(fits: Fits, findings: ReplayFindings) -> None:
    """Tests whether the draws of libraries and of named samplers follow the laws that are charged.

    The Kolmogorov-Smirnov test of all draws by their distribution function; whole numbers are
    spread evenly over their steps of it.
    """
    if not any(pilot.has_samplers for pilot in findings.pilots):
        return
    fits.say("draws of each sampler, to test its law")
    [transcript] = fits.natural([(World.OUT, _SAMPLED)], redraws=_REDRAWS)
    for noise in transcript.redrawn:
        if noise.law is None or not noise.law.has_cdf:
            continue
        # a sampler that is given its seed draws the same again
        drawn = noise.drawn[: None if np.any(noise.drawn != noise.drawn[0]) else 1]
        places = noise.law.cdf(drawn)
        if noise.law.whole:
            below = noise.law.cdf(drawn - 1.0)
            places = below + fits.rng("steps", 0).random(places.shape) * (places - below)
        p_value = float(scipy.stats.kstest(places.ravel(), "uniform").pvalue)
        if p_value < _NOT_ITS_LAW / len(transcript.redrawn):
            why = (
                f"{places.size:,} draws of this sampler do not follow the law by which it is "
                f"charged, {noise.law.name} of scale {np.max(noise.law.scale):.4g} "
                f"(Kolmogorov-Smirnov, p = {p_value:.0e})"
            )
            findings.pilots[-1].unfollowed.append(Unfollowed(noise.site, why))


def run_edges(fits: Fits, findings: ReplayFindings) -> None:
    """Replays at the edges, where rare branches are: uniform draws, and answers that move.

    Choices have other outcomes in turn: the same place among other values may be another value in
    each world, which equal releases of likely outcomes do not show.
    """
    if any(pilot.parting is not None for pilot in findings.pilots):
        return
    is_slow = fits.pace > _SLOW
    edges: list[dict[str, Any]] = [{"edge": edge} for edge in _COIN_EDGES]
    pilot = {"number": 2, "base": WORLDS[1]}
    outcomes = costliest_outcomes(findings.pilots[1])
    most_outcomes = max(2, int(_OUTCOME_SECONDS / fits.pace))
    edges += [pilot | order for order in outcomes[:most_outcomes]]
    if any(pilot.moving for pilot in findings.pilots):
        edges += [
            {"apart": scales} for scales in (_ANSWER_EDGES[2:4] if is_slow else _ANSWER_EDGES)
        ]
    most = 1000 + 50 * max(sum(pilot.draws.values()) for pilot in findings.pilots)
    for number, edge in enumerate(edges):
        fits.say(f"edge replay {number + 1} of {len(edges)}")
        order = {"number": 100 + number, "most_draws": most, **edge}
        transcript = fits.pair(**order)
        if None in transcript.failures or transcript.parting is not None:
            findings.add(fits, transcript, is_edge=True)


def charge(fits: Fits, options: Options, findings: ReplayFindings) -> None:
    """Charges the steps of the pilots.

    Where data goes around the noise, choices do not count: what is chosen may be another value in
    each world, as the gaps between the sorted values of a table are, so that the probabilities of
    the places in a list are not those of an answer.
    """
    findings.spent = _spend(fits, options, findings)
    if (why := findings.not_charged) is not None:
        findings.spent = findings.spent.not_known(why)


def _spend(
    fits: Fits, options: Options, findings: ReplayFindings, *, left_out: Collection[Site] = ()
) -> Spent:
    # the first pilot samples several times: noise of `sample` counts once for each release
    pilots = findings.pilots[1:] if findings.fresh_noise else findings.pilots
    if findings.goes_around:
        pilots = [replace(pilot, choices=[]) for pilot in pilots]
    return spend(
        pilots,
        fits.spec.claim,
        public_coins=options.public_coins,
        unamplified=findings.unamplified,
        internal=options.internal_lines | {(site.file, site.line) for site in left_out},
        deltas=findings.deltas,
        others=findings.transcripts,
    )


def check_limits(fits: Fits, options: Options, findings: ReplayFindings) -> None:
    """Says of a sum that is too large why a proof by composition may charge less, if it may.

    It may charge less for some lines. If what the others spend is more than the claim, no such
    proof holds, and the sum is not called an upper limit.
    """
    spent, claim = findings.spent, fits.spec.claim
    if not is_overspent(claim, spent):
        return

    def is_over_without(lines: Collection[Site]) -> bool:
        return is_overspent(claim, _spend(fits, options, findings, left_out=lines))

    limits: dict[str, set[Site]] = {}
    untried: Collection[Site] = ()
    if not spent.limited or is_over_without(spent.limited):
        limits, untried = _find_limits(fits, findings)
    limited = spent.limited.union(*limits.values())
    if limited and is_over_without(limited.union(untried)):
        findings.spent = replace(spent, limited=frozenset())
    else:
        findings.spent = spent.limit(limits)


def _find_limits(
    fits: Fits, findings: ReplayFindings
) -> tuple[dict[str, set[Site]], Collection[Site]]:
    """For which lines a proof by composition may charge less than the sum, and why.

    A line at which the number of steps that the record moves follows the answers, as where noise is
    drawn again until a value is valid, may be charged once. And if the release stays where all
    answers of a line, or all of the fit, move alike, it shows at most their differences, such as
    the place of the largest.

    Returns:
        The lines by their reasons, and those that were not moved by themselves.
    """
    pilot = findings.pilots[1]
    places = {line.place for line in findings.spent.lines if line.share > 0}
    counts = _count_answers(pilot)
    charged = [site for site in counts.moved if str(site) in places]
    known = [step for step in pilot.noisy if step.laws is not None]
    moving = list(dict.fromkeys(step.site for step in pilot.moving))
    groups = [[step for step in known if step.site == site] for site in moving[:_MOST_LIFTED]]
    if len(known) > max(map(len, groups), default=0):
        groups.append(known)
    first, most = fits.release_of(pilot, World.IN), 1000 + 50 * sum(pilot.draws.values())
    limits: defaultdict[str, set[Site]] = defaultdict(set)

    def differing(other: Transcript) -> list[Site]:
        its = _count_answers(other)
        return [
            site
            for site in charged
            if its.answers[site] != counts.answers[site] and its.moved[site] != counts.moved[site]
        ]

    def following(other: Transcript) -> list[Site]:
        is_whole = other.parting is None and set(other.failures) <= {None, "ended"}
        return differing(other) if is_whole else []

    def is_level_shown(other: Transcript) -> bool:
        release = fits.release_of(other, World.IN)
        if first is None or release is None:
            return True
        return bool(set(differing_places(first, release)) - findings.without)

    for own in filter(None, groups):
        fits.say(f"the same replay, with answers of {own[0].site} moved alike")
        far = np.ceil(max(np.max(step.scales.inside) for step in own))
        each = [
            replay_second_pilot(
                fits, values={step.key: step.answer + lift * far for step in own}, most_draws=most
            )
            for lift in _LIFTS
        ]
        redrawn = {site for other in each for site in following(other)}
        if redrawn:
            limits[_REDRAWN] |= redrawn
        elif not any(map(is_level_shown, each)):
            limits[IF_RELEASED].update(step.site for step in own)
    for other in list(filter(differing, findings.pilots))[:_MOST_LIFTED]:
        fits.say("the same replay, with the answers of another one")
        values = {step.key: step.answer for step in other.noisy}
        chosen = {choice.key: choice.sides or tuple(choice.places) for choice in other.choices}
        again = replay_second_pilot(fits, values=values, chosen=chosen, most_draws=most)
        if resized := following(again):
            limits[_REDRAWN].update(resized)
    return limits, moving[_MOST_LIFTED:]


class _Counts(NamedTuple):
    """Of each line: values with noise, or else draws; and steps that the record moves."""

    answers: Counter[Site]
    moved: Counter[Site]


def _count_answers(transcript: Transcript) -> _Counts:
    """Counts what each line gave: both, as neither alone shows that noise is drawn again.

    The size of a table that was chosen before decides how many values have noise, and a gradient
    may vanish where an answer moves far.
    """
    sizes = Counter[Site]()
    for step in transcript.noisy:
        sizes[step.site] += step.answer.size
    moved = Counter(step.site for step in transcript.moving)
    moved.update(choice.site for choice in transcript.choices)
    return _Counts(Counter(transcript.draws) | sizes, moved)


def find_foreign_seeds(fits: Fits, findings: ReplayFindings) -> None:
    """Finds seeds that are not made of the fit's seed, but of the time, say: others know it."""
    first = findings.pilots[1].seeds
    if first and findings.parting is None:
        fits.say("the second replay again")
        again = replay_second_pilot(fits).seeds
        findings.foreign_seeds = tuple(
            site for site in sorted(first.keys() & again) if first[site] != again[site]
        )


def prove_from_release(fits: Fits, options: Options, findings: ReplayFindings) -> None:
    """Tries to prove a bound above the claim from what is released: by reading, then by coins."""
    # each of the two methods has half of the error probability
    alpha = (1.0 - fits.spec.settings.confidence) / 2
    first, budget = fits.count, options.fits or _budget(fits.pace)
    without = findings.ignored
    may_read = is_overspent(fits.spec.claim, findings.spent) or findings.spent.value is None
    if may_read and all(pilot.parting is None for pilot in findings.pilots):
        readings = find_readings(fits, findings.pilots, without)
        if readings:
            findings.proof = prove(
                fits,
                readings,
                findings.pilots[-1].draws,
                alpha=alpha,
                budget=budget - (fits.count - first),
            )
    left = budget - (fits.count - first)
    if options.coins and findings.proof is None and left > 2 * len(WORLDS):
        findings.game = run_game(fits, alpha=alpha, budget=left, seconds=_PATIENCE, without=without)


def _budget(pace: float) -> int:
    return FITS if pace * FITS < _PATIENCE else max(60, int(_PATIENCE / pace))


def fits_agree(
    fits: Fits,
    findings: ReplayFindings,
    open_worlds: Callable[[], AbstractContextManager[Processes]],
) -> bool:
    """Whether fits in new processes are those of the same seeds in these, and draw noise anew.

    Noise that is drawn at import, kept in the process or cached by the table is one draw for all
    fits, so that counting these would prove nothing.
    """
    drawn: set[Site] = set()
    with open_worlds() as processes:
        fresh = fits.in_processes(processes)
        fits.count += len(_AGAIN) * len(WORLDS)
        for number in _AGAIN:
            fits.say("the same fits in new processes")
            for world in WORLDS:
                pair = [side.alone(world, number) for side in (fits, fresh)]
                drawn |= pair[0].draws.keys()
                first, second = (transcript.releases[WORLDS.index(world)] for transcript in pair)
                if first is None or second is None:
                    return False
                if set(differing_places(first, second)) - findings.without:
                    return False
    return not findings.noise_lines or not findings.noise_lines.isdisjoint(drawn)


def hand_over(fits: Fits, findings: ReplayFindings) -> None:
    """Finds the features of synthetic tables that the record moves."""
    pairs = []
    canonical = fits.spec.table.schema.canonical
    for number in range(_HANDED_OVER):
        fits.say(f"synthetic tables with and without the record: {number + 1} of {_HANDED_OVER}")
        made = [
            fits.alone(world, 800 + number, keeps_tables=True).tables[side]
            for side, world in enumerate(WORLDS)
        ]
        if made[0] is not None and made[1] is not None:
            pairs.append((canonical(made[0]), canonical(made[1])))
    findings.features = moved_features(pairs, fits.spec.game.view)
