"""Where synthetic records come from: noisy marginals weighted by the student, or a network."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import numpy as np

from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.marginals import TreeModel

CHOICES: Final = 2
"""Candidates of each sampled record."""

_PART: Final = 2048
"""Records that are sampled at a time."""


class Origin(StrEnum):
    """What makes the records that teachers judge."""

    MARGINALS = "marginals"
    """Noisy marginals, paid from the budget, weighted by the student in the end."""
    NOISE = "noise"
    """A generator network that begins with noise and learns from the student, as published."""


def candidates(start: TreeModel, uniforms: FloatArray) -> FloatArray:
    """Records drawn from noisy marginals.

    Args:
        start: The marginals, of d columns.
        uniforms: Two for each value, in [0, 1), [n, 2 d]: for its cell, and where in the cell.

    Returns:
        Values [n, d], as `dpaudit.model.encoding.values_of` gives them.
    """
    which, where = np.split(uniforms, 2, axis=1)
    return start.tables.domain.values(start.tables.draw(start.shares, which), where)


def sample_weighted(
    start: TreeModel,
    score: Callable[[FloatArray], FloatArray],
    n: int,
    *,
    seed: int | None,
    on_candidates: Callable[[FloatArray], None] | None = None,
) -> FloatArray:
    """Draws records from noisy marginals, those that the student calls real more often.

    One of `CHOICES` candidates is kept, with probability proportional to exp(score): the odds that
    a record is real are by how much a real table has more of it (sampling importance resampling,
    Rubin 1987). They share their label, because counts know the proportions of its classes better
    than votes: teachers with few records of a rare class take all of it for unreal.

    Args:
        start: The marginals.
        score: The student's logit of each of some values [n, d].
        n: Number of records.
        seed: For audits; None means the system's entropy.
        on_candidates: Called with the values of all candidates.

    Returns:
        Values [n, d].
    """
    rng, schema = rng_of(seed, "sample"), start.tables.domain.schema
    columns = len(schema.columns)
    labels = [place for place, name in enumerate(schema.names) if name == schema.label]
    records = np.empty((n, columns))
    for first in range(0, n, _PART):
        own = records[first : first + _PART]
        uniforms = rng.random((len(own), CHOICES, 2 * columns))
        uniforms[..., labels] = uniforms[:, :1, labels]
        values = candidates(start, uniforms.reshape(-1, 2 * columns))
        if on_candidates is not None:
            on_candidates(values)
        chosen = _chosen(score(values).reshape(-1, CHOICES), rng.random(len(own)))
        own[:] = values.reshape(-1, CHOICES, columns)[np.arange(len(own)), chosen]
    return records


def _chosen(scores: FloatArray, uniforms: FloatArray) -> IntArray:
    """Which of the candidates in each row is kept."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    reached = np.cumsum(weights, axis=1)
    passed: IntArray = (reached <= uniforms[:, None] * reached[:, -1:]).sum(axis=1)
    return np.minimum(passed, CHOICES - 1)
