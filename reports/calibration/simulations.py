"""The paths of an audit, each as one that can be simulated again and again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Final, Protocol

import numpy as np

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.one_run.attack import guess
from dpaudit.auditing.one_run.plan import power as one_run_power
from dpaudit.auditing.records.attack import evaluate_records, fit_records
from dpaudit.auditing.records.plan import power as records_power
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import plan
from dpaudit.bounds.guarantee import EpsilonGuarantee, TradeOffGuarantee, guarantee_of
from dpaudit.bounds.trade_off import rejecting_region
from dpaudit.game.worlds import draw_included
from dpaudit.model.claim import ConcentratedClaim, CurveClaim, GaussianClaim, PrivacyClaim, Promise
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray
from dpaudit.released_data.membership import (
    draw_fitting_part,
    enough,
    recognise,
    released_bound,
    released_power,
)
from dpaudit.released_data.scores import ATTACKS
from dpaudit.results.verdict import Power
from dpaudit.seeds import Stream
from reports.calibration.failing import Failing
from reports.calibration.mechanisms import Mechanism
from reports.calibration.pipeline import FirstFeature, fixed_on, worlds_of
from reports.calibration.simulated import Seen, SimulatedAudit, proved, simulated_audit

CONFIDENCE: Final = 0.95
MODELS: Final = 100
"""Shadow models of both worlds together, two fifths of which fit the attack."""
RECORDS: Final = 6
CANARIES: Final = 100
ROWS: Final = 400
"""Rows with a coin of a released table, half of which are scored."""


class Simulation(Protocol):
    """One path: an audit that can be simulated again and again."""

    def exceeds(self, mechanism: Any, level: float, seed: int) -> bool:
        """Whether one audit of a mechanism proves more than a level."""
        ...

    def power(self) -> Power:
        """What the path states that it catches."""
        ...


@dataclass(frozen=True, kw_only=True)
class TwoWorlds:
    """Shadow models in two worlds.

    Attributes:
        claim: The claim.
        settings: What differs from one attack and `MODELS` shadow models.
        facts: Names of the released facts, where attacks see them.
    """

    claim: Promise
    settings: dict[str, Any] = field(default_factory=dict)
    facts: tuple[str, ...] = ()

    @cached_property
    def audit(self) -> SimulatedAudit:
        """The audit, but for its seed."""
        given: dict[str, Any] = {
            "shadow_models": MODELS,
            "attacks": (FirstFeature(),),
        } | self.settings
        return simulated_audit(audit_settings(**given), self.claim, facts=self.facts)

    def exceeds(self, mechanism: Seen | Failing, level: float, seed: int) -> bool:
        """Whether the largest bound of any attack does."""
        audit = replace(self.audit, settings=replace(self.audit.settings, seed=seed))
        return proved(audit, mechanism, audit.stream("trials").rng()) > level

    def power(self) -> Power:
        """That of `dpaudit audit --plan`."""
        return plan.power(self.audit.settings, self.claim)


@dataclass(frozen=True, kw_only=True)
class TradeOffs:
    """Shadow models in two worlds, for a claim that is not stated in epsilon.

    Whether the limit exceeds a level is decided by the outcomes of which it does, to within 0.2 %
    of the level: a limit on rho alone takes half a second.

    Attributes:
        claim: The claim.
    """

    claim: GaussianClaim | ConcentratedClaim | CurveClaim

    @cached_property
    def settings(self) -> AuditSettings:
        """One attack on `MODELS` shadow models."""
        return audit_settings(shadow_models=MODELS, attacks=(FirstFeature(),))

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the limit on mu, rho or the factor does."""
        rng, settings = Stream(seed, "simulated", "trials").rng(), self.settings
        guarantee = guarantee_of(self.claim)
        assert isinstance(guarantee, TradeOffGuarantee)
        member = worlds_of(settings, rng)
        one = fixed_on(
            mechanism.seen(member, rng), member, 2 * settings.game.fitted, settings, guarantee, rng
        )
        confidence = settings.attack_confidence
        errors = one.counts
        most = _refuting(level, errors.n_in, errors.n_out, guarantee, confidence)
        return errors.false_negatives <= most[errors.false_positives]

    def power(self) -> Power:
        """That of `dpaudit audit --plan`."""
        return plan.power(self.settings, self.claim)


