"""Algorithm 1 of the PATE-GAN paper, as in the paper and its implementations. For reproduction.

Jordon, Yoon and van der Schaar 2019, "PATE-GAN: Generating Synthetic Data with Differential
Privacy Guarantees". Do not use it to account for a new mechanism: the exact data-independent
`VoteTable.epsilon` is releasable, and lower at the noise that small budgets need. This module
reproduces the number that a published implementation reports: for `dpaudit trace`, which recognises
its mistakes, for the published generators, and for studies that compare audits with it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.account.conversion import FloatArray, epsilon_from_moments
from dpaudit.account.moments import (
    check_moments,
    check_votes,
    data_independent_moments,
    theorem_3_moments,
    wrong_label_probability,
)
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import AT_LEAST_1, check_number

PAPER_MOMENTS: Final = 100
"""Moments 1..L of most implementations; `updated` has 20, PATE's script of 2017 has 8."""


class Deviation(StrEnum):
    """Deviations of an accountant from `pate_moments`; each concerns one term of the minimum."""

    UNCAPPED = "accountant-uncapped"
    """The term 2 g l is left out: loose, never wrong."""
    UNCONDITIONED = "accountant-unconditioned"
    """Theorem 3's formula at every q: may under-count, even below 0, from its limit on."""
    HALF = "accountant-half"
    """Theorem 3's formula wherever q < 1/2: the same hole, smaller."""
    MISSING_LOG = "accountant-missing-log"
    """Theorem 3's formula without its logarithm, at every q (borealis, smartnoise): loose."""
    EXPONENT_SLIP = "accountant-exponent-slip"
    """e^(2 g (l-1) + 1) for e^(2 g l), every q, cut at 0 (synthcity): too small if 2 g > 1."""


AS_PUBLISHED: Final = frozenset({Deviation.UNCAPPED, Deviation.UNCONDITIONED})
"""The paper's Algorithm 1, and `updated`."""
PATE_SCRIPT_2017: Final = frozenset({Deviation.HALF})
"""The analysis script released with PATE (Papernot et al. 2017)."""
BOREALIS_SMARTNOISE: Final = frozenset({Deviation.UNCAPPED, Deviation.MISSING_LOG})
"""The implementations of these names."""
SYNTHCITY: Final = frozenset({Deviation.UNCAPPED, Deviation.EXPONENT_SLIP})
"""The implementation of this name."""

_RULES_FOR_Q: Final = frozenset(Deviation) - {Deviation.UNCAPPED}


def algorithm_1_moments(
    counts: ArrayLike, *, gamma: float, moments: ArrayLike, deviations: Collection[Deviation]
) -> FloatArray:
    """Log moments of each query, as an accountant with these deviations computes them.

    If the formula has no value (the logarithm of a negative number), the other terms count.

    Args:
        counts: Votes of each query for each class, shape [..., classes].
        gamma: Inverse scale of the Laplace noise on each count, positive and finite.
        moments: Moments l, positive and finite, shape [L].
        deviations: Deviations from `pate_moments`; at most one of them says how Theorem 3 is
            used. None at all gives `pate_moments`.

    Returns:
        Shape [..., L]; with some deviations these are not bounds and may be negative.

    Raises:
        SettingsError: If an argument is outside its range or deviations contradict each other.
    """
    chosen = frozenset(deviations)
    if len(chosen & _RULES_FOR_Q) > 1:
        raise SettingsError(
            f"`deviations` {', '.join(sorted(chosen & _RULES_FOR_Q))} contradict each other: "
            "Theorem 3 is used in one way"
        )
    moment = check_moments(moments)
    q = wrong_label_probability(counts, gamma=gamma)
    caps = data_independent_moments(gamma=gamma, moments=moment)
    if Deviation.UNCAPPED in chosen:
        caps = 2.0 * gamma**2 * moment * (moment + 1.0)
    # fmin passes over NaN: a formula without a value is not a term of the minimum.
    return np.fmin(caps, _third_term(q, gamma, moment, chosen))


def algorithm_1_claim(
    votes: ArrayLike,
    *,
    teachers: int,
    gamma: float,
    delta: float,
    moments: int = PAPER_MOMENTS,
    deviations: Collection[Deviation] = AS_PUBLISHED,
) -> PrivacyClaim:
    """The epsilon that Algorithm 1 reports for the votes that were cast. For reproduction.

    Only the given queries count; to reproduce an implementation that forgets some, leave them out.
    An auditor computes this in both worlds and compares with the larger.

    Args:
        votes: Number of teachers that voted 1 in each query, integers in 0..k, shape [T].
        teachers: The number k of teachers, at least 1.
        gamma: Inverse noise scale that is accounted for (the paper's lambda), positive.
        delta: The delta of the statement, in (0, 1).
        moments: The number L of moments 1..L, at least 1.
        deviations: Deviations from correct accounting, by default those of the paper itself.

    Returns:
        A data-dependent claim: not releasable, and with some deviations not even true.

    Raises:
        SettingsError: If an argument is outside its range or deviations contradict each other.
        ClaimError: If the reported epsilon is not positive: the accountant credited privacy instead
            of charging it.
    """
    check_number("teachers", teachers, AT_LEAST_1)
    ones = check_votes(votes, teachers=teachers)
    check_number("moments", moments, AT_LEAST_1)
    orders = np.arange(1, moments + 1, dtype=np.float64)
    total = algorithm_1_moments(
        np.stack([teachers - ones, ones], axis=-1),
        gamma=gamma,
        moments=orders,
        deviations=deviations,
    ).sum(axis=0)
    deviation_names = ", ".join(sorted(deviations)) or "none"
    return PrivacyClaim(
        epsilon=epsilon_from_moments(orders, total, delta=delta),
        delta=delta,
        data_dependent=True,
        source=(
            f"data-dependent, not releasable: Algorithm 1 of PATE-GAN on the {ones.size} votes of "
            f"{teachers} teachers that were cast, gamma {gamma:g}, moments 1 to {moments} added "
            f"up, Abadi et al.'s conversion; deviations from correct accounting: {deviation_names}"
        ),
    )


def _third_term(
    q: FloatArray, gamma: float, moment: FloatArray, deviations: frozenset[Deviation]
) -> FloatArray:
    """The term of the minimum that depends on the votes, shape [..., L]; NaN: no value."""
    rule = deviations & _RULES_FOR_Q
    if not rule:
        return theorem_3_moments(q, gamma=gamma, moments=moment)
    slip = Deviation.EXPONENT_SLIP in rule
    exponent = 2.0 * gamma * (moment - 1.0) + 1.0 if slip else 2.0 * gamma * moment
    wrong = q[..., None]
    # Computed as in the implementations, rounding included, to reproduce their number.
    with np.errstate(all="ignore"):
        ratio = (1.0 - wrong) / (1.0 - np.exp(2.0 * gamma) * wrong)
        moment_generating = (1.0 - wrong) * ratio**moment + wrong * np.exp(exponent)
        if Deviation.MISSING_LOG in rule:
            return np.asarray(moment_generating)
        logarithm = np.log(moment_generating)
    if slip:
        return np.asarray(np.maximum(logarithm, 0.0))
    if Deviation.HALF in rule:
        return np.where(wrong < 0.5, logarithm, np.inf)
    return np.asarray(logarithm)
