"""Black-box, metamorphic checks of any generator: a handful of fits each, no instrumentation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpaudit.model.choices import Severity
from dpaudit.probe.catalogue import PROBES, Probe, ProbeSettings

if TYPE_CHECKING:
    from dpaudit.probe.result import ProbeReport, ProbeResult, ProbeStatus
    from dpaudit.probe.run import probe, run_probes

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
    module = "run" if name in ("probe", "run_probes") else "result"
    return getattr(import_module(f"dpaudit.probe.{module}"), name)
