"""What an attacker sees in the outputs of a mechanism, and the event that tells two inputs apart.

Outputs are numbers, texts, sequences or dictionaries of them. They become a table with a column
for each place, and that becomes features with names that a sentence can use.

The outputs of both inputs are then split: one part fits a tree and a logistic regression, the other
chooses among leaves and thresholds. These outputs are not counted again, so any choice is valid.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpaudit.bounds.clopper_pearson import event_bound
from dpaudit.plugins.protocols import BoolArray, FloatArray

BITS: Final = "the lowest bit of "
"""Prefix of features whose leak ends if outputs are rounded to a public grid."""
MOST_PLACES: Final = 30
"""Largest number of places of an output that become features."""
_MOST_PAIRS: Final = 8
"""With more places, differences between them are left out."""
_MOST_FLAGS: Final = 6
"""Largest number of recurring values of a place that become flags."""
_LARGEST_WHOLE: Final = 2**53
"""Larger whole numbers lose digits as floats."""
_OFTEN: Final = 0.002
"""Share of outputs above which a value counts as a flag."""
_COMMON: Final = 20
"""The most common values, to which the flags among them are compared."""


def table_of(outputs: Any) -> pd.DataFrame:
    """Outputs as a table, a row for each; places that one output lacks are missing.

    Args:
        outputs: An array of numbers, its first axis the outputs; or a sequence of outputs.
    """
    numbers = _exact_numbers(outputs)
    if numbers is None:
        if isinstance(outputs, pd.DataFrame):
            outputs = outputs.to_dict("records")
        if all(isinstance(output, str) for output in outputs):
            return pd.DataFrame({"the output": list(outputs)}, dtype=object)
        rows = [dict(_leaves(output, "")) for output in outputs]
        return pd.DataFrame.from_records(rows).iloc[:, :MOST_PLACES]
    flat = numbers.reshape(len(numbers), -1)[:, :MOST_PLACES]
    several = [f"output {number + 1}" for number in range(flat.shape[1])]
    names = ["the output"] if numbers.ndim == 1 else several
    return pd.DataFrame(flat, columns=names)


def _exact_numbers(outputs: Any) -> FloatArray | None:
    """Outputs as an array of floats, masked ones as NaN; None if that would change any."""
    if isinstance(outputs, np.ma.MaskedArray):
        outputs = np.ma.filled(outputs.astype(object), None)
    try:
        array = np.asarray(outputs)
        if array.dtype.kind in "cmMV":
            return None
        numbers = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    is_whole = array.dtype.kind in "iuO"
    return None if is_whole and np.any(np.abs(numbers) > _LARGEST_WHOLE) else numbers


def _leaves(output: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The numbers and texts of an output, each with the name of its place."""
    if isinstance(output, np.ndarray):
        output = output.tolist()
    elif isinstance(output, np.void) and output.dtype.names is not None:
        output = dict(zip(output.dtype.names, output.item(), strict=True))
    if isinstance(output, Mapping):
        for key, value in output.items():
            yield from _leaves(value, f"{name}[{key!r}]" if name else f"output {key!r}")
    elif isinstance(output, list | tuple):
        for number, value in enumerate(output):
            yield from _leaves(value, f"{name}[{number}]" if name else f"output {number + 1}")
    elif isinstance(output, complex):
        yield from _leaves({"real": output.real, "imaginary": output.imag}, name)
    else:
        is_plain = output is None or isinstance(output, str | int | float | np.number | np.bool_)
        yield name or "the output", output if is_plain else repr(output)
        if isinstance(output, int | np.integer) and abs(int(output)) > _LARGEST_WHOLE:
            yield f"the last digits of {name or 'the output'}", int(output) % 10**9


