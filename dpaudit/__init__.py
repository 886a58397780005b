"""Tests whether a synthetic data generator satisfies its differential privacy claim.

The public names load on first use, so that importing the package (as its pytest plugin does in
every session) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.auditing.entry import audit
    from dpaudit.auditing.games import audit_settings
    from dpaudit.auditing.settings import AuditSettings, Machine, ManyRecords, OneRun, TwoWorlds
    from dpaudit.comparison import Comparison, compare
    from dpaudit.errors import DpauditError, InputError
    from dpaudit.evidence.pack import load
    from dpaudit.mechanisms.run import MechanismResult, mechanism
    from dpaudit.model.claim import (
        ConcentratedClaim,
        CurveClaim,
        GaussianClaim,
        Neighbours,
        NoClaim,
        PrivacyClaim,
        StatedClaim,
    )
    from dpaudit.model.column import Column, Kind, Unit
    from dpaudit.model.linked_tables import LinkedTables
    from dpaudit.model.schema import Schema
    from dpaudit.plugins.protocols import Attack, FeatureName, GameView, Generator, Model, Scorer
    from dpaudit.released_data.audit import audit_data
    from dpaudit.released_data.result import ReleasedDataResult
    from dpaudit.released_data.split import CoinFile, CoinSplit, split
    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.replaying.run import replay
    from dpaudit.results.result import AuditResult, result_schema
    from dpaudit.results.verdict import Verdict
    from dpaudit.searching.record import SearchRecord
    from dpaudit.searching.run import search
    from dpaudit.usefulness.report import UtilityReport
    from dpaudit.usefulness.run import utility
    from dpaudit.usefulness.settings import UtilitySettings
    from dpaudit.versions import __version__

_NAMES_OF = {
    # running an audit
    "auditing.entry": ("audit",),
    "auditing.settings": ("AuditSettings", "TwoWorlds", "ManyRecords", "OneRun", "Machine"),
    "auditing.games": ("audit_settings",),
    "results.result": ("AuditResult", "result_schema"),
    "results.verdict": ("Verdict",),
    # replaying a generator with the same noisy answers in both worlds
    "replaying.run": ("replay",),
    "replaying.record": ("ReplayRecord",),
    # searching the tables of a schema for the smallest pair that breaks a claim
    "searching.run": ("search",),
    "searching.record": ("SearchRecord",),
    # a plain mechanism, without tables
    "mechanisms.run": ("mechanism", "MechanismResult"),
    # results of finished audits
    "evidence.pack": ("load",),
    "comparison": ("compare", "Comparison"),
    # a released table without its generator
    "released_data.audit": ("audit_data",),
    "released_data.result": ("ReleasedDataResult",),
    "released_data.split": ("split", "CoinSplit", "CoinFile"),
    # utility of synthetic data
    "usefulness.run": ("utility",),
    "usefulness.settings": ("UtilitySettings",),
    "usefulness.report": ("UtilityReport",),
    # schemas and claims
    "model.schema": ("Schema",),
    "model.linked_tables": ("LinkedTables",),
    "model.column": ("Column", "Kind", "Unit"),
    "model.claim": (
        "PrivacyClaim",
        "GaussianClaim",
        "ConcentratedClaim",
        "CurveClaim",
        "NoClaim",
        "StatedClaim",
        "Neighbours",
    ),
    # contracts for the user's own generators and attacks
    "plugins.protocols": ("Generator", "Model", "Attack", "Scorer", "GameView", "FeatureName"),
    # errors
    "errors": ("DpauditError", "InputError"),
    "versions": ("__version__",),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "Attack",
    "AuditResult",
    "AuditSettings",
    "CoinFile",
    "CoinSplit",
    "Column",
    "Comparison",
    "ConcentratedClaim",
    "CurveClaim",
    "DpauditError",
    "FeatureName",
    "GameView",
    "GaussianClaim",
    "Generator",
    "InputError",
    "Kind",
    "LinkedTables",
    "Machine",
    "ManyRecords",
    "MechanismResult",
    "Model",
    "Neighbours",
    "NoClaim",
    "OneRun",
    "PrivacyClaim",
    "ReleasedDataResult",
    "ReplayRecord",
    "Schema",
    "Scorer",
    "SearchRecord",
    "StatedClaim",
    "TwoWorlds",
    "Unit",
    "UtilityReport",
    "UtilitySettings",
    "Verdict",
    "__version__",
    "audit",
    "audit_data",
    "audit_settings",
    "compare",
    "load",
    "mechanism",
    "replay",
    "result_schema",
    "search",
    "split",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    return getattr(import_module(f"dpaudit.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
