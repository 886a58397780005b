"""Runs the probes, one after another, and reports what they found, in text and as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from dpaudit.formatting import (
    Row,
    counted,
    listed,
    percent,
    printable,
    rounded,
    rounded_up,
)
from dpaudit.game.target import choose_target
from dpaudit.game.trial import reason_of
from dpaudit.model.choices import Severity
from dpaudit.model.claim import PrivacyClaim, StatedClaim, require_epsilon
from dpaudit.model.encoding import check_rows
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, load, require_rows
from dpaudit.plugins.named import check_table, claim_under_audit
from dpaudit.probe.catalogue import Probe, ProbeSettings
from dpaudit.probe.challenge import NotApplicable, Number, Observation, Subject, Trainer, maker
from dpaudit.probe.inputs import (
    delta_ignored,
    epsilon_ignored,
    integers_truncated,
    nothing_random,
    row_count_leaks,
    row_order_matters,
    scale_wrong,
    seed_ignored,
    settings_follow_rows,
)
from dpaudit.probe.records import (
    category_follows_record,
    constancy_follows_record,
    label_counts_copied,
    missing_follows_record,
    range_follows_record,
    rows_copied_verbatim,
    target_followed,
)
from dpaudit.report.charts import CheckEnding, CheckRow, draw_checks
from dpaudit.report.page import PROBE, Page, Step, again, checked_verdict, facts_block, page_text
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import INFERRED, PUBLIC_SCHEMA, but_for, claim_and_relation, odds
from dpaudit.results.sentences import HEADLINE_GAP, NOT_EVIDENCE
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.seeds import Stream
from dpaudit.versions import __version__, today


class ProbeStatus(StrEnum):
    """How a probe ended."""

    ALARM = "alarm"
    PASSED = "passed"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


_IN_WORDS: Final = {
    ProbeStatus.ALARM: "alarm",
    ProbeStatus.PASSED: "no alarm",
    ProbeStatus.NOT_APPLICABLE: "not applicable",
    ProbeStatus.FAILED: "failed",
}


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """The outcome of one probe.

    Attributes:
        id: Its name.
        status: How it ended.
        severity: Severity of its alarm.
        evidence: What was seen, why the probe does not apply, or what failed, in words.
        numbers: The evidence in numbers.
        p_value: As in `Observation`.
        certainty: As in `Observation`.
        false_alarm_rate: Largest probability of an alarm for a generator that satisfies its claim;
            0 if no chance is involved.
        fits: Models trained.
        correct: What a correct generator does.
    """

    id: str
    status: ProbeStatus
    severity: Severity
    evidence: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    p_value: float | None = None
    certainty: str = ""
    false_alarm_rate: float = 0.0
    fits: int = 0
    correct: str = ""


@dataclass(frozen=True, kw_only=True)
class ProbeReport(Document):
    """All probes of one generator on one table.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        source: Where the table came from.
        claim: The claim under test.
        schema_inferred: Whether bounds and categories were inferred from the table.
        records: Records that were probed.
        target: The record that was watched, as the caller named it; None without one.
        confidence: Least probability that no probe flags a generator that satisfies its claim.
        seed: Root of every random stream.
        probes: What each probe found.
        date: Day on which they ran, in UTC; absent from older documents.
        reproduce: The command that repeats the probes; absent from older documents.
    """

    schema_version = 1

    generator: str
    parameters: Mapping[str, Any]
    source: str
    claim: PrivacyClaim
    schema_inferred: bool
    records: int
    target: str | None
    confidence: float
    seed: int
    probes: tuple[ProbeResult, ...]
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    def of(self, status: ProbeStatus) -> tuple[ProbeResult, ...]:
        """The results with one status."""
        return tuple(result for result in self.probes if result.status is status)

    @property
    def violations(self) -> tuple[ProbeResult, ...]:
        """Alarms with the severity of a violation."""
        return tuple(r for r in self.of(ProbeStatus.ALARM) if r.severity is Severity.VIOLATION)

    def assert_no_violation(self) -> None:
        """Raises unless the probes ran and none found a violation.

        Raises:
            AssertionError: If a probe raised an alarm with the severity of a violation, if one
                failed, or if none applied; the message is the report.
        """
        __tracebackhide__ = True
        if self.violations or self.of(ProbeStatus.FAILED) or not self.ran:
            raise AssertionError(str(self))

    @property
    def ran(self) -> bool:
        """Whether any probe judged the generator: raised an alarm or passed."""
        return bool(self.of(ProbeStatus.PASSED) or self.of(ProbeStatus.ALARM))

    @property
    def fits(self) -> int:
        """Models trained in all."""
        return sum(result.fits for result in self.probes)

    @property
    def headline(self) -> str:
        """The finding in one line; if no probe judged the generator, the reason."""
        if not self.ran:
            broken = self.of(ProbeStatus.FAILED)
            why = broken or self.of(ProbeStatus.NOT_APPLICABLE)
            reasons = listed(dict.fromkeys(printable(probe.evidence) for probe in why), most=2)
            how = f"{counted(len(broken), 'probe')} failed" if broken else "no probe applies"
            return f"NOTHING PROBED  {how}: {reasons}"
        alarms = self.of(ProbeStatus.ALARM)
        passed, failed = len(self.of(ProbeStatus.PASSED)), self.of(ProbeStatus.FAILED)
        cause = f", {len(failed)} failed ({printable(failed[0].evidence)})" if failed else ""
        rest = f"{passed} passed{cause}"
        if not alarms:
            return f"NO ALARM  {counted(passed, 'probe')} {rest.partition(' ')[2]}; {NOT_EVIDENCE}"
        count = {severity: sum(r.severity is severity for r in alarms) for severity in Severity}
        flagged = ", ".join(counted(n, severity) for severity, n in count.items() if n)
        return f"ALARM  {counted(len(alarms), 'probe')} found {flagged}; {rest}"

    def __str__(self) -> str:
        """The report in 80 columns: the finding, each alarm, then all other probes."""
        return page_text(probe_page(self))


def chance(result: ProbeResult) -> str:
    """How probable an alarm is for a generator that satisfies its claim, in a sentence."""
    if result.p_value is not None:
        return (
            f"Under the claim the probability of this is at most {rounded_up(result.p_value)} "
            f"(alarm at {rounded(result.false_alarm_rate)})"
        )
    return f"Not a matter of chance: {result.certainty}"


def probe_page(report: ProbeReport) -> Page:
    """Arranges the report of probes.

    Args:
        report: What the probes found.

    Returns:
        The page.
    """
    word, _, finding = report.headline.partition(HEADLINE_GAP)
    rows, facts = tuple(map(_row, report.probes)), tuple(_facts(report))
    alarms = tuple(map(_alarm, report.of(ProbeStatus.ALARM)))
    others = tuple(_others(report))
    return Page(
        verdict=checked_verdict(violated=bool(report.violations), ran=report.ran),
        word=word,
        finding=finding,
        about=f"Probes of {report.generator} on {report.source}",
        date=report.date,
        lead=tuple(_lead(report)),
        result=Block(
            title="Result",
            picture=Picture.CHECKS,
            caption="One row for each probe, and the models that it trained.",
            table=_table(report),
        ),
        next_step=Step((_next(report),)),
        findings=(
            *([Block(title="Alarms")] if alarms else []),
            *alarms,
            facts_block("What was tested", facts),
        ),
        clauses=PROBE,
        reproduce=again(report.source, report.reproduce),
        details=others,
        origin=f"dpaudit {__version__} probe",
        draw=lambda picture: draw_checks(rows, title="Outcome of each probe"),
        facts=facts,
        terminal=(*alarms, *others),
    )


def _lead(report: ProbeReport) -> Iterator[str]:
    claim = report.claim
    if report.violations:
        yield (
            "The claim caps the change in the odds that a record was used at a factor of "
            f"{odds(claim.epsilon, up=True)}{but_for(claim)}. The alarms below show, "
            f"with {percent(report.confidence)} confidence over all probes, that it does not hold; "
            "by how much, an audit measures."
        )
    elif report.ran:
        yield "No alarm is not evidence of privacy: only an audit measures what tables reveal."
    yield (
        "A probe changes the table, the schema or a setting and checks whether the output changes "
        "in a way that no correct generator's does. Leaks that no probe looks for are not ruled "
        "out."
    )


def _facts(report: ProbeReport) -> Iterator[Row]:
    """What was tested, and what was not."""
    where = f"{report.generator} on {report.source}, {counted(report.records, 'record')}"
    yield Row("probed", f"{where}; {report.fits} fits")
    yield Row("claim", claim_and_relation(report.claim))
    if report.target:
        yield Row("target", f"{report.target} was watched")
    error = percent(round(1.0 - report.confidence, 12))
    yield Row("chance", f"at most {error} for any alarm if the generator satisfies its claim")
    yield Row("untested", "how much leaks, what no probe looks for, and side channels")
    if report.schema_inferred:
        yield Row(
            "warning",
            f"{INFERRED}, which no claim covers; probes treat them as public: {PUBLIC_SCHEMA}",
        )


def _row(result: ProbeResult) -> CheckRow:
    outcome = {
        ProbeStatus.ALARM: CheckEnding.of(result.severity),
        ProbeStatus.PASSED: CheckEnding.PASSED,
    }.get(result.status, CheckEnding.NOT_MADE)
    fits = f", {counted(result.fits, 'fit')}" if result.fits else ""
    return CheckRow(result.id, (outcome,), f"{_IN_WORDS[result.status]}{fits}")


def _table(report: ProbeReport) -> ReportTable:
    return ReportTable(
        ("Probe", "Outcome", "Severity of an alarm", "p-value", "Fits"),
        tuple(
            (
                probe.id,
                _IN_WORDS[probe.status],
                str(probe.severity),
                "-" if probe.p_value is None else rounded_up(probe.p_value),
                str(probe.fits),
            )
            for probe in report.probes
        ),
        frozenset({3, 4}),
    )


def _alarm(result: ProbeResult) -> Block:
    return Block(
        title=f"{result.id} ({result.severity})",
        level=Level.SUBSECTION,
        paragraphs=(
            f"Observed: {result.evidence}.",
            f"{chance(result)}; {counted(result.fits, 'fit')}.",
            f"Correct: {result.correct}.",
        ),
    )


def _next(report: ProbeReport) -> str:
    if report.violations:
        return (
            "Repair what the first alarm below names, and probe again. To measure what a synthetic "
            "table reveals, audit the generator (dpaudit audit)."
        )
    if report.ran:
        return "Audit the generator (dpaudit audit), which measures how much its tables reveal."
    return "Repair what failed or choose other probes (--only), then probe again."


def _others(report: ProbeReport) -> Iterator[Block]:
    """What the probes without an alarm saw, by outcome."""
    for status in (ProbeStatus.FAILED, ProbeStatus.PASSED, ProbeStatus.NOT_APPLICABLE):
        seen = tuple(f"{of.id}: {of.evidence.replace('`', '')}" for of in report.of(status))
        if seen:
            title = f"Probes: {_IN_WORDS[status]}"
            yield Block(title=title, level=Level.SUBSECTION, folded=True, items=seen)


Check: TypeAlias = Callable[[Subject, Trainer], Observation | NotApplicable]
_CHECKS: Final[Mapping[str, Check]] = {
    check.__name__.replace("_", "-"): check
    for check in (
        *(
            range_follows_record,
            category_follows_record,
            constancy_follows_record,
            missing_follows_record,
            target_followed,
            label_counts_copied,
            rows_copied_verbatim,
        ),
        *(
            seed_ignored,
            nothing_random,
            settings_follow_rows,
            row_order_matters,
            row_count_leaks,
            epsilon_ignored,
            delta_ignored,
            scale_wrong,
            integers_truncated,
        ),
    )
}
"""The function of each probe in the catalogue, which has the name of the probe."""


def probe(
    generator: object,
    data: pd.DataFrame | str | Path,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    on_progress: Callable[[ProbeResult], None] | None = None,
    **settings: Any,
) -> ProbeReport:
    """Checks a generator from outside, with a handful of fits for each probe.

    A probe changes the table, the schema or a setting and checks whether the output changes in a
    way that no correct generator's does. The probability that any probe flags a generator that
    satisfies its claim is at most 1 - confidence.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Parameters of a generator given by name.
        on_progress: Called with each result as soon as it is known.
        settings: Fields of `ProbeSettings`: epsilon, delta, neighbours, target, only, rows,
            records, fits, confidence, worker_memory, seed.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable.
    """
    asked = ProbeSettings(**settings)
    return run_probes(
        generator, data, asked, schema=schema, parameters=parameters, on_progress=on_progress
    )


def run_probes(
    generator: object,
    data: pd.DataFrame | str | Path,
    settings: ProbeSettings,
    *,
    schema: Schema | str | Path | None = None,
    parameters: Mapping[str, Any] | None = None,
    on_progress: Callable[[ProbeResult], None] | None = None,
) -> ProbeReport:
    """Checks a generator from outside under given settings; see `probe`.

    Args:
        generator: As for `dpaudit.audit`.
        data: A table, a file, or "sample:NAME".
        settings: All other settings.
        schema: A schema or its file; inferred if None, and the report says so.
        parameters: Parameters of a generator given by name.
        on_progress: Called with each result as soon as there is one.

    Returns:
        The report.

    Raises:
        InputError: If an argument is unusable.
    """
    whole = load(data, schema)
    require_rows(whole.schema, "a probe")
    table, target = _sample(whole, settings)
    check_rows(len(table.data) if settings.rows is None else settings.rows, table.schema)
    built = maker(
        generator,
        parameters or {},
        table.schema,
        table.data,
        target=target or 0,
        worker_memory=settings.worker_memory,
    )
    stated = StatedClaim(
        epsilon=settings.epsilon, delta=settings.delta, neighbours=settings.neighbours
    )
    claim = require_epsilon(claim_under_audit(built.asked, stated), method="probe")
    check_table(built.asked.generator, table.data)
    subject = Subject(
        maker=built,
        data=table.data,
        schema=table.schema,
        claim=claim,
        settings=settings,
        target=target,
    )
    results = []
    for probe in settings.probes:
        result = _run(probe, subject)
        results.append(result)
        if on_progress is not None:
            on_progress(result)
    return ProbeReport(
        generator=built.asked.name,
        parameters=built.asked.parameters,
        source=table.source,
        claim=claim,
        schema_inferred=table.schema.inferred,
        records=len(table.data),
        target=settings.target,
        confidence=settings.confidence,
        seed=settings.seed,
        probes=tuple(results),
        date=today(),
        reproduce=settings.command(*built.asked.words, *table.words),
    )


def _run(probe: Probe, subject: Subject) -> ProbeResult:
    trainer = Trainer(subject, probe.id)
    try:
        outcome = _CHECKS[probe.id](subject, trainer)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the generator's: shown in the report
        status, seen = ProbeStatus.FAILED, Observation(False, reason_of(error))
    else:
        if isinstance(outcome, Observation) and not outcome.alarm:
            outcome = _passed(outcome, subject, trainer)
        if isinstance(outcome, NotApplicable):
            status, seen = ProbeStatus.NOT_APPLICABLE, Observation(False, outcome.why)
        else:
            status, seen = (ProbeStatus.ALARM if outcome.alarm else ProbeStatus.PASSED), outcome
    judged = status in (ProbeStatus.ALARM, ProbeStatus.PASSED)
    return ProbeResult(
        id=probe.id,
        status=status,
        severity=seen.severity or probe.severity,
        evidence=seen.evidence,
        numbers=seen.numbers,
        p_value=seen.p_value,
        certainty=seen.certainty,
        false_alarm_rate=subject.settings.alpha if judged and seen.p_value is not None else 0.0,
        fits=trainer.fits,
        correct=probe.correct,
    )


def _passed(seen: Observation, subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """The outcome of a probe without an alarm: passed, or not applicable if no output varied."""
    names = seen.read or subject.schema.names
    nothing = trainer.variation.nothing_in(names)
    if nothing is not None:
        return NotApplicable(nothing)
    still = [
        name
        for name in trainer.variation.still()
        if name in names and subject.data[name].nunique(dropna=False) > 1
    ]
    if not still:
        return seen
    return seen._replace(
        evidence=f"apart from {listed(still)}, the same in every row of every fit: {seen.evidence}"
    )


def _sample(table: Table, settings: ProbeSettings) -> tuple[Table, int | None]:
    """Samples a large table; returns it with the new position of the record to watch."""
    target = None
    if settings.target is not None:
        target = choose_target(settings.target, table.data, table.schema).row
    if len(table.data) <= settings.records:
        return table, target
    rng = Stream(settings.seed, "probe", "records").rng()
    drawn = rng.choice(len(table.data), settings.records, replace=False)
    if target is not None and target not in drawn:
        drawn[-1] = target
    kept = sorted(drawn)
    sample = table._replace(data=table.data.iloc[kept].reset_index(drop=True))
    return sample, None if target is None else kept.index(target)
