"""The study of one training with many canaries: what its results say, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from reports.one_run import run as study
from reports.one_run.chain import CHAIN_SCHEMA, NoisyChain, chain_table

RESULTS = Path(study.__file__).parent / "results" / "found.json"


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, Any]]]:
    parts: dict[str, list[dict[str, Any]]] = json.loads(RESULTS.read_text())["parts"]
    assert list(parts) == list(study.PARTS)
    return parts


def test_guesses_in_turn_keep_up_and_gain_where_few_or_all_leak(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    for row in found["rules"]:
        assert row["turn"] >= row["fifth"] - 0.1
        assert row["share"] >= row["fifth"] - 0.3
    larger = {row["scores"]: row for row in found["rules"] if row["canaries"] == 500}
    for name in ("all rows released", "10 % of included canaries seen"):
        assert larger[name]["share"] > larger[name]["fifth"] + 1


def test_no_honest_mechanism_is_accused_more_often_than_promised(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    rows = [*found["honest"], *found["audits"]]
    assert sum(row["draws"] for row in rows) >= 1000 + 100
    for row in rows:
        # So many or more of 5 % would come by chance once in a hundred.
        assert binom.sf(row["flagged"] - 1, row["draws"], 0.05) > 0.01, row


def test_fixed_noise_is_proved_where_the_nearest_record_proves_nothing(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    for row in found["fixed-noise"]:
        assert row["nearest violations"] <= 0.05 * row["draws"]
        if row["synthetic rows"] > row["records"]:
            assert row["proved violations"] >= 0.8 * row["draws"]


def test_many_canaries_cost_some_of_what_one_shows(
    found: dict[str, list[dict[str, Any]]],
) -> None:
    by_number = {row["canaries"]: row for row in found["interference"]}
    assert by_number[1]["interference, computed"] == pytest.approx(0, abs=1e-9)
    assert by_number[200]["AUC"] < by_number[20]["AUC"] <= by_number[1]["AUC"]
    lost = [row["interference, computed"] for row in by_number.values()]
    assert lost == sorted(lost)


def test_the_chain_keeps_its_marginals() -> None:
    table = chain_table(400)
    made = NoisyChain(scale=0.01)(table, 40_000, 1)
    for column in CHAIN_SCHEMA.names:
        shares = [np.bincount(of[column], minlength=12) / len(of) for of in (table, made)]
        assert shares[1] == pytest.approx(shares[0], abs=0.02)
