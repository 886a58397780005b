"""The attacks of published toolkits, each alone, on the trials of a default audit.

They are the default attacks of the same names with the classifier that was published with them, a
random forest; each is the only hypothesis. They see synthetic tables alone: how trials end says
nothing to them.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dpaudit.auditing.two_worlds.attacking.fitting import arrange, evaluate, fit_attack
from dpaudit.auditing.two_worlds.attacking.run import (
    FeatureSlice,
    feature_slices,
    first_outcomes,
    masks,
)
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.bounds import FailedTrials, guarantee_of
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role
from dpaudit.plugins.access import AnyAttack
from dpaudit_attacks.groundhog import Ensemble
from dpaudit_attacks.queries import TargetQueries

FOREST: Final = "random-forest"
PUBLISHED: Final[dict[str, AnyAttack]] = {
    "groundhog": Ensemble(classifier=FOREST),
    "query-target": TargetQueries(classifier=FOREST),
}
"""GroundHog of Stadler et al. 2022, target queries of Houssiau et al. 2022."""


def proved_alone(spec: TwoWorldSpec, outcomes: StoredOutcomes) -> dict[str, float]:
    """What each published attack proves by itself.

    Args:
        spec: The default audit.
        outcomes: Its outcomes.

    Returns:
        The bound of each attack; 0 where too few trials gave a table.
    """
    if len(outcomes) < spec.settings.game.shadow_models:  # the audit gave up
        return dict.fromkeys(PUBLISHED, 0.0)
    places = {features.attack.name: features for features in feature_slices(spec)}
    return {
        name: _proved(spec, outcomes, places[name], attack) for name, attack in PUBLISHED.items()
    }


def _proved(
    spec: TwoWorldSpec, outcomes: StoredOutcomes, features: FeatureSlice, attack: AnyAttack
) -> float:
    parts = masks(spec, Role.AUDIT, spec.settings)
    worlds = first_outcomes(outcomes, Role.AUDIT, parts)
    usable = [features.usable(ends) for ends in worlds]
    trials = arrange(usable, parts, rows=partial(features.rows, outcomes))
    if trials is None:
        return 0.0
    failed = [
        sum(fits and not end.finished for end, fits in zip(ends, mask, strict=True))
        for ends, mask in zip(worlds, parts, strict=True)
    ]
    settings = spec.settings.with_game(attacks=(attack,))
    guarantee = guarantee_of(spec.claim)
    fitted = fit_attack(
        attack,
        trials.fitting,
        settings=settings,
        failed=FailedTrials(*failed),
        guarantee=guarantee,
        rng=spec.stream(f"alone/{features.attack.name}").rng(),
    )
    found = evaluate(fitted, trials, guarantee=guarantee, confidence=settings.attack_confidence)
    return found.proved
