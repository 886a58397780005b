"""Recorded calls of mechanisms, and what they cost: a lower limit on epsilon, and upper ones.

The lower limit is certainly not above the epsilon of the calls; each accountant's figure covers it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import numpy as np
import scipy

from dpaudit.account.conversion import ORDERS, FloatArray, epsilon_from_rdp
from dpaudit.account.noisy_max import randomised_response_rdp
from dpaudit.errors import InputError, SettingsError
from dpaudit.formatting import clipped, did_you_mean
from dpaudit.model.choices import member_named
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.setting import AT_LEAST_1, POSITIVE, NumberRange, check_number, check_settings

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


class CallLaw(StrEnum):
    """The distribution that a mechanism draws from, as a replay's ledger names it."""

    GAUSSIAN = "gaussian"
    DISCRETE_GAUSSIAN = "discrete gaussian"
    LAPLACE = "laplace"
    DISCRETE_LAPLACE = "discrete laplace"
    """Two-sided geometric noise: probability proportional to exp(-|k| / scale)."""
    EXPONENTIAL = "exponential"
    """The exponential mechanism: probability proportional to exp(score / scale)."""
    RANDOMISED_RESPONSE = "randomised response"
    """The true category with a given probability, else one of the others at random."""
    PURE = "pure"
    """Any mechanism of unknown law whose largest privacy loss is sensitivity / scale."""


class Sampling(StrEnum):
    """How the records of a step are sampled."""

    POISSON = "poisson"
    """Each record independently."""
    SHUFFLED = "shuffled"
    """Each record once in 1 / sampling_rate steps: batches of a shuffled table."""


_OTHER_NAMES: Final = {
    "geometric": CallLaw.DISCRETE_LAPLACE,
    "randomized response": "randomised response",
}
_INTEGER_LAWS: Final = (CallLaw.DISCRETE_GAUSSIAN, CallLaw.DISCRETE_LAPLACE)
_SAMPLED: Final = (CallLaw.GAUSSIAN, CallLaw.LAPLACE, *_INTEGER_LAWS)
_WIDTH: Final = 1e-4
"""Grid width of losses that are rounded up: dp-accounting's default."""
_SHARE_LOST: Final = 0.04
"""Largest share of epsilon lost by rounding losses down; on average half of it is."""
_FINEST: Final = 1e-6
_MOST_POINTS: Final = 1e6
"""Grid points of the largest loss of one call; a tenth of them where losses are huge."""
_HUGE_LOSS: Final = 50.0
_TESTS: Final = 8
"""Number of tests to try where a lower limit needs a test of the answers."""
_MARGIN: Final = 1e-10
"""More than truncation (1e-15 per composition) and rounding may add to a divergence."""
_LEAST_LOG: Final = -700.0
_GAUSSIANS: Final = (CallLaw.GAUSSIAN, CallLaw.DISCRETE_GAUSSIAN)
_ROUNDED_ONCE: Final = (CallLaw.EXPONENTIAL, CallLaw.PURE, CallLaw.RANDOMISED_RESPONSE)
"""Covered by randomised response: all steps together have few losses, so they are rounded once."""
_MOST_RESOLVED: Final = 700.0
"""For larger losses exp(-loss) is 0 in floating point."""
_WHOLE_ORDERS: Final = np.array([*range(2, 65), 80, 96, 128, 192, 256, 512, 1024], dtype=float)


