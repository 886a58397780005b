"""Every classifier has a score for whatever it is trained on, and the areas are right."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import MissingExtraError, SettingsError
from dpaudit.usefulness.task import (
    CLASSIFIERS,
    Areas,
    Examples,
    choose,
    curve_areas,
    left_out,
    predict,
)

RNG = np.random.default_rng(5)
POSITIVE = np.arange(200) % 2 == 0
SEPARABLE = np.column_stack([POSITIVE ^ (RNG.random(200) < 0.02), RNG.random((200, 2))]).astype(
    float
)


def test_there_are_the_twelve_of_the_papers() -> None:
    assert len(CLASSIFIERS) == 12
    assert choose(None) == tuple(CLASSIFIERS)
    assert choose(["gbm", "lda"]) == ("lda", "gbm")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_learns_what_is_there_and_repeats(name: str) -> None:
    learned = predict(name, Examples(SEPARABLE, POSITIVE), [SEPARABLE], seed=1)
    again = predict(name, Examples(SEPARABLE, POSITIVE), [SEPARABLE], seed=1)
    assert learned.learned
    assert curve_areas(POSITIVE, learned.scores[0]).auroc > 0.9
    assert np.array_equal(learned.scores[0], again.scores[0])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_constant_columns_give_a_guess(name: str) -> None:
    features = np.full((200, 3), 0.25)
    found = predict(name, Examples(features, POSITIVE), [SEPARABLE, features], seed=1)
    for scores in found.scores:
        assert np.isfinite(scores).all()
    assert curve_areas(POSITIVE, found.scores[1]) == Areas(0.5, 0.5)


@pytest.mark.parametrize("positive", [np.ones(200, bool), np.zeros(200, bool)])
def test_one_class_teaches_nothing(positive: Any) -> None:
    found = predict("random-forest", Examples(SEPARABLE, positive), [SEPARABLE[:50]], seed=1)
    assert not found.learned
    assert curve_areas(POSITIVE[:50], found.scores[0]) == Areas(0.5, 0.5)


def test_areas_by_hand() -> None:
    positive = np.array([True, False, True, False, False])
    # Pairs in order: 5 of 6. Precision is 1 at the first positive, 2/3 at the second.
    assert curve_areas(positive, np.array([5.0, 4.0, 3.0, 2.0, 1.0])) == pytest.approx(
        Areas(5 / 6, (1 + 2 / 3) / 2)
    )
    assert curve_areas(positive, np.zeros(5)) == pytest.approx(Areas(0.5, 0.4))
    assert curve_areas(np.ones(3, bool), np.arange(3.0)) == Areas(0.5, 1.0)
    assert curve_areas(np.zeros(3, bool), np.arange(3.0)) == Areas(0.5, 0.0)


def test_names_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"no classifier 'gmb' \(did you mean 'gbm'\?\)"):
        choose(["gmb"])
    with pytest.raises(SettingsError, match="`classifiers` names none"):
        choose([])


def test_without_xgboost_there_are_eleven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert len(choose(None)) == 11
    assert left_out(choose(None)) == ("xgboost",)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[utility\]'"):
        choose(["xgboost"])
