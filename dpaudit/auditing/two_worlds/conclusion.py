"""From the trials of an audit in two worlds to its findings, and from these to its record.

Findings are attacks, remaining power, checks, and the features that carry the deciding attack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.checks import (
    TOO_FEW_MODELS,
    Replay,
    check_repeats,
    check_replay,
    failure_reasons,
)
from dpaudit.auditing.session import by_world, conclude, recorded_bounds
from dpaudit.auditing.two_worlds.attacking.extra import Combined, WeightedSum
from dpaudit.auditing.two_worlds.attacking.fitting import Evaluation, Part, score
from dpaudit.auditing.two_worlds.attacking.run import Attacked, attack_all, best, tables_suffice
from dpaudit.auditing.two_worlds.checks import (
    TrialCounts,
    check_agreement,
    check_failures,
    check_given_up,
    check_measured,
    check_order,
    check_randomness,
    failed_by_world,
)
from dpaudit.auditing.two_worlds.plan import highest_provable, power
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.bounds import Direction, auc, aucs, guarantee_of
from dpaudit.game.meter import reset_peaks
from dpaudit.game.outcomes import StoredOutcomes
from dpaudit.game.trial import Outcome, Role, Trial
from dpaudit.model.choices import VULNERABLE, Access
from dpaudit.model.claim import Claim
from dpaudit.plugins.access import AnyAttack, access_of
from dpaudit.plugins.protocols import FeatureName, FloatArray, World, is_seedable
from dpaudit.results.game import AttackOutcome
from dpaudit.results.leaks import in_order, leak_reason
from dpaudit.results.record import (
    AuditRecord,
    ControlOutcome,
    FailureReason,
    Leak,
    SameTables,
    TargetOfAudit,
)
from dpaudit.results.two_worlds import SequentialOutcome, TwoWorldsOutcome
from dpaudit.results.verdict import Check, Power

MOST_LEAKS = 10


class Findings(NamedTuple):
    """The findings of the audit's own trials; by default of none, as a control failed.

    Attributes:
        claim: The claim that the verdict is about.
        attacked: Every attack that was scored.
        best: The attack with the largest bound; None if none was scored.
        counts: Trials of each world that were run, and that failed.
        power: What this audit could prove, failures counted.
        leaks: Features that carry the best attack.
        checks: Checks of the run.
        failure_reasons: Why trials failed.
    """

    claim: Claim
    attacked: Sequence[Attacked] = ()
    best: Attacked | None = None
    counts: TrialCounts = TrialCounts.of([])
    power: Power = Power(0.0, None)
    leaks: tuple[Leak, ...] = ()
    checks: tuple[Check, ...] = ()
    failure_reasons: tuple[FailureReason, ...] = ()


def find(
    audit: TwoWorldSpec,
    stored: StoredOutcomes,
    order: Sequence[Trial],
    *,
    replays: Sequence[Replay],
    attacked: Sequence[Attacked] | None,
    gave_up: bool,
) -> Findings:
    """Derives the findings from the trials of an audit.

    Args:
        audit: The audit.
        stored: Its outcomes, at least those of `order`.
        order: The trials that count, as they were planned.
        replays: Some of them with their second runs.
        attacked: The attacks of a sequential audit; None if they are still to be scored.
        gave_up: Whether the audit ended because it could prove nothing any more: nothing is scored.

    Returns:
        The findings.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    settings = audit.settings
    outcomes = [stored[trial] for trial in order]
    claim = audit.effective_claim(outcomes)
    if gave_up:
        attacked = []
    elif attacked is None:
        attacked = attack_all(audit, stored, Role.AUDIT, settings, claim)
    deciding = best(attacked) if attacked else None
    proved = deciding is not None and deciding.evaluation.proved > claim.value
    # The bound may come from how trials end, which failures do not hide.
    scored = set() if proved else set(plan_trials(audit, Role.AUDIT, settings).scored(order))
    lost = failed_by_world(outcomes, scored)  # errors of attacks on tables
    left = power(settings, claim, false_negatives=lost[World.IN], false_positives=lost[World.OUT])
    counts = TrialCounts.of(outcomes)
    checks = [
        check_failures(counts, highest=highest_provable(settings, claim), left=left.max_provable),
        check_randomness(outcomes),
        check_repeats(outcomes, audit.stream("repeats").rng()),
        _replay_check(audit, replays),
    ]
    if audit.is_timed:
        checks.append(check_measured(memory=reset_peaks()))
    if gave_up:
        checks.insert(0, check_given_up(outcomes, planned=settings.game.shadow_models))
    elif not proved and not tables_suffice(audit, stored, Role.AUDIT, settings):
        checks.insert(0, TOO_FEW_MODELS)
    if deciding is not None and not deciding.evaluation.stopped_early:
        # Otherwise later attacks would have learnt more.
        timed = _is_timed(deciding.attack.attack)
        checks.append(_order_check(order, deciding, timed=timed))
        checks.append(
            check_agreement(
                deciding.evaluation,
                deciding.scored.member,
                left.max_provable,
                guarantee=guarantee_of(claim),
                confidence=settings.attack_confidence,
                timed=timed,
            )
        )
    return Findings(
        attacked=attacked,
        best=deciding,
        counts=counts,
        power=left,
        leaks=_leaks(audit, deciding) if deciding else (),
        checks=tuple(checks),
        failure_reasons=failure_reasons(outcomes),
        claim=claim,
    )


