"""An audit that comes after a result on the very trials that it judges."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.recall import Memory, audit_or_recall
from dpaudit.auditing.reuse import STREAMS_FILE, check_reuse
from dpaudit.errors import RunFolderError
from dpaudit.game.store import RunFolder
from dpaudit.model.tables import load
from dpaudit.results.result import RESULT_FILE
from dpaudit.results.verdict import FRESH_TRIALS, Check, Verdict
from dpaudit.versions import versions
from samples import PEOPLE, QUICK_ATTACKS, people


def fresh(
    out: Path,
    *,
    generator: str = "randomised-response",
    data: pd.DataFrame | None = None,
    judged: bool = True,
    **settings: object,
) -> Check:
    """Starts an audit in a folder, and judges it; how its check ended."""
    chosen = {"shadow_models": 20, "attacks": QUICK_ATTACKS[1:], "epsilon": 1.0} | settings
    table = load(people(12) if data is None else data, PEOPLE)
    spec = build_spec(generator, table, audit_settings(**chosen))  # type: ignore[arg-type]
    with RunFolder(out, spec=spec.stored_specification, versions=versions()) as store:
        check = check_reuse(spec, store)
    if judged:
        (out / RESULT_FILE).touch()
    return check


def audited(out: Path | None, **settings: object) -> dpaudit.AuditResult:
    """Runs a whole audit."""
    chosen = {"shadow_models": 20, "attacks": QUICK_ATTACKS[1:], "epsilon": 1.0} | settings
    return audit_by_keywords(
        "randomised-response", people(12), schema=PEOPLE, out=out, jobs=1, **chosen
    )  # type: ignore[arg-type]


def check_of(result: dpaudit.AuditResult) -> Check:
    (check,) = [check for check in result.checks if check.name == FRESH_TRIALS]
    assert check.passed == (check.detail not in result.reasons)
    return check


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.ci
def test_a_larger_audit_after_a_look_is_noted_in_the_result_and_its_reports(tmp_path: Path) -> None:
    assert check_of(audited(tmp_path / "small")).passed
    larger = check_of(audited(tmp_path / "large", shadow_models=30))
    assert not larger.passed
    assert larger.detail == (
        "these shadow models were already judged in small, which spent their error probability: a "
        "further look at them proves no violation"
    )
    found = dpaudit.AuditResult.load(tmp_path / "large")
    assert larger in found.checks
    assert "warning   these shadow models were judged before" in str(found)
    for report in ("report.html", "report.md"):
        assert "already judged in small" in (tmp_path / "large" / report).read_text()
    assert check_of(audited(tmp_path / "seed", shadow_models=30, seed=1)).passed


LEAKING = {"attacks": QUICK_ATTACKS[1:], "epsilon": 1.0, "shadow_models": 40}
MANY = {
    "attacks": QUICK_ATTACKS[1:],
    "epsilon": 1.0,
    "records": 8,
    "shadow_models": 8,
}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            *(LEAKING | {"shadow_models": 20}, LEAKING | {"shadow_models": 60}),
            marks=pytest.mark.ci,
        ),
        pytest.param(
            *(LEAKING, LEAKING | {"sequential": True, "shadow_models": 60}), marks=pytest.mark.ci
        ),
        pytest.param(MANY, MANY | {"shadow_models": 12}, marks=pytest.mark.ci),
        (
            {"one_run": True, "canaries": 30, "epsilon": 1.0},
            {"one_run": True, "canaries": 30, "epsilon": 0.5},
        ),
    ],
    ids=["more models", "sequential", "many records", "one training"],
)
def test_a_second_look_proves_no_violation_and_a_fresh_seed_does(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any]
) -> None:
    def leaking(name: str, settings: dict[str, Any]) -> dpaudit.AuditResult:
        return audit_by_keywords(
            "copycat" if "records" not in first and "one_run" not in first else resample,
            people(60),
            schema=PEOPLE,
            out=tmp_path / name,
            jobs=1,
            probe=False,
            **settings,
        )

    leaking("earlier", first)
    again = leaking("again", second)
    assert again.proved is not None
    assert again.proved > second["epsilon"]
    assert again.verdict is Verdict.INCONCLUSIVE
    assert again.reasons[0].startswith(
        "these shadow models were already judged in earlier, which spent"
    )
    with pytest.raises(AssertionError, match="already judged in earlier"):
        again.assert_no_violation()
    assert leaking("fresh", second | {"seed": 1}).verdict is Verdict.VIOLATION


def resample(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Copies the records that it was trained with, in an order of its own."""
    order = np.random.default_rng(seed).permutation(len(data))
    return data.iloc[[order[n % len(order)] for n in range(n_rows)]]


