"""PATE's moments accountant, correct, and as the PATE-GAN paper and its implementations have it.

The moment of order l is alpha(l) = l D_{l+1}(M(D) || M(D')), the log of the moment generating
function of the privacy loss (Abadi et al. 2016), summed over queries and turned into epsilon by
`epsilon_from_moments`. Theorems and lemmas here are those of Papernot et al. 2017,
"Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data".

A moment computed from votes is itself a function of the private data. It bounds one direction
only, from the table that voted to each of its neighbours: for the other direction the neighbour's
own votes count. So an auditor compares with the larger epsilon of both worlds, and neither may be
published.

Algorithm 1 of Jordon, Yoon and van der Schaar 2019, "PATE-GAN: Generating Synthetic Data with
Differential Privacy Guarantees", is for reproduction: `dpaudit trace` recognises its mistakes, and
published generators report its number. Do not use it to account for a new mechanism: the exact
data-independent `VoteTable.epsilon` is releasable, and lower at the noise that small budgets need.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpaudit.account.conversion import FloatArray, epsilon_from_moments
from dpaudit.account.vote_table import IntArray, VoteTable
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import AT_LEAST_1, POSITIVE, check_number

_LARGEST_EXPONENT: Final = 1.0
"""Up to this exponent a moment is computed as its excess over 1, beyond it in logarithms."""


def wrong_label_probability(counts: ArrayLike, *, gamma: float) -> FloatArray:
    """An upper bound q on the probability that noise of scale 1/gamma changes the winning class.

    Lemma 4: q is the sum of (2 + gamma gap) / (4 exp(gamma gap)) over the losing classes, gap being
    their distance to the winner. With two classes it is exact. At most 1 - 1/classes, the value of
    a uniform draw.

    Args:
        counts: Votes for each class, not negative, shape [..., classes], two classes or more.
        gamma: Inverse scale of the Laplace noise on each count, positive and finite.

    Returns:
        The bound, shape [...].

    Raises:
        SettingsError: If an argument is outside its range.
    """
    votes = np.asarray(counts, dtype=np.float64)
    if votes.ndim == 0 or votes.shape[-1] < 2 or not np.all((votes >= 0) & np.isfinite(votes)):
        raise SettingsError("vote counts must not be negative, for two classes or more")
    check_number("gamma", gamma, POSITIVE)
    gaps = gamma * (votes.max(axis=-1, keepdims=True) - votes)
    terms = (2.0 + gaps) / 4.0 * np.exp(-gaps)
    # The winner's own term, (2 + 0) / 4, is not part of the sum. Sorting it away instead of
    # subtracting keeps a q of 1e-50.
    q = np.sort(terms, axis=-1)[..., :-1].sum(axis=-1)
    return np.asarray(np.minimum(q, 1.0 - 1.0 / votes.shape[-1]), dtype=np.float64)


def theorem_3_limit(gamma: float) -> float:
    """The q from which on Theorem 3 proves nothing: (e^2g - 1) / (e^4g - 1) = 1 / (e^2g + 1)."""
    check_number("gamma", gamma, POSITIVE)
    return float(scipy.special.expit(-2.0 * gamma))


def theorem_3_moments(q: ArrayLike, *, gamma: float, moments: ArrayLike) -> FloatArray:
    """Theorem 3 for a mechanism that is 2 gamma-DP and misses its likely outcome at most with q.

    ``ln((1-q) ((1-q) / (1 - e^2g q))^l + q e^(2gl))`` where q is below `theorem_3_limit`. Above it
    the formula is not monotone in q, can be negative, and credits privacy that does not exist.

    Args:
        q: Bounds on the probability of every other outcome, in [0, 1], shape [...].
        gamma: Half the pure epsilon of the mechanism, positive and finite.
        moments: Moments l, positive and finite, shape [L].

    Returns:
        Bounds on the log moments, at least 0, infinite from the limit on, shape [..., L].

    Raises:
        SettingsError: If an argument is outside its range.
    """
    moment = check_moments(moments)
    wrong = np.asarray(q, dtype=np.float64)[..., None]
    if not np.all((wrong >= 0.0) & (wrong <= 1.0)):
        raise SettingsError("a bound q on a probability is not in [0, 1]: correct it")
    limit = theorem_3_limit(gamma)
    # Any value is fine where the theorem does not apply; 0 raises no warning.
    inside = np.where(wrong < limit, wrong, 0.0)
    with np.errstate(divide="ignore"):
        log_wrong = np.log(inside)
    neighbours = np.exp(2.0 * gamma + log_wrong)  # e^2g q, below 1 by the limit
    growth = np.log1p(neighbours * -np.expm1(-2.0 * gamma) / (1.0 - neighbours))
    likely, unlikely = moment * growth, moment * (2.0 * gamma)
    # Most moments are tiny: what exceeds 1 keeps its digits where the sum itself would lose them.
    small = np.maximum(likely, unlikely) < _LARGEST_EXPONENT
    excess = (1.0 - inside) * np.expm1(np.minimum(likely, _LARGEST_EXPONENT))
    excess += inside * np.expm1(np.minimum(unlikely, _LARGEST_EXPONENT))
    large = np.logaddexp(np.log1p(-inside) + likely, log_wrong + unlikely)
    # With q far below e^(-2gl), adding logarithms leaves a rounding error of either sign.
    bound = np.where(small, np.log1p(excess), np.maximum(large, 0.0))
    return np.asarray(np.where(wrong < limit, bound, np.inf), dtype=np.float64)


def data_independent_moments(*, gamma: float, moments: ArrayLike) -> FloatArray:
    """The cost of one noisy argmax whatever the votes: min(2 g^2 l (l+1), 2 g l).

    Theorem 2. One record moves two counts by one each, hence every ratio of probabilities by at
    most e^(2g). The linear term is 2 g l; g l would be too small for two noisy counts.

    Args:
        gamma: Inverse scale of the Laplace noise on each count, positive and finite.
        moments: Moments l, positive and finite, shape [L].

    Returns:
        Bounds on the log moments, shape [L]. They are public.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("gamma", gamma, POSITIVE)
    moment = check_moments(moments)
    concentrated = 2.0 * gamma**2 * moment * (moment + 1.0)
    return np.asarray(np.minimum(concentrated, 2.0 * gamma * moment), dtype=np.float64)


