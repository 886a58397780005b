"""A search for the most vulnerable record being played: rounds, and who is left after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import cloudpickle
import numpy as np

from dpaudit.errors import RunFolderError
from dpaudit.game.engine import OnProgress, Progress, run_trials
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.one_run.attack import ClosestRecord
from dpaudit.protocols import Attack, World
from dpaudit.registry import ATTACKS, build
from dpaudit.specification import Audit
from dpaudit.versions import versions
from dpaudit.vulnerable.halving import separation, spread_of
from dpaudit.vulnerable.specification import TargetSearch

FOLDER = "target"
"""Of a search, below the run folder of its audit."""
LOOKED_AT = "groundhog"
"""Attack whose features tell candidates apart, whatever attacks are audited with.

They do not depend on the target, so one model of world "in" serves all candidates; beside them
each candidate has its distance to the nearest synthetic record.
"""


def find_target(search: TargetSearch, folder: Path, *, jobs: int, on_progress: OnProgress) -> Audit:
    """Plays a search below a run folder, or resumes it there.

    Args:
        search: The search.
        folder: Run folder of the audit to come.
        jobs: Worker processes.
        on_progress: Told after every training.

    Returns:
        The audit of the record found.

    Raises:
        RunFolderError: If the folder cannot be used, or holds an audit without a search.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    own = folder / FOLDER
    if (folder / STORE_FILE).exists() and not own.exists():
        raise RunFolderError(
            f"{folder} holds an audit of a target that was named: give another --out"
        )
    with RunFolder(own, spec=search.specification, versions=versions()) as store:
        row = _Search(search, store, jobs, on_progress).run()
    return search.audit_of(row)


@dataclass(frozen=True)
class _Search:
    """One search being played in its folder."""

    search: TargetSearch
    store: RunFolder
    jobs: int
    on_progress: OnProgress

    def run(self) -> int:
        """Plays what the folder does not hold yet; gives the row of the record found."""
        halving, game = self.search.halving, self.search.game
        payload = self._payload()
        trials = [_trial(World.IN, number) for number in range(halving.models_in)]
        left: Sequence[int] = range(halving.candidates)
        had = 0
        for _, models in halving.rounds:
            trials += [
                _trial(World.OUT, game.number(candidate, model))
                for candidate in left
                for model in range(had, models)
            ]
            had = models
            run_trials(
                trials,
                payload,
                self.store,
                jobs=self.jobs,
                generator=self.search.generator.generator,
                on_progress=self._report,
            )
            left = self._better_half(left, trials)
        return game.candidates[left[0]]

    def _report(self, progress: Progress) -> None:
        self.on_progress(progress._replace(total=self.search.halving.trainings))

    def _payload(self) -> Payload:
        looked_at = cast(Attack, build(LOOKED_AT, ATTACKS, given={}, offered={}))
        pickled: bytes = cloudpickle.dumps(self.search.generator.generator)
        return Payload(
            game=self.search.game,
            generators={Role.TARGET_SELECTION: pickled},
            attacks=[looked_at, ClosestRecord()],
            root=self.search.seed,
            audit=self.search.id,
        )

    def _better_half(self, left: Sequence[int], trials: Sequence[Trial]) -> list[int]:
        """The candidates that stand out most, the farthest first; among equals the farther ones.

        Args:
            left: The candidates that are left.
            trials: The trials of this round and those before; where a run was interrupted, the
                folder holds more, and they must not change what was decided here.
        """
        kept = (len(left) + 1) // 2
        stored = self.store.outcomes(Role.TARGET_SELECTION)
        finished = [trial for trial in trials if stored[trial].features is not None]
        if not finished:
            return list(left[:kept])
        features = np.array([stored[trial].features for trial in finished])
        inside = np.array([trial.world is World.IN for trial in finished])
        owners = np.array([self.search.game.owner(trial.number) for trial in finished])
        shared = np.arange(features.shape[1] - len(self.search.candidates))
        spread = spread_of(features)
        scores = []
        for candidate in left:
            seen = np.append(shared, len(shared) + candidate)  # and its own distance
            outside = ~inside & (owners == candidate)
            scores.append(
                separation(features[inside][:, seen], features[outside][:, seen], spread[seen])
            )
        best = np.argsort(-np.array(scores), kind="stable")[:kept]
        return [left[place] for place in np.sort(best)]


def _trial(world: World, number: int) -> Trial:
    return Trial(Role.TARGET_SELECTION, world, number)
