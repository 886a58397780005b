"""Recorded calls of mechanisms: which noise, how much of it, for how large a change, how often."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final, NamedTuple

from dpaudit.errors import InputError, SettingsError
from dpaudit.formatting import clipped, did_you_mean
from dpaudit.model.choices import member_named


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
    scale: float | None = None
    sensitivity: float = 1.0
    steps: int = 1
    sampling_rate: float = 1.0
    sampling: Sampling = Sampling.POISSON
    other_scale: float | None = None
    dimensions: int = 1
    probability: float | None = None
    categories: int = 2

    def __post_init__(self) -> None:
        for name in ("scale", "other_scale"):
            value = getattr(self, name)
            if value is not None and not _is_positive(value):
                raise SettingsError(f"`{name}` is {value!r}: give a positive number")
        if not _is_positive(self.sensitivity):
            raise SettingsError(f"`sensitivity` is {self.sensitivity!r}: give a positive number")
        if not _is_positive(self.sampling_rate) or self.sampling_rate > 1:
            raise SettingsError(
                f"`sampling_rate` is {self.sampling_rate!r}: give a number above 0, at most 1"
            )
        for name, least in (("steps", 1), ("dimensions", 1), ("categories", 2)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise SettingsError(f"`{name}` is {value!r}: give a whole number, at least {least}")
        self._check_law()
        self._check_sampling()

    def _check_law(self) -> None:
        if self.law is CallLaw.RANDOMISED_RESPONSE:
            low = 1 / self.categories
            if not isinstance(self.probability, float | int) or not low < self.probability < 1:
                raise SettingsError(
                    f"`probability` is {self.probability!r}: give that of the true category, above "
                    f"1 / categories = {low:g} and below 1"
                )
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


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf  # type: ignore[operator]  # a number
