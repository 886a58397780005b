"""What publishing a data-dependent epsilon would cost, by smooth sensitivity. Analysis only.

A number computed from votes leaks what it is computed from. Noise in proportion to a smooth upper
bound on its local sensitivity (Nissim, Raskhodnikova and Smith 2007) makes it publishable, at a
price in privacy of its own: the GNSS mechanism of Papernot et al. 2018, "Scalable Private Learning
with PATE", section on smooth sensitivity. Here for one-bit votes with an exact table.

Two limits keep this from being an accountant. The votes must not depend on earlier labels, which
in a GAN they do; and order, beta and sigma must be chosen before anyone sees the votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from dpaudit.account.conversion import FloatArray, epsilon_from_rdp
from dpaudit.account.moments import (
    PATE_SCRIPT_2017,
    algorithm_1_moments,
    check_moments,
    check_votes,
    local_divergences,
)
from dpaudit.account.vote_table import VoteTable
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import BETWEEN_0_AND_1, POSITIVE, check_number


@dataclass(frozen=True, kw_only=True)
class SmoothRelease:
    """How a data-dependent Rényi divergence f(D) is published, with S(D) its smooth sensitivity.

    The published number is ``f + sigma S (Z + z)`` with Z a standard normal draw and z the
    quantile that puts it above f with probability `confidence`.

    Attributes:
        order: Rényi order a of f, of the release's own cost, and of the conversion to epsilon.
        beta: Smoothness: neighbours' S differ at most by the factor e^beta. Positive, and small
            enough that a (1 - e^(-2 beta)) < 1; beyond, the release's divergence is infinite.
        sigma: Standard deviation of the noise in units of S, positive.
        confidence: Probability that the published number is not below f, in [0.5, 1).

    Raises:
        SettingsError: If an attribute is outside its range.
    """

    order: float
    beta: float
    sigma: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 1.0 < self.order < math.inf:
            raise SettingsError(f"`order` is {self.order}: choose a finite number above 1")
        _check_beta(self.beta)
        if -self.order * math.expm1(-2.0 * self.beta) >= 1.0:
            raise SettingsError(
                f"`beta` is {self.beta}: at order {self.order:g} choose it below "
                f"{-0.5 * math.log1p(-1.0 / self.order):.3g}"
            )
        if not 0.0 < self.sigma < math.inf:
            raise SettingsError(f"`sigma` is {self.sigma}: choose a positive, finite number")
        if not 0.5 <= self.confidence < 1.0:
            raise SettingsError(f"`confidence` is {self.confidence}: choose it in [0.5, 1)")

    @property
    def quantile(self) -> float:
        """The shift z, in standard deviations of the noise."""
        return float(ndtri(self.confidence))

    @property
    def divergence(self) -> float:
        """The Rényi divergence of the release itself at its order, in nats: exact, attained.

        Neighbours publish normals of standard deviations sigma S and sigma S', S'/S = e^t with
        t in [-beta, beta], whose means differ by at most min(S, S') + z sigma |S - S'|. Over t,
        both terms of the divergence of two normals are largest at t = -beta (with the mirrored t
        below it term by term), which gives, with s = e^-beta and c = 1 - a (1 - s^2),

        ``a (s + z sigma (1 - s))^2 / (2 sigma^2 c) - (a beta + ln(c) / 2) / (a - 1)``.

        Theorem 23 of Papernot et al. 2018 (a e^(2 beta) / sigma^2 + ..., for z = 0) has no 1/c: it
        is larger for small a beta and too small where a beta comes close to 1/2.
        """
        s = math.exp(-self.beta)
        remaining = 1.0 + self.order * math.expm1(-2.0 * self.beta)
        apart = s + self.quantile * self.sigma * (1.0 - s)
        of_means = self.order * apart**2 / (2.0 * self.sigma**2 * remaining)
        of_widths = -(self.order * self.beta + 0.5 * math.log(remaining)) / (self.order - 1.0)
        return of_means + of_widths


def smooth_sensitivity(values: ArrayLike, *, beta: float) -> FloatArray:
    """The beta-smooth sensitivity of a function of one vote count.

    ``max over n' of e^(-beta |n - n'|) LS(n')`` (Nissim et al. 2007, Definition 2.2), LS(n') being
    the larger step of the function to n' - 1 and n' + 1: one record moves one vote by one. The sum
    over queries is smooth for the sum of the functions.

    Args:
        values: The function at n = 0..k, finite, shape [k + 1] with k at least 1.
        beta: Smoothness, positive and finite.

    Returns:
        The smooth sensitivity at each n, shape [k + 1].

    Raises:
        SettingsError: If an argument is outside its range.
    """
    value = np.asarray(values, dtype=np.float64)
    if value.ndim != 1 or value.size < 2 or not np.all(np.isfinite(value)):
        raise SettingsError("`values` must be a flat list of two or more finite numbers")
    _check_beta(beta)
    steps = np.abs(np.diff(value))
    local = np.maximum(np.append(steps, 0.0), np.append(0.0, steps))
    counts = np.arange(value.size)
    discount = np.exp(-beta * np.abs(counts[:, None] - counts))
    return np.asarray((discount * local).max(axis=1))


def sanitised_epsilon(
    table: VoteTable, votes: ArrayLike, *, delta: float, release: SmoothRelease, noise: float
) -> float:
    """The epsilon that could be published for these votes, for one draw of the noise.

    The published divergence plus the divergence of publishing it, converted at the release's
    order. The published one is cut at the data-independent cost, which is public anyway.

    Args:
        table: The mechanism.
        votes: How many teachers voted 1 in each query, integers in 0..k, shape [T].
        delta: The delta of the statement, in (0, 1).
        release: Settings of the release, fixed without seeing the votes.
        noise: The standard normal draw; 0 gives the median of what would be published.

    Returns:
        Epsilon in nats. Valid for these votes with probability `release.confidence` over the draw.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("delta", delta, BETWEEN_0_AND_1)
    chosen = check_votes(votes, teachers=table.teachers)
    local = local_divergences(table, [release.order])[:, 0]
    smooth = smooth_sensitivity(local, beta=release.beta)[chosen].sum()
    published = local[chosen].sum() + release.sigma * smooth * (noise + release.quantile)
    spent = np.clip(published, 0.0, chosen.size * local.max()) + release.divergence
    return epsilon_from_rdp([release.order], [spent], delta=delta)


