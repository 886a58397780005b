"""What audits of a test suite found before, in a file beside the tests."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, NamedTuple

from dpaudit.errors import InputError
from dpaudit.files import io_reason, parse_json, write_whole

BASELINE_VERSION: Final = 2
LEVEL: Final = 0.01
"""Probability with which a generator that leaks no more than before is said to."""
UPDATE: Final = "--dpaudit-baseline-update"


class Errors(NamedTuple):
    """Errors of the deciding attack on independent trials.

    Attributes:
        false_negatives: Missed trials of the "in" world.
        false_positives: Trials of the "out" world that it took for the other.
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
    """

    false_negatives: int
    false_positives: int
    n_in: int
    n_out: int

    @property
    def advantage(self) -> float:
        """Its true positive rate less its false positive rate; 0 is chance."""
        return 1.0 - self.false_negatives / self.n_in - self.false_positives / self.n_out

    def __str__(self) -> str:
        return f"FNR {self.false_negatives}/{self.n_in}, FPR {self.false_positives}/{self.n_out}"


class AuditOfTest(NamedTuple):
    """One audit of a test, as a report, JUnit XML and the baseline have it.

    Attributes:
        test: The node id of the test.
        number: Which of the test's audits, from 1 on.
        verdict: Its verdict.
        quantity: What its claim limits, such as "epsilon".
        claimed: The claim, as a number; null if it is infinite.
        proved: The bound that decides; null if nothing was scored.
        shadow_models: Trained models of both worlds.
        seed: Root of its random streams.
        report: Path of its report.
        detects: What it could have detected, in words.
        settings: What must be the same for a comparison, in words by name.
        errors: Errors of the deciding attack; null where its trials are not independent, or their
            number was not fixed.
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
    detects: str = ""
    settings: Mapping[str, str] = {}
    errors: Errors | None = None
    cached: bool = False
    unkept: str = ""

    @property
    def key(self) -> str:
        """Its name in the baseline."""
        return self.key_of(self.test, self.number)

    @staticmethod
    def key_of(test: str, number: int) -> str:
        """The name of a test's audit in the baseline."""
        return test if number == 1 else f"{test} #{number}"


class Baseline(NamedTuple):
    """What an audit found before.

    Attributes:
        settings: As in `AuditOfTest`.
        errors: As there.
        proved: As there.
    """

    settings: Mapping[str, str]
    errors: Errors | None
    proved: float | None


def read_baseline(file: Path) -> Mapping[str, Baseline]:
    """What each audit found before, by `AuditOfTest.key`.

    Raises:
        InputError: If the file cannot be read or is no baseline.
    """
    return {
        key: Baseline(one["settings"], one["errors"] and Errors(*one["errors"]), one["proved"])
        for key, one in _lines(file).items()
    }


def baseline_of(key: str, file: Path) -> Baseline:
    """What one audit found before.

    Raises:
        InputError: If the file cannot be read or is no baseline, or has no line for the audit.
    """
    found = read_baseline(file).get(key)
    if found is None:
        raise InputError(f"{file} has no line for {key}: add it with {UPDATE}")
    return found


def write_baseline(file: Path, audits: Iterable[AuditOfTest]) -> None:
    """Puts what audits proved into a baseline; audits that were not run keep their lines.

    Raises:
        InputError: If the file is there and no baseline, or cannot be written.
    """
    kept = _lines(file) if file.exists() else {}
    for audit in audits:
        kept[audit.key] = {
            name: getattr(audit, name)
            for name in ("verdict", "quantity", "claimed", "proved", "settings", "errors")
        }
    document = {"schema_version": BASELINE_VERSION, "audits": dict(sorted(kept.items()))}
    try:
        write_whole(file, json.dumps(document, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {file}: {io_reason(error)}") from None


def regression(audit: AuditOfTest, before: Baseline, *, level: float) -> str:
    """Says that an audit leaks more than before, or cannot be compared; else empty.

    Two runs of one audit are compared by the advantage of their deciding attacks, TPR - FPR: a
    one-sided test of a contrast of four independent proportions, each with one success and one
    failure added (Agresti and Caffo 2000), against the normal distribution.

    Args:
        audit: The audit.
        before: What it found before.
        level: Probability with which a generator that leaks no more than before is said to.

    Returns:
        What differs, what has risen, or nothing.
    """
    there, here = before.settings, audit.settings
    differing = [
        f"{name} {there.get(name, 'unknown')} there and {here.get(name, 'unknown')} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    ]
    if differing:
        return (
            f"NOT COMPARABLE with the baseline: {'; '.join(differing)}; audit as the baseline was, "
            f"or write it again: {UPDATE}"
        )
    old, new = before.errors, audit.errors
    if old is None or new is None:
        return ""
    p_value = _p_value(old, new)
    if p_value > level:
        return ""
    return (
        f"REGRESSION: the advantage of the attack has risen from {old.advantage:.2f} ({old}) to "
        f"{new.advantage:.2f} ({new}) since the baseline (p = {p_value:.2g}, tested at "
        f"{100 * level:g} %); proved {audit.quantity} {before.proved or 0.0:.3g} then and "
        f"{audit.proved or 0.0:.3g} now; if that is meant, write the baseline again: {UPDATE}"
    )


def _p_value(old: Errors, new: Errors) -> float:
    """Of the hypothesis that the advantage has not risen."""
    rise = variance = 0.0
    for errors, sign in ((old, 1.0), (new, -1.0)):
        for wrong, trials in ((errors[0], errors.n_in), (errors[1], errors.n_out)):
            rate = (wrong + 1.0) / (trials + 2.0)
            rise += sign * rate
            variance += rate * (1.0 - rate) / (trials + 2.0)
    return 1.0 - NormalDist().cdf(rise / math.sqrt(variance))


def _lines(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a baseline by `AuditOfTest.key`."""
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
        if document["schema_version"] != BASELINE_VERSION:
            raise ValueError("another version")
        audits: dict[str, dict[str, Any]] = dict(document["audits"].items())
        for one in audits.values():
            float(one["proved"] or 0.0)
            dict(one["settings"])
            Errors(*one["errors"] or (0, 0, 1, 1))
    except OSError as error:
        raise InputError(f"no baseline {file}: {io_reason(error)}; make it with {UPDATE}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{file} is no baseline of this version of dpaudit: make it again with {UPDATE}"
        ) from None
    return audits
