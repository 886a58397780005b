"""Checks whether an evidence pack is intact, and whether its verdict follows from its content."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from dpaudit.auditing.checks import control_check
from dpaudit.bounds.table import BOUNDS, ValidBound
from dpaudit.errors import InputError
from dpaudit.evidence.pack import (
    KEY,
    MANIFEST,
    RESULT,
    SIGNATURE,
    Manifest,
    digest,
    is_signed,
    pack_files,
    read_pack,
)
from dpaudit.formatting import Row, headed, rounded_down
from dpaudit.game.trial import Role
from dpaudit.plugins.protocols import World
from dpaudit.results.decide import decide
from dpaudit.results.document import Document
from dpaudit.results.phrases import claim_and_relation
from dpaudit.results.recomputed import Asked, NoProof, delta_of, recompute
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Check, Verdict
from dpaudit.versions import __version__

_CLOSE: Final = 1e-6
"""Bounds this close are the same; other versions of numpy and scipy round differently."""


@dataclass(frozen=True, kw_only=True)
class EvidenceCheck(Document):
    """What a check of an evidence pack found.

    Attributes:
        verdict: The recorded verdict.
        claim: The claim, in words.
        proved: The recorded bound; null if nothing was scored.
        differences: What differs from the pack's own statements; may be empty.
        recomputed: What was recomputed and agrees with the record.
        not_recomputed: What the pack does not allow to recompute, and why.
        signature: "valid", "invalid" or "none".
        written_by: The version of dpaudit that wrote the pack.
        checked_by: The version that checked it.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a check of an evidence pack"
    verdict: Verdict
    claim: str
    proved: float | None
    differences: tuple[str, ...]
    recomputed: tuple[str, ...]
    not_recomputed: tuple[str, ...]
    signature: str
    written_by: str
    checked_by: str

    @property
    def headline(self) -> str:
        """The finding in one sentence."""
        if self.differences:
            return f"DIFFERS  {self.differences[0]}"
        if self.not_recomputed:
            return f"WHOLE  nothing differs; not recomputed: {self.not_recomputed[0]}"
        return f"REPRODUCED  the verdict follows from the pack: {self.verdict}"

    def __str__(self) -> str:
        """The finding and what was checked; 80 columns."""
        rows = [Row("claim", self.claim)]
        if self.proved is not None:
            rows.append(Row("bound", f"{rounded_down(self.proved)}, as recorded"))
        rows += [Row("same", part) for part in self.recomputed]
        rows += [Row("differs", part) for part in self.differences]
        rows += [Row("open", part) for part in self.not_recomputed]
        signature = {"none": "none: ask the author for the SHA-256 of the file"}
        rows.append(Row("signature", signature.get(self.signature, self.signature)))
        if self.written_by != self.checked_by:
            rows.append(Row("versions", f"written by {self.written_by}, checked by this version"))
        return "\n".join(headed(self.headline, rows))


class _Notes(NamedTuple):
    same: list[str]
    different: list[str]
    unknown: list[str]


def check_pack(path: Path, *, key: Path | None = None) -> EvidenceCheck:
    """Checks the files of a pack, its signature, its bounds and its verdict.

    Args:
        path: The archive.
        key: The public key that must have signed it, PEM; None: any key in the pack.

    Returns:
        What differs and what agrees.

    Raises:
        InputError: If the archive, its manifest, its result or the key cannot be read.
        MissingExtraError: If the pack is signed and `cryptography` is not installed.
    """
    files = read_pack(path)
    with tempfile.TemporaryDirectory() as folder:
        for name in (MANIFEST, RESULT):
            (Path(folder) / name).write_bytes(files[name])
        manifest = Manifest.load(Path(folder) / MANIFEST)
        record = AuditRecord.load(Path(folder) / RESULT)
    notes = _Notes([], [], [])
    signature = _signature(files, key, notes)
    _compare_files(files, manifest, record, notes)
    _compare_numbers(record, notes)
    return EvidenceCheck(
        verdict=record.verdict,
        claim=claim_and_relation(record.claim),
        proved=record.proved,
        differences=tuple(notes.different),
        recomputed=tuple(notes.same),
        not_recomputed=tuple(notes.unknown),
        signature=signature,
        written_by=manifest.dpaudit,
        checked_by=__version__,
    )


def load(folder: str | Path) -> AuditResult:
    """Reads the result of an audit and checks that its bounds and verdict follow from its scores.

    `AuditResult.load` reads it unchecked.

    Args:
        folder: The run folder, or its `result.json`.

    Returns:
        The result, as `dpaudit.audit` returned it.

    Raises:
        InputError: If it cannot be read, or was edited so that one of these does not follow.
    """
    result, notes = AuditResult.load(folder), _Notes([], [], [])
    _compare_numbers(result, notes)
    if notes.different:
        raise InputError(
            f"{folder} was edited after the audit, or is of a version that computes otherwise: "
            f"recomputed from its scores, this differs: {notes.different[0]}; repeat the command "
            "of the audit, which writes the result again"
        )
    return result


