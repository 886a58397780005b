"""White-box findings about generators that record their own training.

It supports generators whose privacy is based on PATE (teachers that each read a part of the
records, votes, noise on the votes, an accountant that charges for the labels) or on DP-SGD (sums of
clipped gradients of independently sampled records, with noise). They can be traced if they have a
method `trace` that reports these facts to a recorder (`dpaudit.plugins.recorder`); inapplicable
checks are skipped and reported as such. For other generators use `dpaudit.probe`, which needs no
instrumentation.

`trace` trains the generator a few times, on the table and on changed tables, and returns findings:
deviations from the requirements of its privacy proof, shown by the recorded facts alone.
"""

from __future__ import annotations

from dpaudit.model.choices import Severity
from dpaudit.trace.catalogue import Finding
from dpaudit.trace.run import TraceReport, trace

__all__ = ["Finding", "Severity", "TraceReport", "trace"]
