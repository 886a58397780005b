"""The most vulnerable record, found by small attacks before an audit (`target="vulnerable"`).

Published audits chose their target this way, at six times the cost of the audit itself ("The
Elusive Pursuit of Reproducing PATE-GAN", TMLR 2025, section 6.2: 64 candidates with 100 models in
each world). Here every model is trained without a random half of the candidates, so each model
serves all candidates (as the shadow models of Carlini et al. 2022, "Membership Inference Attacks
From First Principles", serve all records), and as many as the audit itself trains are plenty.

The verdict needs no correction for the choice. The target is a function of the table and of the
search's trainings. Those have their own role, so their random streams are independent of the
audit's, and no attack is fitted or scored on any of them. Given the target, the audit's trials are
the same as if it had been named beforehand, and the bound holds for each target.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from dpaudit.auditing.one_run.attack import ClosestRecord
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec, build_generator, view_of
from dpaudit.auditing.two_worlds.comparison import candidates_of
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.errors import RegistryError, RunFolderError, SettingsError
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import SelectionGame, halves
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, BoolArray, FloatArray, World
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit.results.record import Selection

FEATURE_ATTACK = "groundhog"
"""Attack whose features compare candidates, whatever the attacks of the audit.

They do not depend on the target, so they are computed once for all candidates; in addition each
candidate has its distance to the nearest synthetic record.
"""
RELATIVE_ROUNDING = 1e-9
"""Features whose spread is below this share of their size differ only by rounding."""


@dataclass(frozen=True, kw_only=True)
class TargetSearchSpec(AuditSpec):
    """A complete search for the target of an audit in two worlds.

    Attributes:
        first: The audit of the first candidate.
        candidates: Positions [m] of the candidates in the table, the most exposed first.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target",)

    settings: AuditSettings[TwoWorlds]
    first: TwoWorldSpec
    candidates: tuple[int, ...]

    @property
    def own_specification(self) -> dict[str, Any]:
        """The audit's choices, and the number of candidates; the table determines which ones.

        It has all of the choices, so that a run folder refuses a different audit before the search
        and not after it.
        """
        searched = {"choice": VULNERABLE, "candidates": len(self.candidates)}
        return {**self.first.own_specification, "target": searched}

    @property
    def own_options(self) -> list[str]:
        """The words of the audit's command."""
        return self.first.own_options

    @property
    def timed_audit(self) -> TwoWorldSpec:
        """The audit of the first candidate."""
        return self.first

    def store(self, folder: Path) -> RunFolder:
        """The folder of the search, below the run folder of its audit.

        Raises:
            RunFolderError: If the folder cannot be used, or holds an audit without a search.
        """
        own = folder / "target"
        if os.path.exists(folder / STORE_FILE) and not os.path.exists(own):
            raise RunFolderError(
                f"{folder} holds an audit of a target that was named: give another `out`"
            )
        return RunFolder(own, spec=self.stored_specification, versions=self.software)

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

    @cached_property
    def game(self) -> SelectionGame:
        """What the search trains on."""
        view = view_of(
            self.table, list(self.candidates), rows=self.rows, neighbours=self.claim.neighbours
        )
        each = tuple((row,) for row in self.candidates)
        included = halves(self.trainings, len(each), self.stream("candidates").rng())
        return SelectionGame(view=view, data=self.table.data, candidates=each, included=included)

    @property
    def payload(self) -> Payload:
        """What workers need for the trainings of the search."""
        features = cast(Attack, build(FEATURE_ATTACK, ATTACKS, given={}, offered={}))
        named = self.generator
        return Payload(
            game=self.game,
            generators={Role.TARGET_SELECTION: pickled(named.generator, name=named.name)},
            attacks=[features, ClosestRecord()],
            root=self.settings.seed,
            audit=self.id,
        )

    def resolve(
        self,
        folder: Path,
        *,
        engine: Engine,
        on_progress: OnProgress,
        trial_timeout: float | None = None,
    ) -> TwoWorldSpec:
        """The audit of the record that the search finds."""
        with self.store(folder) as store:
            trials = [Trial(Role.TARGET_SELECTION, World.OUT, n) for n in range(self.trainings)]
            stored = store.outcomes(Role.TARGET_SELECTION)
            trained = run_trials(
                trials,
                self.payload,
                store,
                engine=engine,
                trial_timeout=trial_timeout,
                generator=self.generator.generator,
                on_progress=on_progress,
                hopeless=lambda first: not any(stored[trial].finished for trial in first),
            )
            finished = [trial for trial in trained if stored[trial].finished]
            best = 0  # the first; the audit will report why no training finished
            if finished:
                included = self.game.included[[trial.number for trial in finished]]
                best = int(separations(stored.features(finished)[:], included).argmax())
        return self.audit_of(self.candidates[best])

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
    secret = settings.game.secret
    if secret in table.schema.names:  # a record without a value there cannot be the target
        given = table.data[secret].notna().to_numpy()
        candidates = tuple(row for row in candidates if given[row]) or candidates
    first = build_two_worlds(generator, table, settings.with_game(target=f"row:{candidates[0]}"))
    try:
        named = build_generator(generator, settings, schema=table.schema)
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
        attacks=first.attacks,
        given=generator,
        first=replace(first, selection=selection),
        candidates=candidates,
    )


def separations(features: FloatArray, included: BoolArray) -> FloatArray:
    """How far each candidate's two worlds differ.

    The score is the largest difference of a feature's means with and without the candidate, in
    standard deviations of the feature over all models. Nothing is fitted. A cross-validated forest
    did no better and took a thousand times as long: of 5 candidates with 200 models (1341 features
    of Cervical Cancer's PATE-GAN) it named the one whose absence shifted one feature by .5, .75 or
    1 standard deviation in 3, 4 and 8 of 8 repetitions; this score in 3, 6 and 8; both in 8 of 8
    where 30 features shifted by .4, or 100 by .3.

    Args:
        features: Features [n, f + m] of the models; the last m belong to one candidate each, the
            others to all.
        included: Which candidates each model was trained with [n, m].

    Returns:
        Scores [m]; 0 for a candidate that all models or none were trained with.
    """
    n_in = included.sum(axis=0)
    with np.errstate(all="ignore"):  # a generator may return numbers that overflow here
        weights = included / n_in - ~included / (len(included) - n_in)
        centred = features - features.mean(axis=0)
        spread = centred.std(axis=0)
        varies = spread > RELATIVE_ROUNDING * np.abs(features).max(axis=0)
        apart = np.abs(weights.T @ centred) / spread
    apart = np.where(varies & np.isfinite(apart), apart, 0.0)
    shared, own = np.split(apart, [features.shape[1] - len(n_in)], axis=1)
    scores: FloatArray = np.maximum(shared.max(axis=1, initial=0.0), np.diagonal(own))
    return scores
