"""The fits of a replay: in lock-step, of one world under given answers, and natural ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.protocols import World
from dpaudit.replaying.lockstep import Worlds
from dpaudit.replaying.orders import FinishedFit, Order
from dpaudit.replaying.processes import WORLDS, Processes
from dpaudit.replaying.release import without_model
from dpaudit.replaying.transcript import FitRelease, Site, Transcript
from dpaudit.seeds import Stream

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
        count: Fits so far.
        seconds: Time of each pair in lock-step.
        seeds: The numbers of the fits in which each seed was seen, by the line of noise.
    """

    processes: Processes
    spec: TwoWorldSpec
    watches_state: bool = True
    say: Callable[[str], None] = lambda line: None
    keeps: bool = True
    count: int = 0
    seconds: list[float] = field(default_factory=list)
    seeds: dict[Site, dict[str, set[int]]] = field(default_factory=dict)

    def rng(self, role: str, number: int) -> np.random.Generator:
        """The stream of a purpose and a number."""
        return Stream(self.spec.settings.seed, "replay", role, number).rng()

    @cached_property
    def worlds(self) -> Worlds:
        """Both worlds, which remember the lines that need questions."""
        missing = self.spec.game.missing.values()
        several = isinstance(self.spec.table.schema, LinkedTables)
        places = () if several else next(rows for rows in missing if rows)
        return Worlds(self.processes, places, self.rng)

    @cached_property
    def tables(self) -> dict[World, pd.DataFrame]:
        """What each world trains on."""
        return {world: self.spec.game.table(world, 0) for world in WORLDS}

    @property
    def rows(self) -> int:
        """Synthetic rows asked of both worlds."""
        return int(self.spec.game.view.n_rows)

    def pair(self, number: int, *, alike: World | None = None, **order: Any) -> FinishedFit:
        """A fit in each world under equal answers; with `alike`, both on that world's table."""
        tables = {world: self.tables[alike or world] for world in WORLDS}
        fit = self._run(tables, number, **order)
        self.seconds.append(fit.transcript.seconds)
        return fit

    def alone(self, world: World, number: int, **order: Any) -> FinishedFit:
        """A fit in one world, under answers from the coordinator."""
        return self._run({world: self.tables[world]}, number, **order)

    def natural(
        self,
        wanted: Sequence[tuple[World, int]],
        *,
        is_heard: bool = True,
        keeps_tables: bool = False,
        redraws: int = 0,
    ) -> Iterator[FinishedFit]:
        """Fits in which the code draws by itself, in both processes at once.

        Args:
            wanted: The world and the number of each.
            is_heard: Whether their draws are heard.
            keeps_tables: Whether the synthetic tables are wanted.
            redraws: As in `orders.Order`.
        """

        def run(world: World, number: int) -> FinishedFit:
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

    def _run(self, tables: dict[World, pd.DataFrame], number: int, **order: Any) -> FinishedFit:
        self.count += len(tables)
        given = Order(
            number=number,
            tables=tables,
            rows=self.rows,
            watches_state=self.watches_state,
            keeps=self.keeps,
            **order,
        )
        fit = self.worlds.run(given)
        for site, texts in fit.transcript.seeds.items():
            for text in texts:
                self.seeds.setdefault(site, {}).setdefault(text, set()).add(number)
        return fit

    def release_of(self, transcript: Transcript, world: World) -> FitRelease | None:
        """What a fit released to the attacker of this replay."""
        release = transcript.releases[WORLDS.index(world)]
        return release if release is None or self.watches_state else without_model(release)

    def in_processes(self, processes: Processes) -> Fits:
        """The same fits in other processes, which ask at the same lines."""
        fits = Fits(processes, self.spec, self.watches_state, self.say, self.keeps)
        fits.worlds.learned = self.worlds.learned
        return fits

    @property
    def pace(self) -> float:
        """Seconds of a fit, from the pairs so far."""
        return float(np.median(self.seconds)) / 2 if self.seconds else 0.0
