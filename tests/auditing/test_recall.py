"""Results that are known: nothing is trained again until something changes that may decide them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.recall import Memory, audit_or_recall
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult

DATA = pd.DataFrame({"age": range(20, 50), "income": np.linspace(1.0, 9.0, 30)})


class Kept:
    """A generator with a state."""

    claim = dpaudit.PrivacyClaim(epsilon=1.0)

    def __init__(self, age: int, *, table: pd.DataFrame | None = None) -> None:
        self.age = age
        self.table = table

    def fit(self, data: pd.DataFrame, *, seed: int) -> Kept:
        raise AssertionError("nothing is to be trained here")

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        raise AssertionError("nothing is to be sampled here")


JUDGED_BEFORE = {"name": "fresh trials", "passed": False, "detail": "judged before"}
Auditor = Callable[..., bool]


@pytest.fixture
def knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_of: Callable[..., AuditRecord]
) -> Auditor:
    """Audits, without training; says whether the result was known."""
    ended: dict[str, Any] = {}
    test = tmp_path / "test_mine.py"
    test.write_text("import numpy\n")
    (tmp_path / "cache").mkdir()

    def run_audit(spec: object, folder: Path, **options: object) -> AuditResult:
        return AuditResult.of(record_of(**ended), folder=folder)

    monkeypatch.setattr("dpaudit.auditing.recall.run_audit", run_audit)

    def knows(
        generator: object = None,
        data: pd.DataFrame = DATA,
        *,
        record: dict[str, Any] | None = None,
        source: str | None = None,
        name: str = "test_mine #1",
        **options: object,
    ) -> bool:
        ended.clear()
        ended.update({"failures": {"in": 0, "out": 0}, **(record or {})})
        if source is not None:
            test.write_text(source)
        memory = Memory(folder=tmp_path / "cache", name=name, files=(test,))
        found = audit_or_recall(
            Kept(30) if generator is None else generator,
            data,
            {"shadow_models": 40, **options},
            out=tmp_path / "run",
            memory=memory,
        )
        assert found.result.folder == tmp_path / "run"
        assert found.known is (tmp_path / "run" / "report.html").is_file()
        for file in (tmp_path / "run").glob("*"):
            file.unlink()
        return found.known

    return knows


def test_what_decides_nothing_changes_nothing(knows: Auditor) -> None:
    assert not knows()
    assert knows()
    assert knows(jobs=1)
    assert knows(source="import numpy\n")
    assert not knows(name="test_mine #2")
    assert knows()


@pytest.mark.parametrize(
    "change",
    [
        {"generator": Kept(31)},
        {"generator": Kept(30, table=DATA)},
        {"data": DATA.iloc[1:]},
        {"seed": 1},
        {"attacks": ["groundhog-naive"]},
        {"source": "import numpy\nimport pandas\n"},
    ],
)
def test_what_may_decide_a_result_is_trained_again(knows: Auditor, change: dict[str, Any]) -> None:
    assert not knows()
    assert not knows(**change)
    assert knows(**change)


def test_a_function_is_known_by_what_it_encloses(knows: Auditor) -> None:
    def generator(level: int) -> Callable[..., pd.DataFrame]:
        def draw(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
            return data.head(level)

        return draw

    assert not knows(generator(1), epsilon=1.0)
    assert knows(generator(1), epsilon=1.0)
    assert not knows(generator(2), epsilon=1.0)


def test_what_cannot_be_told_is_never_known(knows: Auditor) -> None:
    generator = Kept(30)
    generator.table = lambda: None  # type: ignore[assignment]  # cannot be pickled
    assert not knows(generator)
    assert not knows(generator)


@pytest.mark.parametrize(
    "record",
    [
        {"verdict": "invalid"},
        {"failures": {"in": 1, "out": 0}},
        {"checks": [{**JUDGED_BEFORE, "consequence": "withholds"}]},
    ],
)
def test_what_this_machine_may_have_caused_is_not_kept(
    knows: Auditor, record: dict[str, Any]
) -> None:
    assert not knows(record=record)
    assert not knows()
    assert knows()


def test_a_damaged_result_is_made_again(knows: Auditor, tmp_path: Path) -> None:
    assert not knows()
    [file] = (tmp_path / "cache").glob("*.json")
    file.write_text("{")
    assert not knows()
    assert knows()
    assert len(list((tmp_path / "cache").glob("*.json"))) == 1


def test_what_reaches_any_code_is_not_kept_and_says_why(knows: Auditor, tmp_path: Path) -> None:
    computed = "import importlib\nimportlib.import_module(NAME)\n"
    assert not knows(source=computed)
    assert not knows()
    assert not knows(source="import numpy\n")
    assert knows()
    assert not knows(source=computed)
    found = audit_or_recall(
        Kept(30),
        DATA,
        {"shadow_models": 40},
        out=tmp_path / "run",
        memory=Memory(folder=tmp_path / "cache", name="x", files=(tmp_path / "test_mine.py",)),
    )
    assert found.unkept == "test_mine.py may load code under any name (import_module, line 2)"


def test_a_partial_function_is_known_by_its_arguments(knows: Auditor) -> None:
    def partial(level: int) -> functools.partial[pd.DataFrame]:
        return functools.partial(levelled, level=level)

    assert not knows(partial(1), epsilon=1.0)
    assert knows(partial(1), epsilon=1.0)
    assert not knows(partial(2), epsilon=1.0)


def levelled(data: pd.DataFrame, n_rows: int, seed: int, *, level: int) -> pd.DataFrame:
    raise AssertionError("nothing is to be sampled here")
