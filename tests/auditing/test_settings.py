"""Settings refuse what has no meaning, and take names and lists where that is unmistakable."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.settings import PROBES_SHARE, AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Multiplicity, ThresholdRule
from dpaudit.model.claim import StatedClaim
from dpaudit.model.tables import load
from samples import PEOPLE, people


def test_names_lists_and_row_numbers_are_taken() -> None:
    settings = audit_settings(
        threshold="hold-out",
        multiplicity="select",
        neighbours="replace-one",
        attacks=["groundhog"],
        target=np.int64(3),
        rows=np.int64(50),
    )
    assert settings.game.threshold is ThresholdRule.HOLD_OUT
    assert settings.game.multiplicity is Multiplicity.SELECT
    assert settings.claim.neighbours is dpaudit.Neighbours.REPLACE_ONE
    assert settings.game.attacks == ("groundhog",)
    assert settings.game.target == "row:3"
    assert settings.rows == 50


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attacks": "groundhog"}, "`attacks` must be a list of attacks, got 'groundhog'"),
        ({"rows": 2.5}, "`rows` must be a whole number of at least 1, got 2.5"),
        (
            {"shadow_models": "400"},
            "`shadow_models` must be a whole number from 20 to .*, got '400'",
        ),
        ({"seed": 1.5}, r"`seed` must be a whole number in \[0, 2\*\*63\), got 1.5"),
        ({"seed": True}, r"`seed` must be a whole number in \[0, 2\*\*63\), got True"),
        ({"target": True}, "`target` must be text or a row number, got True"),
        ({"canaries": 20.0, "one_run": True}, "`canaries` must be a whole number"),
        ({"threshold": "holdout"}, "`threshold`: 'holdout' is not one of .*mean 'hold-out'"),
        ({"multiplicity": "none"}, "`multiplicity`: 'none' is not one of bonferroni, select"),
        ({"neighbours": "one"}, "`neighbours`: 'one' is not one of add-remove, replace-one"),
        ({"confidence": math.nan}, r"`confidence` must be a number in \(0.5, 1\), got nan"),
    ],
)
def test_other_values_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        audit_settings(**given)


def test_probes_before_an_audit_have_their_share_of_the_error_probability() -> None:
    """All ways to accuse an honest generator together have the whole of it, and no more."""
    for confidence in (0.9, 0.95, 0.99):
        settings = audit_settings(confidence=confidence)
        by_bounds = settings.game.hypotheses * (1 - settings.attack_confidence)
        by_probes = 1 - settings.probes_confidence
        assert by_bounds + by_probes == pytest.approx(1 - confidence)
        assert 0 < by_probes < by_bounds / 10
    assert audit_settings(probe=False).game.probes_share == 0
    assert audit_settings(shadow_models=98).game.probes_share == 0
    assert audit_settings(one_run=True).game.probes_share == PROBES_SHARE


def test_the_error_probability_is_shared_among_attacks_and_tests() -> None:
    alone = partial(audit_settings, probe=False)
    assert alone().attack_confidence == pytest.approx(1 - 0.05)
    assert alone(sequential=True).attack_confidence == pytest.approx(1 - 0.05 / 2)
    every = partial(alone, multiplicity=Multiplicity.BONFERRONI)
    assert every().attack_confidence == pytest.approx(1 - 0.05 / 3)
    assert every(sequential=True).attack_confidence == pytest.approx(1 - 0.05 / 6)
    assert alone(records=8).attack_confidence == pytest.approx(1 - 0.05 / 3)
    assert audit_settings(one_run=True).game.hypotheses == 3


def test_a_setting_of_every_audit_is_in_its_specification_and_in_its_command() -> None:
    @dataclass(frozen=True, kw_only=True)
    class More(AuditSettings[Any]):
        rounding: int = 3

    settings = More(game=dpaudit.TwoWorlds(), claim=StatedClaim(epsilon=1.0))
    table = load(people(), PEOPLE)
    spec = build_spec("null", table, settings)
    assert spec.specification["rounding"] == 3
    assert "--rounding" not in spec.reproduce  # it is at its default
    other = build_spec("null", table, replace(settings, rounding=4))
    assert "--rounding 4" in other.reproduce
    assert "--rounding" not in (other.replay or "")
    assert other.default_folder != spec.default_folder


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("null --rows 3 --seed 2", "null --set rows=3 --seed 2"),
        ("--effort quick --no-probe", "--effort quick --set probe=false"),
        ("--one-run --canaries 30", "--one-run --set canaries=30"),
        ("--link a.b=c.d --link e.f=g.h", "--set links=a.b=c.d --set links=e.f=g.h"),
    ],
)
def test_settings_of_few_audits_are_given_by_name(words: str, named: str) -> None:
    settings = audit_settings(one_run="--one-run" in words)
    assert settings.words_by_name(words.split()) == named.split()
