"""Settles whether a differentially private synthetic data generator keeps its promise.

The public names load on first use, so that importing the package (as its pytest plugin does in
every session) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.auditing import audit
    from dpaudit.claim import Neighbours, PrivacyClaim
    from dpaudit.errors import DpauditError, InputError
    from dpaudit.protocols import Attack, FeatureName, GameView, Generator, Model, Scorer
    from dpaudit.result import AuditResult
    from dpaudit.schema import Column, Kind, Schema
    from dpaudit.verdict import Verdict

_HOME = {
    # playing an audit
    "audit": "auditing",
    "AuditResult": "result",
    "Verdict": "verdict",
    # what is public about a table, and what is promised
    "Schema": "schema",
    "Column": "schema",
    "Kind": "schema",
    "PrivacyClaim": "claim",
    "Neighbours": "claim",
    # contracts for generators and attacks of one's own
    "Generator": "protocols",
    "Model": "protocols",
    "Attack": "protocols",
    "Scorer": "protocols",
    "GameView": "protocols",
    "FeatureName": "protocols",
    # errors
    "DpauditError": "errors",
    "InputError": "errors",
}

__all__ = [
    "Attack",
    "AuditResult",
    "Column",
    "DpauditError",
    "FeatureName",
    "GameView",
    "Generator",
    "InputError",
    "Kind",
    "Model",
    "Neighbours",
    "PrivacyClaim",
    "Schema",
    "Scorer",
    "Verdict",
    "audit",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}")
    return getattr(import_module(f"dpaudit.{_HOME[name]}"), name)