@dataclass(frozen=True, kw_only=True)
class Call:
    """Equal calls of one mechanism on the same records.

    Attributes:
        law: Distribution that it draws from.
        scale: Scale of the noise: the standard deviation of a Gaussian, or the divisor of the
            scores in the exponential mechanism. None for randomised response.
        sensitivity: Largest change of the answer between neighbouring tables (in L2 for Gaussian
            noise, in L1 for Laplace noise), or of a score of the exponential mechanism.
        steps: Number of calls.
        sampling_rate: Share of the records in a step.
        sampling: How these records are sampled.
        other_scale: Scale of the noise on the neighbouring table, if it depends on the data.
        dimensions: Numbers in an answer; matters only if `other_scale` is given.
        probability: Probability of the true category in randomised response.
        categories: Number of categories in randomised response.

    Raises:
        SettingsError: If a field is outside its range or does not fit the law.
    """

    law: CallLaw
    scale: Annotated[float | None, POSITIVE] = None
    sensitivity: Annotated[float, POSITIVE] = 1.0
    steps: Annotated[int, AT_LEAST_1] = 1
    sampling_rate: Annotated[float, NumberRange(above=0, most=1)] = 1.0
    sampling: Sampling = Sampling.POISSON
    other_scale: Annotated[float | None, POSITIVE] = None
    dimensions: Annotated[int, AT_LEAST_1] = 1
    probability: float | None = None
    categories: Annotated[int, NumberRange(least=2)] = 2

    def __post_init__(self) -> None:
        check_settings(self)
        self._check_law()
        self._check_sampling()

    def _check_law(self) -> None:
        if self.law is CallLaw.RANDOMISED_RESPONSE:
            likelier = NumberRange(above=1 / self.categories, below=1, why="of the true category")
            check_number("probability", self.probability, likelier)
        elif self.scale is None:
            raise SettingsError(f"`scale` is missing: {self.law} noise needs it")
        if self.law in _INTEGER_LAWS and self.sensitivity != int(self.sensitivity):
            raise SettingsError(
                f"`sensitivity` is {self.sensitivity:g}: {self.law} noise is for whole numbers"
            )
        if self.other_scale is not None and self.law is not CallLaw.GAUSSIAN:
            raise SettingsError("`other_scale` is known for gaussian noise only: leave it out")

    def _check_sampling(self) -> None:
        if self.sampling_rate < 1 and self.law not in _SAMPLED:
            raise SettingsError(
                f"`sampling_rate` is not known for {self.law}: use 1, or record its noise"
            )
        if self.sampling is Sampling.SHUFFLED:
            batches = 1 / self.sampling_rate
            if self.law is not CallLaw.GAUSSIAN or abs(batches - round(batches)) > 1e-6 * batches:
                raise SettingsError(
                    f"`sampling` is shuffled, which takes gaussian noise and a `sampling_rate` of "
                    f"1 / number of batches, not {self.law} noise and {self.sampling_rate:g}"
                )

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss of one call for a record in its sample."""
        if self.law is CallLaw.RANDOMISED_RESPONSE:
            assert self.probability is not None  # checked above
            return math.log(self.probability * (self.categories - 1) / (1 - self.probability))
        if self.law in (CallLaw.GAUSSIAN, CallLaw.DISCRETE_GAUSSIAN):
            return math.inf
        return self.ratio * (2 if self.law is CallLaw.EXPONENTIAL else 1)

    @property
    def ratio(self) -> float:
        """The change of the answer in units of the noise."""
        assert self.scale is not None  # checked above
        return self.sensitivity / self.scale

    @property
    def batches(self) -> int:
        """Batches of a shuffled table."""
        return round(1 / self.sampling_rate)


class Calls(NamedTuple):
    """The calls of a file, and the epsilon and delta that it states.

    Attributes:
        calls: The calls.
        epsilon: The stated epsilon; None if the file states none.
        delta: The stated delta; None if the file states none.
    """

    calls: tuple[Call, ...]
    epsilon: float | None = None
    delta: float | None = None


def calls_of(document: Any, source: str) -> Calls:
    """The calls in a JSON document: a list, or an object with `calls`, `epsilon` and `delta`.

    The keys of a call are the fields of `Call`.

    Args:
        document: The document.
        source: Name of the document in messages.

    Raises:
        InputError: If it does not have this form; the message names the call and the field.
    """
    content: Any = {"calls": document} if isinstance(document, list) else document
    if not isinstance(content, Mapping) or not isinstance(content.get("calls"), list):
        raise InputError(f"{source} has no list of calls: give [{{'law': ..., 'scale': ...}}, ...]")
    unknown = set(content) - {"calls", "epsilon", "delta"}
    if unknown:
        raise InputError(f"{source}: {min(unknown)!r} is not one of calls, epsilon, delta")
    for name in ("epsilon", "delta"):
        value = content.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"{source}: {name} is {clipped(repr(value), 40)}: give a number")
    if not content["calls"]:
        raise InputError(f"{source} has no calls: give at least one")
    calls = [
        _parse_call(call, f"{source}: call {n}") for n, call in enumerate(content["calls"], start=1)
    ]
    return Calls(tuple(calls), content.get("epsilon"), content.get("delta"))


def _parse_call(document: Any, place: str) -> Call:
    """Reads one call; raises an `InputError` that names the call and the field."""
    known = [field.name for field in fields(Call)]
    if not isinstance(document, Mapping):
        raise InputError(f"{place} is {clipped(repr(document), 40)}: give an object with its law")
    for name in document:
        if name not in known:
            raise InputError(
                f"{place}: no field {clipped(repr(name), 40)}{did_you_mean(str(name), known)}; "
                f"there are {', '.join(known)}"
            )
    if "law" not in document:
        raise InputError(f"{place}: `law` is missing: give one of {', '.join(CallLaw)}")
    law = str(document["law"]).replace("-", " ").replace("_", " ")
    try:
        named = {
            "law": member_named("law", CallLaw, _OTHER_NAMES.get(law, law)),
            "sampling": member_named("sampling", Sampling, document.get("sampling", "poisson")),
        }
        return Call(**{**document, **named})
    except SettingsError as error:
        raise InputError(f"{place}: {error}") from None


# The cost of calls


class Figure(NamedTuple):
    """The epsilon that one accountant computes.

    Attributes:
        accountant: Its name.
        epsilon: An epsilon that covers the calls; null if the accountant gives none.
        note: Why it gives none; else null.
    """

    accountant: str
    epsilon: float | None
    note: str | None = None


def lower_limit(calls: Sequence[Call], *, delta: float, near: float) -> float:
    """An epsilon that is certainly not above that of the calls.

    It holds for the two tables that move every answer by its sensitivity. Privacy losses are
    rounded down, so the calls together diverge at least as much as computed (dp-accounting's
    optimistic estimate). Where the law of the losses has no such form, only the outcome of a test
    of the answers counts, which reveals less than the answers: whether the largest sum of a
    shuffled table (Chua et al. 2024), or the total, is large; whether noise whose scale depends on
    the data is small; which of two groups of candidates was chosen.

    Args:
        calls: The calls.
        delta: The delta, in [0, 1).
        near: Rough size of epsilon, which sets the resolution.

    Returns:
        The largest of the limits from all tests; infinity if no epsilon holds.
    """
    if delta == 0:
        return sum(_pure_epsilon(call) for call in calls)
    if all(_is_plain_gaussian(call) for call in calls):
        return gaussian_epsilon(_mu_of(calls), delta)
    tests = _TESTS if any(_needs_test(call) for call in calls) else 1
    return max(_lower_epsilon(calls, delta=delta, near=near, test=test) for test in range(tests))


def figures(calls: Sequence[Call], *, delta: float) -> tuple[Figure, ...]:
    """The figures of the accountants, each an epsilon that covers the calls.

    Args:
        calls: The calls.
        delta: The delta, in [0, 1).
    """
    if any(call.other_scale is not None for call in calls):
        return (Figure("all", None, "the scale of the noise depends on the data"),)
    if delta == 0:
        return (_figure("exact (dpaudit)", sum(_pure_epsilon(call) for call in calls)),)
    exact = []
    if all(_is_plain_gaussian(call) for call in calls):
        exact = [_figure("exact (dpaudit)", gaussian_epsilon(_mu_of(calls), delta))]
    return (
        *exact,
        _figure("rdp (dpaudit)", _rdp_epsilon(calls, delta)),
        _figure("pld (dp-accounting)", _upper_epsilon(calls, delta=delta)),
        *_opacus_figures(calls, delta),
    )


def _figure(name: str, epsilon: float) -> Figure:
    if math.isfinite(epsilon):
        return Figure(name, epsilon)
    return Figure(name, None, "no epsilon up to 700 holds at this delta")


def _is_plain_gaussian(call: Call) -> bool:
    """Whether a call is a Gaussian mechanism without sampling, known exactly."""
    return call.law is CallLaw.GAUSSIAN and call.sampling_rate == 1 and call.other_scale is None


def _needs_test(call: Call) -> bool:
    """Whether a lower limit needs a test of the answers (`lower_limit`)."""
    shuffled = call.sampling is Sampling.SHUFFLED and call.sampling_rate < 1
    return shuffled or call.other_scale is not None or call.law is CallLaw.EXPONENTIAL


def _mu_of(calls: Sequence[Call]) -> float:
    """Mu of plain Gaussian calls together: squares add up."""
    return math.sqrt(sum(call.steps * call.ratio**2 for call in calls))


def _pure_epsilon(call: Call) -> float:
    """The largest loss of all steps together; infinite for Gaussian noise."""
    return call.steps * (math.inf if call.law in _GAUSSIANS else _loss_of_step(call))


# Privacy loss distributions


def _lower_epsilon(calls: Sequence[Call], *, delta: float, near: float, test: int) -> float:
    """A lower limit on epsilon, with one of the tests where a test is needed."""
    steps = sum(call.steps for call in calls if _is_rounded_each_step(call))
    wanted = min(1e-3, _SHARE_LOST * near / max(1, steps))
    width = max(_FINEST, _least_width(calls), wanted)
    parts = [part for call in calls for part in _lower_distributions(call, width, test)]
    plain = [call for call in calls if _is_plain_gaussian(call)]
    if plain:
        parts.append(_gaussian_distribution(_mu_of(plain), width, up=False))
    return min(_composed_epsilon(parts, delta * (1 + 1e-6) + _MARGIN), _MOST_RESOLVED)


def _is_rounded_each_step(call: Call) -> bool:
    """Whether every step is rounded to the grid, so that rounding errors add up."""
    return not (_is_plain_gaussian(call) or _needs_test(call)) and call.law not in _ROUNDED_ONCE


def _upper_epsilon(calls: Sequence[Call], *, delta: float) -> float:
    """An upper limit on epsilon by privacy loss distributions."""
    width = max(_WIDTH, _least_width(calls))
    parts = [_upper_distribution(call, width) for call in calls if not _is_plain_gaussian(call)]
    plain = [call for call in calls if _is_plain_gaussian(call)]
    if plain:
        parts.append(_gaussian_distribution(_mu_of(plain), width, up=True))
    epsilon = _composed_epsilon(parts, delta)
    return epsilon if epsilon < _MOST_RESOLVED else math.inf


def _least_width(calls: Sequence[Call]) -> float:
    """The finest grid width: the largest loss of a step over the most points allowed.

    Losses of Gaussian noise count up to ten standard deviations.
    """
    mu = _mu_of([call for call in calls if _is_plain_gaussian(call)])
    losses = [_loss_of_step(call) for call in calls if not _is_plain_gaussian(call)]
    largest = max([mu * (mu / 2 + 10), *losses])
    return largest / _MOST_POINTS * (1 if largest < _HUGE_LOSS else 10)


def _loss_of_step(call: Call) -> float:
    """The largest loss of one sampled step; Gaussian noise counts up to ten deviations."""
    is_gaussian, q = call.law in _GAUSSIANS, call.sampling_rate
    loss = call.ratio * (call.ratio / 2 + 10) if is_gaussian else call.largest_loss
    # Sampling mixes a step that has the record with one that lacks it.
    return loss if q == 1 else loss + math.log(q + (1 - q) * math.exp(-loss))


def _composed_epsilon(parts: Sequence[PrivacyLossDistribution], delta: float) -> float:
    """Epsilon at delta of all these distributions together."""
    if not parts:
        return 0.0
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return max(0.0, float(whole.get_epsilon_for_delta(delta)))


def _upper_distribution(call: Call, width: float) -> PrivacyLossDistribution:
    """The losses of all steps of a call, rounded up."""
    if call.sampling is Sampling.SHUFFLED:  # each epoch has the record in one sum
        epochs = math.ceil(call.steps * call.sampling_rate - 1e-9)
        return _gaussian_distribution(call.ratio * math.sqrt(epochs), width, up=True)
    if call.law in _ROUNDED_ONCE:
        return _response_distribution(call, width, up=True)
    return _step_distribution(call, width).self_compose(call.steps)


def _lower_distributions(call: Call, width: float, test: int) -> Iterator[PrivacyLossDistribution]:
    """The losses of all steps of a call, rounded down; nothing if none are known."""
    if call.other_scale is not None:
        yield _test_distribution(*_variance_test(call, test), 1, width)
    elif call.sampling is Sampling.SHUFFLED and call.sampling_rate < 1:
        epochs = math.floor(call.steps * call.sampling_rate + 1e-9)
        if epochs == 0:
            return
        if test == 0:  # the total of an epoch's sums is a Gaussian answer itself
            yield _gaussian_distribution(
                call.ratio * math.sqrt(epochs / call.batches), width, up=False
            )
        else:
            yield _test_distribution(*_largest_sum_test(call, test), epochs, width)
    elif call.law is CallLaw.EXPONENTIAL:
        yield _test_distribution(*_choice_test(call, test), call.steps, width)
    elif call.law is CallLaw.RANDOMISED_RESPONSE:
        yield _response_distribution(call, width, up=False)
    elif call.law is not CallLaw.PURE and not _is_plain_gaussian(call):
        yield _step_distribution(call, width, up=False).self_compose(call.steps)


def _step_distribution(call: Call, width: float, *, up: bool = True) -> PrivacyLossDistribution:
    """The losses of one step of a law that dp-accounting knows."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    assert call.scale is not None  # checked by the call
    change, options = int(call.sensitivity), _pld_options(width, up, rate=call.sampling_rate)
    if call.law is CallLaw.GAUSSIAN:
        return pld.from_gaussian_mechanism(1 / call.ratio, **options)
    if call.law is CallLaw.LAPLACE:
        return pld.from_laplace_mechanism(1 / call.ratio, **options)
    if call.law is CallLaw.DISCRETE_LAPLACE:
        return pld.from_discrete_laplace_mechanism(1 / call.scale, change, **options)
    return pld.from_discrete_gaussian_mechanism(call.scale, change, **options)


