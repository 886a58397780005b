"""The one entry to an audit, for Python, the command line and pytest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Unpack

import pandas as pd

from dpaudit.auditing.games import GAMES, build_spec
from dpaudit.auditing.probing import probe_first
from dpaudit.auditing.reuse import check_reuse
from dpaudit.auditing.settings import AuditSettings, SettingsGiven
from dpaudit.auditing.signature import with_fields_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.two_worlds.pairs import audited_table
from dpaudit.auditing.two_worlds.target_search.search import find_target
from dpaudit.auditing.two_worlds.target_search.spec import TargetSearchSpec
from dpaudit.errors import RunFolderError
from dpaudit.files import io_reason, parse_json
from dpaudit.game.engine import opened_engine
from dpaudit.game.flight import OnProgress, check_trial_timeout, ignore_progress
from dpaudit.game.pool import workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.model.choices import EngineName
from dpaudit.model.schema import Schema
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import RESULT_FILE, AuditResult


@with_fields_of(AuditSettings)
def audit(
    generator: object,
    data: pd.DataFrame | str | Path | None = None,
    *,
    schema: Schema | str | Path | None = None,
    jobs: int | None = None,
    engine: str = EngineName.LOCAL,
    scheduler: str | None = None,
    trial_timeout: float | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
    on_progress: OnProgress = ignore_progress,
    **settings: Unpack[SettingsGiven],
) -> AuditResult:
    """Audits a generator's privacy claim by running the distinguishing game against it.

    Args:
        generator: A registered name, `module:attr`, `file.py:attr`, an object with
            `fit(data, *, seed)`, or a function `f(data, n_rows, seed)` that returns a table.
        data: The table: a DataFrame, a CSV or Parquet file, or "sample:breast-cancer";
            None for a worst case, which has its own.
        schema: Its public schema (or a schema file); inferred if None, and then marked so.
        jobs: Worker processes; one per available core if None. Does not change the result.
        engine: "local" for processes of this machine, "dask" for the workers of a dask cluster.
            Does not change the result.
        scheduler: Address of the dask scheduler, or the JSON file that it writes.
        trial_timeout: Seconds after which a trial is stopped and has failed; if None, 20 times the
            slowest so far, at least an hour, and a day until one has finished. No setting of the
            audit: like `jobs` it suits the machine, and a run may be resumed with another.
        out: Run folder, which makes the run resumable; kept in a temporary folder if None.
        progress: Whether to show bars, or a line for every tenth, on standard error; if None, on a
            terminal and in a notebook.
        on_progress: Called after every trial.
        settings: Every other choice of the audit: the fields of `dpaudit.AuditSettings`.

    Returns:
        The result; with `out`, also written there as `result.json` and reports.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; with `out`, the same call resumes.
    """
    from dpaudit.auditing.progress_bar import shown

    chosen = AuditSettings(**settings)  # type: ignore[arg-type]  # it takes names of choices
    spec = build_spec(generator, audited_table(data, schema, chosen), chosen)
    run = partial(
        run_audit,
        spec,
        jobs=jobs,
        engine=engine,
        scheduler=scheduler,
        trial_timeout=trial_timeout,
    )
    with shown(on_progress, asked=progress) as on_event:
        if out is not None:
            return run(Path(out), on_progress=on_event)
        with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:
            result = run(Path(folder) / "run", on_progress=on_event)  # beside nobody else's folders
    return AuditResult.of(result, folder=None)


def run_audit(
    spec: AuditSpec,
    folder: Path,
    *,
    jobs: int | None = None,
    engine: str = EngineName.LOCAL,
    scheduler: str | None = None,
    trial_timeout: float | None = None,
    on_progress: OnProgress = ignore_progress,
) -> AuditResult:
    """Runs an audit in a run folder, or resumes it there.

    Args:
        spec: The audit, or the search for its target that comes first.
        folder: Its run folder.
        jobs: Worker processes; one per available core if None.
        engine: As for `audit`.
        scheduler: As for `audit`.
        trial_timeout: Seconds after which a trial has failed; if None, 20 times the slowest so far,
            at least an hour, and a day until one has finished.
        on_progress: Called after every trial.

    Returns:
        The result, also written to the folder with its reports.

    Raises:
        RunFolderError: If the folder cannot be used.
        SettingsError: If `jobs` is not positive, or `trial_timeout` below a second.
        ClusterError: If no dask scheduler answers, or its workers cannot run the trials.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    check_trial_timeout(trial_timeout)
    from dpaudit.report.render import write_reports

    with (
        opened_engine(engine, jobs=jobs, scheduler=scheduler) as chosen,
        folder_usable(folder),
        workers_ended(),
    ):
        if isinstance(spec, TargetSearchSpec):
            spec = find_target(
                spec, folder, engine=chosen, trial_timeout=trial_timeout, on_progress=on_progress
            )
        with RunFolder(folder, spec=spec.stored_specification, versions=spec.software) as store:
            local = chosen.workers if engine == EngineName.LOCAL else 1
            probes = probe_first(spec, store, jobs=local)
            reuse = check_reuse(spec, store)
            session = GAMES[spec.settings.game].session(
                spec, store, chosen, trial_timeout, on_progress
            )
            record = _shareable(session.run(reuse), store)
            record = replace(record, probes=probes, date=_date(folder))
            result = AuditResult.of(record, folder=folder)
            store.ensure_kept()
            result.save(folder)
            write_reports(result, folder)
    return result


@contextmanager
def folder_usable(folder: Path) -> Iterator[None]:
    """Turns whatever the system refuses during a run into a `RunFolderError`.

    Errors of foreign code do not come here: they are outcomes, or errors of their own.

    Raises:
        RunFolderError: On any OSError, such as a full disk, too many open files, or a folder that
            is there no more.
    """
    try:
        yield
    except OSError as error:
        where = folder if error.filename is None else error.filename
        raise RunFolderError(
            f"the run in {folder} cannot go on: {where}: {io_reason(error)}; fix that and run the "
            "same command again"
        ) from error


def _shareable(record: AuditRecord, store: RunFolder) -> AuditRecord:
    """A record whose digest of the table confirms no guess of it to who lacks the salt."""
    digest = store.salt.digest(record.data.sha256)
    return replace(record, data=replace(record.data, sha256=digest))


def _date(folder: Path) -> str:
    """The day on which an audit ended: that of the folder's result, if it has one, else today."""
    try:
        found = parse_json((folder / RESULT_FILE).read_text(encoding="utf-8"))["date"]
        return date.fromisoformat(found).isoformat()
    except (OSError, ValueError, TypeError, KeyError):
        return datetime.now(UTC).date().isoformat()
