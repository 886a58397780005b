"""Audits in two worlds on simulated trials: all of an audit's code from its outcomes on.

Nothing is trained and no table is drawn: what a trial shows is drawn from a mechanism, and goes as
features, or as a failure, to `attack_all` or `run_sequential` in place of a run folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.attacking import attack_all
from dpaudit.auditing.two_worlds.sequential import run_sequential
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, build_two_worlds, plan_trials
from dpaudit.game.store import StoredOutcome, StoredOutcomes
from dpaudit.game.trial import Role, Trial, TrialStatus
from dpaudit.model.claim import Promise
from dpaudit.model.tables import Table
from dpaudit.plugins.access import AnyAttack
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray, World
from reports.calibration import honest
from reports.calibration.failing import Failing, Failure, Shown


class Seen(Protocol):
    """A mechanism by what it shows of each trial: a score."""

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Draws the score of every trial; `member` says whether its world is "in"; shape (n,)."""
        ...


@dataclass(frozen=True, kw_only=True)
class SimulatedAudit(TwoWorldSpec):
    """An audit whose random streams are named by its seed alone."""

    @cached_property
    def id(self) -> str:
        """The same for all."""
        return "simulated"


def simulated_audit(
    settings: AuditSettings, claim: Promise, *, facts: tuple[str, ...] = ()
) -> SimulatedAudit:
    """An audit of which only the trials are missing.

    Args:
        settings: Its settings.
        claim: The claim under audit.
        facts: Names of the released facts, where attacks see them.
    """
    attacks = tuple(
        NamedAttack(f"attack {number}", cast(AnyAttack, one))
        for number, one in enumerate(settings.game.attacks)
    )
    table = Table(honest.count_table(), honest.COUNT_SCHEMA, "simulated", None)
    generator = honest.Counts(claim=cast(Any, claim), mechanism=honest.nothing)  # never trained
    plain = build_two_worlds(generator, table, audit_settings(attacks=(honest.ReleasedMean(),)))
    view = replace(plain.game.view, released_facts=facts)
    kept = {one.name: getattr(plain, one.name) for one in fields(plain)}
    game = replace(plain.game, view=view)
    return SimulatedAudit(**kept | {"settings": settings, "attacks": attacks, "game": game})


def proved(audit: SimulatedAudit, mechanism: Seen | Failing, rng: np.random.Generator) -> float:
    """What the audit proves of a mechanism.

    Where trials fail it goes on even if nothing can come of it any more: a real audit stops then,
    and proves nothing.

    Args:
        audit: The audit. Its first attack, or released fact, is the score; every other one is the
            score with noise.
        mechanism: What its trials show.
        rng: Draws that.

    Returns:
        The largest bound.
    """
    settings, claim = audit.settings, audit.claim
    trials = plan_trials(audit, Role.AUDIT, settings).trials()
    member = np.array([trial.world is World.IN for trial in trials])
    scores, failures = (
        mechanism.shown(member, rng)
        if isinstance(mechanism, Failing)
        else Shown(mechanism.seen(member, rng), [None] * len(member))
    )
    others = [
        scores + 0.3 * scores.std() * rng.normal(size=len(member))
        for _ in range(sum(audit.widths) - 1)
    ]
    outcomes = outcomes_of(trials, np.column_stack([scores, *others]), failures)
    found = (
        run_sequential(audit, lambda start, stop: outcomes, lambda: False)
        if settings.game.sequential
        else attack_all(audit, outcomes, Role.AUDIT, settings, claim)
    )
    return max((one.evaluation.proved for one in found or ()), default=0.0)


class SimulatedOutcomes(StoredOutcomes):
    """Outcomes that no run folder holds.

    Args:
        ends: How the trials ended.
        rows: Their features.
    """

    def __init__(
        self, ends: Mapping[Trial, StoredOutcome], rows: Mapping[Trial, FloatArray]
    ) -> None:
        self._ends, self._rows = ends, rows

    def __getitem__(self, trial: Trial) -> StoredOutcome:
        return self._ends[trial]

    def __len__(self) -> int:
        return len(self._ends)

    def stream(self) -> Iterator[StoredOutcome]:
        """All outcomes."""
        return iter(self._ends.values())

    def vectors(self, trials: Iterable[Trial]) -> Iterator[FloatArray]:
        """The features of some trials."""
        return (self._rows[trial] for trial in trials)


def outcomes_of(
    trials: Sequence[Trial], features: FloatArray, failures: Sequence[Failure | None]
) -> StoredOutcomes:
    """Outcomes as a run folder gives them.

    Args:
        trials: The trials.
        features: Their features; shape (n, f).
        failures: How each failed; None where it finished.
    """
    ends: Mapping[Trial, StoredOutcome] = {
        trial: StoredOutcome(trial=trial, status=TrialStatus.FINISHED, digest=b"")
        if failed is None
        else StoredOutcome(
            trial=trial, status=TrialStatus.FAILED, error=failed.error, rows=failed.rows
        )
        for trial, failed in zip(trials, failures, strict=True)
    }
    return SimulatedOutcomes(ends, dict(zip(trials, features, strict=True)))