def _gaussian_distribution(mu: float, width: float, *, up: bool) -> PrivacyLossDistribution:
    """The losses of a Gaussian answer that moves by mu standard deviations."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(1 / mu, **_pld_options(width, up))


def _pld_options(width: float, up: bool, *, rate: float = 1.0) -> dict[str, Any]:
    """Arguments for dp-accounting: rounding of losses to a grid, up or down, and sampling rate."""
    return {
        "pessimistic_estimate": up,
        "value_discretization_interval": width,
        "sampling_prob": rate,
        "use_connect_dots": up,
    }


def _response_distribution(call: Call, width: float, *, up: bool) -> PrivacyLossDistribution:
    """The losses of all steps of randomised response, which dominates any bounded loss."""
    loss = call.largest_loss
    kept, other = float(scipy.special.expit(loss)), float(scipy.special.expit(-loss))
    if call.law is CallLaw.RANDOMISED_RESPONSE:
        assert call.probability is not None  # checked by the call
        kept, other = call.probability, (1 - call.probability) / (call.categories - 1)
    # A step has the loss +l (true category), -l (the neighbour's) or 0: count the + less the -.
    net_truths = np.arange(-call.steps, call.steps + 1)
    mass: FloatArray
    if call.categories == 2:
        mass = np.where(net_truths % 2 == call.steps % 2, 1.0, 0.0)
        mass *= scipy.stats.binom.pmf((net_truths + call.steps) // 2, call.steps, kept)
    else:
        mass = np.zeros(len(net_truths))
        mass[:3] = other, 1 - kept - other, kept
        mass = np.maximum(np.fft.irfft(np.fft.rfft(mass) ** call.steps, len(net_truths)), 0.0)
    return _on_grid(np.asarray(loss * net_truths, dtype=np.float64), mass, mass[::-1], width, up=up)


def _test_distribution(
    inside: float, outside: float, times: int, width: float
) -> PrivacyLossDistribution:
    """The losses of repeated tests with these log probabilities of passing, rounded down."""
    passes = [max(log_chance, _LEAST_LOG) for log_chance in (inside, outside)]
    fails = [math.log(max(-math.expm1(log_chance), math.exp(_LEAST_LOG))) for log_chance in passes]
    passed = np.arange(times + 1)
    in_world_in, in_world_out = (
        np.asarray(scipy.stats.binom.pmf(passed, times, math.exp(log_chance)))
        for log_chance in passes
    )
    losses = passed * (passes[0] - passes[1]) + (times - passed) * (fails[0] - fails[1])
    return _on_grid(losses, in_world_in, in_world_out, width, up=False)


def _on_grid(
    losses: FloatArray, inside: FloatArray, outside: FloatArray, width: float, *, up: bool
) -> PrivacyLossDistribution:
    """The distribution of outcomes with these losses and probabilities in both worlds."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as Loss

    parts: list[object] = []
    for loss, mass in ((losses, inside), (-losses, outside)):
        places = (np.ceil if up else np.floor)(loss / width).astype(np.int64)
        mass_at = np.bincount(places - places.min(), weights=mass)
        possible = np.flatnonzero(mass_at > 0)
        rounded = dict(
            zip((possible + places.min()).tolist(), mass_at[possible].tolist(), strict=True)
        )
        parts += [rounded, max(0.0, 1.0 - float(mass.sum())) if up else 0.0]
    first, first_missing, second, second_missing = parts
    return Loss.create_from_rounded_probability(
        first, first_missing, width, up, second, second_missing, symmetric=False
    )


