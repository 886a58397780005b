"""Tables of categories, in which every row has copies: neighbours all the same."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.results import sentences
from samples import QUICK_ATTACKS

COPIES = 10
TABLE = pd.DataFrame({"town": ["a", "b"] * COPIES})
SCHEMA = dpaudit.Schema(
    columns=(
        dpaudit.Column(name="town", kind=dpaudit.Kind.CATEGORICAL, categories=("a", "b", "c")),
    )
)
SMALL: dict[str, Any] = {"shadow_models": 60, "attacks": QUICK_ATTACKS[1:], "jobs": 1, "probe": 0}


class Counted:
    """A model that releases how often "a" was seen, exactly."""

    def __init__(self, number: int) -> None:
        self.number = number

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """As many rows of "a" as the training table had, of "b" for the rest."""
        del seed
        seen = self.number
        return pd.DataFrame({"town": ["a"] * seen + ["b"] * (n - seen)})


class Exact:
    """A generator whose tables show a count without noise."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Counted:
        """Counts."""
        del seed
        return Counted(int((data["town"] == "a").sum()))


def test_one_copy_less_is_proved_where_it_shows() -> None:
    result = audit_by_keywords(Exact(), TABLE, schema=SCHEMA, epsilon=1.0, **SMALL)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert result.controls is not None
    assert result.controls.positive.passed  # it copies the target where it saw one more
    assert result.target.repeats == COPIES - 1
    assert sentences.target(result).endswith("; 9 other rows equal to it")


@pytest.mark.ci
def test_nothing_is_proved_where_it_does_not() -> None:
    result = audit_by_keywords("null", TABLE, schema=SCHEMA, epsilon=1.0, **SMALL)
    assert result.verdict is not dpaudit.Verdict.VIOLATION
    assert result.controls is not None
    assert result.controls.null.passed


@pytest.mark.ci
def test_a_replay_finds_it_too() -> None:
    record = dpaudit.replay(Exact(), TABLE, schema=SCHEMA, epsilon=1.0, fits=60)
    assert record.parting is not None
