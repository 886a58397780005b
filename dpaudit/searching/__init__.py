"""Search over neighbouring tables of a schema for the smallest pair that breaks a claim."""

from __future__ import annotations

from importlib.util import find_spec

from dpaudit.errors import MissingExtraError

if find_spec("hypothesis") is None:
    raise MissingExtraError("a search", "hypothesis", "search")
