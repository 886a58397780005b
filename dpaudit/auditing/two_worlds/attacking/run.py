"""Chooses the attacks to score, one per hypothesis, and runs them on one role's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking.extra import (
    COMBINED,
    ENDINGS,
    Combined,
    features_of_ending,
)
from dpaudit.auditing.two_worlds.attacking.fitting import (
    MIN_FITTED,
    Evaluation,
    FeatureRows,
    Fitted,
    FittingScore,
    Part,
    arrange,
    evaluate,
    fit_attack,
    gather,
)
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.bounds import FailedTrials, guarantee_of
from dpaudit.game.outcomes import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Role, Trial, TrialStatus
from dpaudit.model.choices import Multiplicity
from dpaudit.model.claim import Claim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, World

PREFERENCE: Final = 0.2
"""An attack is selected only if its forecast exceeds that of the combination by this much.

The best of several forecasts is too large by chance, and the combination is the one whose score
changes least between the trials that it is fitted on and others (`reports/power/attacks.py`).
"""


_SURE: Final = 0.5
"""Separation of an attack that orders the fitting trials without an error."""


class FeatureSlice(NamedTuple):
    """An attack on tables and where its features lie in the vector of a trial."""

    attack: NamedAttack
    place: slice

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial | None]:
        """Trials that finished."""
        return [end.trial if end.finished else None for end in ends]

    def rows(self, outcomes: StoredOutcomes, trials: Sequence[Trial]) -> FeatureRows:
        """This attack's features of some finished trials, read when they are needed."""
        return outcomes.features(trials, self.place)


class EndingFeatures(NamedTuple):
    """The attack on how trials end.

    Attributes:
        requested: Synthetic rows that every trial was asked for.
        attack: The attack.
    """

    requested: int
    attack: NamedAttack = ENDINGS

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial | None]:
        """Every trial."""
        return [end.trial for end in ends]

    def rows(self, outcomes: StoredOutcomes, trials: Sequence[Trial]) -> FeatureRows:
        """How each trial ended."""
        return np.array(
            [features_of_ending(outcomes[trial], requested=self.requested) for trial in trials]
        )


Features: TypeAlias = FeatureSlice | EndingFeatures
"""An attack and its features of a trial."""


class Contender(NamedTuple):
    """An attack that is fixed on some trials and not scored on others yet.

    Attributes:
        features: The attack and its features of a trial.
        fitted: Its classifier and threshold.
        hypothesis: As in `Attacked`.
    """

    features: Features
    fitted: Fitted
    hypothesis: str

    @property
    def forecast(self) -> FittingScore:
        """Its forecast on the trials that it was fixed on."""
        return self.fitted.forecast


def feature_slices(audit: TwoWorldSpec) -> list[FeatureSlice]:
    """Every attack with the place of its features."""
    stops = [0, *accumulate(audit.widths)]
    return [
        FeatureSlice(named, slice(*ends))
        for named, ends in zip(audit.attacks, pairwise(stops), strict=True)
    ]


def candidates(audit: TwoWorldSpec, settings: AuditSettings[TwoWorlds]) -> list[FeatureSlice]:
    """The attacks on tables that may be scored: also their combination if one is selected."""
    slices = feature_slices(audit)
    if len(slices) == 1 or settings.game.multiplicity is not Multiplicity.SELECT:
        return slices
    together = NamedAttack(COMBINED, Combined(audit.attacks, audit.widths))
    return [*slices, FeatureSlice(together, slice(0, sum(audit.widths)))]


def contenders(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    role: Role,
    fitting: Sequence[BoolArray],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    purpose: str,
) -> list[Contender]:
    """The attacks that are scored, one for each hypothesis, each fixed on the fitting part.

    If some trials of the fitting part failed, how trials end is attacked too. That adds no
    hypothesis: on the fitting part this attack replaces the one with the smallest forecast, if its
    own is larger. If one attack is selected, their combination is a further candidate, and only the
    candidate with the largest forecast is scored.

    Args:
        audit: The audit.
        outcomes: Outcomes of the role.
        role: The role.
        fitting: For world "in", then "out": which trials, by number, are in the fitting part.
        settings: How hypotheses are counted, and how thresholds are chosen.
        claim: The claim under audit.
        purpose: Names the random streams.

    Returns:
        Empty if too few trials of the fitting part finished and none of them failed.
    """
    worlds = first_outcomes(outcomes, role, fitting)
    lost = [
        sum(
            fits and end.status is not TrialStatus.FINISHED
            for end, fits in zip(ends, mask, strict=True)
        )
        for ends, mask in zip(worlds, fitting, strict=True)
    ]

    def fixed(features: Features, *, lost: Sequence[int]) -> Contender | None:
        usable = [features.usable(ends) for ends in worlds]
        part = gather(usable, fitting, fitting=True, rows=partial(features.rows, outcomes))
        if part is None:
            return None
        attack = features.attack
        fitted = fit_attack(
            attack.attack,
            part,
            settings=settings,
            failed=FailedTrials(*lost),
            guarantee=guarantee_of(claim),
            rng=audit.stream(f"{purpose}/{attack.name}").rng(),
        )
        return Contender(features, fitted, attack.name)

    on_tables = [fixed(features, lost=lost) for features in candidates(audit, settings)]
    found = [one for one in on_tables if one is not None]
    if any(lost):
        on_endings = fixed(EndingFeatures(audit.game.view.n_rows), lost=(0, 0))
        assert on_endings is not None  # it uses every trial
        found = _with_endings(found, on_endings, audit, settings)
    if found and settings.game.multiplicity is Multiplicity.SELECT:
        return [_selected(found)]
    return found


