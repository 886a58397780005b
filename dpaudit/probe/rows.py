"""Probes for settings that follow the number of records, and for records whose order matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.probe.comparison import alike, permutation_p, summary
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Fit, Trainer

_THRESHOLDS: Final = (1000, 2000)
_DEEPEST: Final = 6
_SIDE: Final = 7
"""Fits in either order: 3432 ways to divide 14."""


def settings_follow_rows(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether the model's shape jumps where the repeated table passes a threshold."""
    data = subject.data
    most = max(_THRESHOLDS) + 2
    repeated = pd.concat([data] * -(-most // len(data)), ignore_index=True).iloc[:most]
    generator = subject.build()
    seen = 0
    for threshold in _THRESHOLDS:
        sizes = (threshold - 2, threshold - 1, threshold, threshold + 1)
        fits = [
            Fit(tuple(range(size, most)), trainer.stream("fit", i).seed(), 0)
            for size in sizes
            for i in range(2)
        ]
        models = [_visible(model) for model in trainer.models(generator, repeated, fits)]
        paths = set.intersection(*(set(model) for model in models))
        everything = set.union(*(set(model) for model in models))
        seen = max(seen, len(everything))
        for path in sorted(everything):
            low = {model.get(path) for model in models[:4]}
            high = {model.get(path) for model in models[4:]}
            if len(low) == len(high) == 1 and low != high:
                before, after = low.pop(), high.pop()
                return Observation(
                    True,
                    f"{path} is {before} for {threshold - 2} and {threshold - 1} records and "
                    f"{after} for {threshold} and {threshold + 1}",
                    {"threshold": threshold, "visible": len(paths)},
                    certainty="the same for two seeds and two sizes on either side of one record",
                )
    if not seen:
        return NotApplicable(
            "the model shows no arrays, networks or whole numbers as plain attributes"
        )
    return Observation(
        False,
        f"{seen} visible shapes and whole numbers do not jump at "
        f"{' or '.join(map(str, _THRESHOLDS))} records",
        {"visible": seen},
        certainty="the same for two seeds and two sizes on either side of one record",
    )


def row_order_matters(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Compares outputs for the same records in another order, with the same seed."""
    generator, data = subject.build(), subject.data
    order = trainer.stream("order").rng().permutation(len(data))
    shuffled = data.iloc[order].reset_index(drop=True)

    def tables(table: pd.DataFrame, fits: Sequence[Fit]) -> list[pd.DataFrame]:
        return trainer.tables(generator, table, fits, schema=subject.schema, rows=subject.rows)

    one, again = tables(data, [trainer.fit_of(0), trainer.fit_of(0)])
    if one.equals(again):
        [other] = tables(shuffled, [trainer.fit_of(0)])
        same = alike(one, other, subject)
        if same:  # with another seed too, or it is a constant
            tables(data, [trainer.fit_of(1)])
        return Observation(
            not same,
            "the same seed gives "
            + ("the same table" if same else "another table")
            + " for the records in another order",
            certainty="the same order and seed give the same table twice",
        )
    sides = [
        tables(table, [trainer.fit_of(_SIDE * i + j + 1) for j in range(_SIDE)])
        for i, table in enumerate((data, shuffled))
    ]
    values = np.array([list(summary(table, subject).values()) for side in sides for table in side])
    p_value = permutation_p(values)
    words = f"{_SIDE} fits in each order, without usable seeds: exact permutation test"
    return Observation(
        p_value <= subject.settings.alpha, words, {"fits_of_each_order": _SIDE}, p_value
    )


def _visible(model: object) -> Mapping[str, object]:
    """Shapes of arrays and networks, and whole numbers, by their path in an object."""
    return dict(_walk(model, "model", _DEEPEST, set()))


def _shape(value: Any) -> tuple[int | None, ...] | None:
    """The shape of an array, None in it for a size that is left open; None if it is no array."""
    try:
        sizes = tuple(value.shape) if hasattr(value, "dtype") else None
    except Exception:  # noqa: BLE001 - foreign: not every array of a framework has a shape yet
        return None
    if sizes is None:
        return None
    return tuple(int(size) if hasattr(size, "__index__") else None for size in sizes)


def _walk(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, object]]:
    if isinstance(value, bool | str | bytes | float | pd.DataFrame | pd.Series) or value is None:
        return
    if isinstance(value, int | np.integer):
        yield path, int(value)
        return
    if depth == 0 or id(value) in seen or (callable(value) and not hasattr(value, "state_dict")):
        return
    seen = seen | {id(value)}
    shape = _shape(value)
    if shape is not None:
        yield path, shape
    elif callable(getattr(value, "state_dict", None)):
        for name, tensor in value.state_dict().items():
            yield from _walk(tensor, f"{path}.{name}", depth - 1, seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, f"{path}[{key!r}]", depth - 1, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        yield f"len({path})", len(value)
        for position, item in enumerate(list(value)[:100]):
            yield from _walk(item, f"{path}[{position}]", depth - 1, seen)
    else:
        for name, item in getattr(value, "__dict__", {}).items():
            yield from _walk(item, f"{path}.{name}", depth - 1, seen)