def _leaks(audit: TwoWorldSpec, deciding: Attacked) -> tuple[Leak, ...]:
    if deciding.evaluation.proved == 0:
        return ()
    return attribute(
        deciding.evaluation,
        deciding.scored,
        deciding.attack.feature_names(audit.game.view),
        most=MOST_LEAKS,
        rng=audit.stream("explain").rng(),
    )


def _replay_check(audit: TwoWorldSpec, replays: Sequence[Replay]) -> Check:
    def decided(outcome: Outcome) -> Outcome:
        """The outcome without what is measured."""
        if outcome.features is None:
            return outcome
        return replace(outcome, features=outcome.features[audit.repeatable])

    return check_replay(
        [Replay(decided(first), decided(again)) for first, again in replays],
        seedable=is_seedable(audit.generator.generator),
        together=audit.trains_together,
    )


def _is_timed(attack: AnyAttack) -> bool:
    """Whether an attack looks at what is measured."""
    parts = [one.attack for one in attack.attacks] if isinstance(attack, Combined) else [attack]
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


def conclude_two_worlds(
    audit: TwoWorldSpec,
    controls: Mapping[Role, ControlOutcome],
    findings: Findings | None,
    *,
    target: TargetOfAudit,
    reuse: Check,
    seconds: float,
) -> AuditRecord:
    """Decides the verdict and records everything about the audit.

    Args:
        audit: The audit.
        controls: How its controls ended; empty if none was run, as every first trial failed.
        findings: Findings of its trials; None if a control failed and they were not run.
        target: The attacked record.
        reuse: Whether its trials were judged before.
        seconds: Seconds spent in trials, over all workers.

    Returns:
        The record.
    """
    shown = Findings(audit.claim) if findings is None else findings
    checks = () if findings is None else (*shown.checks, reuse)
    deciding = shown.best
    evaluation = deciding.evaluation if deciding else None
    return conclude(
        audit,
        controls,
        claim=shown.claim,
        proved=evaluation.proved if evaluation else None,
        power=shown.power,
        reached=findings is not None,
        checks=checks,
        leak=leak_reason(shown.leaks, checks) if shown.leaks else None,
        seconds=seconds,
        bounds=recorded_bounds(evaluation.bounds) if evaluation else None,
        threshold_rule=audit.settings.game.threshold,
        game=TwoWorldsOutcome(
            sequential=_sequential(audit, findings) if findings is not None else None
        ),
        auc=evaluation.auc if evaluation else None,
        counts=evaluation.counts if evaluation else None,
        shadow_models=shown.counts.run,
        failures=shown.counts.failed,
        failure_reasons=shown.failure_reasons,
        leaks=shown.leaks,
        attack=deciding.attack.name if deciding else None,
        attacks=tuple(_attack(one) for one in shown.attacked),
        threshold=evaluation.threshold if evaluation else None,
        scores=by_world(deciding.evaluation.scores, deciding.scored.member)
        if deciding
        else by_world(),
        target=target,
        access=None if audit.settings.game.access is Access.OUTPUT else audit.settings.game.access,
    )


def target_of(audit: TwoWorldSpec, same_tables: SameTables | None) -> TargetOfAudit:
    """The attacked record, and how far it shows in a few models before the audit."""
    target, selection = audit.target, audit.selection
    choice = target.choice if selection is None or audit.pair is not None else VULNERABLE
    return TargetOfAudit(
        choice=choice,
        row=target.row,
        rows_of_unit=None if audit.table.schema.unit is None else len(target.record),
        exposures=target.exposures,
        selection=selection,
        compared=target.compared,
        worst_case=audit.settings.game.worst_case,
        neighbours_file=audit.settings.game.neighbours_file,
        repeats=audit.target_repeats or None,
        tables=None if audit.pair is None else audit.pair.account,
        same_tables=same_tables,
    )


def _sequential(audit: TwoWorldSpec, findings: Findings) -> SequentialOutcome | None:
    if not audit.settings.game.sequential:
        return None
    best = findings.best
    guessed_by = best.guessed_by if best else {}
    return SequentialOutcome(
        trials=sum(findings.counts.run.values()),
        cap=audit.settings.game.shadow_models,
        stopped_early=best is not None and best.evaluation.stopped_early,
        guessed_by=dict(guessed_by) or None,
    )


def _attack(one: Attacked) -> AttackOutcome:
    scorer = one.evaluation.scorer
    shares = scorer.shares if isinstance(scorer, WeightedSum) else {}
    return AttackOutcome(
        name=one.attack.name,
        auc=one.evaluation.auc,
        bounds=recorded_bounds(one.evaluation.bounds),
        counts=one.evaluation.counts,
        threshold=one.evaluation.threshold,
        guesses=one.evaluation.guesses,
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
        found = self.features[chosen % len(self.features)]
        found[:, self.place] = self.values.ravel()[chosen]
        return found


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
        The features in the order of `in_order`: only those that separate the worlds or are combined
        with others.
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
    return tuple(in_order(leaks)[:most])
