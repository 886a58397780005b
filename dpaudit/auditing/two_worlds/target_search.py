"""Trainings before an audit: the most vulnerable record, and whether the target shows in tables.

The most vulnerable record is found by small attacks (`target="vulnerable"`). Published audits chose
their target this way, at six times the cost of the audit itself ("The Elusive Pursuit of
Reproducing PATE-GAN", TMLR 2025, section 6.2: 64 candidates with 100 models in each world). Here
every model is trained without a random half of the candidates, so each model serves all candidates
(as the shadow models of Carlini et al. 2022, "Membership Inference Attacks From First Principles",
serve all records), and as many as the audit itself trains are plenty.

The verdict needs no correction for the choice. The target is a function of the table and of the
search's trainings. Those have their own role, so their random streams are independent of the
audit's, and no attack is fitted or scored on any of them. Given the target, the audit's trials are
the same as if it had been named beforehand, and the bound holds for each target.

Whether the target shows in tables is seen in a few models. A generator may use few facts of its
data, so that most records show nowhere: an audit of such a record proves nothing, and one of
another record might. Here both worlds are trained with the same seeds. If that gives the same
tables, one record for which it does not is searched for by halving the candidates of a target
search: as long as the table changes without a group of them, it does so without one of the two
halves or without both. The last one is compared alone.

The verdict does not depend on any of this, and the target stays as it was. These models have a role
of their own, so their random streams are independent of the audit's, and none of them is scored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Final, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.one_run.attack import ClosestRecord
from dpaudit.auditing.settings import AuditSettings, TwoWorlds
from dpaudit.auditing.spec import AuditSpec, build_generator, view_of
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds
from dpaudit.errors import RegistryError, RunFolderError, SettingsError, TargetError, TrialError
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.pool import run_errand
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.target import exposing_first
from dpaudit.game.training import run_trial
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import OneTable, SelectionGame, halves, without
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, BoolArray, FloatArray, World, is_seedable
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit.results.document import kept_in_file
from dpaudit.results.record import SameTables, Selection

MOST_CANDIDATES = 64
"""As in the published audits of PATE-GAN."""
LARGEST_SHARE = 1 / 4
"""Largest share of the table; a model is trained without half of it."""


def candidates_of(table: Table) -> tuple[int, ...]:
    """The records that a search compares: exposed ones, then far ones, none with a copy.

    Returns:
        Their positions, the most exposed first: 64, or a quarter of the table's rows.

    Raises:
        TargetError: If there are fewer than two.
    """
    order = exposing_first(table.data, table.schema)
    rows = order[: min(MOST_CANDIDATES, int(LARGEST_SHARE * len(table.data)))]
    if len(rows) < 2:
        raise TargetError(
            f'`target="{VULNERABLE}"` compares records without an identical copy, at most a '
            f'quarter of the table, and finds {len(rows)}: name the target with `target="row:N"`'
        )
    return tuple(int(row) for row in rows)


MOST_SECONDS: Final = 60.0
"""No model is trained for this once so many seconds have passed."""


@dataclass(frozen=True, kw_only=True)
class TableComparison:
    """The input of a worker that compares the tables of both worlds; calling it does.

    Attributes:
        payload: What trials are run from.
        worlds: The tables of world "in" and of world "out".
        replacement: The record (one canonical row) that stands in for another; None to leave out.
        table: The table whose other records may be proposed; None to propose none.
        target: Position of the target in it, if it is there.
        seeds: Most seeds that both worlds are trained with.
    """

    payload: Payload
    worlds: tuple[pd.DataFrame, ...]
    replacement: pd.DataFrame | None
    table: Table | None
    target: int | None
    seeds: int

    def __call__(self) -> SameTables | None:
        """Compares them."""
        start = perf_counter()

        def seen(data: pd.DataFrame, number: int = 0) -> bytes:
            if perf_counter() - start > MOST_SECONDS:
                raise TrialError("there is no time for another model")
            return self._seen(data, number)

        inside, outside = self.worlds
        try:
            usual = seen(inside)
            if seen(outside) != usual:
                return None
            if any(seen(inside, n) != seen(outside, n) for n in range(1, self.seeds)):
                return None
            if seen(inside) != usual:
                return None  # the seed does not decide the table: the worlds agreed by chance
        except TrialError:
            return None
        try:
            return self._another(lambda rows: seen(self._lacking(rows)) != usual)
        except TrialError:
            return SameTables(seeds=self.seeds)

    def _another(self, changes: Callable[[Sequence[int]], bool]) -> SameTables:
        """Searches for a record that changes the table."""
        rows = self._candidates()
        if not rows or not changes(rows):
            return SameTables(seeds=self.seeds, compared=len(rows))
        while len(rows) > 1:
            first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
            rows = first if changes(first) else second
        return SameTables(seeds=self.seeds, other=rows[0] if changes(rows) else None)

    def _candidates(self) -> list[int]:
        """Positions of the records that may be proposed, the most exposed first."""
        try:
            rows = () if self.table is None else candidates_of(self.table)
        except TargetError:  # the table has too few records without a copy
            rows = ()
        return [row for row in rows if row != self.target]

    def _lacking(self, rows: Sequence[int]) -> pd.DataFrame:
        """The table of world "in" without some records, or with the replacement in their place."""
        inside = self.worlds[0]
        if self.replacement is None:
            return without(inside, rows)
        places = np.arange(len(inside))
        places[list(rows)] = len(inside)
        both = pd.concat([inside, self.replacement])
        return self.payload.game.view.schema.canonical(both.iloc[places])

    def _seen(self, data: pd.DataFrame, number: int) -> bytes:
        """All that attacks see of a model that is trained on a table: its rows and its features."""
        game = OneTable(view=self.payload.game.view, data=data)
        trial = Trial(Role.TARGET_SELECTION, World.IN, number)
        outcome = run_trial(replace(self.payload, game=game), trial)
        if outcome.table is None or outcome.features is None:
            raise TrialError(outcome.error)
        return outcome.table + outcome.features.tobytes()


SAME_TABLES_FILE: Final = "same_tables.json"
"""File of a run folder that keeps what was found."""
MODELS_PER_SEED: Final = 100
"""Both worlds are trained with one seed for so many models of the audit: 2 % of its trainings."""
FEWEST_SEEDS: Final = 2
FEWEST_MODELS: Final = 100
"""Smallest audit that is looked at: of a smaller one two models are over 2 %."""
STOPPED_AFTER: Final = 3 * MOST_SECONDS
"""Hard time limit, in seconds."""


def compare_tables(
    audit: TwoWorldSpec, payload: Payload, store: RunFolder, *, jobs: int
) -> SameTables | None:
    """Compares the tables of both worlds in a worker, or reads the outcome from the run folder.

    If the first seed gives different tables, it takes two models. Else other seeds follow, and a
    search of at most nine models.

    Args:
        audit: The audit.
        payload: What workers need to run its trials.
        store: Its run folder, locked.
        jobs: Worker processes of the audit; one of them trains.

    Returns:
        What was found if the tables are the same; None if they differ or were not compared.

    Raises:
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call compares again.
        OSError: If the outcome cannot be written.
    """
    if audit.settings.game.shadow_models < FEWEST_MODELS:
        return None
    if audit.is_timed:  # equal tables may take different times
        return None
    if not is_seedable(audit.generator.generator):
        return None

    def compare() -> SameTables | None:
        return run_errand(_comparison(audit, payload), store, jobs=jobs, seconds=STOPPED_AFTER)

    same: SameTables | None
    same = kept_in_file(store.path / SAME_TABLES_FILE, SameTables | None, compare)
    return same


def _comparison(audit: TwoWorldSpec, payload: Payload) -> TableComparison:
    audited = {Role.TARGET_SELECTION: payload.generators[Role.AUDIT]}
    added = audit.game.missing[World.IN]
    return TableComparison(
        payload=replace(payload, generators=audited),
        worlds=tuple(audit.game.table(world, 0) for world in World),
        replacement=audit.game.data.iloc[list(added)] if added else None,
        table=audit.table if audit.pair is None and audit.table.schema.unit is None else None,
        target=audit.target.row,
        seeds=max(FEWEST_SEEDS, audit.settings.game.shadow_models // MODELS_PER_SEED),
    )


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
