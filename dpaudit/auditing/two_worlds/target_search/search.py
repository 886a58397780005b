"""Runs the search for the most vulnerable record, and scores its candidates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import numpy as np

from dpaudit.auditing.one_run.attack import ClosestRecord
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.target_search.spec import TargetSearchSpec
from dpaudit.errors import RunFolderError
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import Attack, BoolArray, FloatArray, World
from dpaudit.plugins.registry import ATTACKS, build

FOLDER = "target"
"""Folder of a search, below the run folder of its audit."""
FEATURE_ATTACK = "groundhog"
"""Attack whose features compare candidates, whatever the attacks of the audit.

They do not depend on the target, so they are computed once for all candidates; in addition each
candidate has its distance to the nearest synthetic record.
"""
RELATIVE_ROUNDING = 1e-9
"""Features whose spread is below this share of their size differ only by rounding."""


def find_target(
    search: TargetSearchSpec,
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
        The audit of the record found.

    Raises:
        RunFolderError: If the folder cannot be used, or holds an audit without a search.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    with search_store(search, folder, FOLDER, named="target") as store:
        trials = [Trial(Role.TARGET_SELECTION, World.OUT, n) for n in range(search.trainings)]
        generator = search.generator.generator
        stored = store.outcomes(Role.TARGET_SELECTION)
        trained = run_trials(
            trials,
            search_payload(search),
            store,
            engine=engine,
            trial_timeout=trial_timeout,
            generator=generator,
            on_progress=on_progress,
            hopeless=lambda first: not any(stored[trial].finished for trial in first),
        )
        finished = [trial for trial in trained if stored[trial].finished]
        best = 0  # the first; the audit will report why no training finished
        if finished:
            included = search.game.included[[trial.number for trial in finished]]
            best = int(separations(stored.features(finished)[:], included).argmax())
    return search.audit_of(search.candidates[best])


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


def search_store(search: AuditSpec, folder: Path, name: str, *, named: str) -> RunFolder:
    """The folder of a search below the run folder of its audit.

    Args:
        search: The search.
        folder: Run folder of the audit to come.
        name: Name of the search's own folder.
        named: What an audit without a search names.

    Raises:
        RunFolderError: If the folder cannot be used, or holds an audit without a search.
    """
    own = folder / name
    if os.path.exists(folder / STORE_FILE) and not os.path.exists(own):
        raise RunFolderError(
            f"{folder} holds an audit of a {named} that was named: give another `out`"
        )
    return RunFolder(own, spec=search.stored_specification, versions=search.software)


def search_payload(spec: TargetSearchSpec | TwoWorldSpec) -> Payload:
    """What workers need for the trainings of a search.

    Args:
        spec: A search, or one of the audits that it compares.
    """
    features = cast(Attack, build(FEATURE_ATTACK, ATTACKS, given={}, offered={}))
    named = spec.generator
    return Payload(
        game=spec.game,
        generators={Role.TARGET_SELECTION: pickled(named.generator, name=named.name)},
        attacks=[features, ClosestRecord()],
        root=spec.settings.seed,
        audit=spec.id,
    )