@dataclass(frozen=True)
class Features:
    """Names and values of features, fixed by outputs that are not counted.

    Attributes:
        places: The places that outputs have.
        flags: Values that recur, by place.
    """

    places: tuple[str, ...]
    flags: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, outputs: pd.DataFrame) -> Features:
        """The features of outputs like these."""
        flags = {str(place): _recurring(outputs[place].tolist()) for place in outputs}
        return cls(tuple(map(str, outputs)), flags)

    def named(self, outputs: pd.DataFrame) -> dict[str, FloatArray]:
        """The values of each feature, by its name.

        Args:
            outputs: A table of `table_of`.
        """
        outputs = outputs.reindex(columns=list(self.places))
        numbers = {place: _numbers(outputs[place]) for place in self.places}
        columns: dict[str, Any] = {}
        for place, values in numbers.items():
            columns[place] = values
            for flag in self.flags[place]:
                columns[f"{place} is {_shown(flag)}"] = outputs[place] == flag
            columns[f"{place} is missing"] = outputs[place].isna()
            columns[f"{BITS}{place}"] = lowest_bits(values)
        if len(self.places) > 1:
            columns |= self._of_several(outputs, np.stack(list(numbers.values()), axis=1))
        return {name: np.asarray(values, dtype=np.float64) for name, values in columns.items()}

    def _of_several(self, outputs: pd.DataFrame, numbers: FloatArray) -> Iterator[tuple[str, Any]]:
        """Features of all places together, as pairs of name and values."""
        filled = np.where(np.isnan(numbers), -np.inf, numbers)
        yield "the largest output", filled.max(axis=1)
        yield "the place of the largest output", filled.argmax(axis=1) + 1
        yield "the sum of the outputs", np.nansum(numbers, axis=1)
        yield "the number of outputs", outputs.notna().sum(axis=1)
        for flag in dict.fromkeys(flag for flags in self.flags.values() for flag in flags):
            is_flag = (outputs == flag).to_numpy()
            yield f"the number of outputs {_shown(flag)}", is_flag.sum(axis=1)
            first = np.where(is_flag.any(axis=1), is_flag.argmax(axis=1) + 1, 0)
            yield f"the place of the first output {_shown(flag)}", first
        if len(self.places) <= _MOST_PAIRS:
            for i, j in combinations(range(len(self.places)), 2):
                name = f"{self.places[i]} minus {self.places[j]}"
                yield name, numbers[:, i] - numbers[:, j]


def _recurring(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values that recur in many outputs, or more often than others, as those of a grid do not."""
    common = Counter(values).most_common(_COMMON)
    usual = common[-1][1] if len(common) == _COMMON else 0
    return tuple(
        value
        for value, count in common[:_MOST_FLAGS]
        if (count > _OFTEN * len(values) or count >= max(_LEAST, 5 * usual)) and value == value
    )


def _shown(flag: Any) -> str:
    return f"{flag:g}" if isinstance(flag, float) else repr(flag)


def _numbers(values: pd.Series[Any]) -> FloatArray:
    """A column's numbers; NaN where it has none."""
    if values.dtype.kind in "fiub":
        return values.to_numpy(dtype=np.float64)
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)


def lowest_bits(numbers: FloatArray) -> FloatArray:
    """The exponent of the lowest bit that is set; 0 where the number is 0, infinite or missing.

    Noise drawn in floating point leaves bits that its sum with a larger number cannot have
    (Mironov 2012).
    """
    bits = np.zeros(numbers.shape)
    known = np.isfinite(numbers) & (numbers != 0)
    mantissas, exponents = np.frexp(numbers[known])
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    bits[known] = exponents - 53 + np.log2(whole & -whole)
    return bits


_CUTS: Final = 100
"""Thresholds of a score that are tried."""
_FITTED: Final = 0.6
"""Share of the outputs that fits; the rest chooses."""
_MOST_FITTED: Final = 30_000
"""Outputs of each input that fit a tree and a regression."""
_LEAST: Final = 20
"""Outputs in a leaf, at least."""
_CAUTION: Final = 0.001
"""Error probability of the bounds that choose an event: chance makes some of many look good."""
_TOLERANCE: Final = 1e-3
"""Gradient at which the regression ends: a smaller one takes several times as long for the same."""
_FAR: Final = 1e30
_INTERVALS: Final = 500
"""Intervals between the values of a feature in either world."""
_MOST_INTERVALS: Final = 8
"""Intervals that are tried in the outputs that choose."""
_DOUBT: Final = 3.0
"""Standard deviations between a count and its limits."""


