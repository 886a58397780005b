"""Checks that noise has the accounted distribution and scale, and labels follow from the votes.

Each test of a distribution errs with probability 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from dpaudit.account import Mechanism, VoteTable, vote_table
from dpaudit.account.vote_table import wrong_at
from dpaudit.formatting import percent
from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.recorder import NoiseOn
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, flaw
from dpaudit.trace.trainings import Trace, Trainings

ERROR: Final = 1e-6
"""Probability of a false alarm of one test."""
FEWEST: Final = 1200
"""Fewest draws by which normal and Laplace noise are distinguished with both errors at `ERROR`."""
_EXACT: Final = 1e-9
_CLIPPED: Final = 2e-6
"""Probabilities nearer to 0 or 1 may have been clipped (`VoteTable.quantised`)."""
_SAME: Final = 1e-6
_NARROWEST: Final = 1e3
"""Margin over scale: smaller noise changes no label."""
_WIDEST: Final = 1e9
"""In votes: noise of a larger scale hides every vote."""
_LABELS: Final = "labels-not-from-votes"
_ON_LABELS: Final = "noise-gaussian-on-labels"
_FEWEST_FOR_SCALE: Final = 30
_SCALES: Final = ("noise-scale-inverted", "noise-wrong-scale")


class Law(StrEnum):
    """Distributions of noise with mean 0."""

    NORMAL = "normal"
    LAPLACE = "Laplace"


class _Shape(NamedTuple):
    """Mean absolute value over root mean square, and sqrt(n) times its standard error."""

    ratio: float
    error: float


# The error is that of the delta method: of log(mean |x|) - log(mean x^2) / 2.
_SHAPES: Final = {
    Law.NORMAL: _Shape(math.sqrt(2 / math.pi), math.sqrt(1 - 3 / math.pi)),
    Law.LAPLACE: _Shape(math.sqrt(1 / 2), math.sqrt(1 / 2) / 2),
}
_BEYOND: Final = float(stats.norm.isf(ERROR / 20))
"""Standard errors; a spare factor of 20 allows for the ratio being only roughly normal."""


def laws_of(draws: FloatArray) -> tuple[Law, ...]:
    """The distributions that draws [n] may come from, whatever their scale.

    The ratio of mean absolute value and root mean square is the likelihood ratio of the two, each
    at its likeliest scale.

    Args:
        draws: At least `FEWEST`.

    Returns:
        The laws that are not rejected: none, one, or both if there are too few draws.
    """
    root = math.sqrt(float(np.mean(draws**2)))
    if not 0.0 < root < math.inf:
        return ()
    ratio = float(np.mean(np.abs(draws))) / root
    room = _BEYOND / math.sqrt(draws.size)
    return tuple(
        law for law, shape in _SHAPES.items() if abs(ratio - shape.ratio) < room * shape.error
    )


def scale_of(draws: FloatArray, law: Law) -> float:
    """The likeliest scale: standard deviation of normal draws, scale of Laplace draws."""
    if law is Law.NORMAL:
        return math.sqrt(float(np.mean(draws**2)))
    return float(np.mean(np.abs(draws)))


def may_have_scale(draws: FloatArray, law: Law, scale: float) -> bool:
    """Whether draws may have a scale: an exact two-sided test at `ERROR`.

    The sum of squares over the variance is chi-square with n degrees of freedom; the sum of
    absolute values over the Laplace scale is Gamma(n).

    Args:
        draws: Noise with mean 0; shape [n].
        law: Its distribution.
        scale: The scale in question: standard deviation or Laplace scale.

    Returns:
        False if the test rejects it.
    """
    n = draws.size
    if law is Law.NORMAL:
        statistic = float(np.sum((draws / scale) ** 2))
        tails = stats.chi2.cdf(statistic, n), stats.chi2.sf(statistic, n)
    else:
        statistic = float(np.sum(np.abs(draws / scale)))
        tails = stats.gamma.cdf(statistic, n), stats.gamma.sf(statistic, n)
    return bool(min(tails) > ERROR / 2)


def noise(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Runs every check of noise, on the table and in the exercises."""
    outcomes = [
        check for trace in trainings.charged for check in (*_on_votes(trace), *_on_labels(trace))
    ]
    yield from outcomes
    # An exercise may be too short to identify its noise, and its labels show the same mistake.
    wrong = [outcome.id for outcome in outcomes if isinstance(outcome, Finding)]
    yield from (_check_labels(trace, wrong) for trace in trainings.charged)


def draws_per_label(trace: Trace) -> int | None:
    """How many draws hide one vote: 1 or 2; None if neither."""
    drawn, labels = trace.noise[NoiseOn.VOTES].size, trace.labels.size
    return next((each for each in (1, 2) if drawn and drawn == each * labels), None)


