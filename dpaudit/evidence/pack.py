"""A finished audit as one file, written reproducibly, read defensively, and checked.

A check says whether a pack is intact, and whether its verdict follows from its content. Its
manifest may be signed, by the package `cryptography` (extra `evidence`).
"""

from __future__ import annotations

import hashlib
import io
import math
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from dpaudit.auditing.checks import control_check
from dpaudit.bounds.table import BOUNDS, ValidBound
from dpaudit.errors import InputError, MissingExtraError
from dpaudit.files import io_reason
from dpaudit.formatting import Row, clipped, headed, rounded_down
from dpaudit.game.trial import Role
from dpaudit.model.claim import Claim, Neighbours, NoClaim, PrivacyClaim, Quantity
from dpaudit.plugins.protocols import World
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.decide import decide
from dpaudit.results.document import Document, NonNegative, Probability
from dpaudit.results.phrases import claim_and_relation, relation
from dpaudit.results.recomputed import Asked, NoProof, delta_of, recompute
from dpaudit.results.record import AuditedGenerator, AuditRecord
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Check, Verdict
from dpaudit.versions import __version__

if TYPE_CHECKING:
    from types import ModuleType

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.sig"
KEY: Final = "key.pem"
RESULT: Final = "result.json"
_CONTENTS: Final = {
    RESULT: "the result: claim, verdict, bounds, guesses and scores of the scored part, thresholds",
    "report.html": "the report, for a browser",
    "report.md": "the report as Markdown",
    "requirements.txt": "versions of the software that ran",
    "verify.py": "recomputes errors, bound and verdict with numpy and scipy alone",
}
_MOST_BYTES: Final = 64 * 2**20
"""Largest size of an unpacked file."""
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
_FLAVOURS: Final = {
    Quantity.EPSILON: "approximate differential privacy",
    Quantity.DELTA: "approximate differential privacy",
    Quantity.MU: "Gaussian differential privacy",
    Quantity.RHO: "zero-concentrated differential privacy",
    Quantity.FACTOR: "differential privacy by a privacy curve",
}


@dataclass(frozen=True, kw_only=True)
class Testing:
    """How a deployment was tested.

    Attributes:
        method: The kind of test.
        verdict: Its verdict.
        proved: Lower bound on what the claim limits; null if nothing was scored.
        confidence: One-sided confidence of the bound.
        detectable: Smallest true value detected with 80 % power; null if there is none.
        date: Day on which it ended, in UTC; null if it is not known.
    """

    method: str
    verdict: Verdict
    proved: NonNegative | None
    confidence: Probability
    detectable: NonNegative | None
    date: str | None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What registries of deployments ask for; null where an audit does not know it.

    Attributes:
        name: What is deployed.
        owner: Who is responsible for it.
        trust_model: Whom the people in the data have to trust.
        privacy_unit: What one unit of the data is.
        neighbours: The neighbouring relation.
        flavour: The kind of differential privacy.
        parameters: The claim.
        accounting: Where the claim comes from.
        implementation: The generator, with the digest of its source.
        testing: How it was tested.
    """

    name: str | None
    owner: str | None
    trust_model: str | None
    privacy_unit: str
    neighbours: Neighbours
    flavour: str
    parameters: Claim
    accounting: str
    implementation: AuditedGenerator
    testing: Testing


@dataclass(frozen=True, kw_only=True)
class Manifest(Document):
    """The manifest of an evidence pack.

    Attributes:
        dpaudit: The version that wrote the pack.
        files: SHA-256 of every other file, hexadecimal; signature and key are not among them.
        deployment: What is known for a public registry of deployments.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "the manifest of an evidence pack"
    kept_in: ClassVar[str] = "a file that `dpaudit evidence` wrote"
    dpaudit: str
    files: Mapping[str, str]
    deployment: Deployment


def pack_files(record: AuditRecord) -> dict[str, bytes]:
    """The files of a pack without signature, by name: a function of the record alone.

    Args:
        record: A finished audit.
    """
    texts = {
        RESULT: record.to_json(),
        "report.html": render_html(record),
        "report.md": render_markdown(record),
        "requirements.txt": _requirements(record),
        "verify.py": resources.files("dpaudit.evidence").joinpath("script.py").read_text("utf-8"),
        "README.md": _readme(record),
    }
    files = {name: text.encode() for name, text in texts.items()}
    manifest = Manifest(
        dpaudit=__version__,
        files={name: digest(files[name]) for name in sorted(files)},
        deployment=_deployment(record),
    )
    return {**files, MANIFEST: manifest.to_json().encode()}


