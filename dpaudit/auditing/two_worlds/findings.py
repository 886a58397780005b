"""From the trials of an audit in two worlds to its findings.

Findings are attacks, remaining power, checks, and the features that carry the deciding attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.auditing.checks import (
    TOO_FEW_MODELS,
    Replay,
    TrialCounts,
    check_repeats,
    check_replay,
)
from dpaudit.auditing.game import BestAttack, Findings, recorded_bounds
from dpaudit.auditing.two_worlds.attacking.extra import Combined, WeightedSum
from dpaudit.auditing.two_worlds.attacking.fitting import Evaluation, Part, score
from dpaudit.auditing.two_worlds.attacking.run import Attacked, attack_all, best, tables_suffice
from dpaudit.auditing.two_worlds.checks import (
    check_agreement,
    check_failures,
    check_given_up,
    check_measured,
    check_order,
    check_randomness,
    failed_by_world,
)
from dpaudit.auditing.two_worlds.plan import highest_provable, power
from dpaudit.auditing.two_worlds.secret import TOLERANCE, column_of
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.bounds import Direction, auc, aucs, guarantee_of
from dpaudit.bounds.clopper_pearson import interval
from dpaudit.game.meter import reset_peaks
from dpaudit.game.outcomes import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Outcome, Role, Trial
from dpaudit.model.choices import VULNERABLE, Access
from dpaudit.model.claim import Claim
from dpaudit.plugins.access import AnyAttack, access_of
from dpaudit.plugins.protocols import (
    BoolArray,
    FeatureName,
    FloatArray,
    LastBitsName,
    World,
    is_seedable,
)
from dpaudit.results.leaks import by_importance, carriers
from dpaudit.results.outcomes import (
    AttackOutcome,
    RightGuesses,
    SecretOutcome,
    SequentialOutcome,
    TwoWorldsOutcome,
)
from dpaudit.results.record import ControlOutcome, Leak, SameTables, TargetOfAudit
from dpaudit.results.verdict import Check, Power

MOST_LEAKS = 10


def stopped_by_control(
    spec: TwoWorldSpec, *, target: TargetOfAudit, controls: Mapping[Role, ControlOutcome]
) -> Findings:
    """The findings of an audit whose trials were not run, as a control failed.

    Args:
        spec: The audit.
        target: The attacked record.
        controls: How the controls ended.
    """
    return Findings(
        outcome=TwoWorldsOutcome(sequential=None),
        claim=spec.claim,
        target=target,
        controls=controls,
        access=_access(spec),
    )


def find(
    spec: TwoWorldSpec,
    stored: StoredOutcomes,
    order: Sequence[Trial],
    *,
    target: TargetOfAudit,
    controls: Mapping[Role, ControlOutcome] | None = None,
    replays: Sequence[Replay] = (),
    attacked: Sequence[Attacked] | None = None,
    gave_up: bool = False,
) -> Findings:
    """Derives the findings from the trials of an audit.

    Args:
        spec: The audit.
        stored: Its outcomes, at least those of `order`.
        order: The trials that count, as they were planned.
        target: The attacked record.
        controls: How the controls ended; None if none was run, as every first trial failed.
        replays: Some trials with their second runs.
        attacked: The attacks of a sequential audit; None if they are still to be scored.
        gave_up: Whether the audit ended because it could prove nothing any more: nothing is scored.

    Returns:
        The findings.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    settings = spec.settings
    outcomes = [stored[trial] for trial in order]
    claim = spec.effective_claim(outcomes)
    if gave_up:
        attacked = []
    elif attacked is None:
        attacked = attack_all(spec, stored, Role.AUDIT, settings, claim)
    deciding = best(attacked) if attacked else None
    proved = deciding is not None and deciding.evaluation.proved > claim.value
    # The bound may come from how trials end, which failures do not hide.
    scored = set() if proved else set(plan_trials(spec, Role.AUDIT, settings).parts[1])
    lost = failed_by_world(outcomes, scored)  # errors of attacks on tables
    left = power(settings, claim, false_negatives=lost[World.IN], false_positives=lost[World.OUT])
    checks = _check_trials(spec, outcomes, replays, claim=claim, left=left)
    if gave_up:
        checks.insert(0, check_given_up(outcomes, planned=settings.game.shadow_models))
    elif not proved and not tables_suffice(spec, stored, Role.AUDIT, settings):
        checks.insert(0, TOO_FEW_MODELS)
    # Of an audit that stopped early later attacks learnt more, so scores may drift.
    if deciding is not None and not deciding.evaluation.stopped_early:
        checks += _check_scores(spec, order, deciding, claim=claim, left=left)
    leaks = _leaks(spec, deciding) if deciding else ()
    return Findings(
        outcome=TwoWorldsOutcome(
            sequential=_sequential(spec, deciding, trials=len(order)),
            secret=_secret(spec, attacked),
        ),
        claim=claim,
        target=target,
        controls=controls or {},
        trials=outcomes,
        power=left,
        best=None if deciding is None else _best_attack(deciding),
        attacks=tuple(_attack_outcome(attack) for attack in attacked),
        leaks=leaks,
        proved_without_bits=(
            _proved_without_bits(spec, stored, deciding, leaks, claim) if deciding else None
        ),
        checks=tuple(checks),
        access=_access(spec),
    )