@dataclass(frozen=True)
class Event:
    """A set of outputs that one input makes likelier.

    Attributes:
        words: What is true of them, for a sentence.
        names: The features that are looked at.
        is_first: Whether it is the first input that makes the event likelier.
        model: A tree, or a regression; None for the value of a single feature.
        leaves: The leaves of the tree whose outputs are in the event.
        low: Without a tree: outputs in the event have a larger score, or value, than this,
        high: and at most this.
    """

    words: str
    names: tuple[str, ...]
    is_first: bool
    model: Any = None
    leaves: frozenset[int] = frozenset()
    low: float = -np.inf
    high: float = np.inf

    def holds(self, features: Mapping[str, FloatArray]) -> BoolArray:
        """Which outputs are in the event, by the values of their features."""
        values = _matrix(features, self.names)
        if self.leaves:
            return np.isin(self.model.apply(values), list(self.leaves))
        scores = values[:, 0] if self.model is None else self.model.decision_function(values)
        return np.asarray((scores > self.low) & (scores <= self.high))


def _matrix(features: Mapping[str, FloatArray], names: tuple[str, ...]) -> FloatArray:
    """A column for each feature; what is missing is 0, as other columns tell."""
    values = np.stack([features[name] for name in names], axis=1)
    return np.nan_to_num(values, nan=0.0, posinf=_FAR, neginf=-_FAR)


