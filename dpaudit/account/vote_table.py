"""The noisy majority vote as a public table of probabilities, and the cost of labels drawn from it.

The table gives the exact cost of one label; three proofs give the cost of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import scipy
from numpy.typing import ArrayLike

from dpaudit.account.conversion import ORDERS, FloatArray, epsilon_from_rdp
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Mechanism, Method, member_named
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import AT_LEAST_0, AT_LEAST_1, DELTA, POSITIVE, NumberRange, check_number

IntArray: TypeAlias = npt.NDArray[np.int64]
WordArray: TypeAlias = npt.NDArray[np.uint64]
WORD_BITS: Final = 64
"""Bits of the random word that draws a label."""
_FLOAT_BITS: Final = 1074
"""With this many bits every float in [0, 1] is a fixed-point number."""
_LEAST_PROBABILITY: Final = 2.0**-1000
"""Smallest probability in an exact table, so that every divergence is finite."""
_ROUNDING: Final = 1e-14
"""An upper limit on the rounding errors of two quantiles."""
_FLOOR: Final = 1e-6
"""Smallest probability in a quantised table; the clipping changes no epsilon that matters."""

_LEAST_POINTS: Final = 100
"""Fewest grid points on each side of 0; the discretisation is exact at each."""
_MOST_POINTS: Final = 10_000
"""Most grid points on each side of 0, for labels with large losses."""
_FINE_ENOUGH: Final = 1e-3
"""Distance of grid points that is fine enough if it allows more than the fewest points."""
_POINTS_PER_LOSS: Final = 10
"""Fewest grid points per loss of the most informative label: chords add 0.2 % to its variance.

Fewer than a hundred labels get more points, since their losses do not average out.
"""
_GRID_MARGIN: Final = 10.0
"""The grid reaches this far above epsilon, and larger losses count as infinite.