def _variance_test(call: Call, test: int) -> tuple[float, float]:
    """Log probabilities that the squared noise is small in total: chi-squared in both worlds."""
    assert call.scale is not None  # checked by the call
    assert call.other_scale is not None  # else there is nothing to test
    numbers = call.dimensions * call.steps
    narrow, wide = sorted((call.scale, call.other_scale))
    level = (0.2, 0.5, 0.8, 0.95, 0.99, 1 - 1e-3, 1 - 1e-5, 1 - 1e-7)[test]
    limit = float(scipy.stats.chi2.ppf(level, numbers))
    small = [
        float(scipy.stats.chi2.logcdf(limit * (narrow / scale) ** 2, numbers))
        for scale in (narrow, wide)
    ]
    return (small[0], small[1]) if call.scale == narrow else (small[1], small[0])


def _largest_sum_test(call: Call, test: int) -> tuple[float, float]:
    """Log probabilities that an epoch's largest noisy sum exceeds a limit (Chua et al. 2024)."""
    limit = float(scipy.stats.norm.isf(10.0 ** -(test - 1) * 0.1 / call.batches))
    log_all_below = call.batches * float(scipy.stats.norm.logcdf(limit))
    log_others_below = (call.batches - 1) * float(scipy.stats.norm.logcdf(limit))
    inside = -math.expm1(float(scipy.stats.norm.logcdf(limit - call.ratio)) + log_others_below)
    return math.log(inside), math.log(-math.expm1(log_all_below))


