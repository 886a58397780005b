"""The attacks of published toolkits, each alone, on the trials of a default audit.

They are the default attacks of the same names with the classifier that was published with them, a
random forest; each is the only hypothesis. They see synthetic tables alone: how trials end says
nothing to them.
"""

from __future__ import annotations

from typing import Final

from dpaudit.auditing.two_worlds.attacking import (
    MIN_FITTED,
    FeatureSlice,
    SplitTrials,
    evaluate,
    feature_slices,
    fit_attack,
    gather,
)
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.bounds import FailedTrials, guarantee_of
from dpaudit.game.store import StoredOutcomes
from dpaudit.game.trial import Role
from dpaudit.plugins.access import AnyAttack
from dpaudit.plugins.protocols import World
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
    ends = [
        [outcomes[trial] for trial in part]
        for part in plan_trials(spec, Role.AUDIT, spec.settings).parts
    ]
    fitting = gather(features, outcomes, ends[0], least=MIN_FITTED)
    scored = gather(features, outcomes, ends[1], least=1)
    if fitting is None or scored is None:
        return 0.0
    lost, lost_later = (
        [sum(not end.finished for end in part if end.trial.world is world) for world in World]
        for part in ends
    )
    trials = SplitTrials(fitting[1], scored[1], *lost_later)
    settings = spec.settings.with_game(attacks=(attack,))
    guarantee = guarantee_of(spec.claim)
    fitted = fit_attack(
        attack,
        trials.fitting,
        settings=settings,
        failed=FailedTrials(*lost),
        guarantee=guarantee,
        rng=spec.stream(f"alone/{features.attack.name}").rng(),
    )
    found = evaluate(fitted, trials, guarantee=guarantee, confidence=settings.attack_confidence)
    return found.proved