def _compare_numbers(record: AuditRecord, notes: _Notes) -> None:
    """Derives errors, bounds and verdict again from the scores of a record."""
    _compare_errors(record, notes)
    _compare_bounds(record, notes)
    _compare_verdict(record, notes)


def _signature(files: Mapping[str, bytes], key: Path | None, notes: _Notes) -> str:
    if SIGNATURE not in files or KEY not in files:
        if key is not None:
            notes.different.append("the pack has no signature")
        return "none"
    if is_signed(files, key):
        return "valid"
    notes.different.append("the signature is not one of this manifest by this key")
    return "invalid"


def _compare_files(
    files: Mapping[str, bytes], manifest: Manifest, record: AuditRecord, notes: _Notes
) -> None:
    held = {
        name: content for name, content in files.items() if name not in (MANIFEST, SIGNATURE, KEY)
    }
    wrong = [name for name, content in held.items() if manifest.files.get(name) != digest(content)]
    wrong += sorted(set(manifest.files) - set(held))
    notes.different.extend(f"{name} does not have the digest of the manifest" for name in wrong)
    if not wrong:
        notes.same.append(f"SHA-256 of {len(held)} files")
    if manifest.dpaudit != __version__ or wrong:
        return
    written = pack_files(record)
    other = [name for name, content in written.items() if files[name] != content]
    notes.different.extend(f"{name} is not what the result gives" for name in other)
    if not other:
        notes.same.append("reports, script and manifest, written again from the result")


def _compare_errors(record: AuditRecord, notes: _Notes) -> None:
    """Recounts the deciding attack's errors from its scores and its threshold."""
    if record.counts is None or record.threshold is None or not all(record.scores.values()):
        return
    import numpy as np

    inside, outside = (
        record.threshold.guesses_in(np.asarray(record.scores[world]))
        for world in (World.IN, World.OUT)
    )
    errors = (int(np.sum(~inside)), int(np.sum(outside)), len(inside), len(outside))
    _note(errors == tuple(record.counts), f"errors of {record.attack}", notes)


def _compare_bounds(record: AuditRecord, notes: _Notes) -> None:
    asked = Asked(result=record, delta=delta_of(record), confidence=record.confidence, assume=None)
    labels = {entry.key.value: entry.label for entry in BOUNDS}
    proved = []
    for row in recompute(asked).bounds:
        if row.reason not in (None, NoProof.COMPARED, NoProof.INVALID):
            continue
        recorded = _recorded_bound(record, row.attack, row.method)
        if recorded is None or row.value is None:
            continue
        proved.append(row.value)
        if row.method != ValidBound.SEQUENTIAL:
            same = math.isclose(row.value, recorded, rel_tol=_CLOSE, abs_tol=_CLOSE)
            _note(same, f"{labels[row.method]} bound of {row.attack}", notes)
    if record.game.may_stop:
        notes.unknown.append("the sequential bound, which needs every bet in order")
    if record.proved_without_bits is not None:
        notes.unknown.append("the bound without last bits, which needs the features of the trials")
    if record.proved is not None:
        reached = any(math.isclose(record.proved, bound, abs_tol=_CLOSE) for bound in proved)
        _note(reached, "the bound that decides is one of these", notes)


def _recorded_bound(record: AuditRecord, attack: str, method: str) -> float | None:
    for outcome in record.attacks:
        if outcome.name == attack:
            return next(
                (bound for key, bound in outcome.bounds.items() if key.value == method), None
            )
    for canary in getattr(record.game, "attacks", ()):
        if canary.name == attack:
            return float(canary.bound)
    return None


def _compare_verdict(record: AuditRecord, notes: _Notes) -> None:
    """Derives the verdict again from bound, claim, power, controls and checks."""
    if record.probe_proofs:
        notes.unknown.append("what the probes proved, which decided: run dpaudit probe")
        return
    if record.power is None:
        notes.unknown.append("the verdict: the audit ended before anything was scored")
        return
    decision = decide(
        record.proved or 0.0,
        record.claim,
        record.power,
        [*_controls(record), *record.checks],
        confidence=record.confidence,
    )
    _note(decision.verdict is record.verdict, f"the verdict: {decision.verdict}", notes)


def _controls(record: AuditRecord) -> Iterator[Check]:
    if record.controls is not None:
        roles = (Role.NULL_CONTROL, Role.POSITIVE_CONTROL)
        for role, control in zip(roles, record.controls.named().values(), strict=True):
            yield control_check(role, control, ran=record.ran)


def _note(same: bool, what: str, notes: _Notes) -> None:
    (notes.same if same else notes.different).append(what)
