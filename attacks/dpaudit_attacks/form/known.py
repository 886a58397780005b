"""Records and values of the training table that the attacker knows: all but the target."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, IntArray
from dpaudit_attacks.form.rows import WHOLE, longest_run
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, numeric_names, other_names

ROWS: Final = (
    "rows equal to a known record",
    "known records that appear",
    "most copies of a known record",
)
VALUES: Final = ("values of known records", "different values of known records")
COLUMN: Final = "rows equal to a known record but for this column"


def known_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; see `known_values`."""
    numeric, others = numeric_names(schema), other_names(schema)
    return [
        *(FeatureName(WHOLE, row) for row in ROWS),
        *(FeatureName(column, COLUMN) for column in numeric + others),
        *(FeatureName(column, value) for column in numeric for value in VALUES),
    ]


def known_values(view: Beside) -> FloatArray:
    """Counts of rows and numbers that known records have too.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows equal to a known record, how many known records appear, and the rows
        of the most frequent one; for each column the rows that are equal in all others, whether or
        not in it; for each numeric column its numbers that known records have, and how many
        different ones.
    """
    rows = view.stack.row_codes
    copies = _among(rows, view.known.row_codes[0])
    new = np.concatenate([np.ones_like(copies[:, :1]), rows[:, 1:] != rows[:, :-1]], axis=1)
    longest = longest_run(new[:, 1:] | ~copies[:, 1:])
    whole = [copies.sum(axis=-1), (copies & new).sum(axis=-1), longest * copies.any(axis=-1)]
    without, known_without = view.stack.codes_without_one, view.known.codes_without_one[0]
    nearly: list[IntArray] = [
        _among(own, known).sum(axis=-1)
        for own, known in zip(without.swapaxes(0, 1), known_without, strict=True)
    ]
    numbers = view.stack.ordered
    shared = np.zeros(numbers.shape, dtype=np.bool_)
    for place, known_numbers in enumerate(view.known.ordered[0]):
        shared[:, place] = _among(numbers[:, place], known_numbers)
    first = np.ones_like(shared)
    first[..., 1:] = numbers[..., 1:] != numbers[..., :-1]
    values = flat([shared.sum(axis=-1), (shared & first).sum(axis=-1)])
    return np.concatenate([np.column_stack([*whole, *nearly]), values], axis=1)


KNOWN = FeatureGroup(known_names, known_values)


def _among(
    found: npt.NDArray[np.uint64] | FloatArray, known: npt.NDArray[np.uint64] | FloatArray
) -> npt.NDArray[np.bool_]:
    """Which of some values [..., n] are among sorted known ones [N]; NaN never is."""
    if not len(known):
        return np.zeros(found.shape, dtype=np.bool_)
    at = np.minimum(known.searchsorted(found), len(known) - 1)
    equal: npt.NDArray[np.bool_] = known[at] == found
    return equal
