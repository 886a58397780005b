"""Cheap black-box probes before an audit, which may prove a violation that no attack sees.

An audit looks at one record and the features of its attacks; probes insert other records, in
separate trainings with separate random streams. An alarm with the severity of a violation
contradicts the claim at its p-value (`probe.challenge`). So probes have a share of the error
probability of the audit (`PROBES_SHARE`), and the bounds have the rest: together they flag a
generator that satisfies its claim with at most the whole error probability (Boole's inequality).
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import pandas as pd

from dpaudit.auditing.spec import AuditSpec
from dpaudit.game.pool import run_errand
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import reason_of
from dpaudit.model.choices import Severity
from dpaudit.model.claim import NoClaim
from dpaudit.model.schema import Schema
from dpaudit.plugins.foreign import patches_apart, pickled
from dpaudit.probe.catalogue import PROBES, ProbeSettings
from dpaudit.probe.challenge import PILOTS
from dpaudit.probe.run import ProbeResult, ProbeStatus, run_probes
from dpaudit.results.document import kept_in_file
from dpaudit.results.record import AuditRecord, ProbeAlarm, ProbesOutcome, proofs_of
from dpaudit.results.sentences import probe_reason
from dpaudit.results.verdict import Verdict, exceeds_claim

PROBES_FILE: Final = "probes.json"
"""File of a run folder that keeps the results of the probes."""
MOST_SECONDS: Final = 60.0
"""Time budget of the probes in seconds, estimated from their first trainings."""
STOPPED_AFTER: Final = 3 * MOST_SECONDS
"""Hard time limit, whatever the estimate."""
_OF_ANY_CLAIM: Final = "epsilon-ignored"
"""The probe that decides a large claim too: it tests the generator at an epsilon near 0."""
_COSTLIEST: Final = "rows-copied-verbatim"
FIRST_PROBES: Final = (
    _OF_ANY_CLAIM,
    *(
        probe.id
        for probe in PROBES
        if probe.severity is Severity.VIOLATION
        # The audit itself follows the target.
        and probe.id not in ("target-followed", _OF_ANY_CLAIM, _COSTLIEST)
    ),
    _COSTLIEST,
)
"""Probes whose alarm contradicts the claim, in the order they are run."""
ENOUGH: Final = "the probes have trained as many models as they may"
TOO_SLOW: Final = (
    f"at the pace of their first trainings the probes would take over {MOST_SECONDS:g} s"
)
STOPPED: Final = (
    f"they took over {STOPPED_AFTER:g} s or ended their process, so that nothing is known of them"
)


def probe_first(
    audit: AuditSpec, store: RunFolder, *, jobs: int, first: float = 0.0
) -> ProbesOutcome:
    """Runs the probes in a worker, or reads their results from the run folder.

    Args:
        audit: The audit.
        store: Its run folder, locked.
        jobs: Worker processes of the audit; one of them runs the probes.
        first: Seconds of the first training.

    Returns:
        Their results, or why none is to run.

    Raises:
        RegistryError: If the generator cannot be pickled for workers.
        InterruptedRunError: On Ctrl-C; the same call runs them again.
        OSError: If the outcome cannot be written.
    """
    confidence = audit.settings.probes_confidence
    if audit.not_probed is not None:
        return _outcome([], confidence=confidence, why=audit.not_probed)
    if 2 * PILOTS * first > STOPPED_AFTER:
        return _outcome([], confidence=confidence, why=TOO_SLOW)

    def probe() -> ProbesOutcome:
        outcome = run_errand(_errand(audit), store, jobs=jobs, seconds=STOPPED_AFTER)
        if outcome is None:
            outcome = _outcome([], confidence=confidence, why=STOPPED)
        if not outcome.alarms:
            return outcome
        alarmed = replace(_settings(audit), only=tuple(alarm.id for alarm in outcome.alarms))
        command = alarmed.command(*audit.generator.words, *audit.table.words)
        return replace(outcome, reproduce=command)

    outcome: ProbesOutcome = kept_in_file(store.path / PROBES_FILE, ProbesOutcome, probe)
    return outcome


@dataclass(frozen=True, kw_only=True)
class _Probing:
    """The input of a worker that runs the probes; calling it runs them.

    Attributes:
        generator: Pickled, as the caller of the audit handed it in.
        parameters: Parameters of a generator given by name.
        data: The table.
        schema: Its schema.
        settings: Settings of every probe. Once `fits` models are trained, no further probe begins.
    """

    generator: bytes
    parameters: dict[str, object]
    data: pd.DataFrame
    schema: Schema
    settings: ProbeSettings

    def __call__(self) -> ProbesOutcome:
        """Runs one probe after another while they are cheap."""
        results: list[ProbeResult] = []
        why: str | None = None
        start = perf_counter()
        try:
            with patches_apart():
                generator = pickle.loads(self.generator)
                for name in FIRST_PROBES:
                    fits = sum(result.fits for result in results)
                    if fits and (perf_counter() - start) / fits * self.settings.fits > MOST_SECONDS:
                        why = TOO_SLOW
                        break
                    if fits >= self.settings.fits:
                        why = ENOUGH
                        break
                    report = run_probes(
                        generator,
                        self.data,
                        replace(self.settings, only=(name,)),  # no result depends on other probes
                        schema=self.schema,
                        parameters=self.parameters,
                    )
                    results += report.probes
        except BaseException as error:  # noqa: BLE001 - the generator's, even an exit: as an outcome
            why = f"they ended with {reason_of(error)}"
        return _outcome(results, confidence=self.settings.confidence, why=why)


def _errand(audit: AuditSpec) -> _Probing:
    return _Probing(
        generator=pickled(audit.given, name=audit.generator.name),
        parameters=dict(audit.settings.parameters),
        data=audit.table.data,
        schema=audit.table.schema,
        settings=_settings(audit),
    )


def _settings(audit: AuditSpec) -> ProbeSettings:
    settings, row = audit.settings, audit.target_row
    return ProbeSettings(
        epsilon=settings.claim.epsilon,
        delta=settings.claim.delta,
        neighbours=settings.claim.neighbours,
        target=None if row is None else f"row:{row}",
        fits=settings.game.probe_fits,
        confidence=settings.probes_confidence,
        worker_memory=settings.worker_memory,
        seed=settings.seed,
    )


def add_probes(record: AuditRecord, probes: ProbesOutcome) -> AuditRecord:
    """Adds what the probes found to a record: what one proves makes the verdict a violation.

    It does not where the audit is invalid, scored nothing, has no claim, or has a bound above the
    claim that was withheld: its verdict and its alarms say so.

    Args:
        record: What the audit found.
        probes: What the probes before it found.

    Returns:
        The record; the proof is a reason, the first one where the bound itself proves nothing.
    """
    if isinstance(record.claim, NoClaim):
        return record  # probes contradict claims
    record = replace(record, probes=probes)
    reasons = tuple(probe_reason(alarm) for alarm in proofs_of(record.probe_alarms))
    first, *others = record.reasons
    if not reasons or record.proved is None:
        return record
    if record.verdict is Verdict.VIOLATION:
        return replace(record, reasons=(first, *reasons, *others))
    if record.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE) and not exceeds_claim(record):
        return replace(record, verdict=Verdict.VIOLATION, reasons=(*reasons, *others))
    return record


def _outcome(results: list[ProbeResult], *, confidence: float, why: str | None) -> ProbesOutcome:
    def names(status: ProbeStatus) -> tuple[str, ...]:
        return tuple(result.id for result in results if result.status is status)

    return ProbesOutcome(
        alarms=tuple(
            ProbeAlarm(
                id=result.id,
                severity=result.severity,
                correct=result.correct,
                p_value=result.p_value,
                shows=_proof_of(result),
            )
            for result in results
            if result.status is ProbeStatus.ALARM
        ),
        passed=names(ProbeStatus.PASSED),
        not_applicable=names(ProbeStatus.NOT_APPLICABLE),
        failed=names(ProbeStatus.FAILED),
        left_out=FIRST_PROBES[len(results) :],
        confidence=confidence,
        fits=sum(result.fits for result in results),
        why_left_out=why,
    )


def _proof_of(alarm: ProbeResult) -> str | None:
    """What an alarm proves, and which claim that contradicts; None if it proves nothing."""
    if alarm.severity is not Severity.VIOLATION or alarm.p_value is None:
        return None
    described = next(probe for probe in PROBES if probe.id == alarm.id)
    return f"{described.shows}, which contradicts {described.breaks}"
