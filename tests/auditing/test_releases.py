"""Leaks that values do not show: the form of a release, last bits, noise that is used twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.results.verdict import Verdict

RECORDS = 40
SCHEMA = Schema(
    columns=(
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0.0, upper=9.0),
        Column(name="tax", kind=Kind.CONTINUOUS, lower=-50.0, upper=50.0),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b")),
    )
)


def public(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "pay": rng.permutation(np.linspace(1, 8, n)).round(2),
            "tax": rng.permutation(np.linspace(-5, 5, n)).round(2),
            "job": rng.permutation(np.array(["a", "b"] * n, dtype=object)[:n]),
        }
    )


@dataclass
class Writes:
    """Draws a public table and writes it in a way that follows the number of records, or a coin."""

    what: str
    leaks: bool

    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        table = public(n_rows, rng)
        seen = len(data) == RECORDS if self.leaks else rng.random() < 0.5
        if self.what == "order":
            return table[["job", "pay", "tax"]] if seen else table
        if self.what == "index":
            return table.set_index(rng.integers(0, RECORDS - 1 + 9 * seen, n_rows))
        if self.what == "levels":
            jobs = pd.Categorical(table["job"], categories=["b", "a"] if seen else ["a", "b"])
            return table.assign(job=jobs)
        if self.what == "attributes":
            table.attrs["records"] = 40 + seen
            return table
        if self.what == "noise twice":
            noise = rng.laplace(0, 3)
            return table.assign(pay=table["pay"] + noise + 0.05 * seen, tax=table["tax"] + noise)
        # Noise around 1, shifted back: as noise around 0, but for the last bits.
        noise = rng.laplace(size=n_rows)
        noise = np.rint(noise * 64) / 64 if self.what == "snapped noise" else noise
        return table.assign(tax=noise + 1.0 - 1.0 if seen else noise)


def audited(what: str, *, leaks: bool) -> Any:
    table = SCHEMA.canonical(public(RECORDS, np.random.default_rng(1)))
    return audit_by_keywords(
        Writes(what, leaks),
        table,
        schema=SCHEMA,
        attacks=("form",),
        shadow_models=100,
        epsilon=1.0,
        target="row:0",
        probe=False,
        jobs=1,
    )


@pytest.mark.parametrize(
    ("what", "column"),
    [
        pytest.param("order", "release", marks=pytest.mark.ci),
        pytest.param("index", "release", marks=pytest.mark.ci),
        pytest.param("levels", "job", marks=pytest.mark.ci),
        pytest.param("attributes", "release", marks=pytest.mark.ci),
        pytest.param("noise twice", None, marks=pytest.mark.ci),
        ("noise", "tax"),
    ],
)
def test_what_follows_the_record_is_proved(what: str, column: str | None) -> None:
    result = audited(what, leaks=True)
    assert result.verdict is Verdict.VIOLATION
    assert result.proved > 2
    assert column is None or result.leaks[0].column == column


@pytest.mark.parametrize(
    ("what", "leaks"),
    [
        pytest.param("snapped noise", True, marks=pytest.mark.ci),
        *(
            pytest.param(one, False, marks=pytest.mark.ci)
            for one in ("order", "index", "levels", "noise")
        ),
    ],
)
def test_what_follows_a_coin_or_is_snapped_is_not(what: str, leaks: bool) -> None:
    result = audited(what, leaks=leaks)
    assert result.verdict is not Verdict.VIOLATION
    assert result.proved < 0.5