def learn_event(
    first: Mapping[str, FloatArray],
    second: Mapping[str, FloatArray],
    *,
    names: tuple[str, ...],
    delta: float,
) -> tuple[Event, float]:
    """The event that is to prove most.

    Args:
        first: Features of outputs of the first input, by name.
        second: The same of as many outputs of the second one.
        names: The features that are looked at.
        delta: Delta of the claim.

    Returns:
        The event, and a cautious bound on epsilon from the outputs that chose it.
    """
    values = [_matrix(part, names) for part in (first, second)]
    cut = int(_FITTED * len(values[0]))
    each, chosen = [part[:cut] for part in values], [part[cut:] for part in values]
    few = min(cut, _MOST_FITTED)
    fitted, labels = np.concatenate([part[:few] for part in each]), np.repeat([1, 0], few)
    least = max(_LEAST, few // 5000)
    tree = DecisionTreeClassifier(max_leaf_nodes=40, min_samples_leaf=least, random_state=0)
    tree.fit(fitted, labels)
    line = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=_TOLERANCE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # any weights make a valid event
        line.fit(fitted, labels)
    events = []
    for event, counts in chain(
        _interval_events(each, names, chosen, delta=delta),
        _leaf_events(tree, names, chosen),
        _line_events(line, names, chosen),
    ):
        likely, rare = counts if event.is_first else counts[::-1]
        bound, _ = event_bound(likely, rare, len(chosen[0]), delta=delta, confidence=1.0 - _CAUTION)
        events.append((bound, event))
    bound, event = max(events, key=lambda bound_and_event: bound_and_event[0])
    return event, bound


def _interval_events(
    fitted: list[FloatArray], names: tuple[str, ...], chosen: list[FloatArray], *, delta: float
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Short intervals of single features, whose outputs may be too rare for a tree to split off."""
    ranked: list[tuple[float, Event]] = []
    for name in sorted(names, key=lambda name: " is " not in name):  # of equals, that of a flag
        at = names.index(name)
        worlds = [np.sort(part[:, at]) for part in fitted]
        cuts = np.concatenate([part[:: max(1, len(part) // _INTERVALS)] for part in worlds])
        ends = [end for part in worlds for end in (np.nextafter(part[0], -np.inf), part[-1])]
        edges = np.unique(np.append(cuts, ends))
        counts = [np.diff(np.searchsorted(part, edges, side="right"), prepend=0) for part in worlds]
        for is_first, (own, other) in ((True, counts), (False, counts[::-1])):
            # limits of Poisson counts, by their square roots, whose standard deviation is 1/2
            likely = np.maximum(np.sqrt(own) - _DOUBT / 2, 0.0) ** 2 - delta * len(worlds[0])
            gains = likely / (np.sqrt(other + 1) + _DOUBT / 2) ** 2
            place = int(np.argmax(gains))
            low, high = float(edges[place - 1]) if place > 1 else -np.inf, float(edges[place])
            event = Event(_words(name, low, high), (name,), is_first, low=low, high=high)
            ranked.append((float(gains[place]), event))
    ranked.sort(key=lambda gain_and_event: -gain_and_event[0])
    for _, event in ranked[:_MOST_INTERVALS]:
        columns = ({event.names[0]: part[:, names.index(event.names[0])]} for part in chosen)
        yield event, tuple(int(event.holds(column).sum()) for column in columns)


def _line_events(
    line: Any, names: tuple[str, ...], chosen: list[FloatArray]
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Scores of a regression beyond thresholds, and how many outputs have them."""
    scores = [line.decision_function(part) for part in chosen]
    for cut in np.unique(np.quantile(np.concatenate(scores), np.linspace(0.0, 1.0, _CUTS))):
        above = tuple(int((part > cut).sum()) for part in scores)
        sums = "a weighted sum of the outputs is"
        yield Event(f"{sums} above {cut:.3g}", names, True, line, low=float(cut)), above
        below = tuple(len(part) - count for part, count in zip(scores, above, strict=True))
        yield Event(f"{sums} at most {cut:.3g}", names, False, line, high=float(cut)), below


def _leaf_events(
    tree: Any, names: tuple[str, ...], chosen: list[FloatArray]
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Single leaves, and the leaves together that one input makes likelier, most telling first."""
    paths = dict(_paths(tree.tree_, names))
    shares = [np.bincount(tree.apply(part), minlength=tree.tree_.node_count) for part in chosen]
    for is_first in (True, False):
        own, other = shares if is_first else shares[::-1]
        ranked = sorted(paths, key=lambda leaf: -(own[leaf] + 0.5) / (other[leaf] + 0.5))
        for count in range(1, len(ranked)):
            for leaves in {frozenset(ranked[:count]), frozenset(ranked[count - 1 : count])}:
                largest = max(leaves, key=lambda leaf: own[leaf])
                more = f", or {len(leaves) - 1} sets more" if len(leaves) > 1 else ""
                event = Event(paths[largest] + more, names, is_first, tree, leaves)
                yield event, tuple(int(share[list(leaves)].sum()) for share in shares)


def _paths(tree: Any, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Each leaf of a tree, and what is true of the outputs in it."""

    def descend(node: int, limits: dict[int, tuple[float, float]]) -> Iterator[tuple[int, str]]:
        if tree.children_left[node] < 0:
            yield node, " and ".join(_words(names[at], *limits[at]) for at in limits)
            return
        at, cut = int(tree.feature[node]), float(tree.threshold[node])
        low, high = limits.get(at, (-np.inf, np.inf))
        yield from descend(tree.children_left[node], {**limits, at: (low, min(high, cut))})
        yield from descend(tree.children_right[node], {**limits, at: (max(low, cut), high)})

    yield from descend(0, {})


def _words(name: str, low: float, high: float) -> str:
    """That a feature lies between two numbers."""
    if " is " in name:
        return name if low >= 0 else name.replace(" is ", " is not ", 1)
    if np.isinf(low):
        return f"{name} is at most {high:.4g}"
    if np.isinf(high):
        return f"{name} is above {low:.4g}"
    return f"{name} is above {low:.4g} and at most {high:.4g}"
