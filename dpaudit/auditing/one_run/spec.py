"""The one-run audit, complete and validated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dpaudit.auditing.one_run.settings import OneRun
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, build_generator, view_of
from dpaudit.game.worlds import CanaryGame, choose_canaries, flip_coins
from dpaudit.model.claim import require_add_remove
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import claim_if_any
from dpaudit.plugins.protocols import BoolArray, IntArray


@dataclass(frozen=True, kw_only=True)
class OneRunSpec(AuditSpec):
    """A complete one-run audit.

    Attributes:
        canary_rows: Positions [r] of the rows of all m canaries in the table handed in, ascending.

    Raises:
        SettingsError: If there are fewer than 20 canaries or more than half of the rows or units.
        ClaimError: If the claim is not for add-remove neighbours.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("neighbours", "canaries")

    settings: AuditSettings[OneRun]
    canary_rows: IntArray

    def __post_init__(self) -> None:
        self.settings.game.check_population(self.table.population)
        require_add_remove(self.claim.neighbours, method="`one_run`")

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return self.settings.game.canaries

    @property
    def own_specification(self) -> dict[str, Any]:
        """The mode and its choices; the table determines which records are canaries."""
        return {"one_run": True, **self.settings.game.plain()}

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        return ["--one-run", *self.settings.game.words()]

    @cached_property
    def coins(self) -> BoolArray:
        """Which canaries [m] are included."""
        return flip_coins(self.canaries, self.stream("coins").rng())

    @cached_property
    def game(self) -> CanaryGame:
        """The one training."""
        data = self.table.data
        view = view_of(
            self.table, self.canary_rows, rows=self.rows, neighbours=self.claim.neighbours
        )
        included = self.coins[self.table.schema.owners(view.target)]
        left_out = np.isin(np.arange(len(data)), self.canary_rows[~included])
        return CanaryGame(view=view, data=data[~left_out].reset_index(drop=True))


def build_one_run(generator: object, table: Table, settings: AuditSettings[OneRun]) -> OneRunSpec:
    """Validates everything that a one-run audit needs.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        The audit.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    data, schema = table.data, table.schema
    settings.game.check_population(table.population)
    named = build_generator(generator, settings, schema=schema)
    spec = OneRunSpec(
        given=generator,
        generator=named,
        table=table,
        settings=settings,
        claim=claim_if_any(named, settings.claim, table),
        canary_rows=choose_canaries(data, schema, settings.game.canaries),
    )
    _ = spec.game  # validates
    check_table(named.generator, data)
    return spec
