"""The one entry to an audit, for Python, the command line and pytest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from dpaudit.auditing.alternatives import too_small
from dpaudit.auditing.conclusion import conclude
from dpaudit.auditing.game import Run, run_first
from dpaudit.auditing.games import audit_settings, audited_table, build_spec, game_of
from dpaudit.auditing.probing import add_probes, probe_first
from dpaudit.auditing.reuse import check_reuse
from dpaudit.auditing.settings import AuditSettings, GameSettings, Machine, TwoWorlds
from dpaudit.auditing.spec import AuditSpec, Data, SchemaGiven
from dpaudit.errors import RunFolderError, SettingsError
from dpaudit.files import io_reason, parse_json
from dpaudit.game.engine import opened_engine
from dpaudit.game.flight import OnProgress, OnWarning, ignore_progress, ignore_warning
from dpaudit.game.pool import workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.model.choices import EngineName
from dpaudit.model.claim import Claim, PrivacyClaim, StatedClaim
from dpaudit.results.record import AuditRecord, proofs_of
from dpaudit.results.result import RESULT_FILE, AuditResult
from dpaudit.versions import today


def audit(
    generator: object,
    data: Data = None,
    *,
    schema: SchemaGiven = None,
    claim: Claim | StatedClaim | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    game: GameSettings | None = None,
    parameters: Mapping[str, Any] | None = None,
    rows: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    jobs: int | Machine | None = None,
    out: str | Path | None = None,
    progress: bool | OnProgress | None = None,
) -> AuditResult:
    """Audits a generator's privacy claim by running the distinguishing game.

    Args:
        generator: A registered name, `module:attr`, `file.py:attr`, an object with
            `fit(data, *, seed)`, or a function `f(data, n_rows, seed)` that returns a table.
        data: The table: a DataFrame, a CSV or Parquet file, or "sample:breast-cancer"; several
            tables as a mapping by name, which generators get and give as a dict of frames; None
            for a worst case, which makes its own.
        schema: Its public schema (or a schema file); inferred if None, and the result says so. If
            it has a unit, worlds differ in all rows of one, and the claim is per unit. Several
            tables need a `LinkedTables`, such as `LinkedTables.infer_tables` gives.
        claim: The claim under audit: a `PrivacyClaim` of epsilon and delta, a `GaussianClaim` of
            mu, a `ConcentratedClaim` of rho or a `CurveClaim`; if None, the claim of the generator.
        epsilon: Epsilon of the claim, in short.
        delta: Its delta; if None, the delta of the generator, else 0.
        game: The game with its choices: `TwoWorlds` (the default), `ManyRecords` or `OneRun`.
        parameters: Constructor parameters of a generator given by name.
        rows: Synthetic rows requested of every model, in the root of linked tables; if None, as
            many as `data` has.
        confidence: One-sided confidence of the bound, over all attacks together; in (0.5, 1).
        seed: Root of every random stream, in [0, 2**63).
        jobs: Worker processes, one per available core if None; or a `Machine`, for a cluster or for
            limits of time and memory. Does not change the result.
        out: Run folder, which makes the run resumable; kept in a temporary folder if None.
        progress: Whether to show bars, or a few lines, on standard error; if None, on a terminal
            and in a notebook. Or a function that is called after every trial.

    Returns:
        The result; with `out`, also written there as `result.json` and reports.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; with `out`, the same call resumes.
    """
    if claim is None:
        claim = StatedClaim(epsilon=epsilon, delta=delta)
    elif epsilon is not None or delta is not None:
        raise SettingsError("`claim` and `epsilon` state one claim each: give one of them")
    machine = _machine(jobs)
    settings = AuditSettings(
        game=TwoWorlds() if game is None else game,
        claim=claim,  # type: ignore[arg-type]  # a claim states itself
        parameters=parameters or {},
        rows=rows,
        confidence=confidence,
        worker_memory=machine.worker_memory,
        seed=seed,
    )
    return _audit(generator, data, schema, settings, machine, out, progress)


def audit_by_keywords(
    generator: object,
    data: Data = None,
    *,
    schema: SchemaGiven = None,
    out: str | Path | None = None,
    progress: bool | OnProgress | None = None,
    **keywords: Any,
) -> AuditResult:
    """Audits as `audit` does, with settings as plain keywords, spelled as on the command line.

    Args:
        generator: As for `audit`.
        data: As for `audit`.
        schema: As for `audit`.
        out: As for `audit`.
        progress: As for `audit`.
        keywords: Keywords of `dpaudit.auditing.games.audit_settings`, and the fields of `Machine`.

    Returns:
        The result.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; with `out`, the same call resumes.
    """
    names = {field.name for field in fields(Machine)}
    machine = Machine(**{name: keywords[name] for name in names & set(keywords)})
    names.remove("worker_memory")  # which is a setting, as it builds the generator
    settings = audit_settings(
        **{name: value for name, value in keywords.items() if name not in names}
    )
    return _audit(generator, data, schema, settings, machine, out, progress)


def _audit(
    generator: object,
    data: Data,
    schema: SchemaGiven,
    settings: AuditSettings,
    machine: Machine,
    out: str | Path | None,
    progress: bool | OnProgress | None,
) -> AuditResult:
    from dpaudit.auditing.progress_bar import show_progress

    spec = build_spec(generator, audited_table(data, schema, settings), settings)
    asked = progress if isinstance(progress, bool) else None
    on_progress = progress if callable(progress) else ignore_progress
    with show_progress(on_progress, asked=asked) as on_event:
        if out is not None:
            return run_audit(spec, Path(out), jobs=machine, on_progress=on_event)
        with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:  # a private one
            run = Path(folder) / "run"
            result = run_audit(spec, run, jobs=machine, on_progress=on_event)
    return AuditResult.of(result, folder=None)


def run_audit(
    spec: AuditSpec,
    folder: Path,
    *,
    jobs: int | Machine | None = None,
    on_progress: OnProgress = ignore_progress,
    on_warning: OnWarning = ignore_warning,
) -> AuditResult:
    """Runs an audit in a run folder, or resumes it there.

    Args:
        spec: The audit, or the search for its target that comes first.
        folder: Its run folder.
        jobs: As for `audit`; the memory of workers is a setting of the audit.
        on_progress: Called after every trial.
        on_warning: Called with a warning before the trials, if there is one.

    Returns:
        The result, also written to the folder with its reports.

    Raises:
        RunFolderError: If the folder cannot be used.
        SettingsError: If `jobs` is not positive, or `trial_timeout` below a second.
        ClusterError: If no dask scheduler answers, or its workers cannot run the trials.
        GeneratorError: If none of the generator's first trainings gives a synthetic table.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    machine = _machine(jobs)
    from dpaudit.report.render import write_reports

    game, limit = game_of(spec.settings.game), machine.trial_timeout
    with (
        opened_engine(machine.engine, jobs=machine.jobs, scheduler=machine.scheduler) as engine,
        folder_usable(folder),
        workers_ended(),
    ):
        # A search for the target trains models of its own, in a folder below this one.
        spec = spec.resolve(folder, engine=engine, trial_timeout=limit, on_progress=on_progress)
        with RunFolder(folder, spec=spec.stored_specification, versions=spec.software) as store:
            run = Run(
                spec=spec,
                store=store,
                engine=engine,
                jobs=engine.workers if machine.engine == EngineName.LOCAL else 1,
                trial_timeout=limit,
                on_progress=on_progress,
                on_warning=on_warning,
            )
            # Before any trial: what was judged already proves no violation a second time.
            reuse = check_reuse(spec, store)
            seconds = run_first(game, run)
            probes = probe_first(spec, store, jobs=run.jobs, first=seconds)
            if not proofs_of(probes.alarms) and isinstance(spec.claim, PrivacyClaim):
                limit = game.limit(spec.settings, spec.claim)
                population = spec.table.population
                if warning := too_small(spec.claim, spec.settings, population, limit=limit):
                    on_warning(warning)
            findings = game.run(run)
            record = add_probes(conclude(run, findings, reuse=reuse), probes)
            result = AuditResult.of(_shareable(record, folder, store), folder=folder)
            store.ensure_kept()
            result.save(folder)
            write_reports(result, folder)
    return result