def digest(content: bytes) -> str:
    """The SHA-256 of a file, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Archives files reproducibly: the same files always give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=_LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name])
    return buffer.getvalue()


def read_pack(path: Path) -> dict[str, bytes]:
    """The files of a pack by name; nothing is written to disk.

    Args:
        path: The archive.

    Raises:
        InputError: If it cannot be read, or holds a file that does not belong in a pack.
    """
    known = {*_CONTENTS, "README.md", MANIFEST, SIGNATURE, KEY}
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                name = entry.filename
                if name not in known or name in files:
                    raise InputError(
                        f"{path} holds {clipped(repr(name), 60)}, which is no part of a pack, or "
                        "twice: take the file as `dpaudit evidence` wrote it"
                    )
                if entry.file_size > _MOST_BYTES:
                    raise InputError(f"{path}: {name} is too large for a pack: it was not opened")
                files[name] = archive.read(entry)
    except OSError as error:
        raise InputError(
            f"no pack at {path}: {io_reason(error)}; give a file that dpaudit evidence wrote"
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        raise InputError(
            f"{path} is not an archive, or is cut off: get the whole file again"
        ) from None
    missing = known - {SIGNATURE, KEY} - set(files)
    if missing:
        raise InputError(f"{path} lacks {min(missing)}: get the pack again from its source")
    return files


def add_signature(files: Mapping[str, bytes], key_file: Path) -> dict[str, bytes]:
    """The files of a pack with the Ed25519 signature of its manifest and the public key to it.

    Args:
        files: The files without a signature.
        key_file: An Ed25519 private key, PEM without a password.

    Raises:
        InputError: If the key cannot be read.
        MissingExtraError: If `cryptography` is not installed.
    """
    serialization = _serialization()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(_read(key_file), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{key_file} is no Ed25519 private key without a password, in PEM: make one with "
            "openssl genpkey -algorithm ed25519"
        )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signature = key.sign(files[MANIFEST]).hex().encode() + b"\n"
    return {**files, SIGNATURE: signature, KEY: public}


def is_signed(files: Mapping[str, bytes], trusted: Path | None) -> bool:
    """Whether the signature of a pack is a valid signature of its manifest.

    Args:
        files: The files, signature and public key among them.
        trusted: The public key that must have signed it, PEM; that in the pack if None.

    Raises:
        InputError: If the trusted key cannot be read.
        MissingExtraError: If `cryptography` is not installed.
    """
    serialization = _serialization()
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(files[KEY] if trusted is None else _read(trusted))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        if trusted is None:
            return False
        raise InputError(f"{trusted} is no Ed25519 public key in PEM: ask its owner for it")
    try:
        key.verify(bytes.fromhex(files[SIGNATURE].decode("ascii").strip()), files[MANIFEST])
    except (InvalidSignature, ValueError):
        return False
    return True


def _serialization() -> ModuleType:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise MissingExtraError("a signature", "cryptography", "evidence") from None
    return serialization


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"no key at {path}: {io_reason(error)}") from None


def _requirements(record: AuditRecord) -> str:
    lines = [f"# Python {record.versions.get('python', 'unknown')}"]
    for name, version in record.versions.items():
        if name != "python" and version != "not installed":
            is_plain = " " not in f"{name}{version}"
            lines.append(f"{name}=={version}" if is_plain else f"# {name} {version}")
    return "\n".join(lines) + "\n"


def _readme(record: AuditRecord) -> str:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in _CONTENTS.items()]
    rows.append(f"| `{MANIFEST}` | SHA-256 of every file; fields for registries of deployments |")
    return "\n".join(
        [
            "# Evidence of an audit",
            "",
            "From these files the verdict can be recomputed without training a model and without",
            "the data. They hold no record, no value of the target, no synthetic row and no text",
            "of an exception; a row number and names of columns may be among them.",
            "",
            "| file | holds |",
            "|---|---|",
            *rows,
            "",
            "Check with numpy and scipy: `python verify.py`",
            "",
            f"Check with dpaudit (written by {__version__}): `dpaudit evidence verify PACK.zip`",
            "",
            "Audit again, with the table:",
            "",
            *(f"    {line}" for line in record.reproduce.splitlines()),
            "",
        ]
    )


def _deployment(record: AuditRecord) -> Deployment:
    claim, power = record.claim, record.power
    flavour = _FLAVOURS[claim.quantity]
    if isinstance(claim, PrivacyClaim) and claim.delta == 0:
        flavour = "pure differential privacy"
    if isinstance(claim, NoClaim):
        flavour = "none claimed"
    return Deployment(
        name=None,
        owner=None,
        trust_model=None,
        privacy_unit=f"one record: {relation(claim.neighbours)}",
        neighbours=claim.neighbours,
        flavour=flavour,
        parameters=claim,
        accounting=claim.source,
        implementation=record.generator,
        testing=Testing(
            method=f"membership inference game ({record.game.name}), lower bound by dpaudit",
            verdict=record.verdict,
            proved=record.proved,
            confidence=record.confidence,
            detectable=None if power is None else power.detectable,
            date=record.date,
        ),
    )


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
