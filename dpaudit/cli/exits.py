"""The exit codes, which mean the same for every command."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class ExitCode(IntEnum):
    """The exit codes."""

    PASS = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130


class FailOn(StrEnum):
    """Least severe verdict that gives a non-zero exit code."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    NEVER = "never"


EXIT_CODES: Final = {
    ExitCode.PASS: "passed",
    ExitCode.VIOLATION: "violation or leak",
    ExitCode.USAGE: "wrong usage or input",
    ExitCode.INCONCLUSIVE: "inconclusive or invalid",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted; the same command resumes an audit",
}
"""Their meaning, as the help of every command lists them."""
