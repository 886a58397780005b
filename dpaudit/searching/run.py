"""Searches the neighbouring tables of a schema for the smallest pairs that break a claim."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import hypothesis
from hypothesis import Phase
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.spec import SchemaGiven
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds, public_schema
from dpaudit.errors import ReplayError, SettingsError, WorldEndedError
from dpaudit.files import io_reason, write_whole
from dpaudit.formatting import counted, listed
from dpaudit.model.claim import Neighbours, require_claim
from dpaudit.model.column import stated_unit
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.neighbouring_tables import NeighbouringTables, check_public, searched_tables
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_0, AT_LEAST_1, POSITIVE, check_number
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World
from dpaudit.replaying.findings import Options, ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.processes import Processes, open_processes, prepare_start
from dpaudit.replaying.run import replay_record, run_control
from dpaudit.replaying.verdict import command_of
from dpaudit.results.verdict import BY_SEVERITY, Verdict, most_severe
from dpaudit.searching.examine import Examiner, PairFinding
from dpaudit.searching.pairs import CHOICE, base_pair, crowds, neighbouring_pairs, related
from dpaudit.searching.record import SearchedPair, SearchRecord, pair_columns, pair_rows
from dpaudit.seeds import Stream
from dpaudit.versions import today

SECONDS: Final = 60.0
FITS: Final = 200
"""Fits that may be made to prove a leak from the release of a pair."""
ROWS: Final = 20
"""Synthetic rows asked of both worlds."""
FEWEST: Final = 30
"""Pairs that are tried whatever the time."""
MOST: Final = 2000
"""Pairs that are tried at most, unless more are asked for."""
_REPLAYED: Final = 3
"""Findings whose pairs are replayed as a whole."""
_MOST_ENDED: Final = 5
"""Pairs that may end the processes before the search gives up."""
_OF_ONE_PAIR: Final = frozenset(
    ("data", "target", "targets", "worst_case", "neighbours_file", "hand_over")
)
"""Settings of a replay that a search has not."""
_OF_REPLAYS: Final = frozenset(field.name for field in fields(Options)) - _OF_ONE_PAIR


class SearchLimits(NamedTuple):
    """Limits of a search.

    Attributes:
        ends: When it stops, by `time.monotonic`.
        pairs: The most pairs to try.
        records: The fewest rows of a table.
        folder: Where tables and examples are kept; None for nowhere.
    """

    ends: float
    pairs: int
    records: int
    folder: Path | None

    def files(self, schema: Schema, number: int) -> tuple[tuple[str, ...], str | None]:
        """The files of a finding's tables with the record, and the file of the one without.

        Linked tables have a folder; their target says what the other ones lack.
        """
        place = (self.folder or Path()) / f"pair-{number}"
        if isinstance(schema, LinkedTables):
            return tuple(str(place / f"{name}.csv") for name in schema.tables), None
        return (f"{place}-with.csv",), f"{place}-without.csv"


class _TimeUpError(KeyboardInterrupt):
    """The search has used its time; Hypothesis lets interrupts through."""


class _EndedError(KeyboardInterrupt):
    """Too many pairs ended the processes of the code."""


class _ShownError(Exception):
    """A pair shows something; each finding has a class of its own, by which Hypothesis sorts."""


def search(
    generator: object,
    schema: SchemaGiven,
    *,
    seconds: float = SECONDS,
    pairs: int = MOST,
    records: int = 1,
    out: Path | str | None = None,
    fits: int = FITS,
    on_progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> SearchRecord:
    """Searches the neighbouring tables of a schema for the smallest pairs that break a claim.

    Hypothesis draws pairs of tables from the schema, steered towards those that spend most, and
    shrinks what it finds. Two fits tell what a pair spends and where data goes around the noise;
    three more pairs of fits with other seeds confirm it. The worst pairs are then replayed as a
    whole. A search that finds nothing replays the costliest pair.

    Args:
        generator: As for `dpaudit.replay`.
        schema: The public schema, or its file. No table is needed.
        seconds: Time for the search, replays of what it found not counted; 30 pairs are tried in
            any case.
        pairs: The most pairs to try.
        records: The fewest rows of a table; 0 tries tables without rows, on which code often fails.
        out: Folder in which the tables of findings are written, and examples kept that the next
            search tries first. By default nothing is kept.
        fits: Fits that may be made to prove a leak from the release of a pair.
        on_progress: Called with a line of progress.
        settings: Options of `dpaudit.replay`, and claim, parameters, rows, confidence and seed.

    Returns:
        What was found, the worst first.

    Raises:
        InputError: If anything is unusable, before any training.
        ReplayError: If the generator fails on every first pair, ends its process there, or is not
            repeatable.
    """
    check_number("seconds", seconds, POSITIVE)
    check_number("pairs", pairs, AT_LEAST_1, whole=True)
    check_number("records", records, AT_LEAST_0, whole=True)
    started = time.monotonic()
    if out is not None:
        _make_folder(Path(out))
    asked = {name: settings.pop(name) for name in _OF_REPLAYS & settings.keys()}
    options = Options.of({"fits": fits, **asked})
    spec = _build_spec(generator, schema, records, settings)
    options = options.with_proof_of(spec.generator.generator)
    first = base_pair(spec.table.schema, spec.claim.neighbours, records)
    say = on_progress or (lambda line: None)
    with prepare_start(spec) as start, ExitStack() as stack:
        samplers = json.dumps([dict(sampler) for sampler in options.samplers])
        open_worlds = partial(open_processes, start, samplers=samplers)
        examiner = Examiner(
            lambda: stack.enter_context(open_worlds()),
            spec,
            options,
            PairFinding(None, "", -1.0, first),
        )
        ends = time.monotonic() + seconds
        limits = SearchLimits(ends, pairs, records, None if out is None else Path(out))
        _try_pairs(examiner, limits, say)
        confirmed = [finding for finding in examiner.ranked if examiner.is_confirmed(finding)]
        searched = [
            _replay_pair(examiner, finding, limits, number, open_worlds, say)
            for number, finding in enumerate(confirmed or [examiner.costliest], 1)
        ]
    return _record(examiner, confirmed, searched, seconds=time.monotonic() - started)


def _record(
    examiner: Examiner,
    confirmed: Sequence[PairFinding],
    searched: Sequence[SearchedPair],
    *,
    seconds: float,
) -> SearchRecord:
    """The record of a search.

    Args:
        examiner: What all pairs showed.
        confirmed: The findings that other seeds confirmed.
        searched: Their pairs; without findings, the costliest pair.
        seconds: How long the search took.
    """
    spec = examiner.spec
    missed = [finding for finding in examiner.ranked if finding not in confirmed]
    return SearchRecord(
        verdict=_verdict(searched, is_clean=not examiner.ranked and not examiner.ended),
        generator=spec.generator.name,
        parameters=spec.generator.parameters,
        claim=spec.claim,
        pairs=examiner.tried,
        failed=examiner.failed,
        failure=examiner.failure,
        ended=examiner.ended,
        end=examiner.end,
        findings=tuple(sorted(searched, key=_severity)) if confirmed else (),
        unconfirmed=tuple(f"{finding.kind} {finding.place}" for finding in missed),
        costliest=None if confirmed else searched[0],
        seed=spec.settings.seed,
        seconds=seconds,
        versions=spec.versions,
        date=today(),
    )


def _try_pairs(examiner: Examiner, limits: SearchLimits, say: Callable[[str], None]) -> None:
    """Tries the first pairs, and those that Hypothesis draws."""
    say("control, and the worst cases of an audit")
    with suppress(_EndedError):
        for pair in first_pairs(examiner, limits):
            _examine(examiner, pair)
        left = max(0.0, limits.ends - time.monotonic())
        say(f"pairs that Hypothesis draws, for {left:.0f} s")
        draw_pairs(examiner, limits)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{folder} cannot be made: {io_reason(error)}; give another `out`"
        ) from None


def _build_spec(
    generator: object, schema: SchemaGiven, records: int, settings: dict[str, Any]
) -> TwoWorldSpec:
    """The first pair as an audit; every other one takes its tables' place."""
    named = sorted(_OF_ONE_PAIR & settings.keys())
    if named:
        names = listed([f"`{name}`" for name in named])
        raise SettingsError(f"a search makes its own tables: leave out {names}")
    public, path = public_schema(schema)
    if public is None:
        raise SettingsError("a search makes its tables from a schema: give `schema`")
    stated = audit_settings(**{"rows": ROWS} | settings)
    unit = stated_unit(stated.claim)
    public = public if unit is None else public.with_unit(unit)
    check_public(public, "a search")
    pair = base_pair(public, Neighbours.ADD_REMOVE, records)
    stated = stated.with_game(target=f"row:{pair.rows[0]}")
    spec = build_two_worlds(generator, Table(pair.data, public, CHOICE, path), stated)
    require_claim(spec.claim, method="a search")
    if isinstance(public, LinkedTables) and spec.claim.neighbours is not Neighbours.ADD_REMOVE:
        raise SettingsError(
            "a search of linked tables leaves a unit out: leave out `neighbours`, or give "
            f"{Neighbours.ADD_REMOVE}"
        )
    return spec


