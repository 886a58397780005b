"""Checks that settings, scales and label counts do not depend on the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpaudit.formatting import listed
from dpaudit.model.column import Column, as_numbers
from dpaudit.plugins.protocols import FloatArray
from dpaudit.trace.catalogue import CheckOutcome, Finding, Passed, Skipped, found
from dpaudit.trace.collector import Trace
from dpaudit.trace.trainings import Trainings

_OWN: Final = {"teachers": "teachers-from-rows", "batch": "batch-from-rows"}
_OTHER: Final = "constant-from-rows"
_PENALTY: Final = "gradient_penalty"
_USUAL_PENALTY: Final = 10.0


def constants(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks that settings are the same for tables of other sizes, and that the penalty is 10."""
    runs = [trainings.table, trainings.without, trainings.more]
    if isinstance(trainings.fewer, str):
        yield Skipped("batch-from-rows", f"a smaller table could not be used: {trainings.fewer}")
    else:
        runs.append(trainings.fewer)
    recorded = {name for run in runs for name in run.constants}
    for name in sorted(recorded):
        # A penalty that is the number of teachers follows from that: a finding of its own.
        if name == _PENALTY and all(_penalty_is_teachers(run) for run in runs):
            continue
        values = [run.constants.get(name, float("nan")) for run in runs]
        id_ = _OWN.get(name, _OTHER)
        if np.unique(values).size > 1:
            seen = ", ".join(
                f"{value:g} at n = {len(run.data)}" for value, run in zip(values, runs, strict=True)
            )
            rows = {f"at_{len(run.data)}": v for v, run in zip(values, runs, strict=True)}
            yield found(id_, f"{name} is {seen}", **rows)
        else:
            yield Passed(id_)
    yield from (
        Skipped(id_, f"{name} was not recorded")
        for name, id_ in _OWN.items()
        if name not in recorded
    )
    yield from _penalty(trainings.table)


def _penalty_is_teachers(trace: Trace) -> bool:
    return trace.constants.get(_PENALTY) == trace.constants.get("teachers")


def _penalty(trace: Trace) -> Iterator[CheckOutcome]:
    id_ = "penalty-from-teachers"
    weight = trace.constants.get(_PENALTY)
    if weight is None:
        yield Skipped(id_, "no gradient penalty was recorded")
    elif weight == _USUAL_PENALTY:
        if _penalty_is_teachers(trace):
            yield Skipped(id_, "there are 10 teachers: use another number to distinguish the two")
        else:
            yield Passed(id_)
    elif _penalty_is_teachers(trace):
        evidence = f"the gradient penalty has weight {weight:g}, the number of teachers"
        yield found(id_, evidence, penalty=weight, teachers=weight)
    else:
        yield Passed(id_)
        yield found(
            "gradient-penalty", f"the gradient penalty has weight {weight:g}", penalty=weight
        )


def scaling(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether the numbers that scale the columns depend on the table."""
    id_ = "bounds-from-data"
    numbers = trainings.table.scaling
    if not numbers:
        yield Skipped(id_, "no numbers that scale a column were recorded")
        return
    moved = [
        name for name in numbers if not _close(numbers[name], trainings.without.scaling.get(name))
    ]
    # Numbers released with noise change too, but also with the seed.
    steady = [name for name in moved if _close(numbers[name], trainings.reseeded.scaling.get(name))]
    known = {column.name: column for column in trainings.schema.columns if column.kind.numeric}
    extreme = [
        name
        for name, column in known.items()
        if name in numbers and _is_extremes(numbers[name], column, trainings.table)
    ]
    if steady or extreme:
        yield _bounds(trainings, steady, extreme)
    elif moved:
        yield Skipped(
            id_,
            f"what scales {listed(moved)} changes with the seed as with the record: it may be a "
            "private release, whose noise is not traced",
        )
    else:
        yield Passed(id_)


def _bounds(trainings: Trainings, steady: list[str], extreme: list[str]) -> Finding:
    numbers, without = trainings.table.scaling, trainings.without.scaling
    shown = []
    if steady:
        name = steady[0]
        shown.append(
            f"without record {trainings.removed} what scales {listed(steady)} changes: {name} from "
            f"{_shown(numbers[name])} to {_shown(without.get(name, ()))}"
        )
    if extreme:
        name = extreme[0]
        column = next(c for c in trainings.schema.columns if c.name == name)
        shown.append(
            f"{listed(extreme)} scaled by the extremes of the table: {name} by "
            f"{_shown(numbers[name])} where the schema says {_shown(column.bounds)}"
        )
    return found(
        "bounds-from-data",
        "; ".join(shown),
        columns=len(numbers),
        columns_that_move=len(steady),
        columns_at_extremes=len(extreme),
    )


def _is_extremes(numbers: tuple[float, ...], column: Column, trace: Trace) -> bool:
    """Whether a column is scaled by its extremes, and these are not the schema's bounds."""
    values: FloatArray = as_numbers(trace.data[column.name])
    extremes = (float(np.nanmin(values)), float(np.nanmax(values)))
    return _close(numbers, extremes) and not _close(extremes, column.bounds)


def labels(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Checks whether the classes of generated records are counted on the table."""
    id_ = "labels-copied"
    runs = (trainings.table, trainings.without, trainings.more)
    if any(run.label_counts is None for run in runs):
        yield Skipped(id_, "no counts of labels were recorded")
        return
    label = trainings.schema.label
    columns = trainings.schema.names if label is None else [label]
    copied = [name for name in columns if all(_counts_are(run, name) for run in runs)]
    if not copied:
        yield Passed(id_)
        return
    table, without = (list(run.label_counts or ()) for run in runs[:2])
    yield found(
        id_,
        f"records to generate by class: {table}, as the table has them in {copied[0]!r}; without "
        f"record {trainings.removed}: {without}, again as the table",
        **{f"class_{index}": count for index, count in enumerate(table)},
    )


def _counts_are(trace: Trace, column: str) -> bool:
    """Whether the recorded counts are those of a column's values, in any order."""
    own = trace.data[column].value_counts(dropna=False).to_numpy()
    recorded = np.array([count for count in trace.label_counts or () if count])
    return np.array_equal(np.sort(own), np.sort(recorded))


def _close(one: tuple[float, ...], other: tuple[float, ...] | None) -> bool:
    return (
        other is not None
        and len(one) == len(other)
        and np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def _shown(numbers: tuple[float, ...]) -> str:
    return f"({listed([f'{number:.6g}' for number in numbers], most=4)})"
