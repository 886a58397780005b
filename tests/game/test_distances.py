"""The farthest records of tables that are too large to compare every record with every other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestNeighbors

from dpaudit.game import target as targets
from dpaudit.game.target import choose_target, far_records, farthest
from dpaudit.model.schema import Schema
from dpaudit.results import sentences
from dpaudit.results.record import AuditRecord, TargetOfAudit


def table(rows: int) -> pd.DataFrame:
    """Mixed kinds; the last record is far from all, and the first has a copy as far as it is."""
    rng = np.random.default_rng(rows)
    data = pd.DataFrame(
        {
            "x": rng.normal(size=rows).round(4),
            "y": rng.uniform(size=rows).round(4),
            "gap": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 9, rows)),
            "town": rng.choice([f"town {n}" for n in range(12)], rows),
            "flag": rng.integers(0, 2, rows),
        }
    )
    data.loc[rows - 1, ["x", "y"]] = (60.0, 7.0)
    data.loc[[0, 1], ["x", "y", "gap", "town", "flag"]] = [[-50.0, 5.0, 3.0, "town 1", 1]] * 2
    return data


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "EXACT_ROWS", 500)
    monkeypatch.setattr(targets, "COMPARED", 64)
    monkeypatch.setattr(targets, "_ROWS_AT_ONCE", 300)


@pytest.mark.parametrize("rows", [501, 1700])
def test_the_first_of_a_large_table_are_those_of_a_comparison_of_all(
    rows: int, monkeypatch: pytest.MonkeyPatch, small_limits: None
) -> None:
    schema = Schema.infer(table(rows))
    data = schema.canonical(table(rows))
    found = far_records(data, schema)
    target = farthest(data, schema)
    monkeypatch.setattr(targets, "EXACT_ROWS", 10**6)
    exact = far_records(data, schema)
    assert target == farthest(data, schema) == exact[0] == rows - 1
    assert not {0, 1} & set(exact)
    assert sorted(found) == sorted(exact)
    assert len(set(found[:32]) & set(exact[:32])) >= 16
    shared = [row for row in exact if row in set(found[:64])]
    assert shared == list(found[:64]), "those that were compared with all others are in true order"


@pytest.mark.parametrize(("rows", "compared"), [(500, None), (501, 64)])
def test_a_choice_among_some_records_says_so(
    rows: int, compared: int | None, small_limits: None
) -> None:
    schema = Schema.infer(table(rows))
    data = schema.canonical(table(rows))
    target = choose_target("farthest", data, schema)
    assert (target.row, target.compared) == (rows - 1, compared)
    assert choose_target("row:3", data, schema).compared is None


@pytest.mark.parametrize(
    ("compared", "said"),
    [
        (None, "row 3, the farthest record"),
        (1024, "row 3, the farthest record of 1024 that are far from samples of the table"),
    ],
)
def test_the_report_says_so_too(compared: int | None, said: str) -> None:
    target = TargetOfAudit(choice="farthest", row=3, compared=compared)
    game = SimpleNamespace(instead_of_target=None)
    record = cast(AuditRecord, SimpleNamespace(target=target, game=game))
    assert sentences.target(record) == said


def _only_sized(self: Any, rows: Any) -> Any:
    self.n_samples_fit_ = len(rows)
    return self


def test_the_work_grows_with_the_rows_and_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0

    def counted(self: Any, queries: Any) -> Any:
        nonlocal compared
        compared += len(queries) * self.n_samples_fit_
        assert compared < 4e8, "every record is compared with every other"
        return np.sort(np.random.default_rng(0).random((len(queries), self.n_neighbors))), None

    monkeypatch.setattr(NearestNeighbors, "kneighbors", counted)
    monkeypatch.setattr(NearestNeighbors, "fit", _only_sized)
    work = []
    for rows in (30_000, 60_000):
        data = table(rows)
        compared = 0
        farthest(data, Schema.infer(data))
        work.append(compared)
    assert work[1] < 2.6 * work[0], "n log n, not n squared"
