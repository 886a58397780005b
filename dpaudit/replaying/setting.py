"""One replay of a target: the common inputs of all of them, and their streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.protocols import World
from dpaudit.replaying.lockstep import Order, Played, Worlds
from dpaudit.replaying.subsamples import with_other_rows
from dpaudit.seeds import Stream

FIRST: Final = 10
"""Number of the first counted replay; the control, the pilot and its repeat come before it."""

FURTHER: Final = 200
"""The same of further ones, if only some numbers of their answers count."""


def streams(seed: int) -> Callable[[str, int], np.random.Generator]:
    """Every stream of a replay, by its purpose and number."""
    return lambda role, number: Stream(seed, "replay", role, number).rng()


def _nothing(line: str) -> None:
    del line


class ReplaySetting(NamedTuple):
    """The common inputs of every replay of a target.

    Attributes:
        worlds: The processes of both worlds.
        spec: What is audited.
        public_coins: As in `run.replay`.
        samplers: As in `run.replay`.
        hand_over: As in `run.replay`.
        say: Called with a line before each replay.
        public_seeds: As in `lockstep.Order`.
    """

    worlds: Worlds
    spec: TwoWorldSpec
    public_coins: bool = False
    samplers: Sequence[Mapping[str, Any]] = ()
    hand_over: bool = False
    say: Callable[[str], None] = _nothing
    public_seeds: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """Synthetic rows asked of both worlds."""
        return self.spec.game.view.n_rows

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the target in its table: one, or those of the rows of a unit.

        None where there are several tables: coins of their rows are not followed.
        """
        if isinstance(self.spec.table.schema, LinkedTables):
            return ()
        return next(rows for rows in self.spec.game.missing.values() if rows)

    def play(self, order: Order, *, alike: World | None = None, rows: int | None = None) -> Played:
        """One replay; on request with one world's table in both, or another number of rows.

        If the order has rows, both worlds have the same table except for those rows.
        """
        game = self.spec.game
        both = World.IN if order.rows else alike
        tables = {world: game.table(both or world, 0) for world in World}
        if order.rows:
            rng = self.worlds.rng("other records", order.number)
            tables[World.OUT] = with_other_rows(tables[World.OUT], order.rows, rng)
        order = order._replace(public_seeds=self.public_seeds)
        return self.worlds.play(tables, rows=rows or self.rows, order=order, places=self.places)
