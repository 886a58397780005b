"""What every game must do for the rest of an audit, which asks none which it is."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

import pytest

from dpaudit.auditing.games import (
    GAMES,
    audit_settings,
    game_of,
    keywords,
    keywords_of,
    sizing_of,
)
from dpaudit.auditing.plan import PlanSubject
from dpaudit.auditing.settings import AuditSettings, GameSettings, OneRun
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Effort
from dpaudit.model.claim import PrivacyClaim

CLAIM = PrivacyClaim(epsilon=1.0, delta=1e-5)


def with_defaults(game: type[GameSettings]) -> dict[str, Any]:
    """What must be given to make a game's settings."""
    return {one.name: 4 for one in fields(game) if one.default is MISSING}


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_asked_for_by_its_keywords(game: type[GameSettings]) -> None:
    settings: AuditSettings = AuditSettings(game=game(**with_defaults(game)))
    asked = keywords_of(settings)
    assert audit_settings(**asked) == settings
    assert (game.SWITCH is None) == (game is GAMES[0])
    assert game.SWITCH is None or game.SWITCH.keyword in asked


@pytest.mark.parametrize("game", GAMES)
def test_every_effort_has_its_sizes_and_the_standard_ones_are_the_defaults(
    game: type[GameSettings],
) -> None:
    given = with_defaults(game)
    assert game.sized(Effort.STANDARD, **given) == game(**given)
    quick, thorough = (game.SIZES[effort] for effort in (Effort.QUICK, Effort.THOROUGH))
    assert all(quick[name] < thorough[name] for name in quick)
    assert game.sized("quick", **given, **thorough) == game(**given, **thorough)


@pytest.mark.parametrize("game", GAMES)
def test_what_a_game_does_not_have_is_refused_by_name(game: type[GameSettings]) -> None:
    own = {one.name for one in fields(game)}
    asked = keywords_of(AuditSettings(game=game(**with_defaults(game))))
    switches = {one.SWITCH.keyword for one in GAMES if one.SWITCH}
    for name, keyword in keywords().items():
        if keyword.games is None or name in own | switches:
            continue
        said = f"leave out `{name}`, or" if game.SWITCH else "set that too, or leave it out"
        with pytest.raises(SettingsError, match=re.escape(said)):
            audit_settings(**asked, **{name: keyword.default or 1})


@pytest.mark.parametrize(
    "game", [pytest.param(one, marks=pytest.mark.ci) if one is OneRun else one for one in GAMES]
)
def test_a_game_says_what_it_trains_and_what_that_can_prove(game: type[GameSettings]) -> None:
    settings: AuditSettings = AuditSettings(game=game(**with_defaults(game)))
    planned = game_of(settings.game).trainings(settings, False)
    assert planned.models >= 1
    assert planned.seconds(per_model=1.0, per_control=0.0, workers=1) >= planned.models
    sizing = sizing_of(PlanSubject(CLAIM), settings, 3.0)
    assert sizing.asked_row.max_provable > 1.0
    assert sizing.needed is not None
    assert sizing.needed.size is not None
    assert sizing.attacks >= settings.game.hypotheses
    assert 0.95 <= settings.attack_confidence < 1.0
