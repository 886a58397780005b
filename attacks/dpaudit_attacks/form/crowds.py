"""Groups of rows that are equal in all categories, or in all but one column's.

Who makes a release k-anonymous, or fills the groups of a table, changes their sizes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray
from dpaudit_attacks.form.rows import WHOLE, longest_run
from dpaudit_attacks.form.view import Beside, FeatureGroup, flat, labelled, other_names

LABELS: Final = (
    "rows alone in all categories",
    "groups equal in all categories",
    "rows of the largest group equal in all categories",
)
WITHOUT: Final = tuple(f"{label} but this column's" for label in LABELS)


def crowds_names(schema: Schema) -> list[FeatureName]:
    """Names of the features; none if all columns are numeric. See `crowds_values`."""
    others = other_names(schema)
    whole = labelled([WHOLE], LABELS) if others else []
    return whole + (labelled(others, WITHOUT) if len(others) > 1 else [])


def crowds_values(view: Beside) -> FloatArray:
    """Sizes of the groups of rows that are equal in categories; a missing one is a category.

    Args:
        view: M tables.

    Returns:
        Features [M, f]: rows that are alone in all categorical columns, groups, and rows of the
        largest group; the same without each column, if there are two or more.
    """
    codes = view.stack.codes[:, view.stack.numbers.shape[1] :]
    others = codes.shape[1]
    if not others:
        return np.empty((view.n_tables, 0))
    whole = codes.sum(axis=1, keepdims=True)  # modulo 2^64
    rows = np.concatenate([whole, whole - codes], axis=1) if others > 1 else whole
    ordered = np.sort(rows, axis=-1)
    breaks = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones_like(breaks, shape=(*rows.shape[:2], 1))
    first = np.concatenate([edge, breaks], axis=-1)
    last = np.concatenate([breaks, edge], axis=-1)
    return flat([(first & last).sum(axis=-1), first.sum(axis=-1), longest_run(breaks)])


CROWDS = FeatureGroup(crowds_names, crowds_values)