def _selected(found: Sequence[Contender]) -> Contender:
    """The candidate that is selected for scoring."""
    others = [one for one in found if one.features.attack.name != COMBINED]
    together = [one for one in found if one.features.attack.name == COMBINED]
    if not together:
        return max(others, key=lambda one: one.forecast)
    return [*others, *together][select([one.forecast for one in others], together[0].forecast)]


def select(attacks: Sequence[FittingScore], combination: FittingScore) -> int:
    """Which candidate is scored: an attack only if it promises clearly more, or makes no error.

    The combination cannot be better than an attack without an error, whose features name the leak.

    Args:
        attacks: The forecasts of the attacks.
        combination: The forecast of their combination.

    Returns:
        The number of an attack, or the number of attacks for the combination.
    """
    best = max(range(len(attacks)), key=attacks.__getitem__)
    clearly = attacks[best].bound > combination.bound + PREFERENCE
    sure = [one for one in range(len(attacks)) if attacks[one].separation == _SURE]
    return best if clearly else sure[0] if sure else len(attacks)


def _with_endings(
    found: Sequence[Contender],
    endings: Contender,
    audit: TwoWorldSpec,
    settings: AuditSettings[TwoWorlds],
) -> list[Contender]:
    """The attacks, including the one on how trials end if its forecast earns it a place."""
    if not found:
        return [endings._replace(hypothesis=audit.attacks[0].name)]
    if settings.game.multiplicity is Multiplicity.SELECT:
        return [*found, endings]
    least = min(found, key=lambda one: one.forecast)
    if endings.forecast <= least.forecast:
        return list(found)
    seated = endings._replace(hypothesis=least.hypothesis)
    return [seated if one is least else one for one in found]


def first_outcomes(
    outcomes: StoredOutcomes, role: Role, masks: Sequence[BoolArray]
) -> list[list[StoredOutcome]]:
    """How the first trials of world "in", then of "out", ended, as many as each mask is long."""
    return [
        [outcomes[Trial(role, world, number)] for number in range(len(mask))]
        for world, mask in zip(World, masks, strict=True)
    ]


class Attacked(NamedTuple):
    """One attack and its result.

    Attributes:
        attack: The attack and its name.
        trials: The trials that it scored, world "in" first: those that finished; for the attack on
            how trials end, all.
        scored: Their features and worlds, in this order.
        evaluation: Its errors and bounds.
        hypothesis: The attack whose share of the error probability it uses: itself, or the one that
            the attack on how trials end replaced.
        guessed_by: If several attacks made the bets of the sequential bound, the trials that each
            bet on; else empty.
    """

    attack: NamedAttack
    trials: Sequence[Trial]
    scored: Part
    evaluation: Evaluation
    hypothesis: str
    guessed_by: Mapping[str, int] = MappingProxyType({})


def masks(audit: TwoWorldSpec, role: Role, settings: AuditSettings[TwoWorlds]) -> list[BoolArray]:
    """For world "in", then "out": which trials [n] form the fitting part.

    These are the first trials of a world by number: trials run in a random order or, in a
    sequential audit, by number.
    """
    plan = plan_trials(audit, role, settings)
    return [plan.fitting(world) for world in World]


def attack_all(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    role: Role,
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
) -> list[Attacked]:
    """Runs the attacks on a role's trials.

    Args:
        audit: The audit.
        outcomes: All outcomes of the role.
        role: The role.
        settings: Its number of trials and how hypotheses are counted.
        claim: The claim under audit.

    Returns:
        Every attack that was scored: as many as there are hypotheses, chosen on the fitting part
        (`contenders`). Empty if too few trials finished and how they end was not attacked.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    parts = masks(audit, role, settings)
    worlds = first_outcomes(outcomes, role, parts)
    found = []
    for one in contenders(audit, outcomes, role, parts, settings, claim, purpose=f"{role}/attack"):
        usable = [one.features.usable(ends) for ends in worlds]
        trials = arrange(usable, parts, rows=partial(one.features.rows, outcomes))
        if trials is None:  # trials of a single world cannot be scored
            continue
        found.append(
            Attacked(
                one.features.attack,
                [
                    trial
                    for ends, mask in zip(usable, parts, strict=True)
                    for trial, fits in zip(ends, mask, strict=True)
                    if trial is not None and not fits
                ],
                trials.scored,
                evaluate(
                    one.fitted,
                    trials,
                    guarantee=guarantee_of(claim),
                    confidence=settings.attack_confidence,
                ),
                one.hypothesis,
            )
        )
    return found


def tables_suffice(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, role: Role, settings: AuditSettings[TwoWorlds]
) -> bool:
    """Whether enough trials of each world and part finished for attacks on tables."""
    parts = masks(audit, role, settings)
    for ends, fits in zip(first_outcomes(outcomes, role, parts), parts, strict=True):
        finished = np.array([end.finished for end in ends])
        if np.count_nonzero(finished & fits) < MIN_FITTED or not (finished & ~fits).any():
            return False
    return True


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack with the largest bound; ties by the larger AUC."""
    return max(attacked, key=lambda one: (one.evaluation.proved, one.evaluation.auc))
