"""From the folder of a finished run to the audit that ran there, and what it gave."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.auditing.games import audit_settings, audited_table, build_spec, keywords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import InputError, RunFolderError
from dpaudit.game.salt import SALTED, salt_of
from dpaudit.game.store import STORE_FILE, RunFolder, changed_keys, specification_of
from dpaudit.model.choices import EXPOSING
from dpaudit.model.schema import Schema
from dpaudit.model.tables import IN_MEMORY, Table, load, load_table
from dpaudit.results.result import RESULT_FILE, AuditResult
from dpaudit.results.verdict import Verdict


class FinishedRun(NamedTuple):
    """A finished run.

    Attributes:
        folder: Its folder.
        audit: What ran, complete again.
        result: Its result.
    """

    folder: Path
    audit: TwoWorldSpec
    result: AuditResult

    def opened(self) -> RunFolder:
        """Its run folder, opened and locked.

        Raises:
            RunFolderError: If another process holds it, or it is damaged.
        """
        return RunFolder(
            self.folder, spec=self.audit.stored_specification, versions=self.audit.software
        )

    @property
    def models(self) -> int:
        """Shadow models that were trained, of both worlds together."""
        return sum(self.result.shadow_models.values())


def reopen(path: Path) -> FinishedRun:
    """Rebuilds the audit of a run that found a violation; trains nothing.

    Args:
        path: Its run folder, or the `result.json` in it.

    Returns:
        The run, ready to be run again with something fixed.

    Raises:
        RunFolderError: If the run is not finished, had another game, found no violation, or cannot
            be run again as it was: the table, the generator or a library has changed.
        InputError: If there is no run, or what it needs cannot be found.
    """
    if os.path.isfile(path / STORE_FILE) and not os.path.isfile(path / RESULT_FILE):
        raise RunFolderError(
            f"{path} is not finished: run the command that started it again, it resumes"
        )
    result = AuditResult.load(path)
    folder = result.folder
    assert folder is not None  # it was loaded from one
    if result.one_run is not None:
        raise RunFolderError(
            f"{folder} is a one-run audit: explain trains shadow models; audit without `one_run`"
        )
    if result.records is not None:
        raise RunFolderError(
            f"{folder} is an audit of many records: explain attacks one; audit without `records`"
        )
    if result.verdict is not Verdict.VIOLATION:
        raise RunFolderError(
            f"{folder} found no violation (verdict: {result.verdict}): there is nothing to explain"
        )
    if result.data.source == IN_MEMORY:
        raise RunFolderError(
            f"{folder} was run on a table in memory: write it to a file and audit that"
        )
    spec = specification_of(folder)
    audit = _rebuilt(spec, result)
    _compare(folder, "versions", result.versions, audit.versions)
    own = audit.stored_specification
    _compare(folder, "settings", spec, salt_of(folder).sealed(own))
    run = FinishedRun(folder, audit, result)
    run.opened().close()
    return run


def _rebuilt(spec: Mapping[str, Any], result: AuditResult) -> TwoWorldSpec:
    """The audit of a specification, whose settings stand there and in its result."""
    target = result.target
    try:
        plain = {name: spec[name] for name in keywords() if name in spec}
        described = {
            "parameters": spec["generator"]["parameters"],
            "target": spec["target"]["choice"] if target.tables is None else EXPOSING,
            "worst_case": target.worst_case,
            "neighbours_file": target.neighbours_file,
            "attacks": tuple(attack["name"] for attack in spec["attacks"]),
        }
        settings = audit_settings(**(plain | described))
        table = _table(spec["schema"], result, settings)
        built = build_spec(spec["generator"]["name"], table, settings)
        assert isinstance(built, TwoWorldSpec)  # its target is a row
        return built
    except InputError as error:
        raise RunFolderError(f"the audit cannot be built again: {error}") from error


def _table(stored: Mapping[str, Any], result: AuditResult, settings: AuditSettings) -> Table:
    """The table with its schema; an inferred one was not stored, so it is inferred again."""
    source = result.data.source
    if result.target.worst_case is not None:
        return audited_table(None, Schema.from_document(stored), settings)
    if SALTED not in stored:
        return load(source, Schema.from_document(stored))
    if result.schema.source is not None:
        return load(source, result.schema.source)
    label = stored["label"]
    return load(source, label and Schema.infer(load_table(source), label=label))


def _compare(folder: Path, what: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuses what has changed since: the effect might be mistaken for that of a fix."""
    changed = changed_keys(there, here)
    if changed:
        raise RunFolderError(
            f"{folder} was run with other {what}: {', '.join(changed)} changed since; "
            "audit again, then explain that run"
        )
