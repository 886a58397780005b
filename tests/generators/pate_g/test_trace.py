"""`dpaudit trace` of PATE-G: nothing is found as it is, and each planted flaw by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.trace import Severity, TraceReport, trace
from dpaudit.trace.trainings import Collector
from dpaudit_generators import pate
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_g import PateG

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="kind", kind=Kind.BINARY, categories=("a", "b")),
        Column(name="z", kind=Kind.CONTINUOUS, lower=0, upper=1),
    ),
    label="kind",
)
SIDES = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="kind", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
    ),
    label="kind",
)


def table(n: int, schema: Schema = SCHEMA, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    label = next(column for column in schema.columns if column.name == "kind")
    position = np.arange(n) % len(label.categories)
    values: dict[str, Any] = {name: rng.random(n) for name in schema.names}
    values["x"] = (position + values["x"]) / len(label.categories)
    values["kind"] = np.array(label.categories)[position]
    return pd.DataFrame(values)


def traced(schema: Schema = SCHEMA, **settings: Any) -> TraceReport:
    public = table(300, schema, seed=2)
    given = {"public": public, "rounds": 3, "batch": 8, "critic_hidden": 4, "teachers": 10}
    return trace(PateG(schema=schema, **given | settings), table(200, schema), schema=schema)


def violations(report: TraceReport) -> set[str]:
    return {one.id for one in report.findings if one.severity is Severity.VIOLATION}


@pytest.mark.parametrize("schema", [pytest.param(SCHEMA, marks=pytest.mark.ci), SIDES])
def test_nothing_is_found_where_nothing_is_wrong(schema: Schema) -> None:
    report = traced(schema)
    assert not report.findings
    checked = {"partition-by-position", "partition-all-rows", "student-sees-real-rows"}
    assert checked | {"queries-not-accounted", "budget-exceeded"} <= set(report.checked)
    assert ("labels-not-from-votes" in report.checked) == (schema is SCHEMA)


def test_tracing_changes_no_training() -> None:
    data = table(60)
    generator = PateG(schema=SCHEMA, public=table(30, seed=3), rounds=2, teachers=4, labels=5)
    given = generator.trace(data, n_rows=20, seed=7, recorder=Collector(data))
    pd.testing.assert_frame_equal(given, generator.fit(data, seed=7).sample(20, seed=7))


@pytest.mark.ci
def test_a_student_of_the_table_s_own_rows_is_named() -> None:
    report = traced(public=None)
    assert violations(report) == {"student-sees-real-rows"}
    [found] = [one for one in report.findings if one.id == "student-sees-real-rows"]
    assert found.numbers["records"] == 200
    assert 20 < found.numbers["read"] <= 200


def by_position(rows: Any, *, teachers: int, key: bytes) -> tuple[IndexArray, ...]:
    del key
    return tuple(np.array_split(np.arange(len(rows)), teachers))


def all_rows(rows: Any, *, teachers: int, key: bytes) -> tuple[IndexArray, ...]:
    del key
    return (np.arange(len(rows)),) * teachers


@pytest.mark.parametrize(
    ("cells", "id_"),
    [
        pytest.param(by_position, "partition-by-position", marks=pytest.mark.ci),
        (all_rows, "partition-all-rows"),
    ],
)
def test_teachers_on_the_wrong_rows_are_named(
    cells: Any, id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pate, "cells", cells)
    assert violations(traced()) == {id_}


@pytest.mark.ci
def test_labels_without_noise_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def majority(self: VoteTable, votes: Any, words: Any) -> IndexArray:
        del words
        return (2 * np.asarray(votes) > self.teachers).astype(np.int64)

    monkeypatch.setattr(VoteTable, "release", majority)
    assert violations(traced()) == {"labels-not-from-votes"}


@pytest.mark.ci
def test_labels_that_nobody_pays_for_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LabelBudget, "spend", lambda *_: None)
    assert violations(traced()) == {"queries-not-accounted"}