def sanitised_claim(
    table: VoteTable,
    votes: ArrayLike,
    *,
    delta: float,
    release: SmoothRelease,
    stream: np.random.Generator,
) -> PrivacyClaim:
    """The same with a draw from a stream, as a claim. Analysis only: floating-point noise.

    Args:
        table: The mechanism.
        votes: How many teachers voted 1 in each query, integers in 0..k, shape [T].
        delta: The delta of the claim, in (0, 1).
        release: Settings of the release, fixed without seeing the votes.
        stream: Where the draw comes from.

    Returns:
        A claim that holds for these votes only.

    Raises:
        SettingsError: If an argument is outside its range.
        ClaimError: If the epsilon is not positive.
    """
    epsilon = sanitised_epsilon(
        table, votes, delta=delta, release=release, noise=float(stream.standard_normal())
    )
    return PrivacyClaim(
        epsilon=epsilon,
        delta=delta,
        data_dependent=True,
        source=(
            f"data-dependent, sanitised by smooth sensitivity, for analysis only: "
            f"{np.size(votes)} one-bit votes of {table.teachers} teachers with {table.noise}; "
            f"their Rényi divergence of order {release.order:g}, {100 * release.confidence:g} % "
            f"upper value (beta {release.beta:g}, sigma {release.sigma:g}), and the release's own "
            f"{release.divergence:.3g}; votes must not depend on earlier labels"
        ),
    )


def pate_script_smooth_sensitivity(
    counts: ArrayLike, *, gamma: float, beta: float, moments: ArrayLike
) -> FloatArray:
    """The smooth sensitivity that PATE's script of 2017 prints for one query. For reproduction.

    The vote moves from the winner to the runner-up, one teacher at a time, and the script takes
    the largest discounted rise of its log moment. This is not an upper bound: the search ends at
    the first step without a rise, never tries the other direction, and is skipped, with 0 as the
    answer, for every moment above 2 / gamma.

    Args:
        counts: Votes of one query for each class, shape [classes].
        gamma: Inverse scale of the Laplace noise on each count, positive and finite.
        beta: Smoothness, positive and finite.
        moments: Moments l, positive and finite, shape [L].

    Returns:
        The script's value for each moment, shape [L].

    Raises:
        SettingsError: If an argument is outside its range.
    """
    check_number("gamma", gamma, POSITIVE)
    _check_beta(beta)
    moment = check_moments(moments)
    votes = np.sort(np.asarray(counts))
    if votes.dtype.kind not in "iu" or votes.ndim != 1 or votes.size < 2 or votes[-1] < 1:
        raise SettingsError("`counts` must be the votes of one query for two classes or more")
    distances = np.arange(min(votes[-1] - votes[-2] + 1, votes[-1]) + 1)
    moved = np.tile(votes, (distances.size, 1))
    moved[:, -1] -= distances
    moved[:, -2] += distances
    alpha = algorithm_1_moments(moved, gamma=gamma, moments=moment, deviations=PATE_SCRIPT_2017)
    rises = np.diff(alpha, axis=0)
    # A step without a rise ends the search; a first one without does not.
    ended = np.cumsum(rises[1:] == 0.0, axis=0) > 0
    discounted = rises * np.exp(-beta * distances[:-1, None])
    largest = np.max(np.vstack([discounted[:1], np.where(ended, 0.0, discounted[1:])]), axis=0)
    return np.where(0.5 * gamma * moment > 1.0, 0.0, largest)


def _check_beta(beta: float) -> None:
    if not 0.0 < beta < math.inf:
        raise SettingsError(f"`beta` is {beta}: choose a positive, finite smoothness")
