"""Black-box, metamorphic checks of any generator: a handful of fits each, no instrumentation."""

from __future__ import annotations

from dpaudit.model.severity import Severity
from dpaudit.probe.catalogue import PROBES, Probe
from dpaudit.probe.report import ProbeReport
from dpaudit.probe.result import ProbeResult, ProbeStatus
from dpaudit.probe.run import probe, run_probes
from dpaudit.probe.settings import ProbeSettings

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
