"""Stacked logistic regressions against scikit-learn's, and against themselves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dpaudit_generators.published.teachers import fit_logistic


def problems(kind: str, *, count: int = 8, n: int = 61, width: int = 7) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(count, n, width))
    labels = (rng.random((count, n)) < 0.4).astype(np.float64)
    if kind == "separable":
        labels = (rows[:, :, 0] > 0.3).astype(np.float64)
    elif kind == "far apart":  # one jump from 0 overshoots
        rows *= 50.0
        rows[..., 1] += 1e3 * labels
    elif kind == "rare":
        labels = np.zeros((count, n))
        labels[:, 3] = 1.0
    elif kind == "critic":  # records in [0, 1], as many real as generated
        rows = rng.random((count, n, width))
        labels = np.tile(np.arange(n) % 2, (count, 1)).astype(np.float64)
        rows[..., 2] = labels
        rows[..., 3] = 0.0
    return rows.astype(np.float32), labels


def peer(rows: Any, labels: Any, weights: Any = None) -> Any:
    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    model.fit(rows.astype(np.float64), labels, sample_weight=weights)
    return np.append(model.coef_[0], model.intercept_)


@pytest.mark.parametrize("kind", ["random", "separable", "far apart", "rare", "critic"])
@pytest.mark.parametrize("width", [7, 90])  # more columns than rows, too
def test_the_solution_is_scikit_learns(kind: str, width: int) -> None:
    rows, labels = problems(kind, width=width)
    found = fit_logistic(rows, labels)
    expected = [peer(x, y) for x, y in zip(rows, labels, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_weights_count_rows_as_often() -> None:
    rows, labels = problems("random")
    weights = np.random.default_rng(1).integers(0, 3, size=labels.shape).astype(np.float64)
    found = fit_logistic(rows, labels, weights=weights)
    expected = [
        peer(np.repeat(x, w.astype(int), axis=0), np.repeat(y, w.astype(int)))
        for x, y, w in zip(rows, labels, weights, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    weights = np.ones_like(labels)
    weights[:, 50:] = 0.0
    padding = fit_logistic(rows, labels, weights=weights)
    np.testing.assert_allclose(padding, fit_logistic(rows[:, :50], labels[:, :50]), atol=1e-7)


@pytest.mark.parametrize("kind", ["random", "separable", "far apart", "critic"])
@pytest.mark.parametrize("n", [2, 61, 64, 137])
def test_no_regression_depends_on_the_others_by_a_bit(kind: str, n: int) -> None:
    for width in (4, 29, 40):
        rows, labels = problems(kind, count=35, n=n, width=width)
        together = fit_logistic(rows, labels)
        for start in (0, 5, 13, 34):
            for count in (1, 3, 8):
                part = slice(start, start + count)
                np.testing.assert_array_equal(
                    fit_logistic(rows[part], labels[part]), together[part]
                )


def test_one_class_decides_whatever_is_asked() -> None:
    rows, labels = problems("random", count=3)
    labels[0], labels[1] = 0.0, 1.0
    found = fit_logistic(rows, labels)
    assert not found[:2, :-1].any()
    assert found[:2, -1].tolist() == [-40.0, 40.0]
    np.testing.assert_array_equal(found[2:], fit_logistic(rows[2:], labels[2:]))
    only_ones = fit_logistic(rows[2:], labels[2:], weights=labels[2:])
    assert only_ones[0, -1] == 40.0


def test_classes_that_look_the_same() -> None:
    rows, labels = problems("random", count=4, n=60)
    rows[:2, 30:], labels[:2] = rows[:2, :30], np.arange(60) >= 30  # 0 is the solution of two
    found = fit_logistic(rows, labels)
    np.testing.assert_allclose(found[:2], 0.0, atol=1e-12)
    np.testing.assert_array_equal(found[2:], fit_logistic(rows[2:], labels[2:]))
    assert not fit_logistic(np.zeros((1, 4, 3)), np.array([[0.0, 1.0, 0.0, 1.0]])).any()


def test_outliers_do_not_lead_astray() -> None:
    rng = np.random.default_rng(0)  # no peer converges here, but a gradient of 0 needs none
    rows = 3.0 * np.abs(rng.standard_cauchy((40, 78, 44)))
    labels = (rng.random((40, 78)) < 0.5).astype(np.float64)
    found = fit_logistic(rows, labels)
    margins = np.einsum("bnw,bw->bn", rows, found[:, :-1]) + found[:, -1:]
    residuals = expit(margins) - labels
    slopes = np.einsum("bnw,bn->bw", rows, residuals) + found[:, :-1]
    assert np.abs(slopes).max() < 1e-7
    assert np.abs(residuals.sum(axis=1)).max() < 1e-7


def test_one_row_of_each_class() -> None:
    rows = np.array([[[0.0], [1.0]]])
    (slope, intercept) = fit_logistic(rows, np.array([[0.0, 1.0]]))[0]
    assert slope == pytest.approx(peer(rows[0], np.array([0.0, 1.0]))[0], abs=1e-8)
    assert intercept == pytest.approx(-slope / 2.0, abs=1e-8)
