"""Ed25519 signatures of manifests, by the package `cryptography` (extra `evidence`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpaudit.errors import InputError, MissingExtraError
from dpaudit.files import io_reason

if TYPE_CHECKING:
    from types import ModuleType


class Signed(NamedTuple):
    """A signature and the public key to it, as a pack holds them.

    Attributes:
        signature: 64 bytes, hexadecimal.
        key: The public key, PEM.
    """

    signature: bytes
    key: bytes


def sign(content: bytes, key_file: Path) -> Signed:
    """Signs a manifest with a private key.

    Args:
        content: The manifest.
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
    return Signed(key.sign(content).hex().encode() + b"\n", public)


def is_signed(content: bytes, signed: Signed, trusted: Path | None) -> bool:
    """Whether a signature of a manifest is valid.

    Args:
        content: The manifest.
        signed: The signature, and the public key in the pack.
        trusted: The public key that must have signed it, PEM; that in the pack if None.

    Raises:
        InputError: If the trusted key cannot be read.
        MissingExtraError: If `cryptography` is not installed.
    """
    serialization = _serialization()
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(signed.key if trusted is None else _read(trusted))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        if trusted is None:
            return False
        raise InputError(f"{trusted} is no Ed25519 public key in PEM: ask its owner for it")
    try:
        key.verify(bytes.fromhex(signed.signature.decode("ascii").strip()), content)
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
