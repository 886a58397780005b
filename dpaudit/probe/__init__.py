"""Black-box, metamorphic checks of any generator: a handful of fits each, no instrumentation."""

from __future__ import annotations

from dpaudit.model.choices import Severity
from dpaudit.probe.catalogue import PROBES, Probe, ProbeSettings
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
