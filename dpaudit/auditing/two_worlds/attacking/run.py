"""Runs the attacks on one role's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking.contenders import contenders, first_outcomes
from dpaudit.auditing.two_worlds.attacking.evaluation import Evaluation, evaluate
from dpaudit.auditing.two_worlds.attacking.parts import MIN_FITTED, Part, arrange
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.trial_plan import plan_trials
from dpaudit.bounds import guarantee_of
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Role, Trial
from dpaudit.model.currencies import Claim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, World


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
    worlds = [
        first_outcomes(outcomes, role, world, len(mask))
        for world, mask in zip(World, parts, strict=True)
    ]
    chosen = contenders(audit, outcomes, worlds, parts, settings, claim, purpose=f"{role}/attack")
    scored = [
        [end for end, fits in zip(ends, mask, strict=True) if not fits]
        for ends, mask in zip(worlds, parts, strict=True)
    ]
    found = []
    for one in chosen:
        usable = [one.features.usable(ends) for ends in worlds]
        trials = arrange(usable, parts, rows=partial(one.features.rows, outcomes))
        if trials is None:  # trials of a single world cannot be scored
            continue
        found.append(
            Attacked(
                one.features.attack,
                [trial for ends in scored for trial in one.features.usable(ends) if trial],
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
    for world, fits in zip(World, masks(audit, role, settings), strict=True):
        ends = first_outcomes(outcomes, role, world, len(fits))
        finished = np.array([end.finished for end in ends])
        if np.count_nonzero(finished & fits) < MIN_FITTED or not (finished & ~fits).any():
            return False
    return True


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack with the largest bound; ties by the larger AUC."""
    return max(attacked, key=lambda one: (one.evaluation.proved, one.evaluation.auc))
