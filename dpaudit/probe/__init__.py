"""Metamorphic checks of generators that cannot be looked into: a handful of fits each."""

from __future__ import annotations

from dpaudit.model.severity import Severity
from dpaudit.probe.result import ProbeReport, ProbeResult, Status
from dpaudit.probe.running import FITS, PROBES, RECORDS, Probe, probe
from dpaudit.probe.words import text_of, verdict_of

__all__ = [
    "FITS",
    "PROBES",
    "RECORDS",
    "Probe",
    "ProbeReport",
    "ProbeResult",
    "Severity",
    "Status",
    "probe",
    "text_of",
    "verdict_of",
]
