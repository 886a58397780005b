"""A privacy curve as text: a JSON or CSV file, or points written out."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.errors import ClaimError
from dpaudit.files import io_reason
from dpaudit.model.currencies import CurvePoint, curve_points

_FORMS: Final = (
    'a JSON list of [epsilon, delta] or of {"epsilon": ..., "delta": ...}, or CSV with the columns '
    "epsilon and delta"
)
_NUMBER: Final = r"[0-9.]+(?:[eE][+-]?[0-9]+)?"
_INLINE: Final = re.compile(rf"{_NUMBER}:{_NUMBER}(?:,{_NUMBER}:{_NUMBER})*")


def read_curve(text: str | Path) -> tuple[CurvePoint, ...]:
    """The points that a command names: "0.5:1e-3,1:1e-5", or a file that holds them.

    Args:
        text: Points written out, or a JSON or CSV file.

    Returns:
        The points by increasing epsilon.

    Raises:
        ClaimError: If the file cannot be read or is neither, or a point has no meaning.
    """
    written = str(text).replace(" ", "")
    if _INLINE.fullmatch(written):
        return curve_points(pair.split(":") for pair in written.split(","))
    try:
        content = Path(text).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = io_reason(error) if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ClaimError(f"the curve {text} cannot be read: {reason}; give {_FORMS}") from None
    try:
        return curve_points(_pairs(content))
    except ClaimError as error:
        raise ClaimError(f"{text}: {error}") from None
    except (ValueError, KeyError, TypeError, csv.Error):
        raise ClaimError(f"{text} is no privacy curve: give {_FORMS}") from None


def written_out(points: Sequence[CurvePoint]) -> str:
    """The points as `read_curve` takes them, without loss."""
    return ",".join(f"{epsilon!r}:{delta!r}" for epsilon, delta in points)


def _pairs(content: str) -> list[Any]:
    """Pairs of a file, JSON if it begins as a list.

    Raises:
        ValueError: If it is neither JSON nor CSV.
        KeyError: If epsilon or delta is missing.
    """
    if content.lstrip().startswith("["):
        listed = json.loads(content)
        return [(of["epsilon"], of["delta"]) if isinstance(of, dict) else of for of in listed]
    rows = csv.DictReader(content.splitlines(), skipinitialspace=True)
    return [(float(row["epsilon"]), float(row["delta"])) for row in rows]