def first_pairs(examiner: Examiner, limits: SearchLimits) -> list[NeighbouringTables]:
    """The worst cases of an audit and crowds, after a control of the first that the code takes.

    Raises:
        ReplayError: If the generator fails on all of them, or is not repeatable.
    """
    schema, relation = examiner.spec.table.schema, examiner.spec.claim.neighbours
    pairs = [base_pair(schema, relation, limits.records)]
    if schema.unit is None:
        worst = [related(pair, relation) for pair in searched_tables(schema).values()]
        pairs += [pair for pair in worst if len(pair.data) > limits.records]
    pairs += crowds(schema, relation, limits.records)
    failure = None
    for pair in pairs:
        fits, control = examiner.fits_of(pair), ReplayFindings()
        try:
            run_control(fits, control)
        except WorldEndedError:
            raise
        except ReplayError as error:
            failure = failure or error
            continue
        if control.control is not None:
            raise ReplayError(
                f"the code is not repeatable, so nothing can be compared: {control.control}"
            )
        examiner.without = control.without
        break
    else:
        raise ReplayError(
            f"{failure}; it does so on {counted(len(pairs), 'table')} of at most "
            f"{max(len(pair.data) for pair in pairs)} rows: if it needs more, give `records`"
        )
    return pairs


def draw_pairs(examiner: Examiner, limits: SearchLimits) -> None:
    """Lets Hypothesis draw pairs, in rounds: each passes over what those before it found."""
    spec, known = examiner.spec, set[object]()
    strategy = neighbouring_pairs(
        spec.table.schema, neighbours=spec.claim.neighbours, records=limits.records
    )
    for number in itertools.count():
        affordable = int((limits.ends - time.monotonic()) / examiner.pace)
        left = min(limits.pairs - examiner.tried, max(affordable, FEWEST - examiner.tried))
        if left < 1:
            return
        _run_round(examiner, limits, strategy, known=frozenset(known), most=left, number=number)
        if examiner.smallest.keys() <= known:
            return
        known |= examiner.smallest.keys()


