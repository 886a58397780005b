"""Runs both worlds in lock-step: both ask the same question and get one answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.errors import ReplayError, TrialError, WorldEndedError
from dpaudit.external.session import WorkerError
from dpaudit.game.trial import reason_of
from dpaudit.plugins.protocols import World
from dpaudit.replaying.match import Match, Parted, Restart
from dpaudit.replaying.orders import FinishedFit, Learned, Order
from dpaudit.replaying.processes import WORLDS, Processes
from dpaudit.replaying.transcript import (
    Parting,
    PartKind,
    Unfollowed,
)

MOST_ASKED: Final = 200
"""A fit is given up if more lines than this turn out to depend on the data."""
_PASSED_ON: Final = (
    "own_coins",
    "edge",
    "most_draws",
    "wide",
    "samples",
    "redraws",
    "notes_ranges",
)
"""Fields of an order that are sent to the worlds unchanged."""
Sides = Sequence[dict[str, Any]]
"""The same question of both worlds."""


class Worlds:
    """Fits in both worlds, or in one.

    Args:
        processes: Where they run.
        places: Places of the records that only one world has: one, or those of a unit.
        rng: Makes a stream of its purpose and number.
    """

    def __init__(
        self,
        processes: Processes,
        places: Sequence[int],
        rng: Callable[[str, int], np.random.Generator],
    ) -> None:
        self.processes, self.places, self.rng = processes, tuple(places), rng
        self.learned = Learned()

    def run(self, order: Order) -> FinishedFit:
        """One fit in each world of an order.

        Raises:
            WorldEndedError: If a process ends.
            ReplayError: If too many lines depend on the data to be followed.
        """
        started = time.monotonic()
        while len(self.learned.lines.asked) < MOST_ASKED:
            # of a unit each row would have a coin of its own: the law of several is not followed
            place = self.places[0] if len(self.places) == 1 else None
            answers = self.rng("answers", order.number)
            match = Match(self.learned, order, self.processes, place, answers)
            try:
                fit = self._run_once(match, order)
            except Restart:
                continue
            fit.transcript.seconds = time.monotonic() - started
            return fit
        raise ReplayError(
            f"more than {MOST_ASKED} lines depend on the record without noise: replay cannot "
            "follow this generator; audit it with `dpaudit audit`"
        )

    def _run_once(self, match: Match, order: Order) -> FinishedFit:
        self.processes.children.clear()
        seed, sample_seed = (
            int(self.rng(role, order.number).integers(2**31)) for role in ("seed", "sample seed")
        )
        self._begin(match, order)
        fits = {
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
        parting, again = None, False
        try:
            match.run(fits)
        except Parted as parted:
            parting, again = parted.parting, match.finds_lone_turn(parted.parting)
        except Restart:
            again = True
        match.dismiss(fits)
        results = [_result_of(world, fits.get(world)) for world in WORLDS]
        match.end(*order.worlds)
        if again:
            raise Restart
        transcript = match.transcript
        transcript.failures = (results[0][1], results[1][1])
        if parting is None and transcript.failures == (None, None):
            try:
                match.compare_notes()
            except Parted as parted:
                parting = parted.parting
        failed = [failure is not None for failure in transcript.failures]
        if parting is None and len(fits) > 1 and failed[0] != failed[1]:
            first, second = (failure or "ends" for failure in transcript.failures)
            parting = Parting(kind=PartKind.FAILURE, sites=(None, None), values=(first, second))
        transcript.parting = parting
        transcript.unfollowed += [
            Unfollowed(site, "drawn in a process that the generator started")
            for site in self.processes.children
        ]
        match.finish()
        return FinishedFit(transcript, (results[0][0], results[1][0]))

    def _begin(self, match: Match, order: Order) -> None:
        message = {
            "kind": "begin",
            "mode": order.mode,
            "seed": int(self.rng("coins", order.number).integers(2**62)),
            "kept": order.keeps,
            "watch_state": order.watches_state,
            **{name: getattr(order, name) for name in _PASSED_ON},
            **{name: sorted(lines) for name, lines in self.learned.lines._asdict().items()},
        }
        controls = [self.processes.worlds[world].control for world in order.worlds]
        for world, control in zip(order.worlds, controls, strict=True):
            own, other = match.lengths if world is World.IN else match.lengths[::-1]
            own_rows = [match.place] if match.place is not None and own > other else []
            control.send({**message, "rows": [own, other], "own_rows": own_rows})
        for control in controls:
            control.receive()


def _result_of(
    world: World, fit: Future[pd.DataFrame | None] | None
) -> tuple[pd.DataFrame | None, str | None]:
    """The table of a fit, and why it failed by itself."""
    if fit is None:
        return None, None
    try:
        return fit.result(), None
    except WorkerError as error:
        raise WorldEndedError(f"world {world} ended: {error}") from None
    except TrialError as error:
        ended = "dpaudit has ended this fit" in str(error)
        return None, "ended" if ended else reason_of(error)
