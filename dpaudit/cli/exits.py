"""The exit codes, which mean the same for every command."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """The exit codes."""

    PASS = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130


EXIT_CODES: Final = {
    ExitCode.PASS: "passed: nothing was found that fails",
    ExitCode.VIOLATION: "a violation or leak",
    ExitCode.USAGE: "wrong use or input",
    ExitCode.INCONCLUSIVE: "inconclusive or invalid",
    ExitCode.INTERNAL: "internal error",
    ExitCode.INTERRUPTED: "interrupted; the same command resumes an audit",
}
"""What the help of every command says of them."""
