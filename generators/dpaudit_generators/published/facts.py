"""What the proof of a published PATE-GAN says it protects, as numbers that an attack can read.

PATE releases the answers to the student's queries: so the records that the student is trained on,
with their noisy labels, may be published. How many there are, what share of them is 1, stretch by
stretch of the training, and what records with either label look like, column by column. A training
without PATE has a critic in the student's place; it learns from noisy labels, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit_generators.published.scaling import Scaling
from dpaudit_generators.published.switches import Switch
from dpaudit_generators.published.trainee import Form, Shown, stretches

ONE_BY_ONE: Final = 32
"""Most columns of a schema whose means are released one by one; of more, the mean of all is."""
_NONE: Final = 0.5
"""Share of 1 among no labels."""


def has_conditions(switches: frozenset[Switch]) -> bool:
    """Whether records are shown to the student with conditions."""
    return Switch.CONDITIONS_FROM_DATA in switches and Switch.NO_PATE not in switches


def released_names(
    schema: Schema, *, iterations: int, switches: frozenset[Switch]
) -> tuple[str, ...]:
    """Names of the released numbers of every model, which depend on no table.

    Args:
        schema: The public schema.
        iterations: Most iterations of a training.
        switches: Deviations.
    """
    own = schema.names if len(schema.names) <= ONE_BY_ONE else ()
    columns = (*own, "all columns")
    names = ["labels", "iterations with labels", "share of 1 among labels"]
    parts = stretches(iterations)
    names += [f"share of 1 among labels, part {part + 1} of {parts}" for part in range(parts)]
    names += [f"mean of {name} where the label is {label}" for label in (0, 1) for name in columns]
    if has_conditions(switches):
        names += [f"mean of conditions about {name}" for name in columns]
    return tuple(names)


def released(
    shown: Shown, *, scaling: Scaling, form: Form, switches: frozenset[Switch]
) -> tuple[float, ...]:
    """The released numbers of one model, in the order of their names.

    Means are of scaled records; of a column that is one-hot, of the place of its value among all.

    Args:
        shown: What its student was trained on.
        scaling: How its records are scaled.
        form: The form of its records.
        switches: Deviations.
    """
    counts, code = shown.counts, _code(scaling)[form.order]
    by_label = counts.sum(axis=0)
    facts = [float(by_label.sum()), float(shown.iterations), _share(by_label)]
    facts += [_share(part) for part in counts]
    for sums, n in zip(shown.records, by_label, strict=True):
        facts += _means(sums @ code, int(n))
    if has_conditions(switches):
        places = np.concatenate([np.arange(part.start, part.stop) for part in form.conditions])
        facts += _means(shown.hints @ code[places], int(by_label.sum()))
    return tuple(facts)


def _share(counts: IntArray) -> float:
    """Share of 1, given the numbers of 0 and 1."""
    return float(counts[1] / counts.sum()) if counts.sum() else _NONE


def _means(sums: FloatArray, n: int) -> Sequence[float]:
    """Means of each column and of all, given their sums over n records; 0 if there are none."""
    means = sums / max(n, 1)
    own = means.tolist() if len(means) <= ONE_BY_ONE else []
    return [*own, float(means.mean())]


def _code(scaling: Scaling) -> FloatArray:
    """Turns scaled records into a number for each column of the schema, [width, d]."""
    columns = scaling.schema.columns
    code = np.zeros((scaling.width, len(columns)))
    possible = scaling.possible
    for index, column in enumerate(columns):
        own = scaling.columns_of(column.name)
        if column.kind.numeric:
            code[own[0], index] = 1.0
            own = own[1:]
        own = own[possible[own]]
        code[own, index] = np.linspace(0.0, 1.0, len(own))
    return code
