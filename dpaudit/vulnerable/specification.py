"""From what the caller asked for to a complete search for the most vulnerable record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from dpaudit.errors import RegistryError, SettingsError, TargetError
from dpaudit.game.selection import SelectionGame
from dpaudit.game.worlds import VULNERABLE, far_records
from dpaudit.named import named_generator
from dpaudit.protocols import GameView
from dpaudit.specification import Audit, Prepared, Selection
from dpaudit.tables import Table
from dpaudit.vulnerable.halving import Halving, halve

Ask = Callable[[str], Audit]
"""Prepares the audit of a target."""


@dataclass(frozen=True, kw_only=True)
class TargetSearch(Prepared):
    """A complete search for the target of an audit, ready to be played.

    Attributes:
        ask: Prepares the audit of a target, all else as the caller asked.
        first: The audit of the first candidate.
        candidates: Positions of the candidates in the table, the farthest first.
        halving: How many models each of them gets.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target",)

    ask: Ask
    first: Audit
    candidates: tuple[int, ...]
    halving: Halving

    @property
    def own_specification(self) -> dict[str, Any]:
        """That of the audit, with the number of candidates; which they are follows from the table.

        All of it, so that a run folder refuses another audit before a search rather than after.
        """
        target = {"choice": VULNERABLE, "candidates": len(self.candidates)}
        return {**self.first.own_specification, "target": target}

    @property
    def own_options(self) -> list[str]:
        """The words of the audit's command."""
        return self.first.own_options

    @cached_property
    def game(self) -> SelectionGame:
        """What the search plays."""
        data = self.table.data
        rows = list(self.candidates)
        view = GameView(
            schema=self.table.schema,
            others=data.drop(index=rows).reset_index(drop=True),
            target=data.iloc[rows].reset_index(drop=True),
            n_rows=self.rows,
            neighbours=self.claim.neighbours,
        )
        return SelectionGame(
            view=view, data=data, candidates=self.candidates, models=self.halving.most_models
        )

    def audit_of(self, row: int) -> Audit:
        """The audit of the record found: the very one that `--target row:N` asks for."""
        return replace(self.ask(f"row:{row}"), selection=self.first.selection)


def prepare_search(
    ask: Ask, generator: object, table: Table, *, parameters: Mapping[str, Any]
) -> TargetSearch:
    """Validates everything that a search and the audit after it need; trains nothing.

    Args:
        ask: Prepares the audit of a target.
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        parameters: Constructor parameters of a generator given by name.

    Raises:
        TargetError: If fewer than two records have no identical copy.
        SettingsError: If the generator must be told its target when it is built.
        InputError: If anything else is unusable; says what and how to mend it.
    """
    rows = far_records(table.data, table.schema)
    if len(rows) < 2:
        raise TargetError(
            f"--target {VULNERABLE} chooses among records without an identical copy, of which the "
            f"table has {len(rows)}: name one with --target row:N, or drop duplicate rows"
        )
    first = ask(f"row:{rows[0]}")
    try:
        named = named_generator(generator, parameters, {"schema": table.schema})
    except RegistryError:  # with a target it could be built
        raise SettingsError(
            f"{first.generator.name} is told the target when it is built, so none can be searched "
            "for: name it with --target row:N"
        ) from None
    halving = halve(first.size.shadow_models, len(rows))
    selection = Selection(candidates=halving.candidates, trainings=halving.trainings)
    return TargetSearch(
        generator=named,
        table=table,
        claim=first.claim,
        claim_is_given=first.claim_is_given,
        rows=first.rows,
        confidence=first.confidence,
        seed=first.seed,
        ask=ask,
        first=replace(first, selection=selection),
        candidates=tuple(int(row) for row in rows[: halving.candidates]),
        halving=halving,
    )
