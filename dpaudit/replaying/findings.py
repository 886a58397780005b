"""What the replays have found so far, and what the counted ones prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dpaudit.replaying.features import MovedFeature
from dpaudit.replaying.guarantee import (
    EXACT,
    EpsilonReplays,
    ReplayGuarantee,
    Replays,
    replay_guarantee,
)
from dpaudit.replaying.identified import WorldsIdentified
from dpaudit.replaying.judge import DrawPlan, measured
from dpaudit.replaying.loss import NOTHING_SHOWN, ShownAnswers
from dpaudit.replaying.setting import ReplaySetting
from dpaudit.replaying.transcript import Question, Site, Transcript
from dpaudit.results.verdict import Verdict

_LATER: Final = 0.1
"""Share of the error probability for what may follow the counted replays."""


@dataclass
class ReplayFindings:
    """The state after some of the replays."""

    pilot: Transcript
    control: str | None = None
    used: frozenset[Site] = frozenset()
    coins_matter: Site | None = None
    coins_untried: Site | None = None
    unheard: bool = False
    fixed: tuple[Site, ...] = ()
    once_drawn: str | None = None
    fits: int = 0
    seconds: list[float] = field(default_factory=list)
    rows_differ: bool = False
    kept: bool | None = None
    loose: Site | None = None
    idle: tuple[Site, ...] = ()
    coarse: tuple[Site, ...] = ()
    shown: ShownAnswers = NOTHING_SHOWN
    retried: frozenset[Question] = frozenset()
    redrawn: bool = False
    heard: bool = False
    open_use: bool = False
    identified: WorldsIdentified | None = None
    doubts: tuple[str, ...] = ()
    verdict: Verdict = Verdict.INCONCLUSIVE
    reasons: tuple[str, ...] = ()
    features: tuple[MovedFeature, ...] | None = None


class SharedConfidence(NamedTuple):
    """The confidence that each of two ways to refute a claim needs for joint validity.

    Attributes:
        counted: The counted replays.
        later: What may follow them: the game of the rows if the worlds diverge, and else further
            replays if only some numbers of their answers count.
    """

    counted: float
    later: float


def shared(guarantee: ReplayGuarantee, confidence: float) -> SharedConfidence:
    """Divides the error probability (Bonferroni); exact losses need none."""
    if isinstance(guarantee, EpsilonReplays) and guarantee.delta == 0:  # losses are exact
        return SharedConfidence(confidence, confidence)
    error = 1.0 - confidence
    return SharedConfidence(1.0 - (1.0 - _LATER) * error, 1.0 - _LATER * error)


class ProvedByReplays(NamedTuple):
    """What the counted replays prove.

    Attributes:
        replays: Their losses and weights.
        proved: The lower limit.
        above: Whether that exceeds the claim.
    """

    replays: Replays
    proved: float
    above: bool


def proved_by(
    setting: ReplaySetting,
    found: ReplayFindings,
    plan: DrawPlan,
    counted: Sequence[Transcript],
    *,
    shown: ShownAnswers | None = None,
    all_released: bool = False,
    confidence: float | None = None,
) -> ProvedByReplays:
    """What the counted replays prove.

    Args:
        setting: The common inputs.
        found: What is known of the uses of answers.
        plan: How the replays were drawn.
        counted: The counted replays.
        shown: The answers that are shown to have an influence; all by default.
        all_released: Whether every answer counts as released.
        confidence: Of the bound; by default that of the counted replays.
    """
    guarantee = replay_guarantee(setting.spec.claim)
    if shown is None and found.retried:
        shown = ShownAnswers(questions_of(counted) - found.retried)
    measures = [
        measured(
            one,
            plan.base_of(number),
            used=found.used,
            shown=shown,
            all_released=all_released,
        )
        for number, one in enumerate(counted)
    ]
    replays = Replays(
        np.asarray([one for one, _ in measures]), np.asarray([one for _, one in measures])
    )
    if isinstance(guarantee, EpsilonReplays) and guarantee.delta == 0:
        proved = float(np.max(np.abs(replays.losses)))  # in either order
    else:
        if confidence is None:
            confidence = shared(guarantee, setting.spec.settings.confidence).counted
        proved = guarantee.proved(replays, at=plan.at, confidence=confidence)
    return ProvedByReplays(replays, proved, proved > guarantee.claimed * (1.0 + EXACT))


def questions_of(counted: Sequence[Transcript]) -> frozenset[Question]:
    """All questions of some replays."""
    return frozenset(key for one in counted for key in one.given)
