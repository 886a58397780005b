"""`dpaudit plan --records`: what many records per shadow model can prove."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.bounds import attack_confidence, coin_provable
from dpaudit.cli.main import app

CLAIM = ("--epsilon", "1", "--delta", "1e-5")


def plan(*words: str) -> Any:
    return CliRunner().invoke(app, ["plan", *CLAIM, *words])


def test_more_records_prove_more_of_as_many_models() -> None:
    alone = json.loads(plan("--shadow-models", "40", "--json").stdout)
    many = json.loads(plan("--shadow-models", "40", "--records", "16", "--json").stdout)
    assert many["scored"] == alone["scored"] == 24
    assert many["max_provable_epsilon"] > alone["max_provable_epsilon"] + 1
    assert many["detectable_epsilon"] < alone["detectable_epsilon"]
    expected = coin_provable(
        24 * 16,
        shared=16,
        delta=1e-5,
        confidence=attack_confidence(0.95, len(DEFAULT_ATTACKS), sequential=False),
    )
    assert many["max_provable_epsilon"] == expected


def test_it_says_that_records_disturb_one_another() -> None:
    said = plan("--shadow-models", "8", "--records", "16", "--seconds-per-model", "10").stdout
    assert "16 records" in said
    assert "none disturbed another" in said
    assert "8 models, 1 repeat and 16 controls" in said


def test_questions_without_an_answer_are_refused() -> None:
    for words in (("--detect", "3"), ("--tpr", ".9", "--fpr", ".1")):
        refused = plan("--records", "16", *words)
        assert refused.exit_code == 2
        assert "--records" in refused.stderr
    assert plan("--records", "16", "--neighbours", "replace-one").exit_code == 2