def pate_moments(counts: ArrayLike, *, gamma: float, moments: ArrayLike) -> FloatArray:
    """The smallest of PATE's three bounds, for each query.

    Args:
        counts: Votes of each query for each class, shape [..., classes].
        gamma: Inverse scale of the Laplace noise on each count, positive and finite.
        moments: Moments l, positive and finite, shape [L].

    Returns:
        Bounds on the log moments from the table that voted to each neighbour, shape [..., L]; add
        them up over queries. Data-dependent: not releasable.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    q = wrong_label_probability(counts, gamma=gamma)
    unlikely = theorem_3_moments(q, gamma=gamma, moments=moments)
    return np.minimum(data_independent_moments(gamma=gamma, moments=moments), unlikely)


def local_divergences(table: VoteTable, orders: ArrayLike) -> FloatArray:
    """The exact divergences of one bit when n of the teachers vote 1.

    The larger of D_a(p[n] || p[n+1]) and D_a(p[n] || p[n-1]), as far as these neighbours exist.
    The distribution of the table that voted comes first in both: the way back, D_a(p[n+1] ||
    p[n]), belongs to the neighbour's entry. `VoteTable.rdp` is the maximum over n.

    Args:
        table: The mechanism.
        orders: Rényi orders, finite and above 1, shape [m].

    Returns:
        Divergences in nats, shape [k + 1, m].

    Raises:
        SettingsError: If an order is not a finite number above 1.
    """
    upwards, downwards = table.divergences(orders)
    local = np.zeros((table.teachers + 1, upwards.shape[1]))
    local[:-1] = upwards
    local[1:] = np.maximum(local[1:], downwards)
    return local


def exact_moments(table: VoteTable, votes: ArrayLike, *, moments: ArrayLike) -> FloatArray:
    """The exact data-dependent log moments of one-bit votes: l times `local_divergences` at l+1.

    Args:
        table: The mechanism.
        votes: Number of teachers that voted 1 in each query, integers in 0..k, shape [T].
        moments: Moments l, positive and finite, shape [L].

    Returns:
        Log moments, shape [T, L]; add them up over queries. Data-dependent: not releasable.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    moment = check_moments(moments)
    counts = check_votes(votes, teachers=table.teachers)
    return np.asarray((local_divergences(table, moment + 1.0) * moment)[counts])


def check_moments(moments: ArrayLike) -> FloatArray:
    """Returns the moments as an array [L].

    Raises:
        SettingsError: If there is no moment, or one is not positive and finite.
    """
    moment = np.asarray(moments, dtype=np.float64)
    if moment.ndim != 1 or moment.size == 0 or not np.all((moment > 0) & np.isfinite(moment)):
        raise SettingsError("`moments` must be a flat list of positive, finite numbers")
    return moment


def check_votes(votes: ArrayLike, *, teachers: int) -> IntArray:
    """Returns the votes as integers [T].

    Raises:
        SettingsError: If a vote is not a count in 0..k.
    """
    count = np.asarray(votes)
    # The message does not quote the votes: they are secrets.
    if count.dtype.kind not in "iu" or count.ndim != 1 or np.any((count < 0) | (count > teachers)):
        raise SettingsError(f"the votes are not a flat list of counts in 0..{teachers}")
    return count.astype(np.int64)


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
