"""The fits of a replay: in lock-step, of one world under given answers, and natural ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import ReplayError, TrialError, WorldEndedError
from dpaudit.external.session import WorkerError
from dpaudit.game.trial import reason_of
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.protocols import World
from dpaudit.replaying.match import Match, Parted, Restart
from dpaudit.replaying.orders import Learned, Order
from dpaudit.replaying.processes import WORLDS, Processes
from dpaudit.replaying.release import without_model
from dpaudit.replaying.transcript import (
    FitRelease,
    Parting,
    PartKind,
    Site,
    Transcript,
    Unfollowed,
)
from dpaudit.seeds import Stream

MOST_ASKED: Final = 200
"""A fit is given up if more lines than this turn out to depend on the data."""
_NATURAL: Final = 1_000_000
"""Natural fits have numbers from here on; those of other fits are smaller."""


@dataclass
class Fits:
    """The fits of a replay, and how many there were.

    Attributes:
        processes: Where they run.
        spec: What is replayed.
        watches_state: Whether the fitted model counts as released.
        say: Called with a line of progress.
        keeps: As in `orders.Order`.
        learned: What they have taught about the code.
        count: Fits so far.
        seconds: Time of each pair in lock-step.
        seeds: The numbers of the fits in which each seed was seen, by the line of noise.
    """

    processes: Processes
    spec: TwoWorldSpec
    watches_state: bool = True
    say: Callable[[str], None] = lambda line: None
    keeps: bool = True
    learned: Learned = field(default_factory=Learned)
    count: int = 0
    seconds: list[float] = field(default_factory=list)
    seeds: dict[Site, dict[str, set[int]]] = field(default_factory=dict)

    def rng(self, role: str, number: int) -> np.random.Generator:
        """The stream of a purpose and a number."""
        return Stream(self.spec.settings.seed, "replay", role, number).rng()

    @cached_property
    def place(self) -> int | None:
        """The place of the record that one world lacks; None if it is not a single one.

        Of a unit each row would have a coin of its own: the law of several is not followed.
        """
        if isinstance(self.spec.table.schema, LinkedTables):
            return None
        places = next(rows for rows in self.spec.game.missing.values() if rows)
        return int(places[0]) if len(places) == 1 else None

    @cached_property
    def tables(self) -> dict[World, pd.DataFrame]:
        """What each world trains on."""
        return {world: self.spec.game.table(world, 0) for world in WORLDS}

    @property
    def rows(self) -> int:
        """Synthetic rows asked of both worlds."""
        return int(self.spec.game.view.n_rows)

    def pair(self, number: int, *, alike: World | None = None, **order: Any) -> Transcript:
        """A fit in each world under equal answers; with `alike`, both on that world's table."""
        tables = {world: self.tables[alike or world] for world in WORLDS}
        transcript = self._run(tables, number, **order)
        self.seconds.append(transcript.seconds)
        return transcript

    def alone(self, world: World, number: int, **order: Any) -> Transcript:
        """A fit in one world, under answers from the coordinator."""
        return self._run({world: self.tables[world]}, number, **order)

    def natural(
        self,
        wanted: Sequence[tuple[World, int]],
        *,
        is_heard: bool = True,
        keeps_tables: bool = False,
        redraws: int = 0,
    ) -> Iterator[Transcript]:
        """Fits in which the code draws by itself, in both processes at once.

        Args:
            wanted: The world and the number of each.
            is_heard: Whether their draws are heard.
            keeps_tables: Whether the synthetic tables are wanted.
            redraws: As in `orders.Order`.
        """

        def run(world: World, number: int) -> Transcript:
            return self._run(
                {world: self.tables[world]},
                _NATURAL + number,
                is_natural=True,
                is_heard=is_heard,
                keeps_tables=keeps_tables,
                redraws=redraws,
            )

        each = {world: [number for other, number in wanted if other is world] for world in WORLDS}
        with ThreadPoolExecutor(len(WORLDS)) as pool:
            futures = {
                world: pool.submit(list, map(partial(run, world), each[world])) for world in WORLDS
            }
            results = {world: iter(futures[world].result()) for world in WORLDS}
        yield from (next(results[world]) for world, _ in wanted)

    def _run(self, tables: dict[World, pd.DataFrame], number: int, **order: Any) -> Transcript:
        """One fit in each world that has a table.

        Raises:
            WorldEndedError: If a process ends.
            ReplayError: If too many lines depend on the data to be followed.
        """
        self.count += len(tables)
        given = Order(
            number=number,
            tables=tables,
            rows=self.rows,
            watches_state=self.watches_state,
            keeps=self.keeps,
            **order,
        )
        started = time.monotonic()
        while len(self.learned.lines.asked) < MOST_ASKED:
            answers = self.rng("answers", number)
            match = Match(self.learned, given, self.processes, self.place, answers)
            try:
                self._run_once(match, given)
            except Restart:
                continue
            transcript = match.transcript
            transcript.seconds = time.monotonic() - started
            for site, texts in transcript.seeds.items():
                for text in texts:
                    self.seeds.setdefault(site, {}).setdefault(text, set()).add(number)
            return transcript
        raise ReplayError(
            f"more than {MOST_ASKED} lines depend on the record without noise: replay cannot "
            "follow this generator; audit it with `dpaudit audit`"
        )

    def _run_once(self, match: Match, order: Order) -> None:
        self.processes.take_children()
        seed, sample_seed = (
            int(self.rng(role, order.number).integers(2**31)) for role in ("seed", "sample seed")
        )
        match.begin(int(self.rng("coins", order.number).integers(2**62)))
        futures = {
            world: self.processes.pool.submit(
                self.processes.worlds[world].fit,
                order.tables[world],
                rows=order.rows,
                seed=seed,
                sample_seed=sample_seed,
                keeps_table=order.keeps_tables,
            )
            for world in order.worlds
        }
        transcript, again = match.transcript, False
        try:
            match.run(futures)
        except Parted as parted:
            transcript.parting = parted.parting
            again = match.finds_lone_turn(parted.parting)
        except Restart:
            again = True
        match.dismiss(futures)
        inside, outside = (_result_of(world, futures.get(world)) for world in WORLDS)
        match.end(*order.worlds)
        if again:
            raise Restart
        transcript.tables = inside[0], outside[0]
        transcript.failures = inside[1], outside[1]
        if transcript.parting is None and transcript.failures == (None, None):
            try:
                match.compare_notes()
            except Parted as parted:
                transcript.parting = parted.parting
        ends_alike = len({failure is None for failure in transcript.failures}) == 1
        if transcript.parting is None and len(futures) > 1 and not ends_alike:
            first, second = (failure or "ends" for failure in transcript.failures)
            failure = Parting(kind=PartKind.FAILURE, sites=(None, None), values=(first, second))
            transcript.parting = failure
        transcript.unfollowed += [
            Unfollowed(site, "drawn in a process that the generator started")
            for site in self.processes.take_children()
        ]
        match.finish()

    def release_of(self, transcript: Transcript, world: World) -> FitRelease | None:
        """What a fit released to the attacker of this replay."""
        release = transcript.releases[WORLDS.index(world)]
        return release if release is None or self.watches_state else without_model(release)

    def in_processes(self, processes: Processes) -> Fits:
        """The same fits in other processes, which ask at the same lines."""
        own = (self.spec, self.watches_state, self.say, self.keeps, self.learned)
        return Fits(processes, *own)

    @property
    def pace(self) -> float:
        """Seconds of a fit, from the pairs so far."""
        return float(np.median(self.seconds)) / 2 if self.seconds else 0.0


def _result_of(
    world: World, future: Future[pd.DataFrame | None] | None
) -> tuple[pd.DataFrame | None, str | None]:
    """The table of a fit, and why it failed by itself."""
    if future is None:
        return None, None
    try:
        return future.result(), None
    except WorkerError as error:
        raise WorldEndedError(f"world {world} ended: {error}") from None
    except TrialError as error:
        ended = "dpaudit has ended this fit" in str(error)
        return None, "ended" if ended else reason_of(error)
