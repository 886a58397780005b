"""Tests a mechanism: draws at two inputs, and a bound on epsilon from one event of the outputs."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.bounds.clopper_pearson import event_bound
from dpaudit.errors import SettingsError
from dpaudit.formatting import (
    Row,
    clipped,
    error_line,
    headed,
    one_line,
    percent,
    rounded_down,
)
from dpaudit.mechanisms.events import BITS, Event, Features, learn_event, table_of
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.setting import (
    AT_LEAST_1,
    BETWEEN_0_AND_1,
    POSITIVE,
    SEED,
    NumberRange,
    check_number,
)
from dpaudit.plugins.protocols import FloatArray
from dpaudit.results.phrases import FLOATING_POINT_REMEDY, IN_FLOATING_POINT
from dpaudit.results.verdict import Verdict
from dpaudit.seeds import Stream

DRAWS: Final = 1_000_000
SECONDS: Final = 10.0
_LEAST: Final = 1000
"""Draws of each input that are made in any case."""
_MOST_LEARNT: Final = 200_000
"""Draws of each input that an event is learnt from."""
_PILOT: Final = 200
_CHUNK: Final = 50_000
_SCALES: Final = (1, 2, 4, 8, 16, 32, 64)
_TRIED: Final = 10_000
"""Draws of each input of each pattern, from which the pattern is chosen."""
_SHARE: Final = 0.4
"""Share of the time that is planned for draws; trees take the rest."""
_FAILED: Final = "raises"


@dataclass(frozen=True, kw_only=True)
class MechanismResult:
    """What draws from a mechanism show of its claim.

    Attributes:
        verdict: VIOLATION if the bound exceeds the claim; CONSISTENT if it does not, which proves
            nothing.
        claim: The claim.
        proved: Lower bound on epsilon at the claim's delta.
        confidence: Its confidence.
        inputs: The two inputs; the event is likelier for the first.
        event: The event, in words.
        counts: How many outputs of each input are in the event.
        draws: Counted outputs of each input.
        interval: Interval for the epsilon of this event; each end holds at that confidence.
        is_floating_point: Whether the lowest bits of numbers are part of the event: rounding to a
            grid that is public, or exact noise, ends such a leak.
        needed: Draws of each input that would prove a violation at the event's observed
            frequencies; None if no number would.
        seconds: Duration.
    """

    verdict: Verdict
    claim: PrivacyClaim
    proved: float
    confidence: float
    inputs: tuple[str, str]
    event: str
    counts: tuple[int, int]
    draws: int
    interval: tuple[float, float]
    is_floating_point: bool
    needed: int | None
    seconds: float

    def __str__(self) -> str:
        """The result as every command prints its own: a headline and rows, 80 columns."""
        where = IN_FLOATING_POINT if self.is_floating_point else ""
        low, high = (f"{end:.3g}" for end in self.interval)
        rows = [
            Row("event", self.event),
            *(
                Row("counts", f"{count:,} of {self.draws:,} outputs of {given}")
                for count, given in zip(self.counts, self.inputs, strict=True)
            ),
            Row("interval", f"the epsilon of this event lies in {low} to {high}"),
        ]
        if self.is_floating_point:
            rows.append(Row("next", FLOATING_POINT_REMEDY))
        elif self.verdict is Verdict.CONSISTENT and self.needed is not None:
            needs = f"{self.needed:,} counted draws, if these frequencies are true"
            rows.append(Row("next", needs))
        return "\n".join(headed(f"{self.verdict.upper()}{where}  {self._proof}", rows))

    @property
    def _proof(self) -> str:
        """The claim, and what is proved of it if anything is."""
        least = f"at least {rounded_down(self.proved)} ({percent(self.confidence)} confidence)"
        if self.verdict is Verdict.VIOLATION:
            return f"claimed epsilon {self.claim.epsilon:g}, epsilon {least}"
        nothing = f"no violation of epsilon {self.claim.epsilon:g} found"
        return f"{nothing}, epsilon {least}" if self.proved else nothing

    def assert_no_violation(self) -> None:
        """Raises if a violation was found.

        Raises:
            AssertionError: The message is the result.
        """
        __tracebackhide__ = True
        if self.verdict is Verdict.VIOLATION:
            raise AssertionError(str(self))


def mechanism(
    function: Callable[..., Any],
    x: Any = None,
    x_prime: Any = None,
    *,
    epsilon: float,
    delta: float = 0.0,
    length: int | None = None,
    draws: int = DRAWS,
    seconds: float = SECONDS,
    confidence: float = 0.95,
    ignore_bits: bool = False,
    seed: int = 0,
) -> MechanismResult:
    """Tests whether a mechanism keeps its claim at two neighbouring inputs.

    One half of the draws teaches an event that one input makes likelier than the other. The other
    half counts it: a Clopper-Pearson bound, from which delta is taken off. A second event may use
    the lowest bits of numbers; both share the error probability.

    Args:
        function: `f(x, seed)` or `f(x, rng)`, which gives one output, or `f(x, rng, n)`, which
            gives n of them, an array or a sequence; keyword-only parameters keep their defaults. An
            output is a number, a text, None, or a list, array or dictionary of these. An exception
            of `f(x, seed)` is an output, too.
        x: An input.
        x_prime: Its neighbour.
        epsilon: The claim.
        delta: The claim's delta.
        length: Without inputs, the number of query answers that the function takes as a list: the
            usual patterns of neighbours are tried, each answer moved by at most 1.
        draws: Draws of each input, at most; half of them are counted.
        seconds: The time for all, about; a slow function is drawn from 2,000 times in any case.
        confidence: Confidence of the bound.
        ignore_bits: Whether numbers count without their lowest bits: leaks of floating point stay
            unseen.
        seed: Root of the random streams.

    Returns:
        What was found.

    Raises:
        SettingsError: If an argument is unusable, or the function fails whatever it is given.
    """
    started = time.monotonic()
    claim = PrivacyClaim(epsilon=epsilon, delta=delta)
    check_number("confidence", confidence, BETWEEN_0_AND_1)
    check_number("seed", seed, SEED, whole=True)
    check_number("draws", draws, NumberRange(least=2 * _LEAST), whole=True)
    check_number("seconds", seconds, POSITIVE)
    source, pairs = _Source(function, seed), _pairs(x, x_prime, length)
    affordable = int(_SHARE * seconds / source.pace(pairs[0]) / 2)
    each = max(_LEAST, min(draws, affordable) // 2)
    pair = pairs[0] if len(pairs) == 1 else _most_telling(source, pairs, each, delta)
    features, learnt = source.learnt(pair, min(each, _MOST_LEARNT), "learn")
    names = tuple(learnt[0])
    plain = _without_bits(names)
    events = [
        learn_event(*learnt, names=known, delta=delta)[0]
        for known in ((plain,) if ignore_bits else (plain, names))
    ]
    inside = np.zeros((len(events), 2), dtype=int)
    for at, data in enumerate(pair):
        for chunk in source.chunks(data, each, f"count {at}"):
            values = features.named(chunk)
            inside[:, at] += [int(event.holds(values).sum()) for event in events]
    level = 1.0 - (1.0 - confidence) / len(events)
    results = [
        _result(event, (int(first), int(second)), pair, each, claim, level)
        for event, (first, second) in zip(events, inside, strict=True)
    ]
    best = next((result for result in results if result.verdict is Verdict.VIOLATION), results[0])
    return replace(best, confidence=confidence, seconds=round(time.monotonic() - started, 2))


def _result(
    event: Event,
    inside: tuple[int, int],
    pair: Sequence[Any],
    each: int,
    claim: PrivacyClaim,
    confidence: float,
) -> MechanismResult:
    """What one event shows, counted once in outputs that did not choose it."""
    order = (0, 1) if event.is_first else (1, 0)
    likely, rare = inside[order[0]], inside[order[1]]

    def interval(scale: int = 1) -> tuple[float, float]:
        counts = (scale * likely, scale * rare, scale * each)
        return event_bound(*counts, delta=claim.delta, confidence=confidence)

    proved, high = interval()
    decided = (scale for scale in _SCALES if interval(scale)[0] > claim.epsilon)
    return MechanismResult(
        verdict=Verdict.VIOLATION if proved > claim.epsilon else Verdict.CONSISTENT,
        claim=claim,
        proved=proved,
        confidence=confidence,
        inputs=(_shown(pair[order[0]]), _shown(pair[order[1]])),
        event=event.words,
        counts=(likely, rare),
        draws=each,
        interval=(proved, high),
        is_floating_point=event.names != _without_bits(event.names),
        needed=next((scale * each for scale in decided), None),
        seconds=0.0,
    )


def _without_bits(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not name.startswith(BITS))


def _shown(value: Any) -> str:
    return clipped(one_line(repr(value)), 60)


# -- inputs ---------------------------------------------------------------------------------------


def _pairs(x: Any, x_prime: Any, length: int | None) -> list[tuple[Any, Any]]:
    """The pairs of inputs to try."""
    if length is None:
        if x is None or x_prime is None:
            raise SettingsError("name both inputs, `x` and `x_prime`, or the `length` of a list")
        return [(x, x_prime)]
    if x is not None or x_prime is not None:
        raise SettingsError("`length` makes the inputs itself: leave out `x` and `x_prime`")
    check_number("length", length, AT_LEAST_1, whole=True)
    ones = [1.0] * length
    patterns = [
        [2.0, *ones[1:]],
        [0.0, *ones[1:]],
        [2.0, *(0.0 for _ in ones[1:])],
        [0.0, *(2.0 for _ in ones[1:])],
        [2.0 if at < length // 2 else 0.0 for at in range(length)],
        [2.0 for _ in ones],
    ]
    half = [1.0 if at < (length + 1) // 2 else 0.0 for at in range(length)]
    crossed = (half, [1.0 - x for x in half])
    return [(ones, pattern) for pattern in patterns] + [crossed]


def _most_telling(
    source: _Source, pairs: Sequence[tuple[Any, Any]], each: int, delta: float
) -> tuple[Any, Any]:
    """The pair whose event is expected to prove most, from outputs that are not counted."""
    count = min(each, _TRIED)
    expected = []
    for number, pair in enumerate(pairs):
        _, learnt = source.learnt(pair, count, f"try {number}")
        names = _without_bits(tuple(learnt[0]))
        expected.append(learn_event(*learnt, names=names, delta=delta)[1])
    return pairs[int(np.argmax(expected))]


# -- draws ----------------------------------------------------------------------------------------


class _Source:
    """Draws outputs of a function, each set from a stream of its own.

    Args:
        function: The function.
        seed: Root of the streams.
    """

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        if not callable(function):
            raise SettingsError(f"the mechanism must be a function, not {type(function).__name__}")
        self.function, self.seed = function, seed
        try:
            names = [
                parameter.name
                for parameter in inspect.signature(function).parameters.values()
                if parameter.kind is not parameter.KEYWORD_ONLY
                or parameter.default is parameter.empty
            ]
        except (TypeError, ValueError):
            names = ["x", "seed"]
        if not 2 <= len(names) <= 3:
            raise SettingsError(
                "the mechanism must take (x, seed), (x, rng) or (x, rng, n), not "
                f"({', '.join(names)})"
            )
        self._is_batch = len(names) == 3
        self._takes_rng = self._is_batch or names[1] in ("rng", "generator")

    def pace(self, pair: Sequence[Any]) -> float:
        """Seconds of a draw and its features.

        Raises:
            SettingsError: If every draw from either input fails.
        """
        count = _TRIED if self._is_batch else _PILOT
        rng = Stream(self.seed, "mechanism", "pilot").rng()
        started = time.perf_counter()
        each = [self._outputs(x, count, rng) for x in pair]
        failed = [o for own in each for o in own if isinstance(o, str) and o.startswith(_FAILED)]
        if len(failed) == len(pair) * count:
            raise SettingsError(f"the mechanism fails whatever it is given: {failed[0]}")
        tables = list(map(table_of, each))
        seconds = time.perf_counter() - started
        features = [Features.of(table) for table in tables]  # once for all draws
        started = time.perf_counter()
        for own, table in zip(features, tables, strict=True):
            own.named(table)
        return max((seconds + time.perf_counter() - started) / (len(pair) * count), 1e-8)

    def learnt(
        self, pair: Sequence[Any], count: int, role: str
    ) -> tuple[Features, list[dict[str, FloatArray]]]:
        """The features of `count` outputs of each input, and their values."""
        tables = [
            pd.concat(list(self.chunks(x, count, f"{role} {at}")), ignore_index=True)
            for at, x in enumerate(pair)
        ]
        features = Features.of(pd.concat(tables, ignore_index=True))
        return features, [features.named(table) for table in tables]

    def chunks(self, x: Any, count: int, role: str) -> Iterator[pd.DataFrame]:
        """Draws `count` outputs, in tables of limited size."""
        rng = Stream(self.seed, "mechanism", role).rng()
        for begin in range(0, count, _CHUNK):
            yield table_of(self._outputs(x, min(_CHUNK, count - begin), rng))

    def _outputs(self, x: Any, count: int, rng: np.random.Generator) -> Any:
        if self._is_batch:
            try:
                outputs = self.function(x, rng, count)
                made = len(outputs)
            except Exception as error:
                raise SettingsError(f"the mechanism fails: {error_line(error)}") from error
            if made != count:
                raise SettingsError(f"the mechanism gave {made:,} outputs instead of {count:,}")
            return outputs
        given = (
            (rng for _ in range(count))
            if self._takes_rng
            else rng.integers(2**31, size=count).tolist()
        )
        return [self._output(x, child) for child in given]

    def _output(self, x: Any, given: Any) -> Any:
        try:
            return self.function(x, given)
        except Exception as error:  # noqa: BLE001 - a failure is an output, too
            return f"{_FAILED} {type(error).__name__}"
