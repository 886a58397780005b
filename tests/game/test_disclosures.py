"""What a model discloses is taken before it is dropped, and checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import TrialError
from dpaudit.game.training import COMPARED, disclosed
from dpaudit.plugins.access import Disclosure
from samples import PEOPLE, game_view, people

VIEW = replace(
    game_view(PEOPLE, people().iloc[[0]], others=people().iloc[1:]), released_facts=("a", "b")
)


class Model:
    """Discloses what it is given."""

    def __init__(self, values: Any) -> None:
        self.values, self.rows = values, None

    def discriminate(self, rows: Any) -> Any:
        self.rows = rows
        return np.arange(len(rows))

    def parameters(self) -> Any:
        return self.values

    def released(self) -> Any:
        return self.values


def test_only_what_is_seen_is_asked_for() -> None:
    model = Model([1, 2])
    assert disclosed(model, (), VIEW) == {}
    found = disclosed(model, (Disclosure.PARAMETERS,), VIEW)
    assert {key: values.tolist() for key, values in found.items()} == {
        Disclosure.PARAMETERS: [1.0, 2.0]
    }
    assert model.rows is None


def test_a_discriminator_scores_the_target_first_then_records_of_both_worlds() -> None:
    model = Model([])
    found = disclosed(model, (Disclosure.DISCRIMINATOR,), VIEW)[Disclosure.DISCRIMINATOR]
    assert len(found) == 1 + min(COMPARED, len(VIEW.others))
    assert model.rows.iloc[[0]].equals(VIEW.schema.canonical(VIEW.target))


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0], "2 numbers"), ([1.0, np.nan], "finite"), ([[1.0, 2.0]], "shape"), (None, "shape")],
)
def test_what_is_no_flat_finite_array_fails_the_trial(values: Any, message: str) -> None:
    with pytest.raises(TrialError, match=message):
        disclosed(Model(values), (Disclosure.RELEASED,), VIEW)


def test_a_missing_method_fails_the_trial() -> None:
    with pytest.raises(TrialError, match="no method parameters"):
        disclosed(object(), (Disclosure.PARAMETERS,), VIEW)