def _choice_test(call: Call, test: int) -> tuple[float, float]:
    """Log probabilities that a candidate is chosen whose score gains the sensitivity.

    All other candidates lose it; the test fixes how many there are of either kind.
    """
    loss = call.largest_loss
    gained = loss * (0.5 + 0.49 * test / (_TESTS - 1))
    outside = math.log(-math.expm1(gained - loss)) - math.log(-math.expm1(-loss)) - gained
    return min(outside + gained, -1e-300), outside


# Rényi divergences


def _rdp_epsilon(calls: Sequence[Call], delta: float) -> float:
    """An upper limit on epsilon by added Rényi divergences."""
    is_sampled = any(call.law is CallLaw.GAUSSIAN and call.sampling_rate < 1 for call in calls)
    orders = _WHOLE_ORDERS if is_sampled else ORDERS
    total = np.zeros_like(orders)
    for call in calls:
        total = total + _rdp_of(call, orders)
    return epsilon_from_rdp(orders, total, delta=delta)


def _rdp_of(call: Call, orders: FloatArray) -> FloatArray:
    """Upper limits on the Rényi divergence of all steps of a call, at each order."""
    if call.law in _GAUSSIANS and call.sampling is Sampling.SHUFFLED:
        epochs = math.ceil(call.steps * call.sampling_rate - 1e-9)
        return np.asarray(epochs * orders * call.ratio**2 / 2)
    if call.law is CallLaw.GAUSSIAN and call.sampling_rate < 1:
        return call.steps * np.array([_sampled_gaussian(call, order) for order in orders])
    if call.law in _GAUSSIANS:  # discrete: Canonne, Kamath and Steinke 2020
        return np.asarray(call.steps * orders * call.ratio**2 / 2)
    loss = _pure_epsilon(call) / call.steps
    if call.law is CallLaw.LAPLACE and call.sampling_rate == 1:  # Mironov 2017, Proposition 6
        logs = [
            np.log(orders / (2 * orders - 1)) + (orders - 1) * loss,
            np.log((orders - 1) / (2 * orders - 1)) - orders * loss,
        ]
        return np.asarray(call.steps * scipy.special.logsumexp(logs, axis=0) / (orders - 1))
    if call.law is CallLaw.RANDOMISED_RESPONSE:
        k, p = call.categories, call.probability
        assert p is not None  # checked by the call
        true, other = math.log(p), math.log((1 - p) / (k - 1))
        logs = [
            orders * log_p + (1 - orders) * log_q for log_p, log_q in ((true, other), (other, true))
        ]
        if k > 2:
            logs.append(np.full_like(orders, math.log(k - 2) + other))
        return np.asarray(call.steps * scipy.special.logsumexp(logs, axis=0) / (orders - 1))
    # Among bounded losses randomised response diverges most (Bun and Steinke 2016). The exponential
    # mechanism also has a bounded range, which limits it further (Cesar and Rogers 2021).
    most = randomised_response_rdp(orders, loss)
    if call.law is CallLaw.EXPONENTIAL:
        most = np.minimum(most, orders * loss**2 / 8)
    return np.asarray(call.steps * most)