def _on_votes(trace: Trace) -> Iterator[CheckOutcome]:
    ids = (*_SCALES, "noise-wrong-law")
    draws, accounted = trace.noise[NoiseOn.VOTES], accounted_noise(trace)
    if accounted is None or draws.size < _FEWEST_FOR_SCALE:
        why = f"{draws.size} draws on votes are too few" if accounted else "no noise was promised"
        yield from (Skipped(id_, why) for id_ in ids)
        return
    law = Law.NORMAL if accounted.mechanism is Mechanism.GAUSSIAN else Law.LAPLACE
    likely = laws_of(draws) if draws.size >= FEWEST else ()
    if likely and law not in likely:
        yield flaw(
            "noise-wrong-law",
            f"{draws.size} draws on votes have a {likely[0]} distribution, {law} noise is "
            f"accounted for; the false-alarm probability is {ERROR:g}",
            draws=draws.size,
            mean_absolute_over_deviation=_ratio(draws),
        )
        return
    if likely:
        yield Passed("noise-wrong-law")
    else:
        yield Skipped(
            "noise-wrong-law", f"{draws.size} draws on votes do not identify their distribution"
        )
    if may_have_scale(draws, law, accounted.scale):
        yield from (Passed(id_) for id_ in _SCALES)
        return
    gamma = trace.constants.get("gamma", 1.0 / accounted.scale)
    inverted = gamma > 0 and may_have_scale(draws, law, gamma)
    seen = scale_of(draws, law)
    yield flaw(
        _SCALES[0] if inverted else _SCALES[1],
        f"{draws.size} draws on votes have scale {seen:.6g} (standard deviation "
        f"{float(np.std(draws)):.6g}), where {accounted.scale:.6g} is accounted for"
        + (f": that is lambda = {gamma:g} itself" if inverted else ""),
        draws=draws.size,
        scale=seen,
        deviation=float(np.std(draws)),
        accounted_scale=accounted.scale,
    )


def _on_labels(trace: Trace) -> Iterator[CheckOutcome]:
    draws = trace.noise[NoiseOn.LABELS]
    if draws.size < FEWEST:
        if draws.size:
            yield Skipped(_ON_LABELS, f"{draws.size} draws on labels are too few")
        elif trace.noise[NoiseOn.VOTES].size or trace.labels.size:
            yield Passed(_ON_LABELS)
        else:
            yield Skipped(_ON_LABELS, "no noise was recorded")
        return
    if laws_of(draws) != (Law.NORMAL,):
        yield Passed(_ON_LABELS)
        return
    seen = scale_of(draws, Law.NORMAL)
    yield flaw(
        _ON_LABELS,
        f"{draws.size} normal draws with standard deviation {seen:.4g} are added to labels that "
        f"are 0 or 1; mean absolute value over deviation is {_ratio(draws):.3f}, for Laplace "
        f"noise 0.707; the false-alarm probability is {ERROR:g}",
        draws=draws.size,
        deviation=seen,
        excess_kurtosis=float(stats.kurtosis(draws)),
    )
    yield from _gaussian_scale(trace, draws)


def _gaussian_scale(trace: Trace, draws: FloatArray) -> Iterator[CheckOutcome]:
    """Checks that normal noise has the scale sqrt(2 ln(1.25 / delta)) / epsilon."""
    claim = trace.claim
    if claim is None or not claim.delta:
        yield Skipped("noise-wrong-scale", "normal noise, but no delta is claimed")
        return
    seen = scale_of(draws, Law.NORMAL)
    meant = {
        id_: math.sqrt(2.0 * math.log(1.25 * inverse)) / claim.epsilon
        for id_, inverse in inverse_deltas(claim.delta).items()
    }
    fitting = [id_ for id_, scale in meant.items() if may_have_scale(draws, Law.NORMAL, scale)]
    right = meant[""]
    if "" in fitting:
        yield Passed("noise-wrong-scale")
        yield from (Passed(id_) for id_ in meant if id_ and id_ not in fitting)
        return
    id_ = fitting[0] if fitting else "noise-wrong-scale"
    yield flaw(
        id_,
        f"normal noise has standard deviation {seen:.4g}; for epsilon {claim.epsilon:g} and delta "
        f"{claim.delta:g} the Gaussian mechanism needs {right:.4g}"
        + (f", and this mistake gives {meant[id_]:.4g}" if fitting else ""),
        draws=draws.size,
        deviation=seen,
        needed=right,
    )


def inverse_deltas(delta: float) -> dict[str, float]:
    """Values used for 1 / delta, by finding; the correct one under ""."""
    meant = {"": 1.0 / delta, "delta-multiplied": 10.0**delta}
    slipped = 10 ^ round(-math.log10(delta))
    if slipped > 1:
        meant["delta-xor"] = float(slipped)
    return meant


