"""A search for the worst case that shows most: its candidates, its rounds, the audit after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.model.choices import WorstCase
from dpaudit.model.neighbouring_tables import searched_tables
from dpaudit.model.tables import Table
from dpaudit.plugins.named import NamedAttack
from dpaudit.results.record import Selection

MOST_CANDIDATES: Final = len(WorstCase) - 2
"""All but the search itself and the one that has a schema of its own."""
FEWEST: Final = 4
"""Least number of trainings of each world for a candidate of a round.

Of features that take two values, one in eight separates two trainings of each world by chance, and
one in 128 separates four.
"""


@dataclass(frozen=True, kw_only=True)
class WorstCaseSearchSpec(AuditSpec):
    """A complete search for the worst case of an audit.

    Attributes:
        candidates: The audits of all candidates, each with its own table.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target",)

    settings: AuditSettings[TwoWorlds]
    candidates: tuple[TwoWorldSpec, ...]

    @property
    def rounds(self) -> tuple[int, ...]:
        """Trainings of each world for every candidate of each round."""
        return rounds(len(self.candidates), self.settings.game.shadow_models)

    @property
    def per_world(self) -> int:
        """Trainings of each world, over all candidates and rounds."""
        return per_world(len(self.candidates), self.rounds)

    @property
    def before(self) -> str:
        """What will be trained, in one line."""
        return (
            f"worst case: {2 * self.per_world} trainings, shared by {len(self.candidates)} "
            "candidates"
        )

    @property
    def own_specification(self) -> dict[str, Any]:
        """The audit's choices, with the names of the candidates."""
        names = [one.target.choice for one in self.candidates]
        target = {"choice": f"worst-case:{WorstCase.SEARCH}", "candidates": names}
        return {**self.like_it.own_specification, "target": target}

    @property
    def all_attacks(self) -> Sequence[NamedAttack]:
        """Those of the audit."""
        return self.like_it.all_attacks

    @property
    def own_options(self) -> list[str]:
        """The words of the audit's command."""
        return self.like_it.own_options

    @property
    def like_it(self) -> TwoWorldSpec:
        """The audit of the first candidate."""
        return self.candidates[0]

    def audit_of(self, place: int) -> TwoWorldSpec:
        """The audit of a candidate: the same as with its name in `worst_case`."""
        selection = Selection(candidates=len(self.candidates), trainings=2 * self.per_world)
        return replace(self.candidates[place], selection=selection)


def rounds(candidates: int, models: int) -> tuple[int, ...]:
    """Divides a number of models among the rounds of a search.

    Args:
        candidates: Candidates of the first round; each next one has the better half.
        models: Models of both worlds together, for all rounds; more if these are too few for
            `FEWEST` of each world in every round.

    Returns:
        Models of each world for every candidate, one number per round.
    """
    left = [candidates]
    while left[-1] > 2:
        left.append(survivors(left[-1]))
    share = models // (2 * len(left))
    return tuple(max(FEWEST, share // number) for number in left)


def survivors(candidates: int) -> int:
    """How many of the candidates of a round enter the next one."""
    return (candidates + 1) // 2


def per_world(candidates: int, of_rounds: Sequence[int]) -> int:
    """Models of each world in all rounds together."""
    total = 0
    for each in of_rounds:
        total += each * candidates
        candidates = survivors(candidates)
    return total


def candidate_audits(
    generator: object, table: Table, settings: AuditSettings[TwoWorlds]
) -> tuple[TwoWorldSpec, ...]:
    """The audits of every worst case of a schema, each as if it had been named.

    Args:
        generator: As for `dpaudit.audit`.
        table: Any table of the schema.
        settings: Every choice of the audits.

    Returns:
        The audits, that of `opposite` first.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    return tuple(
        build_two_worlds(
            generator,
            Table(pair.data, pair.schema, pair.choice, table.schema_source),
            settings.with_game(worst_case=worst_case),
        )
        for worst_case, pair in searched_tables(table.schema).items()
    )


def build_worst_case_search(
    generator: object, table: Table, settings: AuditSettings[TwoWorlds]
) -> WorstCaseSearchSpec:
    """Validates everything that a search and the audit after it need; trains nothing.

    Args:
        generator: As for `dpaudit.audit`.
        table: A table of the schema.
        settings: Every choice of the audit.

    Returns:
        The search.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    candidates = candidate_audits(generator, table, settings)
    return WorstCaseSearchSpec(
        generator=candidates[0].generator,
        table=table,
        settings=settings,
        claim=candidates[0].claim,
        given=generator,
        candidates=candidates,
    )
