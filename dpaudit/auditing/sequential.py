"""Sequential audits: run in batches, test after each, stop as soon as a violation is proved.

A fixed-n bound that is recomputed after every batch fails far too often; an e-process may be
evaluated at any time (Ville's inequality; `dpaudit.bounds.sequential`). Half of the error
probability pays for it; the other half is kept for the exact bound on the last trials, which is
computed at the cap alone. The attack that guesses a batch was fixed on the pairs before it, and so
was whether it bets at all: its bets are predictable. An attack that has learnt too little yet does
not bet: it would lose wealth that it has to win back later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dpaudit.auditing.attacking.evaluation import Evaluation
from dpaudit.auditing.attacking.fitting import Fitted, score
from dpaudit.auditing.attacking.parts import Part, gather
from dpaudit.auditing.attacking.run import (
    Attacked,
    FeatureSlice,
    Outcomes,
    attack_all,
    feature_slices,
    fit,
)
from dpaudit.auditing.claims import effective_claim
from dpaudit.auditing.settings import Multiplicity
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.bounds import Counts, auc, clopper_pearson, refit_schedule
from dpaudit.bounds.table import Observed, ValidBound, valid_bounds
from dpaudit.game.trial import Role, Trial
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import FloatArray, World

BATCH_PAIRS = 8
"""Pairs run between two tests."""
PROMISING = 0.8
"""Confidence at which an attack's errors in cross-validation must exceed the claim before it bets.

