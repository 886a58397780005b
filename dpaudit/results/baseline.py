"""What audits of a test suite proved before, in a file beside the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpaudit.errors import InputError
from dpaudit.files import io_reason, parse_json, write_whole

BASELINE_VERSION: Final = 1
TOLERANCE: Final = 0.5
"""How much more than before an audit may prove: bounds of a sound generator vary with its code."""


class AuditOfTest(NamedTuple):
    """One audit of a test, as a report, JUnit XML and the baseline have it.

    Attributes:
        test: The node id of the test.
        number: Which of the test's audits, from 1 on.
        verdict: Its verdict.
        quantity: What its claim limits, such as "epsilon".
        claimed: The claim, as a number; null if none was given.
        proved: The bound that decides; null if nothing was scored.
        shadow_models: Trained models of both worlds.
        seed: Root of its random streams.
        report: Path of its report.
        cached: Whether the result was known and nothing was trained.
        unkept: Why the result will not be known next time; empty if it may be.
    """

    test: str
    number: int
    verdict: str
    quantity: str
    claimed: float | None
    proved: float | None
    shadow_models: int
    seed: int
    report: str
    cached: bool = False
    unkept: str = ""

    @property
    def key(self) -> str:
        """Its name in the baseline."""
        return self.test if self.number == 1 else f"{self.test} #{self.number}"


def read_baseline(file: Path) -> Mapping[str, float]:
    """What each audit proved before, by `AuditOfTest.key`; 0 where nothing was.

    Raises:
        InputError: If the file cannot be read or is no baseline.
    """
    return {key: float(one["proved"] or 0.0) for key, one in _lines(file).items()}


def write_baseline(file: Path, audits: Iterable[AuditOfTest]) -> None:
    """Puts what audits proved into a baseline; audits that were not run keep their lines.

    Raises:
        InputError: If the file is there and no baseline, or cannot be written.
    """
    kept = _lines(file) if file.exists() else {}
    for audit in audits:
        kept[audit.key] = {
            name: getattr(audit, name) for name in ("verdict", "quantity", "claimed", "proved")
        }
    document = {"schema_version": BASELINE_VERSION, "audits": dict(sorted(kept.items()))}
    try:
        write_whole(file, json.dumps(document, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {file}: {io_reason(error)}") from None


def risen(audit: AuditOfTest, before: Mapping[str, float], *, tolerance: float) -> str:
    """Says that an audit proved more than before, by more than the tolerance; else empty."""
    old, new = before.get(audit.key), audit.proved or 0.0
    if old is None or new <= old + tolerance:
        return ""
    return (
        f"the proved {audit.quantity} has risen from {old:.3g} to {new:.3g} since the baseline "
        f"(allowed: {tolerance:g} more); if that is meant, update it: --dpaudit-baseline-update"
    )


def _lines(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a baseline by `AuditOfTest.key`."""
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
        if document["schema_version"] != BASELINE_VERSION:
            raise ValueError("another version")
        audits: dict[str, dict[str, Any]] = dict(document["audits"].items())
        for one in audits.values():
            float(one["proved"] or 0.0)
    except OSError as error:
        raise InputError(
            f"no baseline {file}: {io_reason(error)}; make it with --dpaudit-baseline-update"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{file} is no baseline of dpaudit: make it again with --dpaudit-baseline-update"
        ) from None
    return audits