This adds at most e^-10 of the probability of such a loss.
"""
_PROOFS: Final = {
    Method.RDP: "Rényi divergences of the labels added up",
    Method.PLD: "privacy loss distributions of the labels convolved",
    Method.TIGHT: "optimum over adaptive votes by dynamic programming over the privacy loss",
    Method.BEST: "the smaller of added Rényi divergences and convolved privacy losses",
}


@dataclass(frozen=True)
class VoteTable:
    """A mechanism that releases one label bit from the votes of k teachers.

    With n of the k teachers voting 1, the released bit is 1 with probability p[n]. The table is
    public; only n is secret, and adding or removing one record moves n by at most one. So every
    divergence is a finite maximum over n, exact, where the literature bounds one over the reals.

    Probabilities are fixed-point integers: complements and differences of close ones are exact.

    Attributes:
        thresholds: k + 1 integers in [0, 2**bits]; p[n] is ``thresholds[n] / 2**bits``.
        bits: The resolution; 64 in a table that labels are drawn from.
        noise: The noise of the table, in words.

    Raises:
        SettingsError: If an entry is not an integer in the range or there are fewer than two.
    """

    thresholds: tuple[int, ...]
    bits: int = WORD_BITS
    noise: str = "a given table"

    def __post_init__(self) -> None:
        if len(self.thresholds) < 2:
            raise SettingsError(
                f"a vote table has {len(self.thresholds)} entries: give one for each count of "
                "votes 0..k, with at least one teacher"
            )
        for votes, threshold in enumerate(self.thresholds):
            if not isinstance(threshold, int) or not 0 <= threshold <= 1 << self.bits:
                raise SettingsError(
                    f"entry {votes} of a vote table is {threshold!r}: give an integer in "
                    f"[0, 2**{self.bits}]"
                )

    @classmethod
    def gaussian(cls, k: int, s: float) -> VoteTable:
        """The sign of the margin after normal noise of standard deviation s: p = Phi(m / s)."""
        return vote_table(Mechanism.GAUSSIAN, k, s)

    @classmethod
    def laplace(cls, k: int, scale: float) -> VoteTable:
        """The same with one Laplace variable: p = 1 - exp(-m / scale) / 2 for m >= 0."""
        return vote_table(Mechanism.LAPLACE, k, scale)

    @classmethod
    def noisy_max(cls, k: int, scale: float) -> VoteTable:
        """The larger of two counts, each with its own Laplace variable (PATE's 1/gamma)."""
        return vote_table(Mechanism.NOISY_MAX, k, scale)

    @property
    def teachers(self) -> int:
        """The number k of teachers."""
        return len(self.thresholds) - 1

    @property
    def probabilities(self) -> FloatArray:
        """The probability p[n] that the bit is 1, shape [k + 1]."""
        return fractions(self.thresholds, self.bits)

    def accuracy(self, consensus: float) -> float:
        """Probability that a label follows the majority.

        Args:
            consensus: Share of the teachers that agree, in [0.5, 1]; between whole votes the
                probability is interpolated.

        Returns:
            The probability.

        Raises:
            SettingsError: If the share is outside the range.
        """
        check_number("consensus", consensus, NumberRange(0.5, 1))
        votes = np.arange(self.teachers + 1)
        return float(np.interp(consensus * self.teachers, votes, self.probabilities))

    def quantised(self) -> VoteTable:
        """The table that a generator draws from and accounts for.

        Probabilities are clipped to [1e-6, 1 - 1e-6] and cut to multiples of 2**-64, so a label is
        the comparison of a uniform 64-bit word with an integer: the released distribution is the
        accounted one, with no floating-point noise whose low bits could reveal the votes (Mironov
        2012, "On significance of the least significant bits for differential privacy").
        """
        unit = 1 << WORD_BITS
        least = int(_FLOOR * unit)
        half = unit >> 1

        def quantise(threshold: int) -> int:
            # Rounding the smaller of p and 1 - p keeps a symmetric table symmetric.
            if threshold << 1 <= 1 << self.bits:
                return min(max(self._words(threshold), least), half)
            return unit - min(max(self._words((1 << self.bits) - threshold), least), half)

        return replace(self, thresholds=tuple(map(quantise, self.thresholds)), bits=WORD_BITS)

    def _words(self, threshold: int) -> int:
        """The threshold in units of 2**-64, rounded down."""
        return (threshold << WORD_BITS) >> self.bits

    def release(self, votes: npt.ArrayLike, words: npt.ArrayLike) -> IntArray:
        """Draws labels.

        Args:
            votes: Number of teachers that voted 1, in 0..k, integers [n].
            words: Uniform 64-bit integers [n], fresh for every label: the operating system's
                entropy in production, a seeded stream in an audit.

        Returns:
            Labels [n]: 1 with probability p[votes] over the word, else 0.

        Raises:
            SettingsError: If the table has another resolution or an argument is outside its range.
        """
        if self.bits != WORD_BITS:
            raise SettingsError("labels are drawn from a 64-bit table: use quantised() first")
        count = np.asarray(votes)
        word = np.asarray(words)
        # The messages do not quote the values: both are secrets.
        if count.dtype.kind not in "iu" or np.any((count < 0) | (count > self.teachers)):
            raise SettingsError(f"the votes are not in 0..{self.teachers}: pass the count of ones")
        if word.dtype != np.uint64 or word.shape != count.shape:
            raise SettingsError("the random words are not one uint64 for each vote: draw 64 bits")
        possible, last = self._last_words
        return np.asarray(possible[count] & (word <= last[count]), dtype=np.int64)

    @cached_property
    def _last_words(self) -> tuple[npt.NDArray[np.bool_], WordArray]:
        """Whether a one is possible, and the largest word that draws it; 2**64 fits no uint64."""
        possible = np.array([threshold > 0 for threshold in self.thresholds])
        last = [max(threshold, 1) - 1 for threshold in self.thresholds]
        return possible, np.array(last, dtype=np.uint64)

    def divergences(self, orders: ArrayLike) -> FloatArray:
        """Exact Rényi divergences between neighbouring entries, in nats.

        Args:
            orders: Rényi orders, finite and above 1, shape [m].

        Returns:
            Shape [2, k, m]: D_a(p[n] || p[n+1]), then D_a(p[n+1] || p[n]), for n in 0..k-1;
            infinite where a neighbour rules out a bit.

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        order = _check_orders(orders)
        lower, upper = self.thresholds[:-1], self.thresholds[1:]
        up = divergences(steps_between(lower, upper, self.bits), order)
        down = divergences(steps_between(upper, lower, self.bits), order)
        return np.stack([up, down])

    @overload
    def rdp(self, orders: float) -> float: ...
    @overload
    def rdp(self, orders: ArrayLike) -> FloatArray: ...
    def rdp(self, orders: ArrayLike) -> FloatArray | float:
        """Exact Rényi divergence of one label: the largest of `divergences` at each order.

        Args:
            orders: One Rényi order or a list [m], finite and above 1.

        Returns:
            The divergence at the order, or at each order [m].

        Raises:
            SettingsError: If an order is not a finite number above 1.
        """
        largest = divergences(self._steps, _check_orders(np.atleast_1d(orders))).max(
            axis=0, initial=0.0
        )
        return float(largest[0]) if np.ndim(orders) == 0 else np.asarray(largest)

    def epsilon(self, labels: int, *, delta: float, method: Method | str = Method.BEST) -> float:
        """The cost of a number of labels, for adding or removing one record.

        Votes may depend on earlier labels in any way: all methods cover adaptive composition.

        Args:
            labels: Labels released, discarded ones included, at least 0.
            delta: The delta of the statement, in [0, 1); at 0 the pure costs of the labels add up,
                whatever the method.
            method: How the cost is proved.

        Returns:
            Epsilon in nats; infinity if nothing can be proved.

        Raises:
            SettingsError: If an argument is outside its range.
        """
        return epsilon_of_labels(
            self._steps, labels=labels, delta=delta, method=member_named("method", Method, method)
        )

    @cached_property
    def mu(self) -> float:
        """Mu of one label in Gaussian DP: the distance of neighbouring votes in normal quantiles.

        A bit that is 1 with probability p indicates whether a normal variable of mean quantile(p)
        and variance 1 is above 0. So distinguishing the bits of two counts is at least as hard as
        distinguishing N(0, 1) from N(mu, 1), and T labels, whose votes may depend on earlier ones
        in any way, are sqrt(T) mu-GDP (Dong, Roth and Su 2022, Lemma 2.9 and Corollary 3.3).
        Infinite if a label is certain for one count and not for its neighbour.
        """
        ones = self.probabilities
        zeros = fractions(
            [(1 << self.bits) - threshold for threshold in self.thresholds], self.bits
        )
        ndtri = scipy.special.ndtri
        quantiles = np.where(ones <= 0.5, ndtri(ones), -ndtri(zeros))  # small ones are precise
        with np.errstate(invalid="ignore"):
            steps = np.abs(np.diff(quantiles))
        return float(np.nan_to_num(steps, nan=0.0, posinf=np.inf).max()) + _ROUNDING

    def claim(
        self, labels: int, *, delta: float, method: Method | str = Method.BEST
    ) -> PrivacyClaim:
        """The cost as a claim, with its derivation in words.

        Args:
            labels: Labels released, at least 1.
            delta: The delta of the claim.
            method: How the cost is proved.

        Returns:
            The claim, for add-remove neighbours.

        Raises:
            SettingsError: If an argument is outside its range.
            ClaimError: If nothing can be claimed: the cost is 0 or infinite.
        """
        epsilon = self.epsilon(labels, delta=delta, method=method)
        source = (
            f"{labels} one-bit votes of {self.teachers} teachers with {self.noise}; one record "
            f"moves one vote by one; {_PROOFS[Method(method)]}"
        )
        return PrivacyClaim(epsilon=epsilon, delta=delta, source=source)

    @cached_property
    def _steps(self) -> Steps:
        return neighbour_steps(self.thresholds, self.bits)


def vote_table(mechanism: Mechanism, k: int, scale: float) -> VoteTable:
    """The exact table of a mechanism.

    Args:
        mechanism: The noise.
        k: Number of teachers, at least 1.
        scale: Scale of the noise, in votes, positive and finite: the standard deviation of normal
            noise, the Laplace scale (PATE's 1/gamma).

    Returns:
        The table, symmetric: p[n] + p[k - n] = 1 holds exactly.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("teachers", k, AT_LEAST_1, whole=True)
    check_number("scale", scale, POSITIVE)
    # Only the lower half is computed: small probabilities keep their precision in a float, and
    # the upper half is its exact complement.
    margins = k / 2 - np.arange(k // 2 + 1, dtype=np.float64)
    with np.errstate(under="ignore"):
        wrong = np.maximum(wrong_at(mechanism, margins / scale), _LEAST_PROBABILITY)
    lower = [_to_fixed_point(p) for p in wrong.tolist()]
    mirrored = [(1 << _FLOAT_BITS) - lower[k - n] for n in range(len(lower), k + 1)]
    return VoteTable(
        (*lower, *mirrored), bits=_FLOAT_BITS, noise=_NOISE_IN_WORDS[mechanism].format(scale)
    )


def _to_fixed_point(p: float) -> int:
    """A probability in units of 2**-1074."""
    top, bottom = p.as_integer_ratio()
    return (top << _FLOAT_BITS) // bottom


def _check_orders(orders: ArrayLike) -> FloatArray:
    """Returns Rényi orders as an array; refuses any but finite numbers above 1."""
    order = np.asarray(orders, dtype=np.float64)
    if order.ndim != 1 or not np.all((order > 1.0) & np.isfinite(order)):
        raise SettingsError("Rényi orders must be finite numbers above 1, one or a flat list")
    return order


# Probability that a label is wrong when the majority is `x` noise scales above a tie. For two
# Laplace variables this is Lemma 4 of Papernot et al. 2017, an equality for two classes.
_WRONG: Final[dict[Mechanism, Callable[[FloatArray], FloatArray]]] = {
    Mechanism.GAUSSIAN: lambda x: np.asarray(scipy.special.ndtr(-x)),
    Mechanism.LAPLACE: lambda x: np.asarray(0.5 * np.exp(-x)),
    Mechanism.NOISY_MAX: lambda x: np.asarray(0.5 * (1.0 + x) * np.exp(-2.0 * x)),
}
_NOISE_IN_WORDS: Final = {
    Mechanism.GAUSSIAN: "normal noise of standard deviation {:g} on the count of ones",
    Mechanism.LAPLACE: "Laplace noise of scale {:g} on the count of ones",
    Mechanism.NOISY_MAX: "Laplace noise of scale {:g} on each of the two counts",
}


def wrong_at(mechanism: Mechanism, scales: FloatArray) -> FloatArray:
    """Probability that a label contradicts the majority.

    Args:
        mechanism: The noise that decides the vote.
        scales: Distance of the majority from a tie (k/2), in scales of the noise.

    Returns:
        The probability at each distance; same shape.
    """
    return _WRONG[mechanism](scales)


# The cost of many labels


class Steps(NamedTuple):
    """Pairs (P, Q) of distributions of one bit.

    Attributes:
        ones: P(1), shape [n].
        zeros: P(0), its exact complement.
        loss_of_one: ln(P(1) / Q(1)), the privacy loss of a one; infinite where Q rules it out.
        loss_of_zero: ln(P(0) / Q(0)).
    """

    ones: FloatArray
    zeros: FloatArray
    loss_of_one: FloatArray
    loss_of_zero: FloatArray

    @property
    def finite(self) -> bool:
        """Whether every bit that one side can give is possible on the other."""
        return bool(np.isfinite(self.loss_of_one).all() and np.isfinite(self.loss_of_zero).all())

    @property
    def largest_loss(self) -> float:
        """The largest absolute privacy loss: the pure epsilon of one label."""
        losses = np.abs(np.concatenate([self.loss_of_one, self.loss_of_zero]))
        return float(losses.max(initial=0.0))


def steps_between(from_: Sequence[int], to: Sequence[int], bits: int) -> Steps:
    """The pairs (p, q) of two lists of integers over 2**bits; losses of close ones are accurate.

    Args:
        from_: Integers p in [0, 2**bits]; n of them.
        to: Integers q; as many.
        bits: The resolution.

    Returns:
        The n pairs.
    """
    unit = 1 << bits
    complement, to_complement = [unit - p for p in from_], [unit - q for q in to]
    return Steps(
        ones=fractions(from_, bits),
        zeros=fractions(complement, bits),
        loss_of_one=_log_ratios(from_, to),
        loss_of_zero=_log_ratios(complement, to_complement),
    )


def neighbour_steps(table: Sequence[int], bits: int) -> Steps:
    """All steps between neighbouring entries of a table, up and down.

    Steps with the same privacy losses as another are left out: repetitions, and mirror images with
    ones for zeros. So are steps between equal entries.
    """
    unit = 1 << bits
    kept: dict[tuple[int, int], None] = {}
    for lower, upper in pairwise(table):
        for p, q in ((lower, upper), (upper, lower)):
            if p != q and (unit - p, unit - q) not in kept:
                kept[p, q] = None
    return steps_between([p for p, _ in kept], [q for _, q in kept], bits)


def divergences(steps: Steps, order: FloatArray) -> FloatArray:
    """Rényi divergences D_a(P || Q) in nats of n pairs at orders a above 1 [m], shape [n, m].

    The divergence is ln(P(1) e^((a-1) L1) + P(0) e^((a-1) L0)) / (a-1) with the losses L1 and L0.

    Args:
        steps: The n pairs.
        order: The orders; shape [m].

    Returns:
        Divergences; shape [n, m].
    """
    p, p_not = steps.ones[:, None], steps.zeros[:, None]
    ratio_1 = steps.loss_of_one[:, None] * (order - 1.0)
    ratio_0 = steps.loss_of_zero[:, None] * (order - 1.0)
    # Close to Q = P the two terms add up to almost 1: keep what exceeds 1. Elsewhere the
    # exponentials may overflow: stay in logarithms.
    excess = p * np.expm1(np.minimum(ratio_1, 1.0)) + p_not * np.expm1(np.minimum(ratio_0, 1.0))
    with np.errstate(divide="ignore"):
        far = np.logaddexp(np.log(p) + ratio_1, np.log(p_not) + ratio_0)
    near = np.maximum(ratio_1, ratio_0) < 1.0
    moments = np.where(near, np.log1p(np.maximum(excess, 0.0)), far)
    return np.asarray(moments / (order - 1.0), dtype=np.float64)


def fractions(integers: Sequence[int], bits: int) -> FloatArray:
    """Each integer over 2**bits, correctly rounded to a float."""
    unit = 1 << bits
    return np.array([integer / unit for integer in integers], dtype=np.float64)


def _log_ratios(from_: Sequence[int], to: Sequence[int]) -> FloatArray:
    """ln(p/q) for each pair of integers; 0 for 0/0, which carries no probability either way."""
    return np.array([_log_ratio(p, q) for p, q in zip(from_, to, strict=True)], dtype=np.float64)


def _log_ratio(p: int, q: int) -> float:
    """ln(p/q), accurate for close integers and for those that no float holds."""
    if p == q:
        return 0.0
    if q == 0:
        return math.inf
    if p == 0:
        return -math.inf
    if p > q:
        return -_log_ratio(q, p)
    if p << 1 < q:
        return math.log(p) - math.log(q)  # works for integers that no float would hold
    return math.log1p(-((q - p) / q))  # relative differences keep close integers accurate


def pld_epsilon(steps: Steps, *, labels: int, delta: float) -> float:
    """Epsilon of T adaptive labels by numerical composition of a dominating pair.

    The largest hockey-stick divergence over all votes and both directions,
    ``max over (P, Q) of [P(1) - e^x Q(1)]+ + [P(0) - e^x Q(0)]+``, is the curve of one pair of
    distributions that dominates every vote (Zhu, Dong and Wang 2022, "Optimal accounting of
    differential privacy via characteristic function", Theorem 10 for adaptive composition). It is
    discretised from above (Doroshenko et al. 2022, "Connect the dots", Algorithm 1) and convolved
    by dp-accounting.

    Args:
        steps: The pairs of one label, at least one; losses finite.
        labels: The number T of labels, at least 1.
        delta: The delta of the statement, in [0, 1).

    Returns:
        Epsilon in nats, at least 0.
    """
    from dp_accounting.pld import pld_pmf

    largest = steps.largest_loss
    interval = min(largest / _LEAST_POINTS, max(_FINE_ENOUGH, largest / _MOST_POINTS))
    reach = int(np.ceil(largest / interval)) + 1
    grid = np.arange(-reach, reach + 1)
    curve = hockey_stick(steps, interval * grid.astype(np.float64))
    single = pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, curve)
    composed = single if labels == 1 else single.self_compose(labels)
    return max(0.0, float(composed.get_epsilon_for_delta(delta)))


def hockey_stick(steps: Steps, epsilons: FloatArray) -> FloatArray:
    """The largest hockey-stick divergence of one label at each epsilon, shape [m]."""
    largest = np.zeros_like(epsilons)
    for p, p_not, loss_1, loss_0 in zip(*steps, strict=True):
        # p - e^x q = p (1 - e^(x - loss)) with loss = ln(p / q)
        of_one = p * -np.expm1(np.minimum(epsilons - loss_1, 0.0))
        of_zero = p_not * -np.expm1(np.minimum(epsilons - loss_0, 0.0))
        np.maximum(largest, of_one + of_zero, out=largest)
    return largest


def tight_epsilon(steps: Steps, *, labels: int, delta: float, at_most: float) -> float:
    """Epsilon of T adaptive labels against the worst adversary, within a small numerical excess.

    Before each label the adversary chooses which neighbouring votes the two tables cause, given all
    labels so far. Let W_t(s) be the largest delta achievable with t more labels when the privacy
    loss exceeds epsilon by s:

        W_0(s) = (1 - e^-s)+,    W_t(s) = max over (P, Q) of E_P[ W_{t-1}(s + ln P/Q) ],

    delta(epsilon) is W_T(-epsilon): one pass gives the whole curve. Each W_t is convex in e^-s, so
    interpolating along chords in e^-s never understates it; off the grid W_t is replaced by 1 on
    the right and by its leftmost value on the left, which is no less either. The result is thus an
    upper bound, up to rounding (some 1e-16 per label), and no other valid one can be much smaller.

    Args:
        steps: The pairs (P, Q) of one label, at least one; losses finite.
        labels: The number T of labels, at least 1.
        delta: The delta of the statement, in [0, 1).
        at_most: A finite epsilon known to hold; it bounds the grid.

    Returns:
        Epsilon in nats, at least 0 and at most `at_most`.
    """
    if at_most == 0.0:
        return 0.0
    information = steps.ones * steps.loss_of_one**2 + steps.zeros * steps.loss_of_zero**2
    points_per_loss = _POINTS_PER_LOSS * max(1.0, 10.0 / labels**0.5)
    step = float(np.sqrt(information.max())) / points_per_loss
    first = -int(np.ceil((2.0 * at_most + 4.0) / step))
    last = int(np.ceil(_GRID_MARGIN / step))
    surplus = step * np.arange(first, last + 1)
    value = -np.expm1(-np.maximum(surplus, 0.0))
    ones = _shift(steps.loss_of_one, step, len(surplus))
    zeros = _shift(steps.loss_of_zero, step, len(surplus))
    for _ in range(labels):
        value = _with_one_more_label(value, steps, ones, zeros)
    holds = np.flatnonzero(value[: 1 - first] <= delta)  # surplus -epsilon, epsilon >= 0
    if len(holds) == 0:
        return at_most
    j = int(holds[-1])
    if j == -first:
        return 0.0
    # Between two points the chord in e^-s = e^epsilon bounds delta from above.
    share = (delta - value[j]) / (value[j + 1] - value[j])
    # Relative to the point, because e^epsilon itself overflows from 710 on.
    return min(at_most, max(0.0, float(np.log1p(share * np.expm1(-step)) - surplus[j])))


class _Shift(NamedTuple):
    """A loss as a move on the grid: `places` to the right, plus a weight on the next point."""

    places: npt.NDArray[np.int64]
    weight: FloatArray


def _shift(loss: FloatArray, step: float, points: int) -> _Shift:
    """The losses as moves on the grid."""
    # Beyond the grid's length every value is padding: the place no longer matters.
    scaled = np.clip(loss / step, -points - 1.0, points + 1.0)
    places = np.floor(scaled).astype(np.int64)
    # Where e^-s lies between two neighbouring points, as a share of their distance.
    weight = np.expm1(-(scaled - places) * step) / np.expm1(-step)
    return _Shift(places, weight)


def _with_one_more_label(
    value: FloatArray, steps: Steps, ones: _Shift, zeros: _Shift
) -> FloatArray:
    """W_t from W_{t-1} on the grid of `tight_epsilon`."""
    points = len(value)
    pad = points + 2
    padded = np.concatenate([np.full(pad, value[0]), value, np.ones(pad)])

    def shift_value(shift: _Shift, pair: int) -> FloatArray:
        start = pad + int(shift.places[pair])
        left, right = padded[start : start + points], padded[start + 1 : start + 1 + points]
        shifted: FloatArray = left + shift.weight[pair] * (right - left)
        return shifted

    best = np.zeros(points)
    for pair, (p, p_not) in enumerate(zip(steps.ones, steps.zeros, strict=True)):
        np.maximum(best, p * shift_value(ones, pair) + p_not * shift_value(zeros, pair), out=best)
    return best


def epsilon_of_labels(steps: Steps, *, labels: int, delta: float, method: Method) -> float:
    """Epsilon of T labels whose votes may depend on earlier labels in any way.

    Args:
        steps: The pairs of distributions that neighbouring tables can cause for one label.
        labels: The number T of labels, at least 0.
        delta: The delta of the statement, in [0, 1).
        method: How it is proved.

    Returns:
        Epsilon in nats; infinity if nothing can be proved.

    Raises:
        SettingsError: If the number of labels or delta is outside its range.
    """
    check_number("labels", labels, AT_LEAST_0)
    check_number("delta", delta, DELTA)
    if labels == 0 or len(steps.ones) == 0:
        return 0.0  # also for a table with infinite divergence
    if delta == 0.0:
        return labels * steps.largest_loss  # pure: the limit of infinite order, by any method
    rdp = epsilon_from_rdp(ORDERS, labels * divergences(steps, ORDERS).max(axis=0), delta=delta)
    if method is Method.RDP or not steps.finite:
        return rdp
    if method is Method.TIGHT:
        return tight_epsilon(steps, labels=labels, delta=delta, at_most=rdp)
    pld = pld_epsilon(steps, labels=labels, delta=delta)
    return pld if method is Method.PLD else min(rdp, pld)
