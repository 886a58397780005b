"""Recorded calls of mechanisms, and what they cost.

A limit that is certainly too low, and several that are high enough.
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
    """What a mechanism draws from, by the names of a replay's ledger."""

    GAUSSIAN = "gaussian"
    DISCRETE_GAUSSIAN = "discrete gaussian"
    LAPLACE = "laplace"
    DISCRETE_LAPLACE = "discrete laplace"
    """Two-sided geometric noise: probability proportional to exp(-|k| / scale)."""
    EXPONENTIAL = "exponential"
    """The exponential mechanism: probability proportional to exp(score / scale)."""
    RANDOMISED_RESPONSE = "randomised response"
    """The true category with a probability, else one of the others."""
    PURE = "pure"
    """Any mechanism of largest privacy loss sensitivity / scale, and of no known law."""


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
_WHOLE_CHANGE: Final = (CallLaw.DISCRETE_GAUSSIAN, CallLaw.DISCRETE_LAPLACE)
_SAMPLED: Final = (CallLaw.GAUSSIAN, CallLaw.LAPLACE, *_WHOLE_CHANGE)
_WIDTH: Final = 1e-4
"""Grid width of losses that are rounded up, as dp-accounting's own."""
_SHARE_LOST: Final = 0.04
"""Share of epsilon that rounding losses down may take: half of it does on average."""
_FINEST: Final = 1e-6
_MOST_POINTS: Final = 1e6
"""Grid points of the largest loss of one call; a tenth of them where losses are huge."""
_HUGE: Final = 50.0
_WAYS: Final = 8
"""Tests that are tried where a lower limit needs a test."""
_MARGIN: Final = 1e-10
"""Above what truncation (1e-15 a composition) and rounding may add to a divergence."""
_LEAST_LOG: Final = -700.0
_GAUSSIANS: Final = (CallLaw.GAUSSIAN, CallLaw.DISCRETE_GAUSSIAN)
_FEW_LOSSES: Final = (CallLaw.EXPONENTIAL, CallLaw.PURE, CallLaw.RANDOMISED_RESPONSE)
"""Covered by randomised response, whose steps have few losses together: rounded once."""
_MOST_RESOLVED: Final = 700.0
"""Of larger losses exp(-loss) is 0 in floating point."""
_WHOLE_ORDERS: Final = np.array([*range(2, 65), 80, 96, 128, 192, 256, 512, 1024], dtype=float)


@dataclass(frozen=True, kw_only=True)
class Call:
    """Equal calls of one mechanism on the same records.

    Attributes:
        law: What it draws from.
        scale: Scale of the noise: the standard deviation of a Gaussian; for the exponential
            mechanism what scores are divided by. None for randomised response.
        sensitivity: How far the answer moves between two neighbouring tables (in L2 for Gaussian
            noise, in L1 for Laplace noise), or each score of an exponential mechanism.
        steps: Number of calls.
        sampling_rate: Share of the records in a step.
        sampling: How they are sampled.
        other_scale: Scale of the noise on the neighbouring table, where it depends on the data.
        dimensions: Numbers in an answer; they count only where `other_scale` is given.
        probability: Of the true category in randomised response.
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
        if self.law in _WHOLE_CHANGE and self.sensitivity != int(self.sensitivity):
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
        """The largest privacy loss of one call on a record that is in it."""
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
        epsilon: The stated epsilon; None if the file has none.
        delta: Its delta; None if the file has none.
    """

    calls: tuple[Call, ...]
    epsilon: float | None = None
    delta: float | None = None


def calls_of(document: Any, source: str) -> Calls:
    """The calls in a JSON document: a list, or an object with `calls`, `epsilon` and `delta`.

    The keys of a call are the fields of `Call`.

    Args:
        document: The document.
        source: What messages call it.

    Raises:
        InputError: If it does not have this form; the message names the call and the field.
    """
    whole: Any = {"calls": document} if isinstance(document, list) else document
    if not isinstance(whole, Mapping) or not isinstance(whole.get("calls"), list):
        raise InputError(f"{source} has no list of calls: give [{{'law': ..., 'scale': ...}}, ...]")
    strange = set(whole) - {"calls", "epsilon", "delta"}
    if strange:
        raise InputError(f"{source}: {min(strange)!r} is not one of calls, epsilon, delta")
    for name in ("epsilon", "delta"):
        value = whole.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InputError(f"{source}: {name} is {clipped(repr(value), 40)}: give a number")
    if not whole["calls"]:
        raise InputError(f"{source} has no calls: give at least one")
    calls = [_call(one, f"{source}: call {n}") for n, one in enumerate(whole["calls"], start=1)]
    return Calls(tuple(calls), whole.get("epsilon"), whole.get("delta"))


