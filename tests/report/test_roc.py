"""The ROC curve of a report: its confidence band, and its logarithmic axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dpaudit.bounds import RocCurve
from dpaudit.model.claim import PrivacyClaim
from dpaudit.report.figures import draw
from dpaudit.results.curves import largest_tpr, on_logarithmic_axes, permitted_from, roc_band
from dpaudit.results.record import AuditRecord
from dpaudit.results.structure import Picture

Make = Callable[..., AuditRecord]

SCORES = {"in": [0.9, 0.8, 0.7, 0.1], "out": [0.6, 0.5, 0.4, 0.3, 0.1]}
SCORED: dict[str, Any] = {
    "scores": SCORES,
    "threshold": {"value": 0.65, "direction": "higher"},
    "counts": {"false_negatives": 1, "false_positives": 0, "n_in": 4, "n_out": 5},
    "game": {"name": "two worlds", "sequential": None},
}


def limits(count: int, n: int) -> tuple[float, float]:
    """One-sided Clopper-Pearson limits at 95 %, from below and from above."""
    low, high = proportion_confint(count, n, alpha=0.1, method="beta")
    return float(low), float(high)


def test_the_band_holds_the_limits_of_every_threshold(record_of: Make) -> None:
    band = roc_band(record_of(**SCORED))
    assert band is not None
    # 0..3 of 4 in before any of out, then four of five out, then the two that are tied.
    counts = [*((0, tp) for tp in range(4)), *((fp, 3) for fp in range(1, 5)), (5, 4)]
    for place, (fp, tp) in enumerate(counts):
        assert [band.better.fpr[place], band.worse.fpr[place]] == pytest.approx(limits(fp, 5))
        assert [band.worse.tpr[place], band.better.tpr[place]] == pytest.approx(limits(tp, 4))
    assert len(band.worse.fpr) == len(counts)


def test_trials_that_are_not_independent_have_no_band(record_of: Make) -> None:
    steps = {"trials": 9, "cap": 9, "stopped_early": False}
    assert "limits of each rate" in draw(Picture.ROC, record_of(**SCORED))
    record = record_of(**(SCORED | {"game": {"name": "two worlds", "sequential": steps}}))
    assert roc_band(record) is None
    assert "limits of each rate" not in draw(Picture.ROC, record)


def test_lines_stay_where_they_are_on_logarithmic_axes() -> None:
    shown = on_logarithmic_axes(RocCurve(np.array([0, 0, 1.0]), np.array([0, 0.5, 1.0])), low=0.01)
    assert shown.fpr.min() == shown.tpr.min() == 0.01
    assert (np.diff(shown.fpr) >= 0).all()
    assert (np.diff(shown.tpr) >= 0).all()
    beyond = shown.fpr > 0.01
    np.testing.assert_allclose(shown.tpr[beyond], 0.5 + 0.5 * shown.fpr[beyond])


def test_what_the_claim_permits_is_the_same_on_both_axes() -> None:
    claim = PrivacyClaim(epsilon=1.0, delta=1e-3)
    region = permitted_from(claim, low=1e-3)
    upper, lower = region[: len(region) // 2], region[len(region) // 2 :]
    for point in upper:
        assert point.tpr == pytest.approx(largest_tpr(claim, point.fpr))
    for point in lower:
        assert 1 - point.tpr == pytest.approx(largest_tpr(claim, 1 - point.fpr))


def test_the_logarithmic_axes_reach_below_one_trial(record_of: Make) -> None:
    picture = draw(Picture.ROC, record_of(**SCORED))
    assert "false positive rate, logarithmic" in picture
    assert ">0.1</text>" in picture
    assert ">0.01</text>" not in picture  # of 5 trials none shows less than 0.2
