"""From the trials of an audit in two worlds to its findings.

Findings are attacks, remaining power, checks of whether the numbers can be trusted, and the
features that carry the deciding attack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpaudit.auditing.checks import (
    ENOUGH_MODELS,
    MODEL_ORDER,
    NONE_FAILED,
    SEEDS_NOT_COMPARED,
    SIGNIFICANCE,
    TOO_FEW_MODELS,
    Replay,
    TrialCounts,
    check_drift,
    check_failing,
    check_repeats,
    check_replay,
    drift_p_value,
)
from dpaudit.auditing.game import BestAttack, Findings, recorded_bounds
from dpaudit.auditing.settings import AuditSettings, TwoWorlds
from dpaudit.auditing.two_worlds.attacking import (
    Attacked,
    Combined,
    Ending,
    Evaluation,
    Part,
    WeightedSum,
    attack_all,
    best,
    ending,
    score,
    tables_suffice,
)
from dpaudit.auditing.two_worlds.plan import highest_provable, power
from dpaudit.auditing.two_worlds.secret import TOLERANCE, column_of
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.bounds import (
    Counts,
    Direction,
    Guarantee,
    auc,
    aucs,
    choose_threshold_by,
    count_errors,
    guarantee_of,
)
from dpaudit.bounds.clopper_pearson import interval
from dpaudit.formatting import rounded_down
from dpaudit.game.meter import reset_peaks
from dpaudit.game.store import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Outcome, Role, Trial, TrialEnd, TrialStatus
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
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence, Power

CONTRADICTION = 0.5
"""A bound of 0 contradicts an AUC whose best threshold gives this share of the upper limit."""


def check_failures(counts: TrialCounts, *, highest: float, left: float) -> Check:
    """States how failed models affect the bound, and whether failing depends on the record.

    Args:
        counts: Trials of each world that were run, and that failed.
        highest: The largest provable epsilon without failures.
        left: The largest provable epsilon with these failures.

    Returns:
        The check; failures that differ between worlds (Fisher's exact test) weaken the verdict,
        because failing itself may then reveal the record.
    """
    (n_in, n_out), (run_in, run_out) = (
        [number[world] for world in World] for number in (counts.failed, counts.run)
    )
    if n_in + n_out == 0:
        return NONE_FAILED
    detail = f"{n_in} of {run_in} models with the target failed and {n_out} of {run_out} without it"
    before, after = rounded_down(highest), rounded_down(left)
    if after != before:
        detail += (
            "; the scored ones count as the attack's errors, so the largest provable epsilon is "
            f"{after} instead of {before}"
        )
    from scipy.stats import fisher_exact  # takes half a second to import

    table = np.array([[n_in, run_in - n_in], [n_out, run_out - n_out]])
    return check_failing(detail, float(fisher_exact(table)[1]), on="the target")


def check_given_up(outcomes: Sequence[TrialEnd], *, planned: int) -> Check:
    """The reason why an audit stopped once it could not prove anything any more.

    Args:
        outcomes: The trials that were run.
        planned: Number of planned trials, of both worlds together.

    Returns:
        The check; it makes the audit invalid if no trial finished at all.
    """
    name = ENOUGH_MODELS
    stopped = f"stopped after {len(outcomes)} of {planned} shadow models"
    failed = sum(TrialCounts.of(outcomes).failed.values())
    if failed == len(outcomes):
        return Check(name, False, f"{stopped}: every one of them failed")
    detail = f"{stopped}: {failed} failed, so that no attack can prove more than the claim any more"
    return Check(name, False, detail, Consequence.WEAKENS)


DRIFT_OF_THE_MACHINE: Final = (
    "; seconds and memory depend on the machine, which changed during the audit: the bound holds "
    "all the same, and may be smaller than on an idle machine"
)
"""Why scores of what is measured may change from trial to trial (`dpaudit.game.meter`)."""


def check_measured(*, memory: bool) -> Check:
    """States that seconds and memory were measured, so that no repetition gives the same numbers.

    Args:
        memory: Whether the system shows peaks of memory.

    Returns:
        The check, which fails if memory was not measured.
    """
    detail = (
        f"seconds {'and memory ' * memory}of each training were measured: a busy machine hides "
        "leaks and adds none, and a repetition gives other numbers"
    )
    if not memory:
        detail += "; peaks of memory were not, since this system does not show them"
    return Check("measured trainings", memory, detail, Consequence.NOTED)


def check_order(
    scores: FloatArray, member: BoolArray, positions: FloatArray, name: str, *, timed: bool = False
) -> Check:
    """Whether scores drift with the planned order of trials.

    Trials must be exchangeable within a world: a drift means that shadow models influence one
    another, and no bound holds. Kendall's rank test in each world, Bonferroni over the two.

    Args:
        scores: Scores [n] of the scored trials.
        member: Their worlds [n].
        positions: Their places [n] in the planned order.
        name: The attack's name.
        timed: Whether they depend on seconds or memory.

    Returns:
        The check; a drift of what is measured does not affect the statistics.
    """
    planned = np.argsort(positions)
    p_values = [drift_p_value(scores[planned][member[planned] == world]) for world in (True, False)]
    p_value = min(1.0, 2 * min(p_values))
    if timed and p_value < SIGNIFICANCE:
        detail = f"scores of {name} drift with the order of the models (p = {p_value:.2g})"
        return Check(MODEL_ORDER, False, detail + DRIFT_OF_THE_MACHINE, Consequence.NOTED)
    return check_drift(f"scores of {name}", p_value)


def check_randomness(outcomes: Iterable[StoredOutcome]) -> Check:
    """Whether different seeds give different synthetic tables."""
    seen: dict[World, set[bytes]] = {World.IN: set(), World.OUT: set()}
    finished: Counter[World] = Counter()
    for outcome in outcomes:
        if outcome.table is not None:
            seen[outcome.trial.world].add(outcome.table)
            finished[outcome.trial.world] += 1
    if any(finished[world] < 2 for world in World):
        return SEEDS_NOT_COMPARED
    if any(len(tables) > 1 for tables in seen.values()):
        detail = "different seeds give different tables: the output is not a constant"
        return Check(DIFFERENT_SEEDS, True, detail, Consequence.NOTED)
    if seen[World.IN] == seen[World.OUT]:
        detail = "every model gave the same table, in both worlds: the output is a constant"
    else:
        detail = (
            "every model of a world gave the same table: the generator does not use its seed "
            "(no randomness, or a fixed seed inside), so nothing hides the record"
        )
    return Check(DIFFERENT_SEEDS, False, detail, Consequence.NOTED)


def check_agreement(
    evaluation: Evaluation,
    member: BoolArray,
    highest: float,
    *,
    guarantee: Guarantee,
    confidence: float,
    timed: bool = False,
) -> Check:
    """Whether AUC and bound agree.

    The best threshold on the scored trials proves nothing. But if its bound is half of the upper
    limit while the threshold of the fitting part proves nothing, the scores moved between the two
    parts: the trials of the two parts have different distributions, or the scale of the
    classifier's scores changed.

    Args:
        evaluation: The attack's result.
        member: Worlds of the scored trials.
        highest: The largest provable limit.
        guarantee: The claim's guarantee.
        confidence: Confidence of the attack's bounds.
        timed: As for `check_order`.

    Returns:
        The check.
    """
    best = choose_threshold_by(
        evaluation.scores, member, guarantee.statistic, confidence=confidence
    )
    errors = count_errors(evaluation.scores, member, best)
    n_in, n_out = evaluation.counts.n_in, evaluation.counts.n_out
    counts = Counts(
        errors.false_negatives + n_in - errors.n_in,  # failed trials are errors here too
        errors.false_positives + n_out - errors.n_out,
        n_in,
        n_out,
    )
    forecast = guarantee.clopper_pearson(counts, confidence=confidence)
    if evaluation.proved > 0 or forecast <= CONTRADICTION * highest:
        detail = (
            "AUC and bound agree: no sign that scores moved between the models that trained the "
            "attack and the scored ones"
        )
        return Check("AUC and bound", True, detail)
    detail = (
        f"the AUC is {evaluation.auc:.3f} and yet nothing is proved: scores moved between the "
        "fitting and the scored part, so the threshold does not fit"
    )
    if timed:
        return Check("AUC and bound", False, detail + DRIFT_OF_THE_MACHINE, Consequence.NOTED)
    return Check("AUC and bound", False, detail)


def first_finished(outcomes: Iterable[TrialEnd], world: World) -> Trial | None:
    """The first trial of a world, in the order given, that finished."""
    for outcome in outcomes:
        if outcome.trial.world is world and outcome.status is TrialStatus.FINISHED:
            return outcome.trial
    return None


SIGN = 0.05
"""Significance level for a dependence of how trials end on the world."""


def all_failed_alike(ends: Sequence[TrialEnd]) -> bool:
    """Whether every trial failed, in ways that do not depend on the world.

    Args:
        ends: The first trials, at least one of each world.

    Returns:
        False also if the two worlds have no way of failing in common, or if trials gave different
        numbers of rows: an attack may learn from that.
    """
    if any(end.status is TrialStatus.FINISHED for end in ends):
        return False
    ways = {world: {ending(end) for end in ends if end.trial.world is world} for world in World}
    return not ways[World.IN].isdisjoint(ways[World.OUT]) and not _rows_vary(ends)


def failed_by_world(ends: Iterable[TrialEnd], among: Collection[Trial]) -> Counter[World]:
    """How many of some trials failed, by world."""
    return Counter(
        end.trial.world
        for end in ends
        if end.status is not TrialStatus.FINISHED and end.trial in among
    )


def cannot_prove(
    ends: Sequence[TrialEnd],
    settings: AuditSettings[TwoWorlds],
    claim: Claim,
    *,
    scored: set[Trial],
) -> bool:
    """Whether so many trials failed that no attack can exceed the claim any more.

    A failed trial is an error of an attack on tables. If even an attack with no other error stays
    within the claim, only how trials end could prove anything, and there must be a sign of that by
    now.

    Args:
        ends: The first trials.
        settings: Settings of the audit.
        claim: The claim under audit.
        scored: The trials that will be scored; only these cost power.

    Returns:
        False also if the audit was too small before any trial failed.
    """
    lost = failed_by_world(ends, scored)
    if not lost or highest_provable(settings, claim) <= claim.value:
        return False
    left = highest_provable(
        settings, claim, false_negatives=lost[World.IN], false_positives=lost[World.OUT]
    )
    return left <= claim.value and not _rows_vary(ends) and not _depends_on_world(ends)


def _rows_vary(ends: Sequence[TrialEnd]) -> bool:
    """Whether trials that gave a wrong number of rows gave different ones."""
    return len({end.rows for end in ends} - {None}) > 1


def _depends_on_world(ends: Sequence[TrialEnd]) -> bool:
    """Whether any way of ending is more frequent in one world (Fisher's exact test, Bonferroni)."""
    from scipy.stats import fisher_exact

    run = Counter(end.trial.world for end in ends)
    ways: dict[Ending, Counter[World]] = {}
    for end in ends:
        ways.setdefault(ending(end), Counter())[end.trial.world] += 1
    for seen in ways.values():
        table = np.array([[seen[world], run[world] - seen[world]] for world in World])
        if float(fisher_exact(table)[1]) * len(ways) < SIGN:
            return True
    return False


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