def _call(document: Any, place: str) -> Call:
    known = [one.name for one in fields(Call)]
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


# What they cost


class Figure(NamedTuple):
    """What one accountant says.

    Attributes:
        accountant: Its name.
        epsilon: An epsilon that covers the calls; null if it has none.
        note: Why it has none; else null.
    """

    accountant: str
    epsilon: float | None
    note: str | None = None


def lower_limit(calls: Sequence[Call], *, delta: float, near: float) -> float:
    """An epsilon that is certainly not above that of the calls.

    It holds for the two tables that move every answer by its sensitivity. Privacy losses are
    rounded down, so that the divergence of the calls together is at least the computed one
    (dp-accounting's optimistic estimate). Where the law of the losses has no such form,
    only the outcome of a test of the answers counts, which shows less than they do: the largest
    of a shuffled table's sums (Chua et al. 2024) or their total, the variance of noise whose scale
    depends on the data, the choice between two groups of candidates.

    Args:
        calls: The calls.
        delta: The delta, in [0, 1).
        near: About how large epsilon is: sets the resolution.

    Returns:
        The largest of the limits found; infinity if no epsilon holds.
    """
    if delta == 0:
        return sum(_pure(one) for one in calls)
    if all(_is_plain_gaussian(one) for one in calls):
        return gaussian_epsilon(_mu(calls), delta)
    ways = _WAYS if any(_needs_test(one) for one in calls) else 1
    return max(_lower(calls, delta=delta, near=near, way=way) for way in range(ways))


def figures(calls: Sequence[Call], *, delta: float) -> tuple[Figure, ...]:
    """What the accountants say, each an epsilon that covers the calls.

    Args:
        calls: The calls.
        delta: The delta, in [0, 1).
    """
    if any(one.other_scale is not None for one in calls):
        return (Figure("all", None, "the scale of the noise depends on the data"),)
    if delta == 0:
        return (_figure("exact (dpaudit)", sum(_pure(one) for one in calls)),)
    exact = []
    if all(_is_plain_gaussian(one) for one in calls):
        exact = [_figure("exact (dpaudit)", gaussian_epsilon(_mu(calls), delta))]
    return (
        *exact,
        _figure("rdp (dpaudit)", _rdp_epsilon(calls, delta)),
        _figure("pld (dp-accounting)", _upper(calls, delta=delta)),
        *_opacus(calls, delta),
    )


def _figure(name: str, epsilon: float) -> Figure:
    if math.isfinite(epsilon):
        return Figure(name, epsilon)
    return Figure(name, None, "no epsilon up to 700 holds at this delta")


def _is_plain_gaussian(call: Call) -> bool:
    return call.law is CallLaw.GAUSSIAN and call.sampling_rate == 1 and call.other_scale is None


def _needs_test(call: Call) -> bool:
    shuffled = call.sampling is Sampling.SHUFFLED and call.sampling_rate < 1
    return shuffled or call.other_scale is not None or call.law is CallLaw.EXPONENTIAL


def _mu(calls: Sequence[Call]) -> float:
    return math.sqrt(sum(one.steps * one.ratio**2 for one in calls))


def _pure(call: Call) -> float:
    """The largest loss of the steps together; infinite for Gaussian noise."""
    return call.steps * (math.inf if call.law in _GAUSSIANS else _one_step(call))


# Privacy loss distributions


def _lower(calls: Sequence[Call], *, delta: float, near: float, way: int) -> float:
    steps = sum(one.steps for one in calls if _is_rounded_each_step(one))
    fine = min(1e-3, _SHARE_LOST * near / max(1, steps))
    width = max(_FINEST, _coarsest(calls), fine)
    parts = [part for one in calls for part in _low_parts(one, width, way)]
    plain = [one for one in calls if _is_plain_gaussian(one)]
    if plain:
        parts.append(_gaussian(_mu(plain), width, up=False))
    return min(_epsilon(parts, delta * (1 + 1e-6) + _MARGIN), _MOST_RESOLVED)


