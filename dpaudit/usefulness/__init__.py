"""Utility of synthetic data: classifiers trained on it, rankings, fidelity, and noise."""

from __future__ import annotations

from dpaudit.usefulness.experiment import Measure, Setting
from dpaudit.usefulness.report import UtilityReport, UtilityScore
from dpaudit.usefulness.run import UtilitySettings, run_utility, utility
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
