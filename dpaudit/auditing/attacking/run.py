"""Runs every attack on one role's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.attacking.evaluation import Evaluation, evaluate
from dpaudit.auditing.attacking.fitting import Fitted, fit_attack
from dpaudit.auditing.attacking.parts import Part, SplitTrials, arrange, fitting_mask
from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.game.trial import Outcome, Role, Trial
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray, World

Outcomes = Mapping[Trial, Outcome]


class Attacked(NamedTuple):
    """One attack and what it achieved.

    Attributes:
        attack: The attack and its name.
        trials: The scored trials that finished, world "in" first.
        scored: Their features and worlds, in this order.
        evaluation: Its errors and bounds.
        failed_in: Scored trials of world "in" that failed.
        failed_out: The same for world "out".
        guessed_by: Where attacks took turns in the guesses behind the sequential bound, the pairs
            that each guessed; else empty.
    """

    attack: NamedAttack
    trials: Sequence[Trial]
    scored: Part
    evaluation: Evaluation
    failed_in: int
    failed_out: int
    guessed_by: Mapping[str, int] = MappingProxyType({})


class _Candidate(NamedTuple):
    """An attack that is fixed and not scored yet, with its trials."""

    attack: NamedAttack
    trials: SplitTrials
    fitted: Fitted


class FeatureSlice(NamedTuple):
    """An attack and where its features lie in the vector of a trial."""

    attack: NamedAttack
    place: slice

    def of(self, outcome: Outcome) -> FloatArray | None:
        """This attack's features of one trial; None if it failed."""
        return None if outcome.features is None else outcome.features[self.place]


def feature_slices(audit: TwoWorldSpec) -> list[FeatureSlice]:
    """Every attack with the place of its features."""
    found, start = [], 0
    for named in audit.attacks:
        stop = start + len(named.feature_names(audit.game.view))
        found.append(FeatureSlice(named, slice(start, stop)))
        start = stop
    return found


def masks(audit: TwoWorldSpec, role: Role, settings: AuditSettings) -> list[BoolArray]:
    """For world "in", then "out": which trials [n] form the fitting part.

    A sequential audit scores in the order in which it runs, so that its first trials are the
    fitting part: trials of a world are exchangeable, and any choice made beforehand is as good.
    """
    if settings.sequential:
        return [np.arange(settings.per_world) < settings.fitted] * 2
    return [
        fitting_mask(
            settings.per_world, settings.fitted, audit.stream(f"{role}/split/{world}").rng()
        )
        for world in World
    ]


def attack_all(
    audit: TwoWorldSpec,
    outcomes: Outcomes,
    role: Role,
    settings: AuditSettings,
    claim: PrivacyClaim,
) -> list[Attacked]:
    """Runs the attacks on a role's trials.

    Args:
        audit: The audit.
        outcomes: All outcomes of the role.
        role: The role.
        settings: Its number of trials and how hypotheses are counted.
        claim: The claim to hold it to.

    Returns:
        Every attack that was scored: all of them, or the one that promised most on the fitting
        part. Empty if too few trials finished.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    parts = masks(audit, role, settings)
    candidates: list[_Candidate] = []
    for column in feature_slices(audit):
        worlds = [
            [
                column.of(outcomes[Trial(role, world, number)])
                for number in range(settings.per_world)
            ]
            for world in World
        ]
        trials = arrange(worlds, parts)
        if trials is None:
            return []
        fixed = fit(column.attack, trials.fitting, audit, settings, claim, purpose=f"{role}/attack")
        candidates.append(_Candidate(column.attack, trials, fixed))
    if settings.multiplicity is Multiplicity.SELECT:
        candidates = [max(candidates, key=lambda one: one.fitted.promise)]
    confidence = settings.attack_confidence
    scored = [
        trial
        for world, fits in zip(World, parts, strict=True)
        for trial in (Trial(role, world, int(number)) for number in np.flatnonzero(~fits))
        if outcomes[trial].features is not None
    ]
    return [
        Attacked(
            one.attack,
            scored,
            one.trials.scored,
            evaluate(one.fitted, one.trials, delta=claim.delta, confidence=confidence),
            one.trials.failed_in,
            one.trials.failed_out,
        )
        for one in candidates
    ]


def fit(
    named: NamedAttack,
    fitting: Part,
    audit: TwoWorldSpec,
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    purpose: str,
) -> Fitted:
    """Fixes one attack on some trials, with the streams of one purpose."""
    return fit_attack(
        named.attack,
        fitting,
        rule=settings.threshold,
        delta=claim.delta,
        confidence=settings.attack_confidence,
        rng=audit.stream(f"{purpose}/{named.name}").rng(),
    )


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack that proved most; among equals the one with the larger AUC."""
    return max(attacked, key=lambda one: (one.evaluation.proved, one.evaluation.auc))
