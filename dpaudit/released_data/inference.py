"""Attribute inference: guesses one value of a record from its other values and a synthetic table.

Facts about a population allow guesses about anyone. So the same guesses are made for train records
and for hold-out records, as Stadler, Oprisanu and Troncoso (2022) and TAPAS do with and without the
record in the training table: only guesses that are right more often for train records show a leak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.encoding import EncodedColumn, layout
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.copies import Excess, Hits, excess_of
from dpaudit.released_data.rows import Encoded, find_nearest

TOLERANCE: Final = 0.01
"""A guessed number is right if it is off by at most this share of the column's bounds."""
MOST_SECRETS: Final = 12
"""Largest number of columns guessed by default."""
_MOST_TARGETS: Final = 1000
"""Largest number of records per table whose values are guessed."""
_MOST_LEARNED: Final = 5000
"""Largest number of synthetic records that a model learns from."""
_TREES: Final = 10


class Guesser(StrEnum):
    """How a value is guessed."""

    CLOSEST = "closest record"
    """From the synthetic record closest in all other columns (TAPAS)."""
    MODEL = "model"
    """By a random forest trained on the synthetic table (Stadler et al.)."""


class Inference(NamedTuple):
    """How often one attack correctly guesses the values of one column.

    Attributes:
        secret: The column that is guessed.
        guesser: How.
        baseline: Share of train records for which the most frequent synthetic value (the median for
            numbers) is right, without looking at other columns.
        right: Right guesses for train and for hold-out records.
    """

    secret: str
    guesser: Guesser
    baseline: float
    right: Excess


class _Part(NamedTuple):
    """Records without the secret, and their secret values."""

    known: Encoded
    secret: FloatArray


def choose_secrets(names: Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """The columns whose values are guessed.

    Args:
        names: The requested columns; None for the label and the first columns, 12 at most.
        schema: The schema.

    Returns:
        Their names.

    Raises:
        SettingsError: If a name is not a column.
    """
    if names is None:
        label = [schema.label] if schema.label else []
        return tuple(dict.fromkeys([*label, *schema.names]))[:MOST_SECRETS]
    for name in names:
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            raise SettingsError(f"`secrets` names {name!r}, which is not a column{hint}")
    return tuple(dict.fromkeys(names))


def infer_attributes(
    train: Encoded,
    synthetic: Encoded,
    holdout: Encoded | None,
    schema: Schema,
    secrets: Sequence[str],
    rng: np.random.Generator,
    *,
    confidence: float,
    on_share: Callable[[float], None] = lambda share: None,
) -> tuple[Inference, ...]:
    """Guesses values of train and hold-out records from all their other values.

    Args:
        train: The train table [n, w], encoded.
        synthetic: The synthetic table [m, w], encoded.
        holdout: The hold-out [h, w], encoded; None if there is none.
        schema: Their schema, of at least two columns.
        secrets: Columns whose values are guessed.
        rng: Draws the records, and trains.
        confidence: Probability that all limits hold at once, in (0, 1).
        on_share: Called with the share of the work that is done.

    Returns:
        Two findings for each secret.

    Raises:
        SettingsError: If the confidence is out of range.
    """
    tests = len(secrets) * len(Guesser)
    targets = _sample(train, _MOST_TARGETS, rng)
    others = _sample(train[:0] if holdout is None else holdout, _MOST_TARGETS, rng)
    inferences = []
    for block in layout(schema):
        if block.column.name not in secrets or len(schema.columns) < 2:
            continue
        own, other, basis = (_part(table, block) for table in (targets, others, synthetic))
        asked = np.concatenate([own.known, other.known])
        typical = np.full(len(own.secret), _typical(basis.secret, block))
        baseline = _hits(typical, own, block).rate
        for guesser in Guesser:
            if guesser is Guesser.CLOSEST:
                nearest = find_nearest(asked, basis.known, neighbours=1, exact=False)
                guesses = basis.secret[nearest.indices[:, 0]]
            else:
                guesses = _guess_by_forest(basis, asked, block, rng)
            right = excess_of(
                _hits(guesses[: len(own.secret)], own, block),
                _hits(guesses[len(own.secret) :], other, block),
                confidence=confidence,
                tests=tests,
            )
            inferences.append(Inference(block.column.name, guesser, baseline, right))
        on_share(len(inferences) / tests)
    return tuple(inferences)


def _part(matrix: Encoded, block: EncodedColumn) -> _Part:
    """Splits encoded records; a secret is a number in [0, 1], or the position of a category."""
    places = list(range(block.value.start, block.value.stop))
    if block.indicator is not None:
        places.append(block.indicator)
    values = matrix[:, block.value].astype(np.float64)
    secret = values[:, 0] if block.column.kind.numeric else values.argmax(axis=1) * 1.0
    if block.indicator is not None:
        secret = np.where(matrix[:, block.indicator] >= 0.5, np.nan, secret)
    return _Part(np.delete(matrix, places, axis=1), secret)


def _guess_by_forest(
    basis: _Part, asked: Encoded, block: EncodedColumn, rng: np.random.Generator
) -> FloatArray:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    learned = rng.permutation(np.flatnonzero(~np.isnan(basis.secret)))[:_MOST_LEARNED]
    if not len(learned):
        return np.full(len(asked), np.nan)
    kind = RandomForestRegressor if block.column.kind.numeric else RandomForestClassifier
    forest = kind(n_estimators=_TREES, random_state=int(rng.integers(2**31)), n_jobs=1)
    with threadpool_limits(limits=1):
        forest.fit(basis.known[learned], basis.secret[learned])
        return np.asarray(forest.predict(asked), dtype=np.float64)


def _typical(secret: FloatArray, block: EncodedColumn) -> float:
    if block.column.kind.numeric:
        present = secret[~np.isnan(secret)]
        return float(np.median(present)) if len(present) else np.nan
    values, counts = np.unique(secret, return_counts=True)
    return float(values[counts.argmax()])


def _hits(guesses: FloatArray, part: _Part, block: EncodedColumn) -> Hits:
    if block.column.kind.numeric:
        right: BoolArray = np.abs(guesses - part.secret) <= TOLERANCE
        right |= np.isnan(guesses) & np.isnan(part.secret)
    else:
        right = guesses == part.secret
    return Hits(int(right.sum()), len(right))


def _sample(matrix: Encoded, most: int, rng: np.random.Generator) -> Encoded:
    return matrix[rng.permutation(len(matrix))[:most]] if len(matrix) > most else matrix
