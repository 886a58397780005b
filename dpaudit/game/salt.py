"""What a run folder keeps of private values: digests that confirm no guess without its salt.

Random streams are named after the unsalted digests, which never leave the process.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.errors import RunFolderError
from dpaudit.files import write_whole

SALT_FILE = "salt"
"""Name of the file of a run folder that holds its salt."""
SALTED = "salted_sha256"
"""Key of a digest in a stored specification."""
PRIVATE_FILE = 0o600
"""Permissions of what only the owner of a run folder may read."""


class Private(NamedTuple):
    """A value of a specification that says something about records.

    Attributes:
        value: The value, as JSON.
        public: What may be known of it.
    """

    value: Any
    public: Mapping[str, Any] = {}


class Salt(NamedTuple):
    """The salt of one run folder.

    Attributes:
        text: 64 hexadecimal digits.
    """

    text: str

    def digest(self, value: Any) -> str:
        """The salted digest of a value, as JSON: HMAC-SHA256, hexadecimal."""
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        return hmac.digest(bytes.fromhex(self.text), text.encode(), "sha256").hex()

    def sealed(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """A specification with every private value replaced by its salted digest."""
        return {key: self._sealed(value) for key, value in spec.items()}

    def _sealed(self, value: Any) -> Any:
        if isinstance(value, Private):
            return {**value.public, SALTED: self.digest(value.value)}
        return self.sealed(value) if isinstance(value, Mapping) else value


def salt_of(folder: Path) -> Salt:
    """The salt of a run folder.

    Raises:
        RunFolderError: If it is lost or damaged.
    """
    try:
        text = (folder / SALT_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        text = ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise RunFolderError(
            f"{folder} lacks its file {SALT_FILE!r}, so nothing shows that it belongs to this "
            "audit: put that file back, or give another `out`"
        )
    return Salt(text)


def new_salt(folder: Path) -> Salt:
    """Makes the salt of a new run folder.

    Raises:
        OSError: If it cannot be written.
    """
    salt = Salt(secrets.token_hex(32))
    write_whole(folder / SALT_FILE, f"{salt.text}\n", mode=PRIVATE_FILE)
    return salt
