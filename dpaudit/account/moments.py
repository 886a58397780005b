"""PATE's moments accountant: the cost of a noisy argmax on the actual votes.

The moment of order l is alpha(l) = l D_{l+1}(M(D) || M(D')), the log of the moment generating
function of the privacy loss (Abadi et al. 2016), summed over queries and turned into epsilon by
`epsilon_from_moments`. Theorems and lemmas here are those of Papernot et al. 2017,
"Semi-supervised Knowledge Transfer for Deep Learning from Private Training Data".

A moment computed from votes is itself a function of the private data. It bounds one direction
only, from the table that voted to each of its neighbours: for the other direction the neighbour's
own votes count. So an auditor compares with the larger epsilon of both worlds, and neither may be
published.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dpaudit.account.conversion import FloatArray
from dpaudit.account.vote_table import IntArray, VoteTable
from dpaudit.errors import SettingsError
from dpaudit.model.setting import POSITIVE, check_number

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
    check_gamma(gamma)
    gaps = gamma * (votes.max(axis=-1, keepdims=True) - votes)
    terms = (2.0 + gaps) / 4.0 * np.exp(-gaps)
    # The winner's own term, (2 + 0) / 4, is not part of the sum. Sorting it away instead of
    # subtracting keeps a q of 1e-50.
    q = np.sort(terms, axis=-1)[..., :-1].sum(axis=-1)
    return np.asarray(np.minimum(q, 1.0 - 1.0 / votes.shape[-1]), dtype=np.float64)


def theorem_3_limit(gamma: float) -> float:
    """The q from which on Theorem 3 proves nothing: (e^2g - 1) / (e^4g - 1) = 1 / (e^2g + 1)."""
    check_gamma(gamma)
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
    check_gamma(gamma)
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


def check_gamma(gamma: float) -> None:
    """Refuses an inverse noise scale that is not positive and finite.

    Raises:
        SettingsError: If the scale is refused.
    """
    check_number("gamma", gamma, POSITIVE)


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
