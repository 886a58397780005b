"""The worst case that shows most, found by small trials before an audit (`worst_case="search"`).

A leak shows on some tables only: a range read off the data on a table with an outlier, a batch size
on a table that fills its last batch. The candidates are all worst cases of the schema. Rounds have
about equal numbers of trainings, and the better half of the candidates enters the next round
(sequential halving: Karnin, Koren and Somekh 2013, "Almost Optimal Exploration in Multi-Armed
Bandits").

The verdict needs no correction for the choice, for the reasons of `target_search`: tables are built
from the public schema alone, and the search's trainings have their own role and random streams.
Given the worst case found, the audit is the same as if it had been named beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.auditing.two_worlds.target_search import SearchSpec, search_payload, separations
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role, Trial
from dpaudit.model.choices import WorstCase
from dpaudit.model.neighbouring_tables import searched_tables
from dpaudit.model.tables import Table
from dpaudit.plugins.protocols import World
from dpaudit.results.record import Selection

MOST_CANDIDATES: Final = len(WorstCase) - 2
"""All but the search itself and the one that has a schema of its own."""
FEWEST: Final = 4
"""Least number of trainings of each world for a candidate of a round.

Of features that take two values, one in eight separates two trainings of each world by chance, and
one in 128 separates four.
"""


@dataclass(frozen=True, kw_only=True)
class WorstCaseSearchSpec(SearchSpec):
    """A complete search for the worst case of an audit.

    Attributes:
        candidates: The audits of all candidates, each with its own table.
    """

    SOUGHT: ClassVar[str] = "worst case"

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
    def candidates_specified(self) -> dict[str, Any]:
        """The names of the candidates."""
        names = [candidate.target.choice for candidate in self.candidates]
        return {"choice": f"worst-case:{WorstCase.SEARCH}", "candidates": names}

    def resolve(
        self,
        folder: Path,
        *,
        engine: Engine,
        on_progress: OnProgress,
        trial_timeout: float | None = None,
    ) -> TwoWorldSpec:
        """The audit of the worst case found: the same as with its name in `worst_case`."""
        with self.store(folder) as store:
            stored = store.outcomes(Role.TARGET_SELECTION)
            unused = iter(range(self.per_world))
            every = _trials(range(self.per_world))
            left = list(range(len(self.candidates)))
            trained: dict[int, list[Trial]] = {place: [] for place in left}
            for each in self.rounds:
                for place in left:
                    trials = _trials([next(unused) for _ in range(each)])
                    run_trials(
                        trials,
                        search_payload(self.candidates[place]),
                        store,
                        engine=engine,
                        trial_timeout=trial_timeout,
                        generator=self.candidates[place].generator.generator,
                        on_progress=on_progress,
                        among=every,
                    )
                    trained[place] += trials
                scores = {place: separation(trained[place], stored) for place in left}
                left = sorted(left, key=lambda place: -scores[place])[: survivors(len(left))]
        selection = Selection(candidates=len(self.candidates), trainings=2 * self.per_world)
        return replace(self.candidates[left[0]], selection=selection)


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
    first = candidates[0]
    return WorstCaseSearchSpec(
        generator=first.generator,
        table=table,
        settings=settings,
        claim=first.claim,
        attacks=first.attacks,
        given=generator,
        first=first,
        candidates=candidates,
    )


def separation(trials: Sequence[Trial], stored: StoredOutcomes) -> float:
    """How far the two worlds of a candidate differ, from 0 to 2.

    As `target_search` compares records; in addition, whether a training finished, and how many rows
    it gave.

    Args:
        trials: Trainings of both worlds in equal number.
        stored: Their outcomes.

    Returns:
        The largest difference of a feature's means in its standard deviations. It is 2 where a
        feature has one value in each world.
    """
    outcomes = [stored[trial] for trial in trials]
    ended = np.array([[end.finished, end.rows or 0] for end in outcomes], dtype=np.float64)
    inside = np.array([[trial.world is World.IN] for trial in trials])
    differences = [float(separations(ended, inside)[0])]
    finished = ended[:, 0] == 1
    if 0 < inside[finished].sum() < finished.sum():
        ran = [trial for trial in trials if stored[trial].finished]
        differences.append(float(separations(stored.features(ran)[:], inside[finished])[0]))
    return max(differences)


def _trials(numbers: Sequence[int]) -> list[Trial]:
    return [Trial(Role.TARGET_SELECTION, world, number) for number in numbers for world in World]
