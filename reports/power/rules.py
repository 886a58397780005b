"""The rules that are compared, and what each says of one simulated audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.spec import FIRST_FITTED
from dpaudit.bounds import (
    Direction,
    EpsilonGuarantee,
    choose_calibration,
    clopper_pearson,
    coin_bound,
    count_guesses,
    exact,
    fair_coin,
    joint_beta,
    refit_schedule,
)
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.seeds import Stream
from reports.calibration.peers import gaussian_estimate
from reports.calibration.pipeline import FirstFeature, Scored, fixed_on, worlds_of
from reports.methods.bands import dkw, equal_local_level
from reports.power import public

CONFIDENCE = 0.95


class ScoreModel(Protocol):
    """What a score is drawn from."""

    @property
    def delta(self) -> float:
        """Delta of the claim."""
        ...

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The score of each trial; shape (n,)."""
        ...


class Simulated(NamedTuple):
    """The trials of one audit, and the attack that was fixed on the first 40 % of them.

    Attributes:
        scores: Of all trials; shape (n,).
        member: Whether the world of each is "in"; shape (n,).
        fixed: Threshold, calibration and choice of the bound, with the trials in two parts.
        mechanism: What they are drawn from.
        rng: For rules that split the trials, or draw others: a stream of their own.
    """

    scores: FloatArray
    member: BoolArray
    fixed: Scored
    mechanism: ScoreModel
    rng: np.random.Generator

    @property
    def asked(self) -> dict[str, Any]:
        """What is asked of every rule."""
        return {"delta": self.mechanism.delta, "confidence": CONFIDENCE}


def simulate(mechanism: ScoreModel, models: int, stream: Stream) -> Simulated:
    """Draws the worlds and scores of an audit, and fixes its attack.

    Args:
        mechanism: What is audited.
        models: Shadow models of both worlds together.
        stream: Of the audit; what rules draw has a stream beside it.
    """
    rng, others = stream.rng(), stream._replace(role=f"{stream.role}/rules").rng()
    settings = _settings(models, sequential=False)
    member = worlds_of(settings, rng)
    scores = mechanism.seen(member, rng)
    guarantee = EpsilonGuarantee(mechanism.delta)
    fixed = fixed_on(scores, member, 2 * settings.game.fitted, settings, guarantee, rng)
    return Simulated(scores, member, fixed, mechanism, others)


def _settings(models: int, *, sequential: bool) -> AuditSettings:
    return audit_settings(
        shadow_models=models,
        attacks=(FirstFeature(),),
        confidence=CONFIDENCE,
        sequential=sequential,
    )


def _fair_coin(audit: Simulated) -> float:
    fixed = audit.fixed
    guesses = count_guesses(fixed.scores, fixed.trials.scored.member, fixed.calibration)
    return fair_coin(*guesses, **audit.asked)


def _exact(audit: Simulated) -> float:
    return exact(*audit.fixed.counts, **audit.asked)


def _deciding(audit: Simulated) -> float:
    return _fair_coin(audit) if audit.fixed.fitted.by_coins else _exact(audit)


def _betting(audit: Simulated) -> float:
    """What bets prove: on every trial after the first 16, by what was learnt from those before it.

    The trials are others, as many: bets need worlds that are coins from the 17th on. Unlike a
    sequential audit it spends all of its error probability on bets, and keeps nothing for a fixed
    bound at the cap.
    """
    member = worlds_of(_settings(len(audit.member), sequential=True), audit.rng)
    scores = audit.mechanism.seen(member, audit.rng)
    log_odds = []
    for block in refit_schedule(len(member), first=FIRST_FITTED):
        past = slice(block.start)
        # `trials` sets the margin of silence, which odds do not have: the least is the fastest.
        line = choose_calibration(scores[past], member[past], trials=1, **audit.asked)
        log_odds.append(line.log_odds(scores[block.start : block.stop]))
    return coin_bound(np.concatenate(log_odds), member[FIRST_FITTED:], **audit.asked)


class Guarantee(StrEnum):
    """What a rule promises of its number."""

    BOUND = "bound"
    """At most one in twenty lies above the true epsilon, by a theorem."""
    NONE = "no theorem"
    """How many do was measured at best."""
    GAUSSIAN = "if Gaussian"
    """As a bound, of Gaussian mechanisms alone."""


@dataclass(frozen=True)
class Rule:
    """A rule of the comparison.

    Attributes:
        name: Its name in tables.
        trials: The trials of an audit that it counts, and what the others are for.
        guarantee: What it promises.
        number: The number that it gives of an audit.
    """

    name: str
    trials: str
    guarantee: Guarantee
    number: Callable[[Simulated], float]


def _public(rule: Callable[..., float]) -> Callable[[Simulated], float]:
    return lambda audit: rule(audit.scores, audit.member, **audit.asked)


def _split(rule: Callable[..., float]) -> Callable[[Simulated], float]:
    return lambda audit: rule(audit.scores, audit.member, rng=audit.rng, **audit.asked)


FITTED = "60 %; 40 % fix how it guesses"
ALL = "all"
HALF = "half; half choose the threshold"
OURS = (
    Rule("dpaudit", FITTED, Guarantee.BOUND, _deciding),
    Rule("fair coin", FITTED, Guarantee.BOUND, _fair_coin),
    Rule("exact", FITTED, Guarantee.BOUND, _exact),
    Rule(
        "Clopper-Pearson",
        FITTED,
        Guarantee.BOUND,
        lambda audit: clopper_pearson(*audit.fixed.counts, **audit.asked),
    ),
    Rule("e-process", "all but 16", Guarantee.BOUND, _betting),
    Rule(
        "equal local level",
        ALL,
        Guarantee.BOUND,
        lambda audit: (
            equal_local_level(
                audit.scores, audit.member, direction=Direction.HIGHER, **audit.asked
            ).epsilon
        ),
    ),
    Rule(
        "DKW",
        ALL,
        Guarantee.BOUND,
        lambda audit: (
            dkw(audit.scores, audit.member, direction=Direction.HIGHER, **audit.asked).epsilon
        ),
    ),
)
"""The rules of this package; the first one is what an audit decides by."""
PUBLIC = (
    Rule("split", HALF, Guarantee.BOUND, _split(public.split)),
    Rule("one-run, split", HALF, Guarantee.BOUND, _split(public.one_run_split)),
    Rule("hull, Bonferroni", ALL, Guarantee.NONE, _public(public.hull_bonferroni)),
    Rule("best on test", ALL, Guarantee.NONE, _public(public.best_on_test)),
    Rule("Delta-Siege", ALL, Guarantee.NONE, _public(public.delta_siege)),
    Rule(
        "joint beta",
        FITTED,
        Guarantee.NONE,
        lambda audit: joint_beta(*audit.fixed.counts, **audit.asked),
    ),
    Rule(
        "Gaussian",
        FITTED,
        Guarantee.GAUSSIAN,
        lambda audit: gaussian_estimate(*audit.fixed.counts, **audit.asked),
    ),
)
"""The rules of public auditors."""
RULES = (*OURS, *PUBLIC)
