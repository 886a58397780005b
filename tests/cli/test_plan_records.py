"""`dpaudit audit --plan --records`: what many records per shadow model can prove."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from dpaudit.auditing import timing
from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.bounds import CoinPlan, attack_confidence
from dpaudit.cli.main import app

TIMED = ("--set", "time-one=true")
CLAIM = ("--epsilon", "1", "--delta", "1e-5")


def plan(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", "--plan", *CLAIM, *words])


def test_more_records_prove_more_of_as_many_models() -> None:
    alone = json.loads(plan("--shadow-models", "40", "--json").stdout)["asked"]
    many = json.loads(plan("--shadow-models", "40", "--records", "16", "--json").stdout)["asked"]
    assert many["scored"] == alone["scored"] == 24
    assert many["max_provable"] > alone["max_provable"] + 1
    assert many["detectable"] < alone["detectable"]
    coins = CoinPlan(
        trials=24 * 16,
        shared=16,
        delta=1e-5,
        confidence=attack_confidence(0.95, len(DEFAULT_ATTACKS), sequential=False),
    )
    assert many["max_provable"] == coins.provable()


NULL = ("null", "--data", "sample:breast-cancer", *TIMED)


@pytest.fixture
def ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model takes ten seconds, without being trained."""
    cost = timing.ModelCost(model=10.0, control=10.0, memory=None, larger=None)
    monkeypatch.setattr(timing, "time_one", lambda _: cost)


@pytest.mark.usefixtures("ten_seconds")
def test_it_says_what_records_that_are_trained_together_cost_each_other() -> None:
    said = plan(*NULL, "--shadow-models", "400", "--records", "16").stdout
    assert "16 records" in said
    assert "400 models, 1 repeat and 120 controls" in said
    best = "best      64 records if each leaks in its own statistic, 1 record if all leak"
    assert best in said
    assert all(len(line) <= 80 for line in said.splitlines())
    rows = json.loads(plan("--records", "20", "--json").stdout)["records"]
    assert [row["records"] for row in rows] == [1, 4, 16, 20, 64]
    assert rows[0]["apart"] == rows[0]["together"]
    assert rows[1]["apart"] < rows[1]["together"]
    assert rows[2]["together"] is None


@pytest.mark.usefixtures("ten_seconds")
def test_as_few_models_as_an_audit_of_many_records_takes_can_be_planned() -> None:
    said = plan(*NULL, "--shadow-models", "8", "--records", "16").stdout
    assert "8 models, 1 repeat and 16 controls" in said
    assert "best      64 records if each leaks in its own statistic\n" in said


def test_more_records_than_the_table_allows_are_refused() -> None:
    data = ("null", "--data", "sample:breast-cancer")
    refused = plan(*data, "--records", "160")
    assert refused.exit_code == 2
    assert "at most a quarter" in refused.stderr


@pytest.mark.ci
def test_larger_leaks_and_more_records_need_fewer_models() -> None:
    def needed(*words: str) -> int:
        return int(json.loads(plan(*words, "--json").stdout)["needed"])

    assert needed("--records", "16", "--detect", "2") < needed("--records", "2", "--detect", "2")
    assert needed("--records", "2", "--detect", "3") < needed("--records", "2", "--detect", "2")
    size = needed("--records", "16", "--detect", "1.2")
    asked = json.loads(plan("--records", "16", "--shadow-models", str(size), "--json").stdout)
    assert asked["asked"]["detectable"] <= 1.2
    said = plan("--records", "16", "--detect", "2").stdout
    assert "shadow models detect a true epsilon of 2 on every record" in said


@pytest.mark.ci
def test_one_model_is_timed_for_many_records() -> None:
    data = ("null", "--data", "sample:breast-cancer", "--shadow-models", "8")
    assert "s a control" in plan(*data, "--records", "16", *TIMED).stdout


def test_a_claim_that_many_records_cannot_test_is_refused() -> None:
    assert plan("--records", "16", "--neighbours", "replace-one").exit_code == 2
