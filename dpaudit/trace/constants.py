"""What should be public but follows from the table: settings, scales, counts of labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpaudit.model.schema import Column, as_numbers
from dpaudit.plugins.protocols import FloatArray
from dpaudit.trace.collector import Trace
from dpaudit.trace.findings import CheckOutcome, Finding, Passed, Skipped, found
from dpaudit.trace.trainings import Trainings

_OWN: Final = {"teachers": "teachers-from-rows", "batch": "batch-from-rows"}
_OTHER: Final = "constant-from-rows"
_PENALTY: Final = "gradient_penalty"
_USUAL_PENALTY: Final = 10.0
_SHOWN: Final = 3


def constants(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Whether settings are the same for tables of other sizes, and the gradient penalty is 10."""
    runs = [trainings.table, trainings.without, trainings.more]
    if isinstance(trainings.fewer, str):
        yield Skipped("batch-from-rows", f"a smaller table could not be used: {trainings.fewer}")
    else:
        runs.append(trainings.fewer)
    told = {name for run in runs for name in run.constants}
    for name in sorted(told):
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
    yield from (Skipped(id_, f"{n} was not told") for n, id_ in _OWN.items() if n not in told)
    yield from _penalty(trainings.table)


def _penalty_is_teachers(trace: Trace) -> bool:
    return trace.constants.get(_PENALTY) == trace.constants.get("teachers")


def _penalty(trace: Trace) -> Iterator[CheckOutcome]:
    id_ = "penalty-from-teachers"
    weight = trace.constants.get(_PENALTY)
    if weight is None:
        yield Skipped(id_, "no gradient penalty was told")
    elif weight == _USUAL_PENALTY:
        if _penalty_is_teachers(trace):
            yield Skipped(id_, "there are 10 teachers: use another number to tell them apart")
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
    """Whether what scales the columns follows from the table."""
    id_ = "bounds-from-data"
    told = trainings.table.scaling
    if not told:
        yield Skipped(id_, "no numbers that scale a column were told")
        return
    moved = [name for name in told if not _close(told[name], trainings.without.scaling.get(name))]
    # Numbers that were released with noise move too, but with the seed as well.
    steady = [name for name in moved if _close(told[name], trainings.reseeded.scaling.get(name))]
    known = {column.name: column for column in trainings.schema.columns if column.kind.numeric}
    extreme = [
        name
        for name, column in known.items()
        if name in told and _is_extremes(told[name], column, trainings.table)
    ]
    if steady or extreme:
        yield _bounds(trainings, steady, extreme)
    elif moved:
        yield Skipped(
            id_,
            f"what scales {_names(moved)} moves with the seed as with the record: it may be a "
            "private release, whose noise is not traced",
        )
    else:
        yield Passed(id_)


def _bounds(trainings: Trainings, steady: list[str], extreme: list[str]) -> Finding:
    told, without = trainings.table.scaling, trainings.without.scaling
    shown = []
    if steady:
        name = steady[0]
        shown.append(
            f"without record {trainings.removed} what scales {_names(steady)} changes: {name} from "
            f"{_numbers(told[name])} to {_numbers(without.get(name, ()))}"
        )
    if extreme:
        name = extreme[0]
        column = next(c for c in trainings.schema.columns if c.name == name)
        shown.append(
            f"{_names(extreme)} scaled by the extremes of the table: {name} by "
            f"{_numbers(told[name])} where the schema says {_numbers(column.bounds)}"
        )
    return found(
        "bounds-from-data",
        "; ".join(shown),
        columns=len(told),
        columns_that_move=len(steady),
        columns_at_extremes=len(extreme),
    )


def _is_extremes(numbers: tuple[float, ...], column: Column, trace: Trace) -> bool:
    """Whether a column is scaled by its extremes, and these are not the schema's bounds."""
    values: FloatArray = as_numbers(trace.data[column.name])
    extremes = (float(np.nanmin(values)), float(np.nanmax(values)))
    return _close(numbers, extremes) and not _close(extremes, column.bounds)


def labels(trainings: Trainings) -> Iterator[CheckOutcome]:
    """Whether the classes of generated records are counted off the table."""
    id_ = "labels-copied"
    runs = (trainings.table, trainings.without, trainings.more)
    if any(run.label_counts is None for run in runs):
        yield Skipped(id_, "no counts of labels were told")
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
    """Whether the counts told are those of a column's values, in any order."""
    own = trace.data[column].value_counts(dropna=False).to_numpy()
    told = np.array([count for count in trace.label_counts or () if count])
    return np.array_equal(np.sort(own), np.sort(told))


def _close(one: tuple[float, ...], other: tuple[float, ...] | None) -> bool:
    return (
        other is not None
        and len(one) == len(other)
        and np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def _numbers(numbers: tuple[float, ...]) -> str:
    shown = ", ".join(f"{number:.6g}" for number in numbers[:4])
    return f"({shown}{', ...' if len(numbers) > 4 else ''})"


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
