"""Audits a released synthetic table without its generator."""

from __future__ import annotations

from dpaudit.released_data.audit import audit_data
from dpaudit.released_data.conclusion import ReleasedFinding
from dpaudit.released_data.result import ReleasedDataResult, released_schema
from dpaudit.released_data.split import CoinFile, CoinSplit, split, write_split

__all__ = [
    "CoinFile",
    "CoinSplit",
    "ReleasedDataResult",
    "ReleasedFinding",
    "audit_data",
    "released_schema",
    "split",
    "write_split",
]