def _is_rounded_each_step(call: Call) -> bool:
    return not (_is_plain_gaussian(call) or _needs_test(call)) and call.law not in _FEW_LOSSES


def _upper(calls: Sequence[Call], *, delta: float) -> float:
    width = max(_WIDTH, _coarsest(calls))
    parts = [_high_part(one, width) for one in calls if not _is_plain_gaussian(one)]
    plain = [one for one in calls if _is_plain_gaussian(one)]
    if plain:
        parts.append(_gaussian(_mu(plain), width, up=True))
    epsilon = _epsilon(parts, delta)
    return epsilon if epsilon < _MOST_RESOLVED else math.inf


def _coarsest(calls: Sequence[Call]) -> float:
    """A grid width for the largest loss of one step, of Gaussian noise ten deviations out."""
    plain = _mu([one for one in calls if _is_plain_gaussian(one)])
    others = [_one_step(one) for one in calls if not _is_plain_gaussian(one)]
    largest = max([plain * (plain / 2 + 10), *others])
    return largest / _MOST_POINTS * (1 if largest < _HUGE else 10)


def _one_step(call: Call) -> float:
    is_gaussian, q = call.law in _GAUSSIANS, call.sampling_rate
    loss = call.ratio * (call.ratio / 2 + 10) if is_gaussian else call.largest_loss
    return loss if q == 1 else loss + math.log(q + (1 - q) * math.exp(-loss))


def _epsilon(parts: Sequence[PrivacyLossDistribution], delta: float) -> float:
    if not parts:
        return 0.0
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return max(0.0, float(whole.get_epsilon_for_delta(delta)))


def _high_part(call: Call, width: float) -> PrivacyLossDistribution:
    """Steps of one call, their losses rounded up."""
    if call.sampling is Sampling.SHUFFLED:  # in an epoch the record is in one sum
        epochs = math.ceil(call.steps * call.sampling_rate - 1e-9)
        return _gaussian(call.ratio * math.sqrt(epochs), width, up=True)
    if call.law in _FEW_LOSSES:
        return _responses(call, width, up=True)
    return _known(call, width).self_compose(call.steps)


def _low_parts(call: Call, width: float, way: int) -> Iterator[PrivacyLossDistribution]:
    """Steps of one call, their losses rounded down; none if nothing is known of them."""
    if call.other_scale is not None:
        yield _tests(*_variance_test(call, way), 1, width)
    elif call.sampling is Sampling.SHUFFLED and call.sampling_rate < 1:
        epochs = math.floor(call.steps * call.sampling_rate + 1e-9)
        if epochs == 0:
            return
        if way == 0:  # the total of an epoch's sums is a Gaussian answer itself
            yield _gaussian(call.ratio * math.sqrt(epochs / call.batches), width, up=False)
        else:
            yield _tests(*_largest_sum_test(call, way), epochs, width)
    elif call.law is CallLaw.EXPONENTIAL:
        yield _tests(*_choice_test(call, way), call.steps, width)
    elif call.law is CallLaw.RANDOMISED_RESPONSE:
        yield _responses(call, width, up=False)
    elif call.law is not CallLaw.PURE and not _is_plain_gaussian(call):
        yield _known(call, width, up=False).self_compose(call.steps)