def _examine(examiner: Examiner, pair: NeighbouringTables) -> PairFinding:
    """What a pair shows, unless too many pairs have ended the processes."""
    shown = examiner.examine(pair)
    if examiner.ended > _MOST_ENDED:
        raise _EndedError
    return shown


def _run_round(
    examiner: Examiner,
    limits: SearchLimits,
    strategy: SearchStrategy[NeighbouringTables],
    *,
    known: Collection[object],
    most: int,
    number: int,
) -> None:
    """A run of Hypothesis; what is known is passed over, so that something else is found."""
    classes: dict[object, type[_ShownError]] = {}
    folder = limits.folder
    database = None if folder is None else DirectoryBasedExampleDatabase(folder / "examples")

    @hypothesis.seed(Stream(examiner.spec.settings.seed, "", "search", number).seed())
    @hypothesis.settings(
        max_examples=most,
        deadline=None,
        database=database,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=(Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
        print_blob=False,
    )
    @hypothesis.given(strategy)
    def examine(pair: NeighbouringTables) -> None:
        if time.monotonic() > limits.ends and examiner.tried >= FEWEST:
            raise _TimeUpError
        shown = _examine(examiner, pair)
        if shown.kind is None:
            hypothesis.target(shown.ratio, label="spent, of the claim")
        elif shown.key not in known:
            raise classes.setdefault(shown.key, type("Shown", (_ShownError,), {}))

    with suppress(_TimeUpError, _ShownError, BaseExceptionGroup, Flaky):
        examine()


def _write_tables(fits: Fits, files: Sequence[str], other_file: str | None) -> None:
    """Writes the tables of both worlds, or the linked tables with the target."""
    schema, written = fits.spec.table.schema, list(files)
    given = [schema.handed(fits.tables[World.IN])]
    if isinstance(schema, LinkedTables):
        given = list(given[0].values())
    if other_file is not None:
        given.append(schema.handed(fits.tables[World.OUT]))
        written.append(other_file)
    for table, file in zip(given, written, strict=True):
        _make_folder(Path(file).parent)
        write_whole(Path(file), table.to_csv(index=False))


def _severity(pair: SearchedPair) -> int:
    """The worst pair has the lowest; those that were not replayed come last."""
    return len(BY_SEVERITY) if pair.verdict is None else BY_SEVERITY.index(pair.verdict)


def _verdict(searched: Sequence[SearchedPair], *, is_clean: bool) -> Verdict:
    """The worst verdict of the pairs; only a search without findings is consistent."""
    verdicts = [pair.verdict for pair in searched if pair.verdict is not None]
    return most_severe(verdicts if is_clean else [*verdicts, Verdict.INCONCLUSIVE])


def _replay_pair(
    examiner: Examiner,
    finding: PairFinding,
    limits: SearchLimits,
    number: int,
    open_worlds: Callable[[], AbstractContextManager[Processes]],
    say: Callable[[str], None],
) -> SearchedPair:
    """A pair with what it shows, and what a whole replay of it says if it is one of the worst."""
    schema, options = finding.pair.schema, examiner.options
    files, other_file = limits.files(schema, number)
    fits = examiner.fits_of(finding.pair, files, other_file, say=say)
    if limits.folder is not None:
        _write_tables(fits, files, other_file)
    verdict, said = None, ""
    if number <= _REPLAYED:
        say(f"pair {number}: control")
        try:
            record = replay_record(fits, options, open_worlds, time.monotonic())
            verdict, said = record.verdict, record.headline
        except ReplayError as error:
            if isinstance(error, WorldEndedError):
                examiner.lose_processes(error)
            verdict, said = Verdict.INCONCLUSIVE, f"not replayed: {error}"
    spent = finding.ratio * examiner.spec.claim.value
    return SearchedPair(
        kind=finding.kind,
        place=finding.place,
        spent=spent if math.isfinite(spent) else None,
        columns=pair_columns(schema),
        rows=pair_rows(finding.pair),
        verdict=verdict,
        said=said,
        reproduce=command_of(fits, options),
    )
