"""The audit of many records per shadow model, complete and validated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from dpaudit.auditing.records.settings import ManyRecords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, attacks_with_access, build_generator, view_of
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.game.trial import Role
from dpaudit.game.worlds import Records, SelectionGame, choose_records, draw_included
from dpaudit.model.claim import EpsilonClaim, require_add_remove, require_on_epsilon
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import claim_if_any
from dpaudit.plugins.protocols import GameView


@dataclass(frozen=True, kw_only=True)
class RecordsSpec(AuditSpec):
    """A complete audit of many records per shadow model.

    Attributes:
        claim: The claim under audit, one of epsilon.
        records: Positions of the rows of each of the k records in the table handed in.

    Raises:
        ClaimError: If the claim is not for add-remove neighbours.
        SettingsError: If the records are more than a quarter of the rows or units.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("neighbours", "records")

    settings: AuditSettings[ManyRecords]
    claim: EpsilonClaim
    records: Records

    def __post_init__(self) -> None:
        self.settings.game.check_population(self.table.population)
        require_add_remove(self.claim.neighbours, method="`records`")

    @property
    def positions(self) -> tuple[int, ...]:
        """Position of the (first) row of each record [k]."""
        return tuple(rows[0] for rows in self.records)

    @property
    def all_rows(self) -> list[int]:
        """Positions of the rows of all records, one record after another."""
        return [row for rows in self.records for row in rows]

    @property
    def own_specification(self) -> dict[str, Any]:
        """Number of records (the table determines which ones), attacks, models."""
        return {
            "records": len(self.records),
            "attacks": self.attacks_specified,
            **self.settings.game.plain("records", "attacks"),
        }

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        words = ["--records", str(len(self.records)), *self.attack_options]
        return words + self.settings.game.words("records", "attacks")

    @cached_property
    def view(self) -> GameView:
        """The attacker's knowledge: all rows except the records."""
        return view_of(self.table, self.all_rows, rows=self.rows, neighbours=self.claim.neighbours)

    @cached_property
    def views(self) -> tuple[GameView, ...]:
        """The same for each target [k]."""
        data = self.table.data
        return tuple(
            replace(self.view, target=data.iloc[list(rows)].reset_index(drop=True))
            for rows in self.records
        )

    def game(self, role: Role, settings: AuditSettings[ManyRecords]) -> SelectionGame:
        """The models of one role, with coins of their own.

        Args:
            role: The role.
            settings: Settings of the role's trials.
        """
        included = draw_included(
            settings.game.shadow_models,
            fitted=2 * settings.game.fitted,
            records=len(self.records),
            rng=self.stream(f"{role}/coins").rng(),
        )
        return SelectionGame(
            view=self.view, data=self.table.data, candidates=self.records, included=included
        )


def build_records(
    generator: object, table: Table, settings: AuditSettings[ManyRecords]
) -> RecordsSpec:
    """Validates everything that an audit of many records needs.

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
    records = choose_records(data, schema, settings.game.records)
    try:
        named = build_generator(generator, settings, schema=schema)
    except RegistryError:
        # Raises that error again unless all that it lacks is a target.
        first = data.iloc[list(records[0])].reset_index(drop=True)
        named = build_generator(generator, settings, schema=schema, target=first)
        raise SettingsError(
            f"{named.name} takes one target when it is built, and `records` attacks many: leave "
            "out `records`"
        ) from None
    attacks, _ = attacks_with_access(named, settings.game.attacks)
    spec = RecordsSpec(
        given=generator,
        generator=named,
        table=table,
        settings=settings,
        claim=require_on_epsilon(claim_if_any(named, settings.claim, table), method="`records`"),
        records=records,
        attacks=attacks,
    )
    for attack in attacks:
        for view in spec.views:
            attack.check(view)
    check_table(named.generator, data)
    return spec
