"""Settings refuse what has no meaning, and take names and lists where that is unmistakable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.settings import AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Multiplicity, ThresholdRule


def test_names_lists_and_row_numbers_are_taken() -> None:
    settings = AuditSettings(
        threshold="hold-out",  # type: ignore[arg-type]
        multiplicity="select",  # type: ignore[arg-type]
        neighbours="replace-one",  # type: ignore[arg-type]
        attacks=["groundhog"],  # type: ignore[arg-type]
        target=np.int64(3),  # type: ignore[arg-type]
        rows=np.int64(50),  # type: ignore[arg-type]
    )
    assert settings.threshold is ThresholdRule.HOLD_OUT
    assert settings.multiplicity is Multiplicity.SELECT
    assert settings.neighbours is dpaudit.Neighbours.REPLACE_ONE
    assert settings.attacks == ("groundhog",)
    assert settings.target == "row:3"
    assert settings.rows == 50


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attacks": "groundhog"}, "`attacks` must be a list of attacks, got 'groundhog'"),
        ({"rows": 2.5}, "`rows` must be a whole number, got 2.5"),
        ({"shadow_models": "400"}, "`shadow_models` must be a whole number, got '400'"),
        ({"seed": 1.5}, "`seed` must be a whole number, got 1.5"),
        ({"seed": True}, "`seed` must be a whole number, got True"),
        ({"target": True}, "`target` must be text or a row number, got True"),
        ({"canaries": 20.0, "one_run": True}, "`canaries` must be a whole number"),
        ({"threshold": "holdout"}, "`threshold`: 'holdout' is not one of .*mean 'hold-out'"),
        ({"multiplicity": "none"}, "`multiplicity`: 'none' is not one of bonferroni, select"),
        ({"neighbours": "one"}, "`neighbours`: 'one' is not one of add-remove, replace-one"),
        ({"confidence": math.nan}, "`confidence` must be in"),
    ],
)
def test_other_values_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        AuditSettings(**given)


def test_the_error_probability_is_shared_among_attacks_and_tests() -> None:
    assert AuditSettings().attack_confidence == pytest.approx(1 - 0.05 / 3)
    assert AuditSettings(sequential=True).attack_confidence == pytest.approx(1 - 0.05 / 6)
    selected = AuditSettings(sequential=True, multiplicity=Multiplicity.SELECT)
    assert selected.attack_confidence == pytest.approx(1 - 0.05 / 2)
    assert AuditSettings(one_run=True).hypotheses.count == 3
