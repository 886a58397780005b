"""Whether two rankings agree: of classifiers, and of columns by what they say of the label."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit.errors import SettingsError
from dpaudit.model.encoding import layout
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.usefulness.task import PredictionTask


def ranking_agreement(one: FloatArray, other: FloatArray) -> float:
    """The share of pairs that two lists of numbers put in the same strict order.

    Of classifiers' scores on real and on synthetic data this is the synthetic ranking agreement of
    Jordon, Yoon and van der Schaar 2019. A pair that is equal in either list does not agree; 0.5 is
    what unrelated lists without equal numbers get.

    Args:
        one: Numbers [k].
        other: Numbers [k] of the same things.

    Returns:
        The share, in [0, 1].

    Raises:
        SettingsError: If there are fewer than two, or not equally many.
    """
    if len(one) != len(other) or len(one) < 2:
        raise SettingsError(
            f"rankings of {len(one)} and {len(other)} things: give two of the same, of at least 2"
        )
    rows, columns = np.triu_indices(len(one), 1)
    orders = np.sign(one[rows] - one[columns]) * np.sign(other[rows] - other[columns])
    return float((orders > 0).mean())


def column_importance(table: pd.DataFrame, task: PredictionTask) -> FloatArray:
    """How much each column alone says of the label: its multiple correlation with it.

    For a number without missing values this is the absolute Pearson correlation, as in the papers;
    for categories, and numbers that may be missing, the correlation of the label with the best
    linear combination of the column's encoded values.

    Args:
        table: A canonical table.
        task: What is predicted.

    Returns:
        One number in [0, 1] for each column but the label, in schema order; 0 for a constant column
        and for a constant label.
    """
    features, positive = task.examples(table)
    blocks = []
    for block in layout(task.feature_schema):
        stop = block.value.stop if block.indicator is None else block.indicator + 1
        blocks.append(_multiple_correlation(features[:, block.value.start : stop], positive))
    return np.array(blocks)


def _multiple_correlation(block: FloatArray, positive: BoolArray) -> float:
    centred = block - block.mean(axis=0)
    label = positive - positive.mean()
    total = float(label @ label)
    if total == 0.0 or np.abs(centred).max() < 1e-12:
        return 0.0
    weights, *_ = np.linalg.lstsq(centred, label, rcond=None)
    explained = float(label @ centred @ weights) / total
    return float(np.sqrt(np.clip(explained, 0.0, 1.0)))