def _check_trials(
    spec: TwoWorldSpec,
    outcomes: Sequence[StoredOutcome],
    replays: Sequence[Replay],
    *,
    claim: Claim,
    left: Power,
) -> list[Check]:
    """Checks of the trials, whatever attacks make of them."""
    highest = highest_provable(spec.settings, claim)
    checks = [
        check_failures(TrialCounts.of(outcomes), highest=highest, left=left.max_provable),
        check_randomness(outcomes),
        check_repeats(outcomes, spec.stream("repeats").rng()),
        _replay_check(spec, replays),
    ]
    if spec.is_timed:
        checks.append(check_measured(memory=reset_peaks()))
    return checks


def _check_scores(
    spec: TwoWorldSpec, order: Sequence[Trial], deciding: Attacked, *, claim: Claim, left: Power
) -> list[Check]:
    """Checks of the scores of the deciding attack."""
    timed = _is_timed(deciding.attack.attack)
    agreement = check_agreement(
        deciding.evaluation,
        deciding.scored.member,
        left.max_provable,
        guarantee=guarantee_of(claim),
        confidence=spec.settings.attack_confidence,
        timed=timed,
    )
    return [_order_check(order, deciding, timed=timed), agreement]


def _access(spec: TwoWorldSpec) -> Access | None:
    """What the attacker sees in addition to rows."""
    access = spec.settings.game.access
    return None if access is Access.OUTPUT else access


def _best_attack(deciding: Attacked) -> BestAttack:
    evaluation = deciding.evaluation
    return BestAttack(
        name=deciding.attack.name,
        proved=evaluation.proved,
        bounds=evaluation.bounds,
        auc=evaluation.auc,
        scores=evaluation.scores,
        member=deciding.scored.member,
        counts=evaluation.counts,
        threshold=evaluation.threshold,
    )


def _leaks(spec: TwoWorldSpec, deciding: Attacked) -> tuple[Leak, ...]:
    if deciding.evaluation.proved == 0:
        return ()
    return attribute(
        deciding.evaluation,
        deciding.scored,
        deciding.attack.feature_names(spec.game.view),
        most=MOST_LEAKS,
        rng=spec.stream("explain").rng(),
    )


