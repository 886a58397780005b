"""The result of an audit as data: what `result.json` holds, by the same names.

Its JSON Schema is made from these types and docstrings (`dpaudit.results.document`): a new field is
a line and its description here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any

from dpaudit.bounds import Counts, Threshold
from dpaudit.bounds.table import BoundEntry, ValidBound, deciding
from dpaudit.game.target import Exposure
from dpaudit.model.choices import Access, Severity, ThresholdRule, WorstCase
from dpaudit.model.claim import Claim, Quantity
from dpaudit.plugins.protocols import World
from dpaudit.results.document import (
    OPTIONAL,
    Document,
    Limits,
    NonNegative,
    Positive,
    Probability,
    Separation,
    Whole,
)
from dpaudit.results.outcomes import AttackOutcome, OneRunOutcome, RecordsOutcome, TwoWorldsOutcome
from dpaudit.results.verdict import Check, Power, Verdict, exceeds_claim


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What an audit of a claim that is not stated in epsilon could have proved.

    Attributes:
        quantity: The quantity of claim, `proved`, `bounds` and these numbers: mu, rho, delta (at
            the claimed epsilon), or factor, by which all epsilons of a privacy curve must be
            multiplied for it to hold.
        claimed: The claim in that quantity; 1 for a privacy curve.
        max_provable: The limit that a perfect attack would reach with this many trials; null if no
            trial was scored.
        detectable: The minimum detectable value (80 % power), for a mechanism that leaks as much at
            one threshold as that value allows; null if there is none, or if no trial was scored.
        detectable_gaussian: The same for a Gaussian mechanism; absent if it is equal or not known.
    """

    quantity: Quantity
    claimed: NonNegative
    max_provable: NonNegative | None
    detectable: NonNegative | None
    detectable_gaussian: NonNegative | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How the most vulnerable record was searched for.

    Attributes:
        candidates: Number of records that were compared.
        trainings: Models trained for the search; none of them is a shadow model.
    """

    candidates: Annotated[int, Limits(minimum=2)]
    trainings: Positive


@dataclass(frozen=True, kw_only=True)
class SameTables:
    """Trainings before the audit with equal seeds gave the same table in both worlds.

    Attributes:
        seeds: Number of seeds that both worlds were trained with.
        compared: Number of other records that were left out (or replaced) together without changing
            the table either; 0 if none were tried, or if that changed the table.
        other: Row of a record that changes the table; null if none was found.
    """

    seeds: Positive
    compared: Whole = 0
    other: Whole | None = None


@dataclass(frozen=True, kw_only=True)
class TargetOfAudit:
    """The record or unit whose membership is attacked.

    Attributes:
        choice: How it was chosen: exposing, farthest, vulnerable, row:N, unit:VALUE, record:FILE,
            worst-case:NAME or neighbours-file:FILE; canaries in a one-run audit, records in one
            of many records per model.
        row: Its row in the table, from 0 (the first row of a unit); null if it is not in the table.
        rows_of_unit: How many rows the attacked unit has; absent in an audit of rows.
        exposures: The facts for which an exposing target was chosen, the most important first;
            empty if nothing in the table exposes a record, so that the farthest was taken; absent
            if it was chosen otherwise.
        selection: How a vulnerable target was searched for; absent where it was named.
        compared: If the table is too large to compare all records with each other, the number that
            was compared with all others to find the farthest; absent otherwise.
        worst_case: The name of the worst case; absent where there is none.
        neighbours_file: The file of the neighbouring table; absent where there is none.
        repeats: How many other rows equal it (or the first row of its unit), in both worlds; absent
            if no other row does.
        tables: For a worst case or a pair of the user's own: what both tables are, and why they
            make a valid game; absent if a target was chosen.
        same_tables: How both worlds give the same tables with the same seeds; absent if the tables
            differ or were not compared.
    """

    choice: str
    row: Whole | None
    rows_of_unit: Positive | None = field(default=None, metadata=OPTIONAL)
    exposures: tuple[Exposure, ...] | None = field(default=None, metadata=OPTIONAL)
    selection: Selection | None = field(default=None, metadata=OPTIONAL)
    compared: Positive | None = field(default=None, metadata=OPTIONAL)
    worst_case: WorstCase | None = field(default=None, metadata=OPTIONAL)
    neighbours_file: str | None = field(default=None, metadata=OPTIONAL)
    repeats: Positive | None = field(default=None, metadata=OPTIONAL)
    tables: str | None = field(default=None, metadata=OPTIONAL)
    same_tables: SameTables | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class ProbeAlarm:
    """What a probe before the audit saw that no generator should do.

    The evidence may quote the table, so it is not here: `dpaudit probe` shows it.

    Attributes:
        id: Name of the probe.
        severity: violation: the claim does not hold. bug: the generator does not do what it should.
            note: worth knowing.
        correct: What a correct generator does.
        p_value: Largest probability of such evidence under the claim; null where no chance is
            involved.
        shows: What it proves and which claim that contradicts; absent if it proves nothing.
    """

    id: str
    severity: Severity
    correct: str
    p_value: Probability | None
    shows: str | None = field(default=None, metadata=OPTIONAL)


def proofs_of(alarms: Iterable[ProbeAlarm]) -> tuple[ProbeAlarm, ...]:
    """The alarms that prove a violation, the least probable under the claim first."""
    proofs = [alarm for alarm in alarms if alarm.shows is not None]
    return tuple(sorted(proofs, key=lambda alarm: alarm.p_value or 0.0))


@dataclass(frozen=True, kw_only=True)
class ProbesOutcome:
    """Results of the probes before the audit, which have a share of its error probability.

    Attributes:
        alarms: Their alarms; the probability of any is at most 1 - confidence for a generator that
            satisfies its claim. An alarm that proves something makes the verdict a violation.
        passed: Names of the probes without alarm.
        not_applicable: Names of those that do not apply to this table or this generator.
        failed: Names of those whose trainings failed.
        left_out: Names of those that were not run.
        confidence: Probability of no alarm for a generator that satisfies its claim.
        fits: Models trained; none of them is among the shadow models.
        why_left_out: Why some were not run; absent if all were.
        reproduce: The command that shows the evidence of the alarms; absent without alarms.
    """

    alarms: tuple[ProbeAlarm, ...] = ()
    passed: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    confidence: Probability
    fits: Whole = 0
    why_left_out: str | None = field(default=None, metadata=OPTIONAL)
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def not_probed(self) -> str | None:
        """Why no probe judged the generator; None if one did."""
        if self.alarms or self.passed:
            return None
        return self.why_left_out or "every probe failed or does not apply"


@dataclass(frozen=True, kw_only=True)
class Correction:
    """How the hypotheses on the scored trials are counted.

    Attributes:
        rule: bonferroni: every attack is one. select: one attack was chosen on trials that are not
            scored.
        hypotheses: Number by which the error probability is divided; in a sequential audit, half of
            it is for the bounds that hold at any time and half for those at the cap.
        probes: The share of the error probability that probes before the audit have, the bounds
            having the rest; absent if they have none.
        attacks: The attacks that one was selected from; absent where every attack was scored.
    """

    rule: str
    hypotheses: Positive
    probes: Probability | None = field(default=None, metadata=OPTIONAL)
    attacks: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class FailureReason:
    """A reason why trials of a world failed, and how many did.

    Attributes:
        world: Their world.
        count: Failed trials.
        error: The error, in one line.
    """

    world: World
    count: Positive
    error: str


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A feature that carries the deciding attack.

    Attributes:
        column: Column of the table, or columns joined by ' & '.
        feature: The statistic of that column, such as max.
        importance: Loss of AUC when the feature is permuted over the scored trials; without unit. 0
            if other features carry the same information.
        separation: |AUC - 1/2| of the feature alone on the scored trials; 0.5 separates the worlds
            perfectly. Absent from results written before it was recorded.
    """

    column: str
    feature: str
    importance: float
    separation: Separation | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class ControlOutcome:
    """How a control ended.

    Attributes:
        passed: Whether it ended as expected; a failed control invalidates the audit.
        bound: Lower bound on the control's epsilon, in nats; null if too few trials finished.
        auc: 0.5 is chance; null if too few trials finished.
        max_provable_epsilon: The bound that a perfect attack on it would reach, in nats.
        detail: What was seen, in one sentence.
    """

    passed: bool
    bound: NonNegative | None
    auc: Probability | None
    max_provable_epsilon: NonNegative | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Audits of generators with a known answer, run through the same game first.

    Attributes:
        null: A generator that ignores its data; no attack may distinguish its worlds.
        positive: A generator that copies the target, or in a one-run audit releases its training
            rows; an attack must detect it.
    """

    null: ControlOutcome
    positive: ControlOutcome

    def named(self) -> dict[str, ControlOutcome]:
        """Both by name, the null control first."""
        return {"null": self.null, "positive": self.positive}


@dataclass(frozen=True, kw_only=True)
class AuditedGenerator:
    """What was audited.

    Attributes:
        name: The name by which it was requested.
        parameters: Parameters it was built with.
        seedable: Whether a trial can be repeated bit by bit from its seed.
        source: Digest of its source code, hexadecimal. Absent where there is none to be read, and
            from results written before it was recorded.
        fixes: How many fixes it offers, which explain tries one at a time. Absent if that is not
            known, and from results written before it was recorded.
    """

    name: str
    parameters: Mapping[str, Any]
    seedable: bool
    source: str | None = field(default=None, metadata=OPTIONAL)
    fixes: Whole | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class AuditedTable:
    """The table handed in.

    Attributes:
        source: File name or name of the sample.
        rows: Number of its rows.
        columns: Number of its columns, without that of the unit.
        units: Number of its units; absent in an audit of rows.
        tables: Rows of each of several tables; absent for a single table.
        sha256: Salted SHA-256 of the table, hexadecimal. The salt stays in the run folder; without
            it a guess of the table cannot be confirmed, and each run folder has another digest.
    """

    source: str
    rows: Positive
    columns: Positive
    units: Positive | None = field(default=None, metadata=OPTIONAL)
    tables: Mapping[str, Positive] | None = field(default=None, metadata=OPTIONAL)
    sha256: str = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class SchemaOrigin:
    """Where the public description of the table comes from.

    Attributes:
        inferred: Whether bounds and categories were derived from the table itself.
        source: The schema's file; absent where it was not read from one, and from results written
            before it was recorded.
    """

    inferred: bool
    source: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class AuditRecord(Document):
    """The outcome of one audit.

    It is what `result.json` of a run folder holds, and what `dpaudit audit --json` prints. Every
    key is always present. An audit that did not come to its end (a control failed) has null for the
    numbers that it never reached, and empty lists of attacks, leaks and scores.

    Attributes:
        verdict: violation: the bound exceeds the claim. consistent: no violation found, which is
            not evidence of privacy. inconclusive: the audit was too small or too weak to contradict
            the claim. invalid: a control or a check of the audit itself failed. measured: no claim
            was given, so the bound is the result and is compared with nothing.
        reasons: Reasons for the verdict, one sentence each, the most important first.
        claim: The claim under audit.
        confidence: One-sided confidence of every bound, a probability such as 0.95.
        proved: The lower bound on the true epsilon that decides the verdict, in nats; null if no
            trial was scored. For a claim in another quantity (`reach`) it bounds that quantity.
        bounds: Lower bounds on the same by method, corrected for the number of attacks; each is
            null where it does not apply, all are if no trial was scored. The Clopper-Pearson bound
            is there for comparison and never decides: it holds at the same confidence by itself.
        multiplicity: How the hypotheses on the scored trials are counted.
        threshold_rule: Where thresholds were chosen: by cross-validation in the fitting part, or on
            a hold-out of it; null in a one-run audit.
        game: How its game ended: shadow models in two worlds, with many records each, or one
            training with many canaries.
        max_provable_epsilon: The bound that a perfect attack would reach with this many trials, in
            nats; null if no trial was scored, or the claim is not stated in epsilon.
        detectable_epsilon: The minimum detectable epsilon (80 % power), in nats, if the leak shows
            as clearly as in randomised response; null if no leak is detected so often, no
            trial was scored, or the claim is not stated in epsilon.
        detectable_gaussian: The same for a Gaussian leak; absent where `detectable_epsilon` is
            null, and at delta 0, where every such leak is infinite.
        reach: What the audit could prove about a claim that is not stated in epsilon; absent if it
            is.
        auc: Area under the ROC curve of the deciding attack; 0.5 is chance. Null if no trial was
            scored.
        counts: Errors of the deciding attack on the scored trials; null if no trial was scored.
        shadow_models: Trials run in each world, to fit and to score attacks together.
        failures: Trials that ended without a usable table, in each world.
        failure_reasons: The failed trials grouped by what went wrong.
        leaks: Features that carry the deciding attack, the most important first; if they repeat
            each other and none is important alone, the most separating first.
        proved_without_bits: What an audit of the same trials proves without the last bits of
            floating-point numbers (the setting ignore_bits), at the same confidence by itself. If
            the claim allows it, the violation is in floating point. Absent unless these bits
            carry a bound above the claim, and from a sequential audit that stopped early.
        attack: Name of the deciding attack; null if no trial was scored.
        attacks: Every attack that was scored.
        threshold: Threshold of the deciding attack; null if no trial was scored.
        scores: Membership scores of the deciding attack on the scored trials; higher means in.
        target: The record whose membership is attacked.
        access: What the attacker sees of every model in addition to synthetic rows: model: what a
            fitted model discloses. released: also the facts that the proof protects. timing: the
            seconds and memory of its training. Absent if it sees synthetic rows only.
        probes: What cheap checks from outside saw before the audit, or why none ran
            (`why_left_out`); absent from results written before that was recorded.
        controls: Audits of generators with a known answer, run through the same game first; null if
            every first trial of the audit failed, so that none was run.
        checks: Checks of the run itself.
        generator: What was audited.
        data: The table handed in.
        schema: The public description of the table.
        rows: Synthetic rows requested from every shadow model, the same in both worlds.
        seed: Root of every random stream of the audit.
        versions: Versions of the software that ran.
        seconds: Time spent in trials over all workers, in seconds.
        date: Day on which the audit ended, in UTC, such as 2026-07-01. Absent from results written
            before it was recorded.
        reproduce: The command that repeats the audit.
        fresh: The command of the same audit with the next seed; absent where no command has its
            table or its generator.
        replay: The command that replays the generator on the same two tables; absent where no
            command has them.

    Raises:
        ValueError: If the verdict needs a number that is missing.
    """

    schema_version = 3
    called = "the result of an audit"
    kept_in = "a run folder or its result.json"

    verdict: Verdict
    reasons: tuple[str, ...]
    claim: Claim
    confidence: Probability
    proved: NonNegative | None
    bounds: Mapping[ValidBound, NonNegative | None] | None
    multiplicity: Correction
    threshold_rule: ThresholdRule | None
    game: TwoWorldsOutcome | RecordsOutcome | OneRunOutcome
    max_provable_epsilon: NonNegative | None
    detectable_epsilon: NonNegative | None
    detectable_gaussian: NonNegative | None = field(default=None, metadata=OPTIONAL)
    reach: Reach | None = field(default=None, metadata=OPTIONAL)
    auc: Probability | None
    counts: Counts | None
    shadow_models: Mapping[World, Whole]
    failures: Mapping[World, Whole]
    failure_reasons: tuple[FailureReason, ...]
    leaks: tuple[Leak, ...]
    proved_without_bits: NonNegative | None = field(default=None, metadata=OPTIONAL)
    attack: str | None
    attacks: tuple[AttackOutcome, ...]
    threshold: Threshold | None
    scores: Mapping[World, tuple[float, ...]]
    target: TargetOfAudit
    access: Access | None = field(default=None, metadata=OPTIONAL)
    probes: ProbesOutcome | None = field(default=None, metadata=OPTIONAL)
    controls: Controls | None
    checks: tuple[Check, ...]
    generator: AuditedGenerator
    data: AuditedTable
    schema: SchemaOrigin
    rows: Positive
    seed: Whole
    versions: Mapping[str, str]
    seconds: NonNegative
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    reproduce: str
    fresh: str | None = field(default=None, metadata=OPTIONAL)
    replay: str | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if self.verdict not in (Verdict.VIOLATION, Verdict.CONSISTENT, Verdict.MEASURED):
            return
        limit = "max_provable_epsilon" if self.reach is None else "reach.max_provable"
        needed = ("proved", "bounds", limit, "auc", "attack", *self.game.needed)
        missing = [name for name in needed if _is_missing(attrgetter(name)(self))]
        if missing:
            raise ValueError(f"a result with verdict {self.verdict} lacks {', '.join(missing)}")

    @property
    def power(self) -> Power | None:
        """What the audit could prove, in the quantity of its claim; None if nothing was scored."""
        if self.reach is not None:
            highest, least = self.reach.max_provable, self.reach.detectable
            gaussian = self.reach.detectable_gaussian
        else:
            highest, least = self.max_provable_epsilon, self.detectable_epsilon
            gaussian = self.detectable_gaussian
        return None if highest is None else Power(highest, least, gaussian)

    @property
    def proves_leak(self) -> bool:
        """Whether the bound proves a leak: above the claim, or any leak if there is no claim."""
        if self.verdict is Verdict.MEASURED:
            return bool(self.proved)
        return self.verdict is Verdict.VIOLATION and exceeds_claim(self)

    @property
    def is_floating_point(self) -> bool:
        """Whether only the last bits of floating-point numbers prove the violation."""
        without = self.proved_without_bits
        alone = self.verdict is Verdict.VIOLATION and not self.probe_proofs
        return alone and without is not None and without <= self.claim.value

    @property
    def decided_by(self) -> BoundEntry | None:
        """The bound that decides; None if nothing was scored."""
        return None if self.bounds is None else deciding(self.bounds)

    @property
    def clopper_pearson(self) -> float | None:
        """The Clopper-Pearson bound of the deciding attack; None where there is none."""
        return (self.bounds or {}).get(ValidBound.CLOPPER_PEARSON)

    @property
    def probe_alarms(self) -> tuple[ProbeAlarm, ...]:
        """Alarms of the probes before the audit."""
        return self.probes.alarms if self.probes else ()

    @property
    def probe_proofs(self) -> tuple[ProbeAlarm, ...]:
        """The alarms that prove something, if the verdict is a violation."""
        return proofs_of(self.probe_alarms) if self.verdict is Verdict.VIOLATION else ()

    @property
    def other_alarms(self) -> tuple[ProbeAlarm, ...]:
        """The alarms that do not affect the verdict."""
        return tuple(alarm for alarm in self.probe_alarms if alarm not in self.probe_proofs)

    @property
    def tried_attacks(self) -> tuple[str, ...]:
        """The attacks that the scored one was selected from; otherwise those that were scored."""
        return self.multiplicity.attacks or tuple(attack.name for attack in self.attacks)

    @property
    def ran(self) -> bool:
        """Whether the audit's own trials were run, even if a control failed."""
        return bool(self.checks)

    @property
    def failed_parts(self) -> tuple[str, ...]:
        """What made the audit invalid: failed controls or failed checks."""
        run = self.controls.named() if self.controls and not self.ran else {}
        controls = [f"the {name} control" for name, of in run.items() if not of.passed]
        checks = [f'the check "{of.name}"' for of in self.checks if of.invalidates]
        return (*controls, *checks)


