"""What pip is run with, and why it failed in one line."""

from __future__ import annotations

import os
import re
from typing import Final

from dpaudit.formatting import clipped, one_line

_SHOWN: Final = 300
_UNREACHABLE: Final = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ConnectTimeout|ProxyError"
    r"|Failed to establish a new connection|name resolution|Network is unreachable"
)


def clean_environment() -> dict[str, str]:
    """The environment without what ties a process to this interpreter; PIP_ settings stay."""
    own = ("PYTHON", "VIRTUAL_ENV", "__PYVENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def pip_reason(log: str) -> str:
    """Why pip failed, from what it printed.

    Args:
        log: All of it.

    Returns:
        One line.
    """
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if "ERROR: " in line[:7]]
    missing = re.search(r"No matching distribution found for (\S+)", log)
    if missing and _UNREACHABLE.search(log):
        return "the package index cannot be reached: are you offline? pip keeps what it once had"
    if missing and os.environ.get("PIP_NO_INDEX"):
        return f"pip finds no {missing[1]}, and PIP_NO_INDEX keeps it from the package index"
    if missing:
        return f"the package index has no {missing[1]} for this Python"
    if "No space left on device" in log:
        return "no space left on the disk"
    failed = re.search(r"Failed building wheel for (\S+)|Failed to build (?:installable )?\S*", log)
    if failed and failed[1]:
        return f"{failed[1]} cannot be built from source here"
    last = errors[0] if errors else (log.strip().splitlines() or ["it says nothing"])[-1]
    return clipped(one_line(last), _SHOWN)
