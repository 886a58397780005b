"""The lists of a result as tables, for whoever goes on in pandas."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from dpaudit.results.record import AuditRecord

if TYPE_CHECKING:
    import pandas as pd


def scores_frame(result: AuditRecord) -> pd.DataFrame:
    """Membership scores of the deciding attack: a row for each scored trial.

    Returns:
        Columns `world` ("in" or "out") and `score`; a high score says "in".
    """
    import pandas as pd

    rows = [(world.value, score) for world, of in result.scores.items() for score in of]
    return _typed(pd.DataFrame(rows, columns=["world", "score"]), text=["world"])


def features_frame(result: AuditRecord) -> pd.DataFrame:
    """Features that carry the deciding attack, the most important first.

    Returns:
        Columns `column` and `feature` (of the table, and its statistic), `importance` (loss of AUC
        when it is permuted) and `separation` (|AUC - 1/2| of it alone; missing in old results).
    """
    import pandas as pd

    names = ["column", "feature", "importance", "separation"]
    rows = [(one.column, one.feature, one.importance, one.separation) for one in result.leaks]
    return _typed(pd.DataFrame(rows, columns=names), text=["column", "feature"])


def attacks_frame(result: AuditRecord) -> pd.DataFrame:
    """Every attack that was scored, as the report lists them.

    Returns:
        Columns `attack`, `auc`, the number of `false_negatives`, `n_in`, `false_positives` and
        `n_out`, and a column for each bound, missing where it does not apply.
    """
    import pandas as pd

    rows = [
        {"attack": one.name, "auc": one.auc, **asdict(one.counts)}
        | {key.value: value for key, value in one.bounds.items()}
        for one in result.attacks
    ]
    return pd.DataFrame(rows)


def _typed(frame: pd.DataFrame, *, text: list[str]) -> pd.DataFrame:
    """A table whose numbers are numbers, also where there are no rows."""
    numbers = [name for name in frame.columns if name not in text]
    return frame.astype(dict.fromkeys(numbers, float))
