"""The baseline of a test suite: what its audits found before, in a file next to the tests."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, NamedTuple

from dpaudit.errors import InputError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.formatting import rounded_down

BASELINE_VERSION: Final = 2
LEVEL: Final = 0.01
"""Level of the test: probability of a false regression."""
UPDATE: Final = "--dpaudit-baseline-update"


class Ranking(NamedTuple):
    """How well the deciding attack ranks independent trials.

    Attributes:
        auc: The area under its ROC curve; 0.5 is chance.
        n_in: Scored trials of the "in" world.
        n_out: Scored trials of the "out" world.
    """

    auc: float
    n_in: int
    n_out: int

    def __str__(self) -> str:
        return f"{self.auc:.3f} ({self.n_in} in, {self.n_out} out)"


class AuditOfTest(NamedTuple):
    """One audit of a test, as reports, JUnit XML and the baseline hold it.

    Attributes:
        test: The node id of the test.
        number: The number of the audit within its test, from 1.
        verdict: Its verdict.
        quantity: What its claim limits, such as "epsilon".
        claimed: The claim, as a number; null if none was given.
        proved: The bound that decides; null if nothing was scored.
        shadow_models: Trained models of both worlds.
        seed: Root of its random streams.
        report: Path of its report.
        detects: What it can detect, in words.
        settings: Settings that must be equal for a comparison: text by name.
        ranking: Ranking of the deciding attack; null if its trials are not independent, or their
            number was not fixed.
        cached: Whether the result was reused and nothing was trained.
        unkept: Why the result cannot be reused next time; empty if it can.
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
    ranking: Ranking | None = None
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
        ranking: As in `AuditOfTest`.
        proved: As in `AuditOfTest`.
    """

    settings: Mapping[str, str]
    ranking: Ranking | None
    proved: float | None


def read_baseline(file: Path) -> Mapping[str, Baseline]:
    """What each audit found before, by `AuditOfTest.key`.

    Raises:
        InputError: If the file cannot be read or is no baseline.
    """
    return {
        key: Baseline(of["settings"], of["ranking"] and Ranking(*of["ranking"]), of["proved"])
        for key, of in _entries(file).items()
    }


def baseline_of(key: str, file: Path) -> Baseline:
    """What one audit found before.

    Raises:
        InputError: If the file cannot be read or is not a baseline, or has no entry for the audit.
    """
    if baseline := read_baseline(file).get(key):
        return baseline
    raise InputError(f"{file} has no line for {key}: add it with {UPDATE}")


def write_baseline(file: Path, audits: Iterable[AuditOfTest]) -> None:
    """Writes audits into a baseline; audits that were not run keep their entries.

    Raises:
        InputError: If the file exists and is not a baseline, or cannot be written.
    """
    kept = _entries(file) if file.exists() else {}
    for audit in audits:
        kept[audit.key] = {
            name: getattr(audit, name)
            for name in ("verdict", "quantity", "claimed", "proved", "settings", "ranking")
        }
    document = {"schema_version": BASELINE_VERSION, "audits": dict(sorted(kept.items()))}
    try:
        write_whole(file, json.dumps(document, indent=2, allow_nan=False) + "\n")
    except OSError as error:
        raise InputError(f"cannot write {file}: {io_reason(error)}") from None


def regression(audit: AuditOfTest, before: Baseline, *, level: float) -> str:
    """Tests whether an audit leaks more than before; empty if it does not.

    Two runs of one audit are compared by the AUC of their deciding attacks, in a one-sided test
    against the normal distribution. Whatever the scores are, the variance of an AUC of A is at most
    A (1 - A) / min(n_in, n_out) (Birnbaum and Klose 1957); A is the mean of both.

    Args:
        audit: The audit.
        before: What it found before.
        level: Level of the test: probability of a false regression.

    Returns:
        What differs or what has risen, in words; empty if neither.
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
    old, new = before.ranking, audit.ranking
    if old is None or new is None:
        return ""
    p_value = _p_value(old, new)
    if p_value > level:
        return ""
    return (
        f"REGRESSION: the AUC of the attack has risen from {old} to {new} since the baseline (p = "
        f"{p_value:.2g}, tested at {100 * level:g} %); proved {audit.quantity} "
        f"{rounded_down(before.proved or 0.0)} then and {rounded_down(audit.proved or 0.0)} now; "
        f"if that is meant, write the baseline again: {UPDATE}"
    )


def _p_value(old: Ranking, new: Ranking) -> float:
    """The p-value of the hypothesis that the AUC has not risen."""
    mean = (old.auc + new.auc) / 2.0
    scale = sum(1.0 / min(of.n_in, of.n_out) for of in (old, new))
    if new.auc <= old.auc:
        return 1.0
    return 1.0 - NormalDist().cdf((new.auc - old.auc) / math.sqrt(mean * (1.0 - mean) * scale))


def _entries(file: Path) -> dict[str, dict[str, Any]]:
    """The entries of a baseline by `AuditOfTest.key`."""
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
        if document["schema_version"] != BASELINE_VERSION:
            raise ValueError("another version")
        audits: dict[str, dict[str, Any]] = dict(document["audits"].items())
        for line in audits.values():
            float(line["proved"] or 0.0)
            dict(line["settings"])
            Ranking(*line["ranking"] or (0.5, 1, 1))
    except OSError as error:
        raise InputError(f"no baseline {file}: {io_reason(error)}; make it with {UPDATE}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{file} is no baseline of this version of dpaudit: make it again with {UPDATE}"
        ) from None
    return audits