def _is_missing(value: object) -> bool:
    """Whether it is None, an empty list, or a list of each world of which one is empty."""
    return value in (None, ()) or (isinstance(value, Mapping) and () in value.values())


@dataclass(frozen=True, kw_only=True)
class AuditBrief:
    """Summary of one of several audits; its own result has the rest.

    Attributes:
        verdict: As in its result.
        reasons: Why this verdict, the most important first.
        claim: The claim under audit.
        proved: The lower bound on what the claim limits; null if no trial was scored.
        clopper_pearson: The Clopper-Pearson bound on the same, for comparison; null where there is
            none.
        confidence: One-sided confidence of the bound.
        max_provable: The bound that a perfect attack would reach; null as above.
        detectable: The smallest true epsilon, or other quantity of the claim, caught with 80 %
            power; null if there is none.
        auc: AUC of the deciding attack; 0.5 is chance. Null if no trial was scored.
        shadow_models: Trials run, of both worlds together.
        seconds: Time spent in trials over all workers, in seconds.
        date: Day on which the audit ended, in UTC; absent where it is not known.
        rule: Key of the bound that decides; absent if no trial was scored.
        is_floating_point: Whether only the last bits of numbers prove the violation; absent if not.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    claim: Claim
    proved: NonNegative | None
    clopper_pearson: NonNegative | None
    confidence: Probability
    max_provable: NonNegative | None
    detectable: NonNegative | None
    auc: Probability | None
    shadow_models: Whole
    seconds: NonNegative
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    rule: str | None = field(default=None, metadata=OPTIONAL)
    is_floating_point: bool | None = field(default=None, metadata=OPTIONAL)

    @property
    def is_withheld(self) -> bool:
        """Whether the bound exceeds the claim and yet proves no violation, as a check failed."""
        undecided = self.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)
        return undecided and self.proved is not None and self.proved > self.claim.value

    @classmethod
    def of(cls, record: AuditRecord) -> AuditBrief:
        """Summarises a record."""
        power, entry = record.power, record.decided_by
        return cls(
            verdict=record.verdict,
            reasons=record.reasons,
            claim=record.claim,
            proved=record.proved,
            clopper_pearson=record.clopper_pearson,
            confidence=record.confidence,
            max_provable=power and power.max_provable,
            detectable=power and power.detectable,
            auc=record.auc,
            shadow_models=sum(record.shadow_models.values()),
            seconds=record.seconds,
            date=record.date,
            rule=None if entry is None else entry.key.value,
            is_floating_point=record.is_floating_point or None,
        )


def days(audits: Iterable[AuditBrief]) -> str | None:
    """The days on which audits ended, from the first to the last; None if no day is known."""
    known = sorted({audit.date for audit in audits if audit.date})
    return " to ".join(dict.fromkeys((known[0], known[-1]))) if known else None
