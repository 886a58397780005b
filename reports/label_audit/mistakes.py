"""Published mistakes of PATE-GAN implementations: what they release and what they claim for it.

Each is one mistake switched on; the rest is right. They all claim too little.
The scale is in Table 2 of Ganev, Annamalai and De Cristofaro 2025; the other two were read in the
code that they audited.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from dpaudit.account import Mechanism, VoteTable, calibrate, epsilon_from_moments
from dpaudit.account.moments import algorithm_1_moments
from dpaudit.labels import Drawing, VotePair
from dpaudit.model.claim import PrivacyClaim

DELTA = 1e-5


class Scenario(NamedTuple):
    """What draws the labels, and what was claimed for them.

    Attributes:
        name: In a few words.
        pair: Both worlds.
        claim: By the accountant under suspicion.
        drawing: Bits where there are few enough.
    """

    name: str
    pair: VotePair
    claim: PrivacyClaim
    drawing: Drawing = Drawing.BITS


def reference() -> Scenario:
    """What the reference PATE-GAN releases and claims: no mistake."""
    table = VoteTable.gaussian(50, 17.8).quantised()
    claim = PrivacyClaim(epsilon=1.0, delta=DELTA, source="RDP of the table, 29 labels")
    return Scenario("reference", VotePair.at_tie(table, labels=29), claim)


def scale_lambda() -> Scenario:
    """Laplace noise of scale lambda where 1/lambda is meant and accounted (`updated`).

    lambda = 1e-3: one student batch of 64 labels. There is no noise to speak of: a tie is a fair
    coin, and one more vote settles it.
    """
    gamma, labels = 1e-3, 64
    pair = VotePair.at_tie(VoteTable.laplace(10, gamma).quantised(), labels=labels)
    return Scenario("Laplace scale lambda", pair, _accounted(pair, gamma, moments=20))


def one_noise() -> Scenario:
    """One Laplace variable accounted as two (borealis, smartnoise, synthcity, `updated`).

    k = 300, gamma = 0.05. Nearly unanimous, the two-noise argmax would err with q = 1.6e-6, one
    variable errs with 2.9e-4: Theorem 3 at that q credits far too much. A million labels, because
    each of them says little; their number of ones is drawn, the bits would take an hour.
    """
    pair = VotePair(table=VoteTable.laplace(300, 20.0), labels=1_000_000, votes_in=1, votes_out=0)
    claim = _accounted(pair, 0.05, moments=100)
    return Scenario("one noise, two-noise q", pair, claim, Drawing.COUNTS)


def free_queries() -> Scenario:
    """A batch with at least half of its noisy labels 1 is released but not paid for (synthcity).

    The plan buys ten batches of 64 labels for epsilon 1. Once the generator pleases all teachers,
    a batch is paid for with probability 1.6e-4: the budget is never spent, and the generator
    trains on until its 200 iterations are over. The probability that it stops before is below
    1e-20, so that the number of labels is practically fixed.
    """
    batch, paid, iterations, teachers = 64, 10, 200, 100
    plan = calibrate(
        epsilon=1.0, delta=DELTA, k=teachers, labels=batch * paid, mechanism=Mechanism.LAPLACE
    )
    pair = VotePair(
        table=plan.table, labels=batch * iterations, votes_in=teachers, votes_out=teachers - 1
    )
    charged = binom.cdf(batch // 2 - 1, batch, pair.rates.out)
    assert binom.sf(paid, iterations, charged) < 1e-20
    claim = PrivacyClaim(epsilon=1.0, delta=DELTA, source="the budget, never seen to be spent")
    return Scenario("free queries", pair, claim, Drawing.COUNTS)


MISTAKES = (scale_lambda, one_noise, free_queries)


def _accounted(pair: VotePair, gamma: float, *, moments: int) -> PrivacyClaim:
    """PATE-GAN's Algorithm 1, correct but for the mechanism: two Laplace variables of 1/gamma.

    What it reports is a function of the votes, and bounds one direction: the claim is the larger
    of both worlds'.
    """
    orders = np.arange(1.0, moments + 1.0)
    teachers = pair.table.teachers

    def epsilon(votes: int) -> float:
        counts = [teachers - votes, votes]
        each = algorithm_1_moments(counts, gamma=gamma, moments=orders, deviations=())
        return epsilon_from_moments(orders, pair.labels * each, delta=DELTA)

    return PrivacyClaim(
        epsilon=max(epsilon(pair.votes_in), epsilon(pair.votes_out)),
        delta=DELTA,
        source=f"Algorithm 1 as for two Laplace variables of scale {1 / gamma:g}",
        data_dependent=True,
    )
