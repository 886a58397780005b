"""The table of bounds and estimates: what is in it, and that everything shows just that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dpaudit import AuditResult
from dpaudit.bounds import (
    EpsilonGuarantee,
    clopper_pearson,
    coin_bound,
    exact,
    fair_coin,
    gdp,
    guarantee_of,
    jeffreys,
    joint_beta,
    one_run,
    one_run_gaussian,
    one_run_in_turn,
)
from dpaudit.bounds.table import (
    BOUNDS,
    Assumption,
    BoundEntry,
    Estimate,
    Observed,
    ValidBound,
    entries_for,
    proved,
)
from dpaudit.cli.main import app
from dpaudit.model.claim import ConcentratedClaim, CurveClaim, GaussianClaim, PrivacyClaim
from dpaudit.results.record import AuditRecord

Make = Callable[..., AuditRecord]

DOCS = Path(__file__).parents[2] / "docs"
BY_KEY = {entry.key: entry for entry in BOUNDS}
MEMBER = np.random.default_rng(8).random(80) < 0.5
CLAIMS = (
    PrivacyClaim(epsilon=1.0, delta=1e-5),
    GaussianClaim(mu=1.0),
    ConcentratedClaim(rho=0.5),
    CurveClaim(points=((1.0, 1e-5), (2.0, 1e-6))),
)
BETS = (np.where(MEMBER, 3.0, -3.0), MEMBER)
RIGHT = np.arange(100) % 20 > 0
COINS = ((20, 70), (25, 75), 240)
OBSERVED: dict[Observed, tuple[Any, ...]] = {
    Observed.COUNTS: (3, 1, 120, 120),
    Observed.COINS: COINS,
    Observed.BETS: BETS,
    Observed.CANARIES: (19, 20, 100),
    Observed.IN_TURN: (RIGHT,),
}
DIRECTLY: dict[str, Callable[..., float]] = {
    **{entry.key: partial(entry.function, *OBSERVED[entry.observed]) for entry in BOUNDS},
    "exact": lambda **asked: exact(3, 1, 120, 120, **asked),
    "clopper_pearson": lambda **asked: clopper_pearson(3, 1, 120, 120, **asked),
    "fair_coin": lambda **asked: fair_coin(*COINS, **asked),
    "sequential": lambda **asked: coin_bound(*BETS, **asked),
    "one_run": lambda **asked: one_run(19, 20, 100, **asked),
    "one_run_in_turn": lambda **asked: one_run_in_turn(RIGHT, **asked),
    "jeffreys": lambda **asked: jeffreys(3, 1, 120, 120, **asked),
    "joint_beta": lambda **asked: joint_beta(3, 1, 120, 120, **asked),
    "gdp": lambda **asked: gdp(3, 1, 120, 120, assume="gaussian", **asked),
    "one_run_gaussian": lambda **asked: one_run_gaussian(19, 20, 100, **asked),
}


CALLED = {"sequential": "coin_bound"}
"""The functions that are called otherwise than their keys."""


def test_keys_and_labels_are_unique_and_every_key_has_a_row() -> None:
    assert len(BY_KEY) == len(BOUNDS) == len({entry.label for entry in BOUNDS})
    assert set(BY_KEY) == {*ValidBound, *Estimate}
    for entry in BOUNDS:
        assert entry.meaning
        assert entry.source


@pytest.mark.parametrize("key", Estimate)
def test_an_estimate_never_decides(key: Estimate) -> None:
    entry = BY_KEY[key]
    assert not entry.valid
    assert not entry.decides
    with pytest.raises(ValueError, match=f"{key} is an estimate: it cannot decide"):
        replace(entry, decides=True)


def test_valid_bounds_have_a_form_for_every_claim() -> None:
    with pytest.raises(ValueError, match="exact lacks `level`: what it is for mu, rho and curves"):
        replace(BY_KEY[ValidBound.EXACT], level=None)
    with pytest.raises(ValueError, match="exact lacks `short`: what it does, in three or four"):
        replace(BY_KEY[ValidBound.EXACT], short="")
    for observed in set(Observed) - {Observed.COINS}:
        valid = [entry.key for entry in entries_for(observed) if entry.valid]
        for claim in CLAIMS:
            found = guarantee_of(claim).bounds(observed, *OBSERVED[observed], confidence=0.95)
            assert list(found) == valid
            assert min(found.values()) > 0


def test_only_deciding_bounds_prove() -> None:
    both = {ValidBound.EXACT: 1.0, ValidBound.CLOPPER_PEARSON: 2.0}
    assert proved(both) == 1.0
    assert proved({ValidBound.CLOPPER_PEARSON: 2.0}) == 0.0
    assert proved({ValidBound.EXACT: 1.0, ValidBound.SEQUENTIAL: 1.5}) == 1.5


@pytest.mark.parametrize("entry", BOUNDS, ids=lambda entry: entry.key)
def test_the_function_is_the_one_that_is_named(entry: BoundEntry) -> None:
    asked = {"delta": 1e-5, "confidence": 0.95}
    value = entry.function(*OBSERVED[entry.observed], **asked)
    assert value == DIRECTLY[entry.key](**asked)
    function = entry.function.func if isinstance(entry.function, partial) else entry.function
    assert function.__name__ == CALLED.get(entry.key, entry.key)
    assert value > 0


@pytest.mark.parametrize("observed", Observed)
def test_valid_bounds_are_all_of_their_kind_and_no_estimate(observed: Observed) -> None:
    found = EpsilonGuarantee(1e-5).bounds(observed, *OBSERVED[observed], confidence=0.95)
    assert list(found) == [entry.key for entry in entries_for(observed) if entry.valid]
    assert all(value == DIRECTLY[key](delta=1e-5, confidence=0.95) for key, value in found.items())


# Whatever shows bounds shows those of the table.


def command(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_list_of_bounds_is_the_table() -> None:
    listed = re.split(r"\n  (?=\S)", "\n" + command("list", "bounds").rstrip())[1:]
    lines = [" ".join(one.split()) for one in listed]
    assert [line.split()[0] for line in lines] == [entry.key for entry in BOUNDS]
    for line, entry in zip(lines, BOUNDS, strict=True):
        assert ("estimate, not a proof" in line) is not entry.valid
        assert ("may decide" in line) is entry.decides
        assert entry.source in line


def recomputed(record: AuditRecord, folder: Path, *words: str) -> list[dict[str, Any]]:
    AuditResult.of(record, folder=None).save(folder)
    found: list[dict[str, Any]] = json.loads(
        command("report", str(folder), "--bounds", "--json", *words)
    )["bounds"]
    return found


@pytest.mark.parametrize("assumed", [None, *Assumption])
def test_a_run_is_bounded_by_the_rows_whose_assumptions_are_made(
    assumed: Assumption | None, record_of: Make, tmp_path: Path
) -> None:
    words = () if assumed is None else ("--assume", assumed.value)
    record = record_of()
    rows = recomputed(record, tmp_path, *words)
    shown = [entry for entry in entries_for(Observed.COUNTS) if entry.assumption in (None, assumed)]
    assert [(row["attack"], row["method"], row["reason"] is None) for row in rows] == [
        (attack.name, entry.key.value, entry.valid) for attack in record.attacks for entry in shown
    ]
    for row in rows[: len(shown)]:
        assert row["value"] == DIRECTLY[row["method"]](delta=1e-5, confidence=0.975)


def test_a_one_run_audit_is_bounded_by_its_guesses_in_turn(record_of: Make, tmp_path: Path) -> None:
    canaries = {"canaries": 100, "included": 52, "guesses": 20, "correct": 19}
    attack = {"name": "groundhog", "auc": 0.9, "bound": 1.0, "right": RIGHT.tolist()}
    record = record_of(
        game={
            **canaries,
            "name": "one run",
            "gaussian_estimate": None,
            "interference": 0.0,
            "attacks": [attack],
        },
        attacks=[],
        multiplicity={"rule": "bonferroni", "hypotheses": 1},
    )
    rows = recomputed(record, tmp_path, "--assume", "gaussian")
    # How many guesses carry the bound was seen afterwards: that is for estimates alone.
    assert [(row["method"], row["reason"] is None) for row in rows] == [
        *((entry.key.value, entry.valid) for entry in entries_for(Observed.IN_TURN)),
        *((one.key.value, False) for one in entries_for(Observed.CANARIES) if not one.valid),
    ]
    for row in rows:
        assert row["value"] == DIRECTLY[row["method"]](delta=1e-5, confidence=0.95)
    assert [row["method"] for row in recomputed(record, tmp_path)] == ["one_run_in_turn"]


def test_the_documented_table_is_the_table() -> None:
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (valid|estimate) \| (.+?) \|$", page, re.MULTILINE)
    assert rows == [
        (entry.key.value, entry.label, "valid" if entry.valid else "estimate", entry.source)
        for entry in BOUNDS
    ]
