"""Looks into a generator that tells what it does: the white box.

`trace` trains it a few times, on the table and on changed ones, and gives findings:
deviations from what its promise needs, proved by what it told (`dpaudit.plugins.recorder`).
"""

from __future__ import annotations

from dpaudit.model.severity import Severity
from dpaudit.trace.findings import Finding
from dpaudit.trace.tracing import TraceReport, trace

__all__ = ["Finding", "Severity", "TraceReport", "trace"]