def _known(call: Call, width: float, *, up: bool = True) -> PrivacyLossDistribution:
    """One step of a law that dp-accounting knows."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    assert call.scale is not None  # checked by the call
    whole, options = int(call.sensitivity), _options(width, up, rate=call.sampling_rate)
    if call.law is CallLaw.GAUSSIAN:
        return pld.from_gaussian_mechanism(1 / call.ratio, **options)
    if call.law is CallLaw.LAPLACE:
        return pld.from_laplace_mechanism(1 / call.ratio, **options)
    if call.law is CallLaw.DISCRETE_LAPLACE:
        return pld.from_discrete_laplace_mechanism(1 / call.scale, whole, **options)
    return pld.from_discrete_gaussian_mechanism(call.scale, whole, **options)


def _gaussian(mu: float, width: float, *, up: bool) -> PrivacyLossDistribution:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(1 / mu, **_options(width, up))


def _options(width: float, up: bool, *, rate: float = 1.0) -> dict[str, Any]:
    """How dp-accounting rounds losses to a grid, up or down, and which share is sampled."""
    return {
        "pessimistic_estimate": up,
        "value_discretization_interval": width,
        "sampling_prob": rate,
        "use_connect_dots": up,
    }


def _responses(call: Call, width: float, *, up: bool) -> PrivacyLossDistribution:
    """All steps of randomised response, exactly; of another bounded loss, which it exceeds."""
    x = call.largest_loss
    kept, other = float(scipy.special.expit(x)), float(scipy.special.expit(-x))
    if call.law is CallLaw.RANDOMISED_RESPONSE:
        assert call.probability is not None  # checked by the call
        kept, other = call.probability, (1 - call.probability) / (call.categories - 1)
    ones = np.arange(-call.steps, call.steps + 1)
    mass: FloatArray
    if call.categories == 2:
        mass = np.where(ones % 2 == call.steps % 2, 1.0, 0.0)
        mass *= scipy.stats.binom.pmf((ones + call.steps) // 2, call.steps, kept)
    else:
        mass = np.zeros(len(ones))
        mass[:3] = other, 1 - kept - other, kept
        mass = np.maximum(np.fft.irfft(np.fft.rfft(mass) ** call.steps, len(ones)), 0.0)
    return _on_grid(np.asarray(x * ones, dtype=np.float64), mass, mass[::-1], width, up=up)


def _tests(inside: float, outside: float, times: int, width: float) -> PrivacyLossDistribution:
    """Repeated tests, by the log probabilities of their outcome in both worlds; rounded down."""
    logs = [max(one, _LEAST_LOG) for one in (inside, outside)]
    none = [math.log(max(-math.expm1(one), math.exp(_LEAST_LOG))) for one in logs]
    seen = np.arange(times + 1)
    in_, out = (np.asarray(scipy.stats.binom.pmf(seen, times, math.exp(one))) for one in logs)
    losses = seen * (logs[0] - logs[1]) + (times - seen) * (none[0] - none[1])
    return _on_grid(losses, in_, out, width, up=False)


def _on_grid(
    losses: FloatArray, inside: FloatArray, outside: FloatArray, width: float, *, up: bool
) -> PrivacyLossDistribution:
    """Outcomes by their privacy loss and their probabilities in both worlds."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as Loss

    parts: list[object] = []
    for loss, mass in ((losses, inside), (-losses, outside)):
        places = (np.ceil if up else np.floor)(loss / width).astype(np.int64)
        found = np.bincount(places - places.min(), weights=mass)
        kept = np.flatnonzero(found > 0)
        rounded = dict(zip((kept + places.min()).tolist(), found[kept].tolist(), strict=True))
        parts += [rounded, max(0.0, 1.0 - float(mass.sum())) if up else 0.0]
    first, missing, second, missing_too = parts
    return Loss.create_from_rounded_probability(
        first, missing, width, up, second, missing_too, symmetric=False
    )


def _variance_test(call: Call, way: int) -> tuple[float, float]:
    """Whether the squares of all noise are small: chi-squared in both worlds."""
    assert call.scale is not None  # checked by the call
    assert call.other_scale is not None  # else there is nothing to test
    numbers = call.dimensions * call.steps
    narrow, wide = sorted((call.scale, call.other_scale))
    level = (0.2, 0.5, 0.8, 0.95, 0.99, 1 - 1e-3, 1 - 1e-5, 1 - 1e-7)[way]
    limit = float(scipy.stats.chi2.ppf(level, numbers))
    small = [
        float(scipy.stats.chi2.logcdf(limit * (narrow / of) ** 2, numbers)) for of in (narrow, wide)
    ]
    return (small[0], small[1]) if call.scale == narrow else (small[1], small[0])