def _proved_without_bits(
    spec: TwoWorldSpec,
    stored: StoredOutcomes,
    deciding: Attacked,
    leaks: Sequence[Leak],
    claim: Claim,
) -> float | None:
    """What an audit of the same trials proves without last bits; None if these carry nothing.

    Other features carry the attack too, as far as the claim allows, so which of them matter does
    not tell: the attacks are fitted again.
    """
    if deciding.evaluation.proved <= claim.value or deciding.evaluation.stopped_early:
        return None
    names = deciding.attack.feature_names(spec.game.view)
    bits = {name for name in names if isinstance(name, LastBitsName)}
    if not any((leak.column, leak.feature) in bits for leak in carriers(leaks)):
        return None
    settings = spec.settings.with_game(ignore_bits=True)
    return best(attack_all(spec, stored, Role.AUDIT, settings, claim)).evaluation.proved


def _replay_check(spec: TwoWorldSpec, replays: Sequence[Replay]) -> Check:
    def decided(outcome: Outcome) -> Outcome:
        """The outcome without what is measured."""
        if outcome.features is None:
            return outcome
        return replace(outcome, features=outcome.features[spec.repeatable])

    return check_replay(
        [Replay(decided(first), decided(again)) for first, again in replays],
        seedable=is_seedable(spec.generator.generator),
        together=spec.trains_together,
    )


def _is_timed(attack: AnyAttack) -> bool:
    """Whether an attack looks at what is measured."""
    parts = [part.attack for part in attack.attacks] if isinstance(attack, Combined) else [attack]
    return any(access_of(part) is Access.TIMING for part in parts)


def _order_check(order: Sequence[Trial], deciding: Attacked, *, timed: bool) -> Check:
    """Whether scores drift with the places of their trials in the planned order."""
    place = {trial: position for position, trial in enumerate(order)}
    places = np.array([place[trial] for trial in deciding.trials], dtype=np.float64)
    return check_order(
        deciding.evaluation.scores,
        deciding.scored.member,
        places,
        deciding.attack.name,
        timed=timed,
    )


def target_of(spec: TwoWorldSpec, same_tables: SameTables | None) -> TargetOfAudit:
    """The attacked record, and how far it shows in a few models before the spec."""
    target, selection = spec.target, spec.selection
    choice = target.choice if selection is None else VULNERABLE
    return TargetOfAudit(
        choice=choice,
        row=target.row,
        rows_of_unit=None if spec.table.schema.unit is None else len(target.record),
        exposures=target.exposures,
        selection=selection,
        compared=target.compared,
        worst_case=spec.settings.game.worst_case,
        neighbours_file=spec.settings.game.neighbours_file,
        repeats=spec.target_repeats or None,
        tables=None if spec.pair is None else spec.pair.account,
        same_tables=same_tables,
    )


def _sequential(
    spec: TwoWorldSpec, deciding: Attacked | None, *, trials: int
) -> SequentialOutcome | None:
    """How a sequential audit ended; None of one that could not stop early."""
    if not spec.settings.game.sequential:
        return None
    guessed_by = deciding.guessed_by if deciding else {}
    return SequentialOutcome(
        trials=trials,
        cap=spec.settings.game.shadow_models,
        stopped_early=deciding is not None and deciding.evaluation.stopped_early,
        guessed_by=dict(guessed_by) or None,
    )


def _secret(spec: TwoWorldSpec, attacked: Sequence[Attacked]) -> SecretOutcome | None:
    """How often the secret was guessed right; None if it was not guessed in both worlds."""
    name = spec.settings.game.secret
    guess = next((attack for attack in attacked if attack.attack is spec.secret), None)
    if name is None or guess is None:
        return None
    evaluation, member = guess.evaluation, guess.scored.member
    column = column_of(spec.table.schema, name)
    tail = (1.0 - spec.settings.confidence) / 2.0

    def count(world: BoolArray) -> RightGuesses:
        right, releases = int(evaluation.scores[world].sum()), int(world.sum())
        least, most = interval(right, releases, tail)
        return RightGuesses(right=right, releases=releases, least=least, most=most)

    inside, outside = count(member), count(~member)
    return SecretOutcome(
        column=column.name,
        tolerance=TOLERANCE if column.kind.numeric else None,
        inside=inside,
        outside=outside,
        difference=round(inside.right / inside.releases - outside.right / outside.releases, 4),
        proved=evaluation.proved,
    )