class Constant:
    """A generator whose imports are known, so that its results are kept."""

    claim = dpaudit.PrivacyClaim(epsilon=1.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Constant:
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return people(n)


def test_a_known_result_that_is_handed_out_again_is_found_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    known = []
    for parent, models in (("one", 20), ("two", 20), ("two", 30)):
        found = audit_or_recall(
            Constant(),
            people(12),
            {
                "schema": PEOPLE,
                "attacks": QUICK_ATTACKS[1:],
                "epsilon": 1.0,
                "shadow_models": models,
                "jobs": 1,
                "probe": False,
            },
            out=tmp_path / parent / f"{models}",
            memory=Memory(folder=tmp_path / "cache", name=f"{models}", files=()),
        )
        known.append(found.known)
    assert known == [False, True, False]
    assert "already judged in 20, which" in check_of(found.result).detail


def test_a_violation_stays_one_in_its_folder_whatever_comes_after(tmp_path: Path) -> None:
    def leaking(name: str, models: int) -> dpaudit.AuditResult:
        settings = LEAKING | {"shadow_models": models}
        return audit_by_keywords(
            "copycat", people(12), schema=PEOPLE, out=tmp_path / name, jobs=1, probe=False,
            **settings,
        )  # type: ignore[arg-type]  # fmt: skip

    first = leaking("first", 40)
    assert first.verdict is Verdict.VIOLATION
    assert leaking("second", 50).verdict is Verdict.INCONCLUSIVE
    resumed = leaking("first", 40)
    assert (resumed.verdict, resumed.checks) == (first.verdict, first.checks)


@pytest.mark.parametrize(
    "other",
    [
        {"sequential": True, "shadow_models": 40},
        {"attacks": QUICK_ATTACKS[:1]},
        {"threshold": "hold-out"},
        {"epsilon": 0.5},
        {"confidence": 0.9},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_judgement_of_the_same_trials_counts(
    tmp_path: Path, other: dict[str, object]
) -> None:
    fresh(tmp_path / "first")
    assert not fresh(tmp_path / "second", **other).passed


def test_a_larger_cap_counts(tmp_path: Path) -> None:
    fresh(tmp_path / "first", sequential=True)
    assert not fresh(tmp_path / "second", sequential=True, shadow_models=30).passed


def test_other_trials_are_fresh(tmp_path: Path) -> None:
    fresh(tmp_path / "first")
    assert fresh(tmp_path / "seed", seed=1, shadow_models=30).passed
    assert fresh(tmp_path / "data", data=people(13), shadow_models=30).passed
    assert fresh(tmp_path / "rows", rows=5, shadow_models=30).passed
    assert fresh(tmp_path / "target", target="row:3", shadow_models=30).passed


def test_the_same_audit_is_no_second_chance(tmp_path: Path) -> None:
    fresh(tmp_path / "first")
    assert fresh(tmp_path / "first").passed
    assert fresh(tmp_path / "again").passed
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    assert fresh(tmp_path / "copy").passed


def test_what_was_judged_later_does_not_count_and_what_was_found_stays(tmp_path: Path) -> None:
    fresh(tmp_path / "first")
    fresh(tmp_path / "second", shadow_models=30)
    assert fresh(tmp_path / "first").passed
    shutil.rmtree(tmp_path / "first")
    assert not fresh(tmp_path / "second", shadow_models=30).passed


def test_what_was_found_before_an_interruption_stays(tmp_path: Path) -> None:
    fresh(tmp_path / "first")
    assert not fresh(tmp_path / "second", shadow_models=30, judged=False).passed
    shutil.rmtree(tmp_path / "first")
    assert not fresh(tmp_path / "second", shadow_models=30).passed


def test_a_run_without_a_result_was_not_judged(tmp_path: Path) -> None:
    fresh(tmp_path / "first")
    os.remove(tmp_path / "first" / "result.json")
    assert fresh(tmp_path / "second", shadow_models=30).passed


def test_a_run_that_is_resumed_after_another_was_judged_is_noted(tmp_path: Path) -> None:
    assert fresh(tmp_path / "large", shadow_models=30, judged=False).passed
    fresh(tmp_path / "small")
    assert not fresh(tmp_path / "large", shadow_models=30).passed


def test_the_default_place_of_audits_is_looked_at_too(tmp_path: Path) -> None:
    fresh(tmp_path / "runs" / "first")
    larger = fresh(tmp_path / "elsewhere" / "second", shadow_models=30)
    assert "judged in runs/first, which" in larger.detail
    assert "judged in first, which" in fresh(tmp_path / "runs" / "third", shadow_models=40).detail


def test_a_call_that_keeps_nothing_looks_too(tmp_path: Path) -> None:
    fresh(tmp_path / "runs" / "first")
    assert not check_of(audited(None, shadow_models=30)).passed


GENERATOR = """
def copy(data, n_rows, seed):
    return data.iloc[[{row}] * n_rows].reset_index(drop=True)
"""


def test_a_generator_whose_code_has_changed_has_other_trials(tmp_path: Path) -> None:
    for row, passed, models in ((0, True, 20), (0, False, 30), (1, True, 40)):
        (tmp_path / "own.py").write_text(GENERATOR.format(row=row))
        own = f"{tmp_path / 'own.py'}:copy"
        assert fresh(tmp_path / f"{models}", generator=own, shadow_models=models).passed is passed


def test_one_run_audits_are_compared_too(tmp_path: Path) -> None:
    def one_run(name: str, **settings: object) -> bool:
        found = audit_by_keywords(
            "null", people(60), out=tmp_path / name, jobs=1, one_run=True, **settings
        )  # type: ignore[arg-type]
        return check_of(found).passed

    assert one_run("first", canaries=20, epsilon=1.0)
    assert not one_run("second", canaries=20, epsilon=0.5)
    assert one_run("third", canaries=22, epsilon=1.0)


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"streams": 1, "settings": 2, "earlier": 3}'])
def test_a_damaged_neighbour_is_passed_over_and_an_own_one_is_refused(
    tmp_path: Path, damage: str
) -> None:
    fresh(tmp_path / "first")
    (tmp_path / "first" / STREAMS_FILE).write_text(damage)
    (tmp_path / "pipe").mkdir()
    (tmp_path / "pipe" / "result.json").touch()
    os.mkfifo(tmp_path / "pipe" / STREAMS_FILE)
    assert fresh(tmp_path / "second", shadow_models=30).passed
    with pytest.raises(RunFolderError, match=f"{STREAMS_FILE} is damaged"):
        fresh(tmp_path / "first")


def test_what_is_kept_is_private_and_confirms_no_guess(tmp_path: Path) -> None:
    for name in ("first", "again"):
        fresh(tmp_path / name)
    kept = [json.loads((tmp_path / name / STREAMS_FILE).read_text()) for name in ("first", "again")]
    assert kept[0].keys() == {"streams", "settings", "earlier"}
    assert kept[0]["streams"] != kept[1]["streams"]  # salted
    assert kept[0]["settings"] != kept[1]["settings"]
    mode = (tmp_path / "first" / STREAMS_FILE).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
