"""The two worlds of a distinguishing game."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dpaudit.errors import SettingsError, TargetError
from dpaudit.game.protocol import without
from dpaudit.game.target import Target, copies_of
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView, World


@dataclass(frozen=True, kw_only=True)
class Game:
    """One distinguishing game: two tables that differ in one record and in nothing else.

    There is one number of requested rows, for both worlds: a game that asks for different numbers
    cannot be built.

    Attributes:
        view: What the attacker knows.
        data: Every record of either world, canonical; a replacement next to what it replaces.
        missing: Position in `data` of the one record that a world lacks, or None.

    Raises:
        SettingsError: If the worlds are not neighbours.
    """

    view: GameView
    data: pd.DataFrame
    missing: dict[World, int | None]

    def __post_init__(self) -> None:
        lacking = sorted(row for row in self.missing.values() if row is not None)
        if self.view.neighbours is Neighbours.ADD_REMOVE:
            sound = self.missing[World.IN] is None and len(lacking) == 1
        else:  # one of a pair in each world, so that they differ in one place
            sound = len(lacking) == 2 and lacking[0] + 1 == lacking[1]
        if not sound or not 0 <= lacking[0] <= lacking[-1] < len(self.data):
            raise SettingsError(
                f"of {len(self.data)} records world in lacks {self.missing[World.IN]} and world "
                f"out {self.missing[World.OUT]}: they are not {self.view.neighbours} neighbours"
            )

    def dropped_rows(self, world: World, number: int) -> tuple[int, ...]:
        """The row that every trial of a world trains without, if it lacks one."""
        del number
        row = self.missing[world]
        return () if row is None else (row,)

    def table(self, world: World, number: int) -> pd.DataFrame:
        """What every trial of a world trains on: a copy."""
        return without(self.data, self.dropped_rows(world, number))

    def rows_requested(self, world: World) -> int:
        """Synthetic rows asked of a model of this world: the same in both."""
        del world
        return self.view.n_rows


def build_game(
    data: pd.DataFrame,
    schema: Schema,
    target: Target,
    *,
    n_rows: int,
    neighbours: Neighbours,
    replacement: pd.DataFrame | None,
    released_facts: tuple[str, ...] = (),
    released_effect: FloatArray | None = None,
) -> Game:
    """Builds both worlds from a canonical table and the target.

    Args:
        data: The table handed in, canonical.
        schema: Its schema.
        target: The attacked record; where its row is None it is added to make world "in".
        n_rows: Synthetic rows to request.
        neighbours: The neighbouring relation.
        replacement: For replace-one, the record (one canonical row) that stands in the target's
            place in world "out".
        released_facts: Names of the numbers that every model releases, if the attacker sees them.
        released_effect: As of `GameView`.

    Returns:
        The game.

    Raises:
        TargetError: If the target's record is in both worlds.
        SettingsError: If fewer than one row is requested.
    """
    others = without(data, () if target.row is None else (target.row,))
    position = len(data) if target.row is None else target.row
    added, missing = [target.record], {World.IN: None, World.OUT: position}
    if neighbours is Neighbours.REPLACE_ONE:
        assert replacement is not None
        added, missing = [*added, replacement], {World.IN: position + 1, World.OUT: position}
    union = pd.concat([others.iloc[:position], *added, others.iloc[position:]])
    view = GameView(
        schema=schema,
        others=others,
        target=target.record,
        n_rows=n_rows,
        neighbours=neighbours,
        released_facts=released_facts,
        released_effect=released_effect,
    )
    game = Game(view=view, data=schema.canonical(union), missing=missing)
    if copies_of(target.record, game.table(World.OUT, 0), schema):
        raise TargetError(
            f"the target ({target.choice}) has an identical copy in the table or as its "
            "replacement, so it is in both worlds: choose another target, or drop duplicate rows"
        )
    return game