def _sampled_gaussian(call: Call, order: float) -> float:
    """Rényi divergence of a Poisson-sampled step at a whole order (Mironov et al. 2019)."""
    q, k = call.sampling_rate, np.arange(order + 1)
    gammaln = scipy.special.gammaln
    binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs = binomial + (order - k) * math.log1p(-q) + k * math.log(q)
    moment = float(scipy.special.logsumexp(logs + k * (k - 1) * call.ratio**2 / 2))
    return max(0.0, moment / (order - 1))


# Opacus


def _opacus_figures(calls: Sequence[Call], delta: float) -> Iterator[Figure]:
    """Figures of Opacus' accountants, if it is installed and its formulae apply."""
    poisson = all(
        call.law is CallLaw.GAUSSIAN and call.sampling is Sampling.POISSON for call in calls
    )
    if not poisson or any(call.other_scale is not None for call in calls):
        yield Figure("opacus", None, "only for Poisson-sampled Gaussian noise")
        return
    if find_spec("opacus") is None:
        yield Figure("opacus", None, "not installed here: pip install opacus")
        return
    from opacus.accountants import PRVAccountant, RDPAccountant

    for name, kind in (("rdp (opacus)", RDPAccountant), ("prv (opacus)", PRVAccountant)):
        accountant = kind()
        accountant.history = [(1 / call.ratio, call.sampling_rate, call.steps) for call in calls]
        yield Figure(name, float(accountant.get_epsilon(delta)))