@cache
def _refuting(
    level: float, n_in: int, n_out: int, guarantee: TradeOffGuarantee, confidence: float
) -> list[int]:
    """By false positives, the most false negatives of which the limit exceeds a level."""
    most: list[int] = rejecting_region(
        level, n_in, n_out, guarantee.trade_off, confidence
    ).most_fn.tolist()
    return most


@dataclass(frozen=True, kw_only=True)
class ManyRecords:
    """Models that serve several records, each with its own coin.

    Attributes:
        claim: The claim.
        failing: Whether a model fails where randomised response says that it has the first record,
            whose own answer is noise.
    """

    claim: PrivacyClaim
    failing: bool = False

    @cached_property
    def settings(self) -> AuditSettings:
        """One attack on `RECORDS` records."""
        return audit_settings(shadow_models=MODELS, records=RECORDS, attacks=(FirstFeature(),))

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the bound on the guesses of all records does."""
        rng, settings = Stream(seed, "simulated", "trials").rng(), self.settings
        first = 2 * settings.game.fitted
        included = draw_included(MODELS, fitted=first, records=RECORDS, rng=rng)
        shown = np.stack([mechanism.seen(coins, rng) for coins in included.T], axis=1)
        lost = np.zeros(MODELS, dtype=np.bool_)
        if self.failing:
            lost = shown[:, 0] > 0.5
            shown[:, 0] = rng.normal(size=MODELS)
        fits, scores = np.arange(MODELS) < first, ~lost & (np.arange(MODELS) >= first)
        fits &= ~lost
        if fits.sum() < 2 or not scores.any():
            return False
        asked = {"delta": self.claim.delta, "confidence": settings.attack_confidence}
        features = shown[:, :, None]
        fitted = fit_records(
            NamedAttack("score", FirstFeature()),
            features[fits],
            included[fits],
            trainings=settings.game.scored,
            rng=rng,
            **asked,
        )
        failed = settings.game.scored - int(scores.sum())
        found = evaluate_records(fitted, features[scores], included[scores], failed=failed, **asked)
        return found.proved > level

    def power(self) -> Power:
        """That of `dpaudit audit --plan --records`."""
        return records_power(self.settings, self.claim)


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """One training with a coin for each of many canaries, whose guesses are looked at in turn.

    Attributes:
        claim: The claim.
    """

    claim: PrivacyClaim

    @cached_property
    def settings(self) -> AuditSettings:
        """`CANARIES` canaries."""
        return audit_settings(one_run=True, canaries=CANARIES)

    def exceeds(self, mechanism: Mechanism, level: float, seed: int) -> bool:
        """Whether the largest bound of the three attacks does: score, score with noise, odds."""
        rng = Stream(seed, "simulated", "trials").rng()
        coins = rng.random(CANARIES) < 0.5
        scores = mechanism.seen(coins, rng)
        noisy = scores + 0.3 * scores.std() * rng.normal(size=CANARIES)
        found = guess(np.concatenate([scores, noisy, mechanism.log_odds(scores)]), coins)
        guarantee = EpsilonGuarantee(self.claim.delta)
        confidence = self.settings.attack_confidence
        return any(one.bound(guarantee, confidence=confidence) > level for one in found)

    def power(self) -> Power:
        """That of `dpaudit audit --plan --one-run`."""
        return one_run_power(CANARIES, self.claim, self.settings.attack_confidence)


@dataclass(frozen=True, kw_only=True)
class Released:
    """One released table, whose rows were split by a coin for each (`dpaudit audit-data`).

    Attributes:
        claim: The claim.
    """

    claim: PrivacyClaim

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the bound on the guesses of the attack that was chosen does."""
        rng = Stream(seed, "simulated", "trials").rng()
        inside = rng.random(ROWS) < 0.5
        fitting = draw_fitting_part(ROWS, rng)
        if not enough(inside, fitting):
            return False
        shown = mechanism.seen(inside, rng)
        noisy = shown + 0.3 * shown.std() * rng.normal(size=(len(ATTACKS) - 1, ROWS))
        scores = dict(zip(ATTACKS, [shown, *noisy], strict=True))
        found = recognise(scores, inside, fitting, rng, confidence=CONFIDENCE)
        return self._bound(found.right) > level

    def _bound(self, right: BoolArray) -> float:
        return released_bound(right, delta=self.claim.delta, confidence=CONFIDENCE)

    def power(self) -> Power:
        """That of the report."""
        return released_power(
            ROWS // 2,
            claim_epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            confidence=CONFIDENCE,
        )
