"""From the folder of a finished run to the audit that was played there, and what it gave."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.auditing.attacking import Outcomes
from dpaudit.auditing.plan import Multiplicity, Pace
from dpaudit.auditing.result import RESULT_FILE, AuditResult
from dpaudit.auditing.spec import Audit, prepare
from dpaudit.auditing.verdict import Verdict
from dpaudit.bounds import ThresholdRule
from dpaudit.errors import InputError, RunFolderError
from dpaudit.game.store import STORE_FILE, RunFolder, specification_of
from dpaudit.game.trial import Role
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.model.tables import IN_MEMORY, load
from dpaudit.versions import versions


class Run(NamedTuple):
    """A finished run.

    Attributes:
        folder: Its folder.
        audit: What was played, complete again.
        document: Its result document.
        outcomes: What every shadow model gave.
    """

    folder: Path
    audit: Audit
    document: Mapping[str, Any]
    outcomes: Outcomes

    @property
    def models(self) -> int:
        """Shadow models that were played, of both worlds together."""
        return 2 * int(self.document["shadow_models"]["in"])


def reopened(path: Path) -> Run:
    """Rebuilds the audit of a run that found a violation; trains nothing.

    Args:
        path: Its run folder, or the `result.json` in it.

    Raises:
        RunFolderError: If the run is not finished, played another game, found no violation, or
            cannot be played again as it was: the table, the generator or a library has changed.
        InputError: If there is no run, or what it needs cannot be found.
    """
    if (path / STORE_FILE).is_file() and not (path / RESULT_FILE).is_file():
        raise RunFolderError(
            f"{path} is not finished: run the command that started it again, it resumes"
        )
    result = AuditResult.load(path)
    folder, document = result.folder, result.document
    assert folder is not None  # it was loaded from one
    if document["one_run"] is not None:
        raise RunFolderError(
            f"{folder} is a one-run audit: explain plays shadow models; audit without --one-run"
        )
    if result.verdict is not Verdict.VIOLATION:
        raise RunFolderError(
            f"{folder} found no violation (verdict: {result.verdict}): there is nothing to explain"
        )
    if document["data"]["source"] == IN_MEMORY:
        raise RunFolderError(
            f"{folder} was played on a table in memory: write it to a file and audit that"
        )
    _compare(folder, "versions", document["versions"], versions())
    spec = specification_of(folder)
    audit = _prepared(spec, document)
    _compare(folder, "settings", spec, audit.specification)
    with RunFolder(folder, spec=audit.specification, versions=versions()) as store:
        return Run(folder, audit, document, store.outcomes(Role.AUDIT))


def _prepared(spec: Mapping[str, Any], document: Mapping[str, Any]) -> Audit:
    try:
        return prepare(
            spec["generator"]["name"],
            load(document["data"]["source"], Schema.from_json(spec["schema"])),
            parameters=spec["generator"]["parameters"],
            epsilon=spec["epsilon"],
            delta=spec["delta"],
            neighbours=Neighbours(spec["neighbours"]),
            target=spec["target"]["choice"],
            attacks=[attack["name"] for attack in spec["attacks"]],
            shadow_models=spec["shadow_models"],
            rows=spec["rows"],
            confidence=spec["confidence"],
            threshold=ThresholdRule(spec["threshold"]),
            multiplicity=Multiplicity(spec["multiplicity"]),
            pace=Pace(spec["pace"]),
            seed=spec["seed"],
        )
    except InputError as error:
        raise RunFolderError(f"the audit cannot be built again: {error}") from error


def _compare(folder: Path, what: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuses what is not the same any more: a difference might be taken for a fix's."""
    changed = [key for key in sorted({*there, *here}) if there.get(key) != here.get(key)]
    if changed:
        raise RunFolderError(
            f"{folder} was played with other {what}: {', '.join(changed)} changed since; "
            "audit again, then explain that run"
        )