Measured on the stored trials of two published PATE-GANs, 300 pairs in 8 orders: the violation of
`original` is proved after 91 pairs instead of 116 (median), that of `turing` after 86 instead of
143; refits after half as many pairs save another few.
"""

NO_BETS = {ValidBound.SEQUENTIAL: 0.0}
"""Of an attack that has never bet."""

RunPairs = Callable[[Sequence[int]], Outcomes]


class _Fixed(NamedTuple):
    """An attack that is fixed on the past.

    Attributes:
        stream: Key of the stream that its guesses belong to.
        features: The attack and where its features lie.
        fitted: Its classifier and threshold.
    """

    stream: str
    features: FeatureSlice
    fitted: Fitted


@dataclass
class _Stream:
    """The guesses of one attack, or of the one chosen for each batch, pair by pair."""

    guesses: dict[World, list[bool]] = field(default_factory=lambda: {w: [] for w in World})
    scores: dict[World, list[float]] = field(default_factory=lambda: {w: [] for w in World})
    features: dict[World, list[FloatArray]] = field(default_factory=lambda: {w: [] for w in World})
    trials: dict[World, list[Trial]] = field(default_factory=lambda: {w: [] for w in World})
    last: tuple[NamedAttack, Fitted] | None = None

    def guess(
        self, attack: NamedAttack, fitted: Fitted, batch: Mapping[Trial, FloatArray | None]
    ) -> None:
        """Guesses a batch; a trial that failed is an error of the attack."""
        self.last = (attack, fitted)
        finished = {trial: vector for trial, vector in batch.items() if vector is not None}
        scores: dict[Trial, float] = {}
        if finished:
            values = score(fitted.scorer, np.vstack(list(finished.values())))
            scores = dict(zip(finished, values.tolist(), strict=True))
        for trial in batch:
            world = trial.world
            if trial not in finished:
                self.guesses[world].append(world is World.OUT)
                continue
            guess = fitted.threshold.guesses_in(np.array([scores[trial]]))
            self.guesses[world].append(bool(guess[0]))
            self.scores[world].append(scores[trial])
            self.features[world].append(finished[trial])
            self.trials[world].append(trial)

    def attacked(self, *, delta: float, confidence: float) -> Attacked | None:
        """What this stream has shown so far; None before a trial of each world was scored."""
        if self.last is None or not all(self.scores.values()):
            return None
        attack, fitted = self.last
        counts = Counts(
            false_negatives=self.guesses[World.IN].count(False),
            false_positives=self.guesses[World.OUT].count(True),
            n_in=len(self.guesses[World.IN]),
            n_out=len(self.guesses[World.OUT]),
        )
        n_in, n_out = (len(self.scores[world]) for world in World)
        member = np.arange(n_in + n_out) < n_in
        scores = np.array([value for world in World for value in self.scores[world]])
        guesses = (self.guesses[world] for world in World)
        bounds = valid_bounds(Observed.PAIRS, *guesses, delta=delta, confidence=confidence)
        evaluation = Evaluation(
            counts=counts,
            threshold=fitted.threshold,
            bounds=bounds,
            auc=auc(scores, member),
            scores=scores,
            scorer=fitted.scorer,
        )
        vectors = np.vstack([vector for world in World for vector in self.features[world]])
        trials = [trial for world in World for trial in self.trials[world]]
        failed_in, failed_out = counts.n_in - n_in, counts.n_out - n_out
        return Attacked(attack, trials, Part(vectors, member), evaluation, failed_in, failed_out)


def run_sequential(audit: TwoWorldSpec, run_pairs: RunPairs) -> list[Attacked]:
    """Runs an audit in batches and tests after each.

    Args:
        audit: The audit; its number of shadow models is the cap.
        run_pairs: Runs the trials of both worlds with these numbers and gives all outcomes so far.

    Returns:
        Every attack with its bounds. Where a violation was proved before the cap, the sequential
        ones alone; at the cap also the fixed ones, on the trials that no attack was fixed on.
        Empty if too few trials finished.

    Raises:
        AttackError: If an attack's scorer does not give one finite score per trial.
    """
    settings = audit.settings
    streams: dict[str, _Stream] = {}
    blocks = refit_schedule(settings.per_world)
    outcomes = run_pairs(range(blocks[0].start))
    for block in blocks:
        claim = _claim_so_far(audit, outcomes, block.start)
        fixed = [
            one
            for one in _fixed_on_the_past(audit, outcomes, block.start, claim)
            if _promises(one.fitted, claim)
        ]
        for start in range(block.start, block.stop, BATCH_PAIRS):
            numbers = range(start, min(start + BATCH_PAIRS, block.stop))
            outcomes = run_pairs(numbers)
            trials = [Trial(Role.AUDIT, world, number) for world in World for number in numbers]
            for one in fixed:
                batch = {trial: one.features.of(outcomes[trial]) for trial in trials}
                stream = streams.setdefault(one.stream, _Stream())
                stream.guess(one.features.attack, one.fitted, batch)
            claim = _claim_so_far(audit, outcomes, numbers.stop)
            found = _so_far(streams, audit, claim)
            if any(one.evaluation.proved > claim.epsilon for one in found):
                return found
    claim = _claim_so_far(audit, outcomes, settings.per_world)
    sequential = {one.attack.name: one.evaluation.bounds for one in _so_far(streams, audit, claim)}
    # With selection there is one stream, whatever attack it ended with.
    select = settings.multiplicity is Multiplicity.SELECT
    shared = next(iter(sequential.values()), NO_BETS) if select else NO_BETS
    return [
        one._replace(
            evaluation=one.evaluation._replace(
                bounds=one.evaluation.bounds | sequential.get(one.attack.name, shared)
            )
        )
        for one in attack_all(audit, outcomes, Role.AUDIT, settings, claim)
    ]


def _claim_so_far(audit: TwoWorldSpec, outcomes: Outcomes, pairs: int) -> PrivacyClaim:
    """The effective claim after so many pairs; a resumed run may hold more of them already."""
    return effective_claim(
        audit, [outcome for trial, outcome in outcomes.items() if trial.number < pairs]
    )


def _fixed_on_the_past(
    audit: TwoWorldSpec, outcomes: Outcomes, pairs: int, claim: PrivacyClaim
) -> list[_Fixed]:
    """The attacks that guess the next batch, fixed on the first pairs.

    Where attacks are selected, the one that promises most on those pairs is the only one.
    """
    numbers = range(pairs)
    everything = [np.ones(pairs, dtype=np.bool_)] * 2
    found: list[_Fixed] = []
    for column in feature_slices(audit):
        worlds = [
            [column.of(outcomes[Trial(Role.AUDIT, world, number)]) for number in numbers]
            for world in World
        ]
        past = gather(worlds, everything, fitting=True)
        if past is None:
            return []
        fitted = fit(column.attack, past, audit, audit.settings, claim, purpose=f"look/{pairs}")
        found.append(_Fixed(column.attack.name, column, fitted))
    if audit.settings.multiplicity is Multiplicity.SELECT:
        selected = max(found, key=lambda one: one.fitted.promise)
        return [selected._replace(stream="the selected attack")]
    return found


def _promises(fitted: Fitted, claim: PrivacyClaim) -> bool:
    """Whether an attack errs so little on the past that it may prove a violation."""
    bound = clopper_pearson(*fitted.counts, delta=claim.delta, confidence=PROMISING)
    return bound > claim.epsilon


def _so_far(
    streams: dict[str, _Stream], audit: TwoWorldSpec, claim: PrivacyClaim
) -> list[Attacked]:
    delta, confidence = claim.delta, audit.settings.attack_confidence
    seen = (stream.attacked(delta=delta, confidence=confidence) for stream in streams.values())
    return [one for one in seen if one is not None]
