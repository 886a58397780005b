"""Black-box, metamorphic checks of any generator: a handful of fits each, no instrumentation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaudit.model.choices import Severity
from dpaudit.probe.catalogue import PROBES, Probe, ProbeSettings

if TYPE_CHECKING:
    from dpaudit.probe.run import ProbeReport, ProbeResult, ProbeStatus, probe, run_probes

__all__ = [
    "PROBES",
    "Probe",
    "ProbeReport",
    "ProbeResult",
    "ProbeSettings",
    "ProbeStatus",
    "Severity",
    "probe",
    "run_probes",
]


def __getattr__(name: str) -> Any:
    """What loads numpy, on first use: the help of the command needs only the settings."""
    if name not in __all__:
        raise AttributeError(f"module 'dpaudit.probe' has no attribute {name!r}")
    return getattr(import_module("dpaudit.probe.run"), name)
