"""Runs the search for the worst case that shows most, and scores its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.target_search.search import (
    search_payload,
    search_store,
    separations,
)
from dpaudit.auditing.two_worlds.worst_case_search.spec import WorstCaseSearchSpec, survivors
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role, Trial
from dpaudit.plugins.protocols import World

FOLDER: Final = "worst-case"
"""Folder of a search, below the run folder of its audit."""


def find_worst_case(
    search: WorstCaseSearchSpec,
    folder: Path,
    *,
    engine: Engine,
    on_progress: OnProgress,
    trial_timeout: float | None = None,
) -> TwoWorldSpec:
    """Runs a search below a run folder, or resumes it there.

    Args:
        search: The search.
        folder: Run folder of the audit to come.
        engine: What runs trainings.
        on_progress: Called after every training.
        trial_timeout: Seconds after which a training has failed; derived if None.

    Returns:
        The audit of the worst case found.

    Raises:
        RunFolderError: If the folder cannot be used, or holds an audit without a search.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    with search_store(search, folder, FOLDER, named="worst case") as store:
        stored = store.outcomes(Role.TARGET_SELECTION)
        unused = iter(range(search.per_world))
        every = _trials(range(search.per_world))
        left = list(range(len(search.candidates)))
        trained: dict[int, list[Trial]] = {place: [] for place in left}
        for each in search.rounds:
            for place in left:
                trials = _trials([next(unused) for _ in range(each)])
                run_trials(
                    trials,
                    search_payload(search.candidates[place]),
                    store,
                    engine=engine,
                    trial_timeout=trial_timeout,
                    generator=search.candidates[place].generator.generator,
                    on_progress=on_progress,
                    among=every,
                )
                trained[place] += trials
            scores = {place: separation(trained[place], stored) for place in left}
            left = sorted(left, key=lambda place: -scores[place])[: survivors(len(left))]
        return search.audit_of(left[0])


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
    ended = np.array([[one.finished, one.rows or 0] for one in outcomes], dtype=np.float64)
    inside = np.array([[trial.world is World.IN] for trial in trials])
    found = [float(separations(ended, inside)[0])]
    finished = ended[:, 0] == 1
    if 0 < inside[finished].sum() < finished.sum():
        ran = [trial for trial in trials if stored[trial].finished]
        found.append(float(separations(stored.features(ran)[:], inside[finished])[0]))
    return max(found)


def _trials(numbers: Sequence[int]) -> list[Trial]:
    return [Trial(Role.TARGET_SELECTION, world, number) for number in numbers for world in World]
