"""The JSON Schema of the result document."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def result_schema() -> dict[str, Any]:
    """Read the JSON Schema (draft 2020-12) of result.json; a fresh dictionary every time."""
    text = files("dpaudit.report").joinpath("result.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
