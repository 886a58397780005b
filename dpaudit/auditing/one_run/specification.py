"""From what the caller asked for to a complete one-run audit; trains nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpaudit.auditing.one_run.attack import guesses_of
from dpaudit.auditing.spec import Prepared
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.game.canaries import CanaryGame, choose_canaries, flip_coins
from dpaudit.model.claim import Neighbours
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import claim_under_audit, named_generator
from dpaudit.plugins.protocols import BoolArray, GameView, IntArray

MIN_CANARIES = 20
DEFAULT_CANARIES = 100


@dataclass(frozen=True, kw_only=True)
class OneRunAudit(Prepared):
    """A complete one-run audit, ready to be played.

    Attributes:
        canary_rows: Positions [m] of the canaries in the table handed in, ascending.

    Raises:
        SettingsError: If there are fewer than 20 canaries or more than half of the rows, or the
            confidence is not in (0.5, 1).
        ClaimError: If the claim is not for add-remove neighbours.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("neighbours", "canaries")

    canary_rows: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        check_canaries(self.canaries, rows=len(self.table.data))
        if not 0.5 < self.confidence < 1:
            raise SettingsError(f"--confidence must be in (0.5, 1), got {self.confidence:g}")
        if self.claim.neighbours is not Neighbours.ADD_REMOVE:
            raise ClaimError(
                "--one-run adds and removes records, so it says nothing about replace-one "
                "neighbours: audit an add-remove claim, or leave out --one-run"
            )

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return len(self.canary_rows)

    @property
    def guesses(self) -> int:
        """Canaries whose coin is guessed; fixed by their number."""
        return guesses_of(self.canaries)

    @property
    def own_specification(self) -> dict[str, Any]:
        """The mode and the number of canaries; which they are follows from the table."""
        return {"pace": "one-run", "canaries": self.canaries}

    @property
    def own_options(self) -> list[str]:
        """The same, as words of the command."""
        return ["--one-run", "--canaries", str(self.canaries)]

    @cached_property
    def coins(self) -> BoolArray:
        """Which canaries [m] are included."""
        return flip_coins(self.canaries, self.stream("coins").rng())

    @cached_property
    def game(self) -> CanaryGame:
        """The one training."""
        data, rows = self.table.data, np.arange(len(self.table.data))
        canary = np.isin(rows, self.canary_rows)
        left_out = np.isin(rows, self.canary_rows[~self.coins])
        view = GameView(
            schema=self.table.schema,
            others=data[~canary].reset_index(drop=True),
            target=data[canary].reset_index(drop=True),
            n_rows=self.rows,
            neighbours=self.claim.neighbours,
        )
        return CanaryGame(view=view, data=data[~left_out].reset_index(drop=True))


def prepare_one_run(
    generator: object,
    table: Table,
    *,
    parameters: Mapping[str, Any],
    epsilon: float | None,
    delta: float | None,
    neighbours: Neighbours | None,
    canaries: int | None,
    rows: int | None,
    confidence: float,
    seed: int,
) -> OneRunAudit:
    """Validates everything a one-run audit needs; see `dpaudit.audit` for the arguments.

    Raises:
        InputError: If anything is unusable; says what and how to mend it.
    """
    data, schema = table.data, table.schema
    wanted = DEFAULT_CANARIES if canaries is None else canaries
    check_canaries(wanted, rows=len(data))
    named = named_generator(generator, parameters, {"schema": schema})
    audit = OneRunAudit(
        generator=named,
        table=table,
        claim=claim_under_audit(named, epsilon=epsilon, delta=delta, neighbours=neighbours),
        claim_is_given=epsilon is not None or delta is not None,
        rows=len(data) if rows is None else rows,
        confidence=confidence,
        seed=seed,
        canary_rows=choose_canaries(data, schema, wanted),
    )
    _ = audit.game  # validates
    check_table(named.generator, data)
    return audit


def check_canaries(canaries: int, *, rows: int) -> None:
    """Refuses a number of canaries that no game can be made of.

    Raises:
        SettingsError: If there are fewer than 20, or more than half of the rows.
    """
    if not MIN_CANARIES <= canaries <= rows // 2:
        raise SettingsError(
            f"--canaries must be a number from {MIN_CANARIES} to half of the table's "
            f"{rows} rows, got {canaries}"
        )
