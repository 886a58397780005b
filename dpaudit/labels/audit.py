"""The white-box audit of released labels: does what draws them cost what was accounted?

The proof of PATE protects the label bits, and everything a generator does with them is
post-processing. This attack sees the bits themselves, on the worst pair of tables, and knows both
worlds exactly. It is as strong as an attack can be, costs seconds, and so shows both whether the
proof is broken and whether it is loose.
"""

from __future__ import annotations

import math

import numpy as np

from dpaudit.bounds import Counts, exact, gdp, max_provable, upper_limits
from dpaudit.labels.attack import RunSize, choose_cuts, detectable_leak
from dpaudit.labels.result import LabelAttack, LabelAudit
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.labels.vote_pair import VotePair
from dpaudit.model.choices import Drawing
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import IntArray, World
from dpaudit.results.decide import decide
from dpaudit.results.verdict import Power, SampleUnit
from dpaudit.seeds import Stream

_CHUNK = 2**21
"""Labels drawn at once."""


def audit_labels(
    pair: VotePair,
    claim: PrivacyClaim,
    *,
    runs: int = LabelAuditSettings.runs,
    seed: int = LabelAuditSettings.seed,
    confidence: float = LabelAuditSettings.confidence,
    drawing: Drawing = LabelAuditSettings.drawing,
) -> LabelAudit:
    """Draws labels in both worlds, distinguishes the worlds, and bounds ε.

    The attack is the likelihood-ratio test at the cut whose expected errors promise the largest
    bound. It is chosen from the known distributions alone, so that every run is scored.

    Args:
        pair: What draws the labels; its table must be `quantised()` to draw bits.
        claim: What was claimed for them, by whatever accountant.
        runs: As in `LabelAuditSettings`, like all that follow.
        seed: Root of the random streams.
        confidence: One-sided confidence of the bound, in (0.5, 1).
        drawing: What to simulate.

    Returns:
        The result.

    Raises:
        SettingsError: If a setting is out of range, or more bits are asked for than can be drawn in
            minutes.
    """
    settings = LabelAuditSettings(runs=runs, seed=seed, confidence=confidence, drawing=drawing)
    return run_label_audit(pair, claim, settings)


def run_label_audit(
    pair: VotePair, claim: PrivacyClaim, settings: LabelAuditSettings
) -> LabelAudit:
    """Audits released labels under given settings; `audit_labels` says how.

    Args:
        pair: What draws the labels; its table must be `quantised()` to draw bits.
        claim: What was claimed for them, by whatever accountant.
        settings: Everything else that is chosen.

    Returns:
        The result.

    Raises:
        SettingsError: If more bits are asked for than can be drawn in minutes.
    """
    settings.require_drawable(pair.labels)
    runs, confidence = settings.runs, settings.confidence
    size = RunSize(runs, claim.delta, upper_limits(runs, (1.0 - confidence) / 2.0))
    chosen = choose_cuts(pair, size)
    telling = {
        world: _draw(pair, votes, settings, world=world)
        for world, votes in (("in", pair.votes_in), ("out", pair.votes_out))
    }

    def errors(cut: int) -> Counts:
        first = pair.cuts.first[cut]
        missed = int(np.count_nonzero(telling["in"] < first))
        mistaken = int(np.count_nonzero(telling["out"] >= first))
        return Counts(missed, mistaken, runs, runs)

    counts = errors(chosen.for_bound)
    bound = exact(*counts, delta=claim.delta, confidence=confidence)
    estimate = None
    if claim.delta > 0.0:
        estimate = gdp(
            *errors(chosen.for_estimate),
            delta=claim.delta,
            confidence=confidence,
            assume="gaussian",
        )
    caught = None if bound > claim.epsilon else detectable_leak(pair, claim, size)
    highest = max_provable(runs, runs, delta=claim.delta, confidence=confidence)
    power = Power(highest, caught)
    decision = decide(bound, claim, power, checks=[], confidence=confidence, unit=SampleUnit.RUNS)
    leak = pair.leak(claim.delta)
    return LabelAudit(
        verdict=decision.verdict,
        reasons=decision.reasons,
        claim=claim,
        proved=bound,
        confidence=confidence,
        estimate_if_gaussian=estimate,
        leak_of_the_table=leak if math.isfinite(leak) else None,
        max_provable_epsilon=highest,
        detectable_epsilon=caught,
        teachers=pair.table.teachers,
        noise=pair.table.noise,
        labels=pair.labels,
        votes={World.IN: pair.votes_in, World.OUT: pair.votes_out},
        attack=LabelAttack(pair.telling, int(pair.cuts.first[chosen.for_bound])),
        counts=counts,
        runs=runs,
        seed=settings.seed,
        drawing=settings.drawing,
    )


def _draw(pair: VotePair, votes: int, settings: LabelAuditSettings, *, world: str) -> IntArray:
    """How many telling labels each run of one world released, shape [runs]."""
    runs = settings.runs
    rng = Stream(settings.seed, "label-audit", settings.drawing, world=world).rng()
    if settings.drawing is Drawing.COUNTS:
        rate = pair.rates.in_ if votes == pair.votes_in else pair.rates.out
        return np.asarray(rng.binomial(pair.labels, rate, runs), dtype=np.int64)
    # Memory is bounded by a chunk of runs, and by one run where that is longer.
    at_once = max(1, _CHUNK // pair.labels)
    counts = []
    for start in range(0, runs, at_once):
        shape = (min(at_once, runs - start), pair.labels)
        words = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
        labels = pair.table.release(np.full(shape, votes), words)
        counts.append(np.count_nonzero(labels == pair.telling, axis=1))
    return np.concatenate(counts)
