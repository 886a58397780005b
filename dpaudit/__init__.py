"""Tests whether a synthetic data generator satisfies its differential privacy claim.

The public names load on first use, so that importing the package (as its pytest plugin does in
every session) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.auditing.entry import Machine, audit
    from dpaudit.auditing.games import audit_settings
    from dpaudit.auditing.one_run.settings import OneRun
    from dpaudit.auditing.records.settings import ManyRecords
    from dpaudit.auditing.settings import AuditSettings
    from dpaudit.auditing.two_worlds.settings import TwoWorlds
    from dpaudit.comparison import Comparison, compare
    from dpaudit.errors import DpauditError, InputError
    from dpaudit.frontiers.record import Frontier
    from dpaudit.frontiers.run import frontier
    from dpaudit.model.claim import Neighbours, PrivacyClaim
    from dpaudit.model.column import Column, Kind, Unit
    from dpaudit.model.currencies import ConcentratedClaim, CurveClaim, GaussianClaim
    from dpaudit.model.linked_tables import LinkedTables
    from dpaudit.model.schema import Schema
    from dpaudit.model.stated_claim import StatedClaim
    from dpaudit.plugins.protocols import Attack, FeatureName, GameView, Generator, Model, Scorer
    from dpaudit.released_data.audit import audit_data
    from dpaudit.released_data.result import ReleasedDataResult
    from dpaudit.released_data.split import CoinFile, CoinSplit, split
    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.replaying.run import replay
    from dpaudit.results.result import AuditResult, result_schema
    from dpaudit.results.verdict import Verdict
    from dpaudit.usefulness.report import UtilityReport
    from dpaudit.usefulness.run import UtilitySettings, utility
    from dpaudit.versions import __version__

_MODULE_OF = {
    # running an audit
    "audit": "auditing.entry",
    "TwoWorlds": "auditing.two_worlds.settings",
    "ManyRecords": "auditing.records.settings",
    "OneRun": "auditing.one_run.settings",
    "Machine": "auditing.entry",
    "AuditSettings": "auditing.settings",
    "audit_settings": "auditing.games",
    "AuditResult": "results.result",
    "Verdict": "results.verdict",
    "result_schema": "results.result",
    # replaying a generator with the same noisy answers in both worlds
    "replay": "replaying.run",
    "ReplayRecord": "replaying.record",
    # several results
    "compare": "comparison",
    "Comparison": "comparison",
    # a released table without its generator
    "audit_data": "released_data.audit",
    "ReleasedDataResult": "released_data.result",
    "split": "released_data.split",
    "CoinSplit": "released_data.split",
    "CoinFile": "released_data.split",
    # utility of synthetic data
    "utility": "usefulness.run",
    "UtilityReport": "usefulness.report",
    "UtilitySettings": "usefulness.run",
    "frontier": "frontiers.run",
    "Frontier": "frontiers.record",
    # schemas and claims
    "Schema": "model.schema",
    "LinkedTables": "model.linked_tables",
    "Unit": "model.column",
    "Column": "model.column",
    "Kind": "model.column",
    "PrivacyClaim": "model.claim",
    "NoClaim": "model.claim",
    "GaussianClaim": "model.currencies",
    "ConcentratedClaim": "model.currencies",
    "CurveClaim": "model.currencies",
    "StatedClaim": "model.stated_claim",
    "Neighbours": "model.claim",
    # contracts for the user's own generators and attacks
    "Generator": "plugins.protocols",
    "Model": "plugins.protocols",
    "Attack": "plugins.protocols",
    "Scorer": "plugins.protocols",
    "GameView": "plugins.protocols",
    "FeatureName": "plugins.protocols",
    # errors
    "DpauditError": "errors",
    "InputError": "errors",
    "__version__": "versions",
}

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
    "Frontier",
    "GameView",
    "GaussianClaim",
    "Generator",
    "InputError",
    "Kind",
    "LinkedTables",
    "Machine",
    "ManyRecords",
    "Model",
    "Neighbours",
    "NoClaim",
    "OneRun",
    "PrivacyClaim",
    "ReleasedDataResult",
    "ReplayRecord",
    "Schema",
    "Scorer",
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
    "frontier",
    "replay",
    "result_schema",
    "split",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    return getattr(import_module(f"dpaudit.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
