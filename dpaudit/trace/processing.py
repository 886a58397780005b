"""Bugs that spoil synthetic records without touching privacy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy import stats

from dpaudit.formatting import percent
from dpaudit.model.column import Column, Kind, as_numbers
from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.recorder import Stage
from dpaudit.trace.catalogue import CheckOutcome, Passed, Skipped, found
from dpaudit.trace.collector import Trace
from dpaudit.trace.laws import ERROR
from dpaudit.trace.trainings import Trainings

_WIDE: Final = 2.0
"""Bounds at least so far apart are not those of numbers left in [0, 1]."""
_ROUNDING: Final = 1e-6
_FEWEST: Final = 100
"""Fewest inputs for which the limiting Kolmogorov-Smirnov distribution is exact enough."""


def output(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that numbers are on the scale of the table, and whole numbers rounded."""
    numeric = [column for column in trainings.schema.columns if column.kind.numeric]
    trace = trainings.table
    given = {c.name: as_numbers(trace.synthetic[c.name]) for c in numeric}
    yield _not_inverted(trace, numeric, given)
    raw = trace.unrounded
    shape = (len(trace.synthetic), len(numeric))
    if raw is None or raw.shape != shape:
        why = "the output before rounding was not recorded"
        if raw is not None:
            why = f"the output before rounding has shape {raw.shape}, not {shape}"
        yield from (Skipped(id_, why) for id_ in ("output-shifted", "integers-truncated"))
        return
    yield _shifted(numeric, raw)
    whole = [index for index, column in enumerate(numeric) if column.kind is Kind.INTEGER]
    if not whole:
        yield Skipped("integers-truncated", "the schema has no integer columns")
        return
    values = np.stack([given[numeric[index].name] for index in whole], axis=1)
    yield _truncated(raw[:, whole], values)


def _not_inverted(
    trace: Trace, numeric: list[Column], given: dict[str, FloatArray]
) -> CheckOutcome:
    """Checks whether every column whose own values lie elsewhere was left in [0, 1]."""
    id_ = "output-not-inverted"
    telling = [c for c in numeric if _elsewhere(c, as_numbers(trace.data[c.name]))]
    if not telling:
        return Skipped(id_, "no numeric column has values that are far from [0, 1]")
    known = [given[c.name][np.isfinite(given[c.name])] for c in telling]
    lowest = min((values.min() for values in known if values.size), default=np.nan)
    highest = max((values.max() for values in known if values.size), default=np.nan)
    outside = [
        c.name
        for c, values in zip(telling, known, strict=True)
        if values.size and (values.min() < c.bounds.lower or np.any(values != np.rint(values)))
    ]
    # Small whole numbers within the bounds may be just that; others are not.
    if lowest >= 0.0 and highest <= 1.0 and outside:
        own = [as_numbers(trace.data[c.name]) for c in telling]
        return found(
            id_,
            f"{len(telling)} numeric columns whose values in the table go from "
            f"{min(np.nanmin(v) for v in own):g} to {max(np.nanmax(v) for v in own):g} come out "
            f"between {lowest:.4g} and {highest:.4g}",
            columns=len(telling),
            lowest=lowest,
            highest=highest,
        )
    return Passed(id_)


def _elsewhere(column: Column, values: FloatArray) -> bool:
    lower, upper = column.bounds
    return upper - lower >= _WIDE and bool(np.nanmax(values) > 1.0 or np.nanmin(values) < 0.0)


def _shifted(numeric: list[Column], raw: FloatArray) -> CheckOutcome:
    """Checks whether numbers fill [lower, upper + lower] in place of [lower, upper]."""
    id_ = "output-shifted"
    lower, upper = np.array([column.bounds for column in numeric]).T
    if not np.any(lower > 0):
        return Skipped(id_, "no numeric column has a lower bound above 0")
    room = _ROUNDING * (upper - lower)
    beyond = raw > upper + room  # NaN compares false
    wide = np.maximum(lower + upper, upper)
    within = not np.any((raw < lower - room) | (raw > wide + room))
    columns = np.flatnonzero(beyond.any(axis=0))
    if columns.size and within and np.all(lower[columns] > 0):
        share = float(beyond[:, columns].mean())
        first = int(columns[np.argmax(beyond[:, columns].sum(axis=0))])
        return found(
            id_,
            f"{columns.size} columns with a lower bound above 0 go beyond their upper one, in "
            f"{percent(round(share, 2))} of their values, and none beyond upper + lower: "
            f"{numeric[first].name} up to {np.nanmax(raw[:, first]):.6g} with bounds "
            f"({lower[first]:g}, {upper[first]:g})",
            columns=columns.size,
            share=share,
            largest=float(np.nanmax(raw[:, first])),
            lower=lower[first],
            upper=upper[first],
        )
    return Passed(id_)


def _truncated(raw: FloatArray, values: FloatArray) -> CheckOutcome:
    id_ = "integers-truncated"
    known = np.isfinite(raw) & np.isfinite(values)
    before, after = raw[known], values[known]
    cut = any(np.array_equal(down(before), after) for down in (np.floor, np.trunc))
    differs = float(np.mean(np.rint(before) != after)) if before.size else 0.0
    if not cut or not differs:
        return Passed(id_)
    shift = float(np.mean(after - before))
    return found(
        id_,
        f"all {before.size} whole numbers are rounded down; {percent(round(differs, 2))} of them "
        f"are not the nearest, and their mean moves by {shift:.2f}",
        share=differs,
        mean_shift=shift,
        values=before.size,
    )


def inputs(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that inputs in sampling have the distribution of those in training."""
    id_ = "sampling-noise-differs"
    trained, sampled = (trainings.table.fed[stage] for stage in Stage)
    if min(trained.size, sampled.size) < _FEWEST:
        yield Skipped(
            id_, f"{trained.size} inputs in training and {sampled.size} in sampling: too few"
        )
        return
    test = stats.ks_2samp(trained, sampled, method="asymp")
    if test.pvalue > ERROR:
        yield Passed(id_)
        return
    yield found(
        id_,
        f"inputs in training go from {trained.min():.3g} to {trained.max():.3g} with mean "
        f"{trained.mean():.3g} and standard deviation {trained.std():.3g}; in sampling from "
        f"{sampled.min():.3g} to {sampled.max():.3g}, {sampled.mean():.3g} and "
        f"{sampled.std():.3g}; Kolmogorov-Smirnov distance {test.statistic:.3f}",
        distance=float(test.statistic),
        p_value=float(test.pvalue),
        mean_training=trained.mean(),
        mean_sampling=sampled.mean(),
        deviation_training=trained.std(),
        deviation_sampling=sampled.std(),
    )


def teachers(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether teachers continue learning or start afresh in every iteration."""
    id_ = "teachers-refitted"
    renewed = trainings.table.renewed
    if not renewed:
        yield Skipped(id_, "no teacher recorded its parameters in two iterations")
    elif all(renewed):
        yield found(
            id_,
            f"in none of {len(renewed)} trainings after its first did a teacher start from the "
            "parameters it had ended with",
            trainings=len(renewed),
        )
    else:
        yield Passed(id_)
