"""The panels of a command's help, options that stand in them, and what completes a generator."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer


class Panel(StrEnum):
    """The heading of the help that an option stands under."""

    INPUT = "Input"
    CLAIM = "Claim"
    ATTACK = "Attack"
    MORE_AUDITS = "More audits"
    OUTPUT = "Output and exit code"
    MACHINE = "Machine"
    RULES = "Statistics"


def option(
    *names: str,
    metavar: str | None = None,
    help: str,
    shown: bool = True,
    panel: Panel | None = None,
    least: int | None = None,
) -> Any:
    """An option; without `shown` its help text names the default."""
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=shown, rich_help_panel=panel, min=least
    )


def registered_generators(incomplete: str) -> list[str]:
    """The generators whose names begin with what was typed, for completion."""
    from dpaudit.plugins.registry import GENERATORS, names

    return [name for name in names(GENERATORS) if name.startswith(incomplete)]
