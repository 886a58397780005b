"""What an audit of a size can prove, and which sizes there are."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import MIN_SHADOW_MODELS
from dpaudit.auditing.two_worlds.plan import power
from dpaudit.bounds import bonferroni
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.decide import decide
from dpaudit.results.verdict import Verdict

NAMES = tuple(f"attack-{number}" for number in range(8))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"shadow_models": MIN_SHADOW_MODELS - 2}, "from 20 to 100,000"),
        ({"shadow_models": 41}, "must be even, .* give 42 instead of 41"),
        ({"shadow_models": -400}, "`shadow_models`"),
        ({"shadow_models": 9_999_999_998}, "from 20 to 100,000, got 9,999,999,998"),
        ({"shadow_models": 99_999_999_999}, "from 20 to 100,000, got 99,999,999,999"),
        ({"one_run": True, "canaries": 9_999_999_998}, "from 20 to 100,000"),
        ({"records": 9_999_999_998}, "from 2 to 10,000"),
        ({"attacks": ()}, "at least one attack"),
        ({"confidence": 0.5}, r"`confidence` must be a number in \(0.5, 1\)"),
        ({"confidence": 1.0}, "`confidence`"),
        ({"confidence": 95}, "got 95"),
        ({"confidence": math.nan}, "`confidence`"),
    ],
)
def test_a_size_without_meaning_is_refused(parts: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        audit_settings(**parts)


@pytest.mark.parametrize("models", [20, 22, 50, 398, 400, 10_000])
def test_every_trial_is_fitted_or_scored(models: int) -> None:
    settings = audit_settings(shadow_models=models)
    assert 2 * settings.game.fitted + settings.game.scored == models
    assert settings.game.fitted >= 4
    assert settings.game.scored > 2 * settings.game.fitted


def test_confidence_is_shared_by_the_attacks() -> None:
    alone = partial(audit_settings, probe=False, multiplicity="bonferroni")
    assert alone(attacks=NAMES[:1]).attack_confidence == pytest.approx(0.95)
    assert alone(attacks=NAMES[:5]).attack_confidence == pytest.approx(0.99)
    assert alone(attacks=NAMES[:5]).attack_confidence == bonferroni(0.95, 5)


def test_power_grows_with_trials_and_shrinks_with_failures_attacks_and_confidence() -> None:
    claim = PrivacyClaim(epsilon=1)
    usual = power(audit_settings(), claim)
    assert usual.detectable is not None
    assert claim.epsilon < usual.detectable < usual.max_provable
    larger = power(audit_settings(shadow_models=1000), claim)
    assert larger.max_provable > usual.max_provable
    assert larger.detectable is not None
    assert larger.detectable < usual.detectable
    for worse in (
        power(audit_settings(attacks=NAMES[:8], multiplicity="bonferroni"), claim),
        power(audit_settings(confidence=0.999), claim),
        power(audit_settings(), claim, false_negatives=6),
        power(audit_settings(), claim, false_positives=6),
    ):
        assert worse.max_provable < usual.max_provable
        assert worse.detectable is None or (
            # Counts are whole: a few failures may shift it by less than a hundredth.
            worse.detectable > usual.detectable - 0.01
        )


def test_nothing_is_detectable_where_nothing_is_provable() -> None:
    small = power(audit_settings(shadow_models=20), PrivacyClaim(epsilon=5))
    assert small.max_provable < 5
    assert small.detectable is None
    decision = decide(0.0, PrivacyClaim(epsilon=5), small, (), confidence=0.95)
    assert decision.verdict is Verdict.INCONCLUSIVE