def _attack_outcome(attacked: Attacked) -> AttackOutcome:
    evaluation = attacked.evaluation
    scorer = evaluation.scorer
    shares = scorer.shares if isinstance(scorer, WeightedSum) else {}
    return AttackOutcome(
        name=attacked.attack.name,
        auc=evaluation.auc,
        bounds=recorded_bounds(evaluation.bounds),
        counts=evaluation.counts,
        threshold=evaluation.threshold,
        guesses=evaluation.guesses,
        shares={name: round(share, 4) for name, share in shares.items()} or None,
    )


MEASURED = 64
"""Number of features whose importance is measured, the most separating ones."""
REPEATS = 5
"""Number of permutations; an importance is their mean."""
MOST_TRIALS = 8192
"""Scored trials used for an explanation; of more, this many, evenly spaced."""

BLOCK = 2**17
"""Feature values ranked at once, so memory does not grow with their number."""


@dataclass(frozen=True)
class _Shuffled:
    """Stacked copies of some feature vectors, each with one feature permuted.

    Attributes:
        features: The vectors [n, f].
        place: Place of the permuted feature.
        values: Its values [copies, n] in each copy.
    """

    features: FloatArray
    place: int
    values: FloatArray

    def __len__(self) -> int:
        return self.values.size

    def __getitem__(self, rows: slice) -> FloatArray:
        chosen = np.arange(len(self))[rows]
        vectors = self.features[chosen % len(self.features)]
        vectors[:, self.place] = self.values.ravel()[chosen]
        return vectors


def attribute(
    evaluation: Evaluation,
    scored: Part,
    names: Sequence[FeatureName],
    *,
    most: int,
    rng: np.random.Generator,
) -> tuple[Leak, ...]:
    """Which features carry an attack: permutation importance on the scored trials.

    Importance is the loss of AUC when one feature is shuffled (Breiman 2001, section 10). If
    features are redundant, the loss is about 0 for each of them: then, and among ties, features
    that separate the worlds best alone come first. Features that a scorer combines (it names them
    as `combined`) may separate nothing alone.

    Args:
        evaluation: The attack's result.
        scored: The scored trials.
        names: Names of the features.
        most: How many to return.
        rng: Shuffles.

    Returns:
        The features in the order of `by_importance`: only those that separate the worlds or are
        combined with others.
    """
    step = -(-len(scored.member) // MOST_TRIALS)
    member, original = scored.member[::step], evaluation.scores[::step]
    features = scored.features[::step]
    at_once = max(1, BLOCK // len(member))
    separation = np.concatenate(
        [
            np.abs(aucs(features[:, start : start + at_once], member) - 0.5)
            for start in range(0, features.shape[1], at_once)
        ]
    )
    candidates = np.argsort(-separation, kind="stable")[:MEASURED]
    candidates = candidates[separation[candidates] > 0]
    combined = np.asarray(getattr(evaluation.scorer, "combined", ()), dtype=np.intp)
    candidates = np.concatenate([candidates, combined[~np.isin(combined, candidates)]])
    sign = 1.0 if evaluation.threshold.direction is Direction.HIGHER else -1.0
    baseline = auc(sign * original, member)
    leaks = []
    for candidate in candidates:
        values = np.array([rng.permutation(features[:, candidate]) for _ in range(REPEATS)])
        scores = sign * score(evaluation.scorer, _Shuffled(features, int(candidate), values))
        losses = [baseline - auc(part, member) for part in scores.reshape(REPEATS, -1)]
        importance = max(0.0, round(float(np.mean(losses)), 4))
        leaks.append(
            Leak(
                column=names[candidate].column,
                feature=names[candidate].feature,
                importance=importance,
                separation=round(float(separation[candidate]), 4),
            )
        )
    return tuple(by_importance(leaks)[:most])