def _check_labels(trace: Trace, wrong: list[str]) -> CheckOutcome:
    """Checks whether released labels have the promised probabilities."""
    accounted, k = accounted_noise(trace), teachers_of(trace)
    table = trace.promised
    if accounted is not None and k is not None:
        if draws_per_label(trace) == 1 and accounted.mechanism is Mechanism.NOISY_MAX:
            # That is a finding of its own, one-noise-charged-as-two.
            accounted = accounted._replace(mechanism=Mechanism.LAPLACE)
            table = None
        table = table or accounted.table(k)
    if not trace.labels.size:
        return Skipped(_LABELS, "no labels were released")
    if table is None:
        return Skipped(_LABELS, "no noise was promised")
    if np.any(trace.ones > table.teachers):
        return Skipped(_LABELS, f"more votes than the {table.teachers} promised teachers")
    if wrong:
        return Skipped(_LABELS, f"explained by {wrong[0]}")
    return _test_votes(trace, table)


def _test_votes(trace: Trace, table: VoteTable) -> CheckOutcome:
    """Runs an exact binomial test for each count of votes, all together at `ERROR`."""
    cast, places = np.unique(trace.ones, return_inverse=True)
    released = np.bincount(places, weights=trace.labels).astype(int)
    times = np.bincount(places)
    expected = table.probabilities[cast]
    p_values = np.array(
        [
            stats.binomtest(int(ones), int(n), float(p)).pvalue
            for ones, n, p in zip(released, times, expected, strict=True)
        ]
    )
    least = int(np.argmin(p_values))
    if p_values[least] * cast.size > ERROR:
        return Passed(_LABELS)
    return flaw(
        _LABELS,
        f"with {cast[least]} of {table.teachers} votes for 1, {released[least]} of {times[least]} "
        f"labels are 1 ({percent(round(released[least] / times[least], 3))}), where the accounted "
        f"mechanism gives {percent(round(expected[least], 3))}; p = {p_values[least]:.1e}",
        votes=cast[least],
        labels=times[least],
        ones=released[least],
        probability=expected[least],
        p_value=p_values[least],
    )


def _ratio(draws: FloatArray) -> float:
    return float(np.mean(np.abs(draws)) / np.sqrt(np.mean(draws**2)))


class AccountedNoise(NamedTuple):
    """The noise that an accountant charges for.

    Attributes:
        mechanism: The mechanism.
        scale: Standard deviation of normal noise, scale of Laplace noise, in votes.
    """

    mechanism: Mechanism
    scale: float

    def table(self, teachers: int) -> VoteTable:
        """The probabilities that this noise gives."""
        return vote_table(self.mechanism, teachers, self.scale)


def accounted_noise(trace: Trace) -> AccountedNoise | None:
    """The noise that the accountant of a training charges for.

    It follows from the promised table of probabilities, or without one from `gamma`, as in PATE.

    Returns:
        The noise; None if nothing was promised, or the noise is not known.
    """
    gamma = trace.constants.get("gamma", 0.0)
    if trace.promised is not None:
        return _fit_noise(trace.promised, gamma)
    return AccountedNoise(Mechanism.NOISY_MAX, 1.0 / gamma) if gamma > 0 else None


def teachers_of(trace: Trace) -> int | None:
    """The number k of teachers, if it is known."""
    if trace.promised is not None:
        return trace.promised.teachers
    number = trace.constants.get("teachers", 0.0)
    return int(number) if number >= 1 and number == int(number) else None


def _fit_noise(table: VoteTable, gamma: float) -> AccountedNoise | None:
    """The noise that gives a table of probabilities.

    With few teachers or much noise there may be several; then the one of scale 1 / gamma.
    """
    k = table.teachers
    wrong = table.probabilities[: k // 2 + 1]
    margins = k / 2 - np.arange(k // 2 + 1, dtype=np.float64)
    telling = (margins > 0) & (wrong > _CLIPPED) & (wrong < 0.5)
    if not telling.any():
        return None
    wrong, margins = wrong[telling], margins[telling]
    fitting = []
    for mechanism in Mechanism:
        # The widest margin is the most informative.
        scale = _scale(mechanism, float(margins[0]), float(wrong[0]))
        if scale and np.all(np.abs(wrong_at(mechanism, margins / scale) - wrong) < _EXACT):
            fitting.append(AccountedNoise(mechanism, scale))
    if len(fitting) == 1:
        return fitting[0]
    alike = [law for law in fitting if abs(law.scale * gamma - 1.0) < _SAME]
    return alike[0] if len(alike) == 1 else None


def _scale(mechanism: Mechanism, margin: float, wrong: float) -> float | None:
    """The scale at which a label contradicts a majority of this margin with this probability."""

    def excess(log_x: float) -> float:
        return float(wrong_at(mechanism, np.exp(np.array(log_x))) - wrong)

    lowest, highest = math.log(margin / _WIDEST), math.log(_NARROWEST)
    if excess(lowest) <= 0.0 or excess(highest) >= 0.0:
        return None
    return float(margin / math.exp(brentq(excess, lowest, highest, xtol=1e-15, rtol=1e-14)))
