"""Several audits side by side: their bounds, and the changes from one to the next."""

from __future__ import annotations

from dpaudit.comparison.compare import ComparedRun, Comparison, Reference, compare

__all__ = ["ComparedRun", "Comparison", "Reference", "compare"]
