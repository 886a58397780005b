"""Chooses the attacks to score, one per hypothesis, and runs them on one role's trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    NONE_FAILED,
    Evaluation,
    FeatureRows,
    Fitted,
    FittingScore,
    Part,
    SplitTrials,
    evaluate,
    fit_attack,
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
    """An attack on tables and where its features lie in the vector of a trial.

    Attributes:
        attack: The attack.
        place: Where its features lie.
        left_out: Which of its features it does without; None for none.
    """

    attack: NamedAttack
    place: slice
    left_out: BoolArray | None = None

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial]:
        """Trials that finished."""
        return [end.trial for end in ends if end.finished]

    def rows(self, outcomes: StoredOutcomes, trials: Sequence[Trial]) -> FeatureRows:
        """This attack's features of some finished trials, read when they are needed."""
        return outcomes.features(trials, self.place, left_out=self.left_out)


class EndingFeatures(NamedTuple):
    """The attack on how trials end.

    Attributes:
        requested: Synthetic rows that every trial was asked for.
        attack: The attack.
    """

    requested: int
    attack: NamedAttack = ENDINGS

    def usable(self, ends: Sequence[StoredOutcome]) -> list[Trial]:
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
        fitting: The trials that it is fixed on.
        fitted: Its classifier and threshold.
        hypothesis: As in `Attacked`.
    """

    features: Features
    fitting: Part
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
        for named, ends in zip(audit.every_attack, pairwise(stops), strict=True)
    ]


def candidates(audit: TwoWorldSpec, settings: AuditSettings[TwoWorlds]) -> list[FeatureSlice]:
    """The attacks on membership that may be scored, and their combination if one is selected."""
    slices = feature_slices(audit)[: len(audit.attacks)]
    if len(slices) > 1 and settings.game.multiplicity is Multiplicity.SELECT:
        together = NamedAttack(COMBINED, Combined(audit.attacks, audit.widths[: len(slices)]))
        slices.append(FeatureSlice(together, slice(0, slices[-1].place.stop)))
    if not settings.game.ignore_bits:
        return slices
    return [part._replace(left_out=audit.last_bits[part.place]) for part in slices]


def member_of(trials: Sequence[Trial]) -> BoolArray:
    """Whether the world of each trial is "in"."""
    return np.array([trial.world is World.IN for trial in trials], dtype=np.bool_)


def gather(
    features: Features, outcomes: StoredOutcomes, ends: Sequence[StoredOutcome], *, least: int
) -> tuple[list[Trial], Part] | None:
    """Gathers the trials that an attack can use, and its features of them.

    Args:
        features: The attack.
        outcomes: Where their features are.
        ends: How the trials of one part of the split ended.
        least: Trials of each world that it needs.

    Returns:
        None if it can use too few.
    """
    usable = features.usable(ends)
    member = member_of(usable)
    if min(np.count_nonzero(member), np.count_nonzero(~member)) < least:
        return None
    return usable, Part(features.rows(outcomes, usable), member)


def contenders(
    audit: TwoWorldSpec,
    outcomes: StoredOutcomes,
    fitting: Sequence[Trial],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    purpose: str,
) -> list[Contender]:
    """The attacks that are scored, one for each hypothesis, each fixed on the fitting part.

    If some trials of the fitting part failed, how trials end is attacked too. That adds no
    hypothesis: on the fitting part this attack replaces the one with the smallest forecast, if its
    own is larger. If one attack is selected, their combination is a further candidate, and only the
    candidate with the largest forecast is scored. The guess of a secret is a hypothesis of its own,
    in neither the selection nor the combination.

    Args:
        audit: The audit.
        outcomes: Outcomes of these trials.
        fitting: The trials of the fitting part.
        settings: How hypotheses are counted, and how thresholds are chosen.
        claim: The claim under audit.
        purpose: Names the random streams.

    Returns:
        Empty if too few trials of the fitting part finished and none of them failed.
    """
    ends = [outcomes[trial] for trial in fitting]

    def fix(features: Features, failed: FailedTrials) -> Contender | None:
        gathered = gather(features, outcomes, ends, least=MIN_FITTED)
        if gathered is None:
            return None
        name, part = features.attack.name, gathered[1]
        fitted = fit_attack(
            features.attack.attack,
            part,
            settings=settings,
            failed=failed,
            guarantee=guarantee_of(claim),
            rng=audit.stream(f"{purpose}/{name}").rng(),
        )
        return Contender(features, part, fitted, name)

    lost = Counter(end.trial.world for end in ends if end.status is not TrialStatus.FINISHED)
    failed = FailedTrials(lost[World.IN], lost[World.OUT])
    on_tables = [fix(features, failed) for features in candidates(audit, settings)]
    fixed = [contender for contender in on_tables if contender is not None]
    if any(failed):
        on_endings = fix(EndingFeatures(audit.game.view.n_rows), NONE_FAILED)
        assert on_endings is not None  # it uses every trial
        fixed = _add_endings(fixed, on_endings, audit, settings)
    # One hypothesis instead of many: the choice is made here, on trials that are not scored.
    if fixed and settings.game.multiplicity is Multiplicity.SELECT:
        fixed = [_select_contender(fixed)]
    if settings.game.secret is not None:
        guess = fix(feature_slices(audit)[-1], failed)
        fixed += [] if guess is None else [guess]
    return fixed


def _select_contender(fixed: Sequence[Contender]) -> Contender:
    """The candidate that is selected for scoring."""
    others = [contender for contender in fixed if contender.features.attack.name != COMBINED]
    together = [contender for contender in fixed if contender.features.attack.name == COMBINED]
    if not together:
        return max(others, key=lambda contender: contender.forecast)
    forecasts = [contender.forecast for contender in others]
    return [*others, *together][select(forecasts, together[0].forecast)]


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
    sure = [place for place, forecast in enumerate(attacks) if forecast.separation == _SURE]
    return best if clearly else sure[0] if sure else len(attacks)


def _add_endings(
    fixed: Sequence[Contender],
    endings: Contender,
    audit: TwoWorldSpec,
    settings: AuditSettings[TwoWorlds],
) -> list[Contender]:
    """The attacks, including the one on how trials end if its forecast earns it a place."""
    if not fixed:
        return [endings._replace(hypothesis=audit.attacks[0].name)]
    if settings.game.multiplicity is Multiplicity.SELECT:
        return [*fixed, endings]
    # It takes the place of another hypothesis, so their number, the correction, stays as it was.
    weakest = min(fixed, key=lambda contender: contender.forecast)
    if endings.forecast <= weakest.forecast:
        return list(fixed)
    seated = endings._replace(hypothesis=weakest.hypothesis)
    return [seated if contender is weakest else contender for contender in fixed]


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
    fitting, scored = plan_trials(audit, role, settings).parts
    ends = [outcomes[trial] for trial in scored]
    attacked = []
    # All are fixed, and at most one per hypothesis is left, before any trial is scored.
    for features, fitted_on, fitted, hypothesis in contenders(
        audit, outcomes, fitting, settings, claim, purpose=f"{role}/attack"
    ):
        gathered = gather(features, outcomes, ends, least=1)
        if gathered is None:  # trials of a single world cannot be scored
            continue
        usable, part = gathered
        failed = Counter(trial.world for trial in scored)
        failed.subtract(trial.world for trial in usable)
        evaluation = evaluate(
            fitted,
            SplitTrials(fitted_on, part, failed[World.IN], failed[World.OUT]),
            guarantee=guarantee_of(claim),
            confidence=settings.attack_confidence,
        )
        attacked.append(Attacked(features.attack, usable, part, evaluation, hypothesis))
    return attacked


def tables_suffice(
    audit: TwoWorldSpec, outcomes: StoredOutcomes, role: Role, settings: AuditSettings[TwoWorlds]
) -> bool:
    """Whether enough trials of each world and part finished for attacks on tables."""
    fitting, scored = plan_trials(audit, role, settings).parts
    for trials, least in ((fitting, MIN_FITTED), (scored, 1)):
        finished = Counter(trial.world for trial in trials if outcomes[trial].finished)
        if any(finished[world] < least for world in World):
            return False
    return True


def best(attacked: Sequence[Attacked]) -> Attacked:
    """The attack with the largest bound; ties by the larger AUC."""
    return max(attacked, key=lambda attack: (attack.evaluation.proved, attack.evaluation.auc))
