"""How alike columns and pairs of columns are, as SDMetrics measures it (extra `fidelity`)."""

from __future__ import annotations

import importlib.util
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import MissingExtraError
from dpaudit.model.schema import Schema
from dpaudit.seeds import seeded_globals


class Fidelity(NamedTuple):
    """Scores in [0, 1] of a synthetic table; None where SDMetrics has none.

    Attributes:
        columns: Mean likeness of the columns' distributions ("Column Shapes").
        pairs: Mean likeness of the dependence within pairs of columns ("Column Pair Trends").
    """

    columns: float | None
    pairs: float | None


def check_installed() -> None:
    """Refuses to measure fidelity without SDMetrics.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if importlib.util.find_spec("sdmetrics") is None:
        raise MissingExtraError("fidelity", "sdmetrics", "fidelity")


def measure_fidelity(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, seed: int
) -> Fidelity:
    """Compares columns and pairs of columns of two canonical tables.

    Args:
        real: The real table.
        synthetic: The synthetic one.
        schema: Their schema.
        seed: Of whatever SDMetrics draws, in [0, 2**32).

    Returns:
        Its two scores.

    Raises:
        MissingExtraError: If SDMetrics is not installed.
    """
    check_installed()
    from sdmetrics.reports.single_table import QualityReport

    columns = {
        one.name: {"sdtype": "numerical" if one.kind.numeric else "categorical"}
        for one in schema.columns
    }
    report = QualityReport()
    with warnings.catch_warnings(), np.errstate(all="ignore"), seeded_globals(seed):
        warnings.simplefilter("ignore")  # constant columns: they have no correlation
        report.generate(
            _plain(real, schema), _plain(synthetic, schema), {"columns": columns}, verbose=False
        )
    scores = report.get_properties().set_index("Property")["Score"]
    return Fidelity(_number(scores["Column Shapes"]), _number(scores["Column Pair Trends"]))


def _plain(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Categories as text: SDMetrics cannot sort those of several types."""
    texts = {
        one.name: table[one.name].map(str, na_action="ignore")
        for one in schema.columns
        if not one.kind.numeric
    }
    return table.assign(**texts)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
