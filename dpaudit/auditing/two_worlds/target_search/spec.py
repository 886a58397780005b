"""A search for the most vulnerable record: its candidates, its trainings, the audit after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.auditing.two_worlds.target_search.candidates import candidates_of
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.game.worlds import SelectionGame, halves
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table
from dpaudit.plugins.named import NamedAttack, named_generator
from dpaudit.plugins.protocols import GameView
from dpaudit.results.record import Selection


@dataclass(frozen=True, kw_only=True)
class TargetSearchSpec(AuditSpec):
    """A complete search for the target of an audit.

    Attributes:
        first: The audit of the first candidate.
        candidates: Positions [m] of the candidates in the table, the most exposed first.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target",)

    settings: AuditSettings[TwoWorlds]
    first: TwoWorldSpec
    candidates: tuple[int, ...]

    @property
    def trainings(self) -> int:
        """Models to train: as many as the audit has shadow models."""
        return self.settings.game.shadow_models

    @property
    def before(self) -> str:
        """What will be trained, in one line."""
        return (
            f"target: {self.trainings} trainings, each without a random half of "
            f"{len(self.candidates)} candidates"
        )

    @property
    def own_specification(self) -> dict[str, Any]:
        """The audit's choices and the number of candidates; the table determines which ones.

        It has all of the choices, so that a run folder refuses a different audit before the search
        and not after it.
        """
        target = {"choice": VULNERABLE, "candidates": len(self.candidates)}
        return {**self.first.own_specification, "target": target}

    @property
    def all_attacks(self) -> Sequence[NamedAttack]:
        """The audit's attacks."""
        return self.first.all_attacks

    @property
    def own_options(self) -> list[str]:
        """The words of the audit's command."""
        return self.first.own_options

    @property
    def like_it(self) -> TwoWorldSpec:
        """The audit of the first candidate."""
        return self.first

    @cached_property
    def game(self) -> SelectionGame:
        """What the search trains on."""
        data = self.table.data
        rows = list(self.candidates)
        view = GameView(
            schema=self.table.schema,
            others=data.drop(index=rows).reset_index(drop=True),
            target=data.iloc[rows].reset_index(drop=True),
            n_rows=self.rows,
            neighbours=self.claim.neighbours,
        )
        included = halves(self.trainings, len(rows), self.stream("candidates").rng())
        each = tuple((row,) for row in rows)
        return SelectionGame(view=view, data=data, candidates=each, included=included)

    def audit_of(self, row: int) -> TwoWorldSpec:
        """The audit of the record found: the same as with `target="row:N"`."""
        settings = self.settings.with_game(target=f"row:{row}")
        audit = build_two_worlds(self.given, self.table, settings)
        return replace(audit, selection=self.first.selection)


def build_target_search(
    generator: object, table: Table, settings: AuditSettings[TwoWorlds]
) -> TargetSearchSpec:
    """Validates everything that a search and the audit after it need; trains nothing.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        The search.

    Raises:
        TargetError: If fewer than two records could be candidates.
        SettingsError: If the generator takes the target when it is built.
        InputError: If anything else is unusable; says what and how to fix it.
    """
    candidates = candidates_of(table)
    first = build_two_worlds(generator, table, settings.with_game(target=f"row:{candidates[0]}"))
    try:
        named = named_generator(
            generator,
            settings.parameters,
            {"schema": table.schema},
            worker_memory=settings.worker_memory,
        )
    except RegistryError:  # it can be built once there is a target
        raise SettingsError(
            f"{first.generator.name} takes the target when it is built, so none can be searched "
            'for: name it with `target="row:N"`'
        ) from None
    selection = Selection(candidates=len(candidates), trainings=settings.game.shadow_models)
    return TargetSearchSpec(
        generator=named,
        table=table,
        settings=settings,
        claim=first.claim,
        given=generator,
        first=replace(first, selection=selection),
        candidates=candidates,
    )
