"""Answers that compiled code copies, so that replay sees only how they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import ndimage

import dpaudit
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": 2}]}
)
TABLE = pd.DataFrame({"a": np.repeat([0, 1, 2], [40, 20, 20])})


class Zeroed:
    """Noisy counts of which negative ones, none here, become 0; a copy of them is released."""

    def __init__(self, copied: Callable[[Any], Any], scale: float) -> None:
        self.copied, self.scale = copied, scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Zeroed:
        """Counts."""
        counts = np.bincount(data["a"], minlength=3).astype(float)
        noisy = counts + np.random.default_rng(seed).laplace(0.0, self.scale, size=3)
        noisy[noisy < 0] = 0
        released = self.copied(noisy)
        self.shares = released / released.sum()
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Cells by their shares."""
        return pd.DataFrame({"a": np.random.default_rng(seed).choice(3, n, p=self.shares)})


def bytewise(noisy: Any) -> Any:
    return np.array(memoryview(noisy))


def rounded(noisy: Any) -> Any:
    return np.rint(bytewise(noisy))


def filtered(noisy: Any) -> Any:
    return ndimage.shift(noisy, 0)


def none_but_where(noisy: Any) -> Any:
    """Which counts are above 0: all of them."""
    return (noisy > 0).astype(float)


@pytest.mark.parametrize(
    "copied", [bytewise, rounded, pytest.param(filtered, marks=pytest.mark.ci)]
)
def test_a_comparison_whose_outcome_is_certain_hides_no_number(copied: Any) -> None:
    record = dpaudit.replay(
        Zeroed(copied, 0.1), TABLE, schema=SCHEMA, epsilon=1.0, target="row:0", replays=4
    )
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(10.0)
    [line] = record.ledger
    assert line.counts_as == "released"


@pytest.mark.parametrize(("copied", "scale"), [(bytewise, 1.0), (none_but_where, 0.1)])
def test_numbers_within_the_claim_and_comparisons_alone_accuse_nobody(
    copied: Any, scale: float
) -> None:
    record = dpaudit.replay(
        Zeroed(copied, scale), TABLE, schema=SCHEMA, epsilon=1.0, target="row:0", replays=4
    )
    assert record.verdict is Verdict.CONSISTENT, str(record)
