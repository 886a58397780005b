"""Runs the attacks on one role's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.attacking.contenders import contenders, count_failed, vectors
from dpaudit.auditing.attacking.evaluation import Evaluation, evaluate
from dpaudit.auditing.attacking.parts import MIN_FITTED, Part, arrange, fitting_mask
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.game.trial import Outcome, Role, Trial, TrialStatus
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, World

Outcomes = Mapping[Trial, Outcome]


class Attacked(NamedTuple):
    """One attack and what it achieved.

    Attributes:
        attack: The attack and its name.
        trials: The trials that it scored, world "in" first: those that finished, or, of the attack
            on how trials end, all.
        scored: Their features and worlds, in this order.
        evaluation: Its errors and bounds.
        failed_in: Scored trials of world "in" that failed.
        failed_out: The same for world "out".
        hypothesis: The attack of the audit whose share of the error probability it has: itself, or
            the one whose place the attack on how trials end took.
        guessed_by: Where attacks took turns in the guesses behind the sequential bound, the pairs
            that each guessed; else empty.
    """

    attack: NamedAttack
    trials: Sequence[Trial]
    scored: Part
    evaluation: Evaluation
    failed_in: int
    failed_out: int
    hypothesis: str
    guessed_by: Mapping[str, int] = MappingProxyType({})


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
        Every attack that was scored: as many as there are hypotheses, chosen on the fitting part
        (`contenders`). Empty if too few trials finished and how they end was not attacked.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    parts = masks(audit, role, settings)
    worlds = [
        [outcomes[Trial(role, world, number)] for number in range(settings.per_world)]
        for world in World
    ]
    chosen = contenders(audit, worlds, parts, settings, claim, purpose=f"{role}/attack")
    scored = [
        [outcome for outcome, fits in zip(ended, mask, strict=True) if not fits]
        for ended, mask in zip(worlds, parts, strict=True)
    ]
    failed_in, failed_out = (count_failed(ended) for ended in scored)
    found = []
    for one in chosen:
        trials = arrange(vectors(one.features, worlds), parts)
        if trials is None:  # of one world none can be scored
            continue
        found.append(
            Attacked(
                one.features.attack,
                [o.trial for ended in scored for o in ended if one.features.of(o) is not None],
                trials.scored,
                evaluate(
                    one.fitted, trials, delta=claim.delta, confidence=settings.attack_confidence
                ),
                failed_in,
                failed_out,
                one.hypothesis,
            )
        )
    return found


def tables_suffice(
    audit: TwoWorldSpec, outcomes: Outcomes, role: Role, settings: AuditSettings
) -> bool:
    """Whether enough trials of each world and part finished for attacks on tables."""
    for world, fits in zip(World, masks(audit, role, settings), strict=True):
        ended = [outcomes[Trial(role, world, number)] for number in range(settings.per_world)]
        finished = np.array([outcome.status is TrialStatus.FINISHED for outcome in ended])
        if np.count_nonzero(finished & fits) < MIN_FITTED or not (finished & ~fits).any():
            return False
    return True


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack that proved most; among equals the one with the larger AUC."""
    return max(attacked, key=lambda one: (one.evaluation.proved, one.evaluation.auc))
