"""Utility of synthetic data: classifiers trained on it, rankings, fidelity, and noise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaudit.usefulness.settings import UtilitySettings

if TYPE_CHECKING:
    from dpaudit.usefulness.experiment import Measure, Setting
    from dpaudit.usefulness.report import UtilityReport, UtilityScore
    from dpaudit.usefulness.run import run_utility, utility
    from dpaudit.usefulness.task import CLASSIFIERS

__all__ = [
    "CLASSIFIERS",
    "Measure",
    "Setting",
    "UtilityReport",
    "UtilityScore",
    "UtilitySettings",
    "run_utility",
    "utility",
]

_HOMES = {
    "experiment": ("Measure", "Setting"),
    "report": ("UtilityReport", "UtilityScore"),
    "run": ("run_utility", "utility"),
    "task": ("CLASSIFIERS",),
}


def __getattr__(name: str) -> Any:
    """What loads numpy, on first use: the help of the command needs only the settings."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"dpaudit.usefulness.{module}"), name)
    raise AttributeError(f"module 'dpaudit.usefulness' has no attribute {name!r}")