def _largest_sum_test(call: Call, way: int) -> tuple[float, float]:
    """Whether the largest of an epoch's noisy sums is above a limit (Chua et al. 2024)."""
    limit = float(scipy.stats.norm.isf(10.0 ** -(way - 1) * 0.1 / call.batches))
    none = call.batches * float(scipy.stats.norm.logcdf(limit))
    others = (call.batches - 1) * float(scipy.stats.norm.logcdf(limit))
    inside = -math.expm1(float(scipy.stats.norm.logcdf(limit - call.ratio)) + others)
    return math.log(inside), math.log(-math.expm1(none))


def _choice_test(call: Call, way: int) -> tuple[float, float]:
    """Candidates of which some gain the sensitivity and the others lose it, the first chosen."""
    loss = call.largest_loss
    gained = loss * (0.5 + 0.49 * way / (_WAYS - 1))
    outside = math.log(-math.expm1(gained - loss)) - math.log(-math.expm1(-loss)) - gained
    return min(outside + gained, -1e-300), outside


# Rényi divergences


def _rdp_epsilon(calls: Sequence[Call], delta: float) -> float:
    whole = any(one.law is CallLaw.GAUSSIAN and one.sampling_rate < 1 for one in calls)
    orders = _WHOLE_ORDERS if whole else ORDERS
    total = np.zeros_like(orders)
    for one in calls:
        total = total + _rdp(one, orders)
    return epsilon_from_rdp(orders, total, delta=delta)


def _rdp(call: Call, orders: FloatArray) -> FloatArray:
    """Rényi divergence of all steps of a call at each order; an upper limit."""
    if call.law in _GAUSSIANS and call.sampling is Sampling.SHUFFLED:
        epochs = math.ceil(call.steps * call.sampling_rate - 1e-9)
        return np.asarray(epochs * orders * call.ratio**2 / 2)
    if call.law is CallLaw.GAUSSIAN and call.sampling_rate < 1:
        return call.steps * np.array([_sampled_gaussian(call, order) for order in orders])
    if call.law in _GAUSSIANS:  # Canonne, Kamath and Steinke 2020 for the discrete one
        return np.asarray(call.steps * orders * call.ratio**2 / 2)
    loss = _pure(call) / call.steps
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
        logs = [orders * one + (1 - orders) * two for one, two in ((true, other), (other, true))]
        if k > 2:
            logs.append(np.full_like(orders, math.log(k - 2) + other))
        return np.asarray(call.steps * scipy.special.logsumexp(logs, axis=0) / (orders - 1))
    # Of a loss within limits randomised response has the most (Bun and Steinke 2016); that of the
    # exponential mechanism has a range, too (Cesar and Rogers 2021).
    most = randomised_response_rdp(orders, loss)
    if call.law is CallLaw.EXPONENTIAL:
        most = np.minimum(most, orders * loss**2 / 8)
    return np.asarray(call.steps * most)


def _sampled_gaussian(call: Call, order: float) -> float:
    """Of one Poisson-sampled step at a whole order (Mironov, Talwar and Zhang 2019)."""
    q, k = call.sampling_rate, np.arange(order + 1)
    gammaln = scipy.special.gammaln
    binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    logs = binomial + (order - k) * math.log1p(-q) + k * math.log(q)
    moment = float(scipy.special.logsumexp(logs + k * (k - 1) * call.ratio**2 / 2))
    return max(0.0, moment / (order - 1))


# Opacus


def _opacus(calls: Sequence[Call], delta: float) -> Iterator[Figure]:
    """Opacus' accountants, where it is installed and its formulae apply."""
    poisson = all(one.law is CallLaw.GAUSSIAN and one.sampling is Sampling.POISSON for one in calls)
    if not poisson or any(one.other_scale is not None for one in calls):
        yield Figure("opacus", None, "only for Poisson-sampled Gaussian noise")
        return
    if find_spec("opacus") is None:
        yield Figure("opacus", None, "not installed here: pip install opacus")
        return
    from opacus.accountants import PRVAccountant, RDPAccountant

    for name, kind in (("rdp (opacus)", RDPAccountant), ("prv (opacus)", PRVAccountant)):
        accountant = kind()
        accountant.history = [(1 / one.ratio, one.sampling_rate, one.steps) for one in calls]
        yield Figure(name, float(accountant.get_epsilon(delta)))
