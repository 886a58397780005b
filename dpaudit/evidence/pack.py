"""A finished audit as one file: its content, written reproducibly and read defensively.

Its manifest may be signed, by the package `cryptography` (extra `evidence`).
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from dpaudit.errors import InputError, MissingExtraError
from dpaudit.files import io_reason
from dpaudit.formatting import clipped
from dpaudit.model.claim import Claim, Neighbours, NoClaim, PrivacyClaim, Quantity
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.document import Document, NonNegative, Probability
from dpaudit.results.phrases import relation
from dpaudit.results.record import AuditedGenerator, AuditRecord
from dpaudit.results.verdict import Verdict
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