def _machine(jobs: int | Machine | None) -> Machine:
    return jobs if isinstance(jobs, Machine) else Machine(jobs=jobs)


@contextmanager
def folder_usable(folder: Path) -> Iterator[None]:
    """Turns operating system errors during a run into a `RunFolderError`.

    Errors of foreign code do not arrive here: they are outcomes, or have their own class.

    Raises:
        RunFolderError: On any OSError, such as a full disk, too many open files, or a missing
            folder.
    """
    try:
        yield
    except OSError as error:
        where = folder if error.filename is None else error.filename
        raise RunFolderError(
            f"the run in {folder} cannot go on: {where}: {io_reason(error)}; fix that and run the "
            "same command again"
        ) from error


def _shareable(record: AuditRecord, folder: Path, store: RunFolder) -> AuditRecord:
    """The record with its day and with a salted digest of the table.

    Guesses of the table cannot be checked without the salt.
    """
    digest = store.salt.digest(record.data.sha256)
    return replace(record, data=replace(record.data, sha256=digest), date=_date(folder))


def _date(folder: Path) -> str:
    """The day on which an audit ended: that of the folder's result, if it has one, else today."""
    try:
        day = parse_json((folder / RESULT_FILE).read_text(encoding="utf-8"))["date"]
        return date.fromisoformat(day).isoformat()
    except (OSError, ValueError, TypeError, KeyError):
        return today()
