"""The one orchestrator: plan, controls, play, attack, bound, verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import loky
import pandas as pd

from dpaudit.auditing.one_run import OneRunAudit, OneRunSession, prepare_one_run
from dpaudit.auditing.plan import DEFAULT_SHADOW_MODELS, Multiplicity, Pace
from dpaudit.auditing.result import AuditResult
from dpaudit.auditing.session import Session
from dpaudit.auditing.spec import Audit, prepare
from dpaudit.auditing.target_search import TargetSearch, find_target, prepare_search
from dpaudit.bounds import ThresholdRule
from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.game.progress import OnProgress, ignore_progress
from dpaudit.game.store import RunFolder
from dpaudit.game.target import VULNERABLE
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load
from dpaudit.plugins.protocols import Attack
from dpaudit.versions import versions

Choice = TypeVar("Choice", bound=StrEnum)

DEFAULT_ATTACKS = ("groundhog", "query-target")
DEFAULT_TARGET = "farthest"


def audit(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    neighbours: Neighbours | str | None = None,
    target: str | int = DEFAULT_TARGET,
    attacks: Sequence[str | Attack] = DEFAULT_ATTACKS,
    shadow_models: int = DEFAULT_SHADOW_MODELS,
    rows: int | None = None,
    confidence: float = 0.95,
    threshold: ThresholdRule | str = ThresholdRule.CROSS_VALIDATED,
    multiplicity: Multiplicity | str = Multiplicity.BONFERRONI,
    sequential: bool = False,
    one_run: bool = False,
    canaries: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    out: str | Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> AuditResult:
    """Audits a generator's privacy claim by playing the distinguishing game against it.

    Args:
        generator: A registered name, `module:attr`, `file.py:attr`, an object with
            `fit(data, *, seed)`, or a function `f(data, n_rows, seed)` that returns a table.
        data: The table: a DataFrame, a CSV or Parquet file, or "sample:breast-cancer".
        schema: Its public schema (or a schema file); inferred if None, and then marked so.
        epsilon: Epsilon of the claim under audit; the generator's own if None.
        delta: Delta of the claim; the generator's own, else 0, if None.
        parameters: Constructor parameters of a generator given by name.
        neighbours: "add-remove" or "replace-one"; that of the generator's claim if None.
        target: The attacked record: "farthest", "vulnerable" (found by small attacks, for as many
            trainings as `shadow_models`), "row:N" (or N), or "record:FILE".
        attacks: Registered names or objects; each is one hypothesis (Bonferroni).
        shadow_models: Trials of both worlds together.
        rows: Synthetic rows requested of every model; those of the table if None.
        confidence: One-sided confidence of the bound, over all attacks together.
        threshold: "cross-validated", or "hold-out" as in published audits.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one that promises
            most on the fitting part, and corrects for nothing.
        sequential: Whether to look after every batch of trials and to stop as soon as a violation
            is proved; `shadow_models` is then the cap.
        one_run: Whether to train once with many canaries instead of shadow models, for slow
            generators; what concerns shadow models must then be left at its default.
        canaries: Of a one-run audit: how many records are each in the table by a fair coin; 100 if
            None.
        seed: Root of every random stream.
        jobs: Worker processes; one per available core if None. Does not change the result.
        out: Run folder, which makes the run resumable; kept in a temporary folder if None.
        on_progress: Told after every trial.

    Returns:
        The result; with `out`, also written there as `result.json` and reports.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; with `out`, the same call resumes.
    """
    audit = prepared(
        generator,
        load(data, schema),
        parameters=parameters or {},
        epsilon=epsilon,
        delta=delta,
        neighbours=None if neighbours is None else choice(Neighbours, neighbours),
        target=f"row:{target}" if isinstance(target, int) else target,
        attacks=attacks,
        shadow_models=shadow_models,
        rows=rows,
        confidence=confidence,
        threshold=choice(ThresholdRule, threshold),
        multiplicity=choice(Multiplicity, multiplicity),
        sequential=sequential,
        one_run=one_run,
        canaries=canaries,
        seed=seed,
    )
    if out is not None:
        return run(audit, Path(out), jobs=jobs, on_progress=on_progress)
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:
        result = run(audit, Path(folder), jobs=jobs, on_progress=on_progress)
    return AuditResult(result.document)


def prepared(
    generator: object,
    table: Table,
    *,
    parameters: Mapping[str, Any],
    epsilon: float | None,
    delta: float | None,
    neighbours: Neighbours | None,
    target: str,
    attacks: Sequence[str | Attack],
    shadow_models: int,
    rows: int | None,
    confidence: float,
    threshold: ThresholdRule,
    multiplicity: Multiplicity,
    sequential: bool,
    one_run: bool,
    canaries: int | None,
    seed: int,
) -> Audit | OneRunAudit | TargetSearch:
    """Validates everything an audit needs; see `audit` for the arguments.

    Raises:
        InputError: If anything is unusable; says what and how to mend it.
    """
    if not one_run:
        if canaries is not None:
            raise SettingsError("--canaries is for --one-run: add that, or leave --canaries out")

        def ask(named: str) -> Audit:
            return prepare(
                generator,
                table,
                parameters=parameters,
                epsilon=epsilon,
                delta=delta,
                neighbours=neighbours,
                target=named,
                attacks=attacks,
                shadow_models=shadow_models,
                rows=rows,
                confidence=confidence,
                threshold=threshold,
                multiplicity=multiplicity,
                pace=Pace.SEQUENTIAL if sequential else Pace.FIXED,
                seed=seed,
            )

        if target == VULNERABLE:
            return prepare_search(ask, generator, table, parameters=parameters)
        return ask(target)
    if target == VULNERABLE:
        raise SettingsError(
            f"--one-run attacks many canaries, not one target: leave out --target {VULNERABLE}, or "
            "leave out --one-run"
        )
    given = {
        "--sequential": sequential,
        "--multiplicity": multiplicity is not Multiplicity.BONFERRONI,
        "--threshold": threshold is not ThresholdRule.CROSS_VALIDATED,
        "--attack": tuple(attacks) != DEFAULT_ATTACKS,
        "--target": target != DEFAULT_TARGET,
        "--shadow-models": shadow_models != DEFAULT_SHADOW_MODELS,
    }
    if any(given.values()):
        named = ", ".join(option for option, is_given in given.items() if is_given)
        raise SettingsError(
            f"--one-run trains once and fits no attack: leave out {named}, or leave out --one-run"
        )
    return prepare_one_run(
        generator,
        table,
        parameters=parameters,
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        canaries=canaries,
        rows=rows,
        confidence=confidence,
        seed=seed,
    )


def run(
    audit: Audit | OneRunAudit | TargetSearch,
    folder: Path,
    *,
    jobs: int | None = None,
    on_progress: OnProgress = ignore_progress,
) -> AuditResult:
    """Plays a prepared audit in a run folder, or resumes it there.

    Args:
        audit: The audit, or the search for its target that comes first.
        folder: Its run folder.
        jobs: Worker processes; one per available core if None.
        on_progress: Told after every trial.

    Returns:
        The result, also written to the folder with its reports.

    Raises:
        RunFolderError: If the folder cannot be used.
        SettingsError: If `jobs` is not positive.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    if jobs is not None and jobs < 1:
        raise SettingsError(f"--jobs must be at least 1, got {jobs}")
    from dpaudit.report.write import write_reports

    workers = jobs or loky.cpu_count()
    if isinstance(audit, TargetSearch):
        audit = find_target(audit, folder, jobs=workers, on_progress=on_progress)
    with RunFolder(folder, spec=audit.specification, versions=versions()) as store:
        session: Session | OneRunSession
        if isinstance(audit, OneRunAudit):
            session = OneRunSession(audit, store, workers, on_progress)
        else:
            session = Session(audit, store, workers, on_progress)
        result = AuditResult(session.run(), folder)
        result.save(folder)
        write_reports(result.document, folder)
    return result


def choice(kind: type[Choice], text: str) -> Choice:
    """The member of an enumeration of names.

    Raises:
        SettingsError: If there is none of that name.
    """
    try:
        return kind(text)
    except ValueError:
        known = [member.value for member in kind]
        raise SettingsError(
            f"{text!r} is none of {', '.join(known)}{did_you_mean(text, known)}"
        ) from None
